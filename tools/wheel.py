"""The wheel, tried where nothing else is.

    python tools/wheel.py

builds it, installs it and what it depends on into a fresh environment, and works there in an empty folder: first the
commands that need no torch, then a script and a verdict on the embedded fork, with the torch of the environment that
runs this. Ends with the first command that prints something else than it does in a clone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from shared.arguments import parser

ROOT = Path(__file__).resolve().parents[1]
# Arguments of a command, and what it has to print.
PLANNING = (
    ("status --portable --checkout embedded", "0 blocked"),
    ("explain PTR076", "PTR076: unknown type promotion"),
    ("kernel list", "softmax"),
    ("kernel new softmax", "softmax.py"),
    ("migrate atan2 --no-verify --checkout embedded", "+static void atan2_mps_kernel"),
    ("review --help", "lintrunner"),
)
RUNNING = (
    ("extension new swish", "swish"),
    ("kernel check softmax.py", "PASS"),
    ("migrate atan2 --checkout embedded", "atan2: PASS"),
)


def build_wheel(folder: Path) -> Path:
    """The wheel of the repository, from a copy: setuptools would take up what an earlier build left in `build`."""
    source = folder / "source"
    listed = _run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    _run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(source)], folder)
    (wheel,) = folder.glob("torch_porter-*.whl")
    return wheel


def try_wheel(wheel: Path, folder: Path) -> None:
    """Works with the installed wheel in an empty folder. Raises SystemExit where a command does something else."""
    _run([sys.executable, "-m", "venv", "environment"], folder)
    python = folder / "environment/bin/python"
    _run([str(python), "-m", "pip", "install", "-q", str(wheel)], folder)
    empty = folder / "empty"
    empty.mkdir()
    _try_commands(python, empty, PLANNING)
    inside = _run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip()
    Path(inside, "torch.pth").write_text(sysconfig.get_path("purelib") + "\n")
    _try_commands(python, empty, RUNNING)


def _try_commands(python: Path, folder: Path, commands: tuple[tuple[str, str], ...]) -> None:
    for arguments, expected in commands:
        printed = _run([str(python.with_name("porter")), *arguments.split()], folder)
        if expected not in printed:
            raise SystemExit(f"porter {arguments} does not print {expected!r} but:\n{printed}")
        print(f"porter {arguments}: as expected", flush=True)


def _run(command: list[str], folder: Path) -> str:
    """What a command prints on stdout. Nothing of the repository is on its path."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PORTER_CHECKOUT")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        try_wheel(build_wheel(Path(scratch)), Path(scratch))
