"""A command for tests of the command server: prints what its process has, then ends in the way its words say."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time


def main() -> int:
    ending, *_ = arguments = sys.argv[1:]
    umask = os.umask(0)
    limit = resource.getrlimit(resource.RLIMIT_CORE)[0]
    report = (arguments, os.getcwd(), dict(os.environ), umask, limit, sys.stdin.read(), sys.path)  # noqa: PTH109
    try:
        print(json.dumps(report), flush=True)
        time.sleep(600 if ending == "waits" else 0)
    except KeyboardInterrupt:
        return 130
    if ending == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if ending == "raises":
        raise ValueError(ending)
    sys.exit(None if ending == "exits" else 3)
