"""What a recording costs, in an empty cache, after `porter setup`.

    python benchmarks/first_record.py FORK OP OP...

For each operator: the recording at porter's own sizes, and `porter explain` that lacks only that of OpInfo samples;
then with both kept, and reading the source only, as medians of several calls, and the largest of the first. The server
runs, as after any command; `cold` is one more recording in a process of its own, with torch and the OpInfos to import.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from porter.core.checkout import find_checkout
from porter.core.progress import ignore
from porter.verdict import client
from porter.workflows.stacking import Missing, Recordings

ROUNDS = 5


def seconds(fork: Path, *arguments: str, **environment: str) -> float:
    """How long one command of porter takes on the fork."""
    command = [sys.executable, "-m", "porter", *arguments, "--checkout", str(fork)]
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    return time.perf_counter() - started


def record(fork: Path, op: str) -> tuple[float, float]:
    """How long the first recording at porter's own sizes takes, and an explanation that only lacks that of samples.

    Printed at once, as many take minutes together.
    """
    checkout = find_checkout(fork, Path.cwd(), dict(os.environ))
    started = time.perf_counter()
    Recordings(checkout).record([Missing(op, of_programs=True)], 1, ignore)
    own = time.perf_counter() - started
    rest = seconds(fork, "explain", op)
    print(f"{op}: own sizes {own:.1f} s, explained in {rest:.1f} s more", flush=True)
    return own, rest


def main(fork: Path, ops: list[str]) -> int:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["PORTER_CACHE"] = cache
        print(f"setup: {seconds(fork, 'setup'):.1f} s", flush=True)
        *warm, last = ops
        first = [record(fork, op) for op in warm]
        kept = [statistics.median(seconds(fork, "explain", op) for _ in range(ROUNDS)) for op in warm]
        read = [statistics.median(seconds(fork, "explain", op, "--no-record") for _ in range(ROUNDS)) for op in warm]
        for op, *taken in zip(warm, kept, read, strict=True):
            print(op, *(f"{name} {each:.2f} s" for name, each in zip(("kept", "read"), taken, strict=True)))
        more = max(a - b for a, b in zip(kept, read, strict=True))
        longest = max(own for own, _ in first)
        print(f"own sizes at most {longest:.2f} s; kept at most {more:.2f} s more than reading only")
        print(f"cold: {last} {seconds(fork, 'explain', last, **{client.NO_SERVER: '1'}):.2f} s")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fork", type=Path)
    parser.add_argument("ops", nargs="+", help="two operators or more")
    sys.exit(main(**vars(parser.parse_args())))
