"""How long planning takes, as ratios to a plain libcst parse of the fork's OpInfo file in the same run.

python benchmarks/plan.py --checkout DIR [OP]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

OPINFOS = "torch/testing/_internal/common_methods_invocations.py"
PARSE = "import libcst, pathlib, sys; libcst.parse_module(pathlib.Path(sys.argv[1]).read_text())"


def seconds(command: list[str]) -> float:
    """Wall time of a process, from its start. Raises CalledProcessError where it fails."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("op", nargs="?", default="atan2")
    options = parser.parse_args()
    base = seconds([sys.executable, "-c", PARSE, str(options.checkout / OPINFOS)])
    where = ["--checkout", str(options.checkout)]
    porter = [sys.executable, "-m", "porter"]
    for arguments in (
        ["status", *where],
        ["explain", options.op, "--no-record", *where],
        ["migrate", options.op, "--no-verify", *where],
        ["migrate", "--all", "--no-verify", *where],
    ):
        took = seconds([*porter, *arguments])
        print(f"{' '.join(arguments[:-2]):<36} {took / base:6.2f} of the parse ({took:.2f} s against {base:.2f} s)")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"peak memory of any child: {peak} MB")


if __name__ == "__main__":
    main()
