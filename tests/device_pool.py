"""Programs with the device that start at once: a process that holds torch and the device forks for each.

A program runs as under `python -m aten_overlay`, which costs four seconds to start. What it does stays in its fork.
Run as a script, this module is that process.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What pytest tells of itself, which no program reads.
_OF_PYTEST = ("PYTEST_",)
# Seconds after which a program is stuck: less than a test has (tests/hung.py).
_STUCK = 600
# What nearly every suite under the plugin imports.
_PRELOADED = (
    "pytest",
    "torch",
    "torch.testing._internal.common_methods_invocations",
    "porter.plan.planner",
    "porter.verdict.suite.variations",
    "tests.conftest",
)


class DevicePool:
    """Runs programs in forks of one process, which starts with the first of them.

    `run` takes what follows `python -m aten_overlay`. A program in another environment than the first one had gets a
    process of its own: the device reads some of it when it starts.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._environment: Mapping[str, str] = {}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Returns what a program printed and how it ended; a signal is a negative code, as `subprocess` has it."""
        environment = read_environment()
        if self._process is None:
            self._environment, self._process = environment, self._start()
        if environment != self._environment:
            command = [sys.executable, "-m", "aten_overlay", *arguments]
            return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            code = self._ask({"arguments": arguments, "out": str(out), "err": str(err)})
            return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "aten_overlay", "-m", "tests.device_pool"]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def _ask(self, request: Mapping[str, object]) -> int:
        assert self._process is not None and self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the process that holds the device ended: {self._process.wait()}"
        return int(answer)


def read_environment() -> dict[str, str]:
    """The environment that programs are started with, without what pytest sets for each test."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_PYTEST)}


def serve() -> None:
    """Forks for each request of the input, and answers with the exit code, until the input ends.

    Nothing computes here: a pool of threads, which torch makes for its first computation, does not survive a fork.
    """
    from porter.server.command import PRELOADED  # here: the tests themselves import it only where they need it

    for module in (*_PRELOADED, *PRELOADED):
        importlib.import_module(module)
    # A sample of an OpInfo took 90 ms: torch's tools look for its test among all modules.
    importlib.import_module("porter.verdict.suite.torch_tools").make_quick()
    # pytest collects garbage five times when it ends: a fork would look through all of torch each time, and copy it.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(request["arguments"], request["out"], request["err"])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, flush=True)


def _run(arguments: Sequence[str], out: str, err: str) -> None:
    """Runs a program with its output in files, as an interpreter of its own does, and ends the process."""
    import torch

    from aten_overlay.__main__ import main

    # Nothing has computed on the device before the fork: torch.manual_seed seeds it here as in a process of its own.
    torch.mps._is_in_bad_fork = lambda: False
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, stream.fileno())
        os.close(handle)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.dump_traceback_later(_STUCK, exit=True)
    code: object = 1
    try:
        code = main(arguments)
    except SystemExit as end:
        code = end.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code) if isinstance(code, int) else 0)


if __name__ == "__main__":
    serve()
