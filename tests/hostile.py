"""A folder whose modules have the names of those that porter needs, and note that they ran."""

from __future__ import annotations

from pathlib import Path

from porter.core.python import own_module

MODULES = (
    "json", "difflib", "tempfile", "signal", "yaml", "click", "cattrs", "numpy", "torch/__init__", "torchgen/__init__",
    "porter/__init__", "aten_overlay/__init__", "__future__", "sitecustomize",
)  # fmt: skip
_TRACE = "ran"


def fill_with_traps(folder: Path) -> Path:
    """Adds modules that note their name in `folder/ran` and then cannot be imported."""
    for name in MODULES:
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        note = f"open({str(folder / _TRACE)!r}, 'a').write(__name__ + chr(10))"
        file.write_text(f"{note}\nraise ImportError('a module of the current folder')\n")
    return folder


def list_sprung(folder: Path) -> list[str]:
    """The names of the modules that ran."""
    trace = folder / _TRACE
    return trace.read_text().split() if trace.exists() else []


def porter_command(*arguments: str) -> tuple[str, ...]:
    """`porter` with arguments, as it is installed: without the folder that it is called in."""
    return own_module("porter.__main__", *arguments).command
