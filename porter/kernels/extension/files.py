"""The files of `templates/extension/`, with `$name` and the like for what differs between projects."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath
from string import Template

COMMON, EXAMPLE, KERNEL = "common", "swiglu", "kernel"  # what every project has, and what one of both kinds adds
METALLIB = "metallib"  # what a project that embeds a Metal library has instead
_BESIDE = Path(__file__).resolve().parents[3] / "templates" / "extension"
_SHARED = "share/porter/templates/extension/"  # pyproject.toml installs them there


def fill(kind: str, values: Mapping[str, str], *instead: str) -> dict[str, str]:
    """The files of a kind of project by path, with these values; `instead` are parts with files in place of others.

    The folder `package` becomes the project's name.
    """
    found = {path: Template(text) for part in (COMMON, kind, *instead) for path, text in _read(part).items()}
    return {_rename(path, values["name"]): text.substitute(values) for path, text in found.items()}


def _rename(path: str, name: str) -> str:
    return f"{name}{path.removeprefix('package')}" if path.startswith("package/") else path


def _read(part: str) -> dict[str, str]:
    if _BESIDE.is_dir():
        folder = _BESIDE / part
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    else:
        files = _installed(part)
    return {name: files[name].read_text() for name in sorted(files) if "__pycache__" not in name}


def _installed(part: str) -> dict[str, Path]:
    start = f"{_SHARED}{part}/"
    listed = [each for each in metadata.files("porter") or () if start in each.as_posix()]
    return {str(PurePosixPath(e.as_posix().partition(start)[2])): Path(str(e.locate())) for e in listed}
