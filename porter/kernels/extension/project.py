"""A project that builds an extension, as a value, and how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from porter.core.errors import Place, PorterError, unwritable
from porter.core.files import create_whole
from porter.core.installed import find_installed
from porter.core.names import explain_module

COMMON, EXAMPLE, KERNEL = "common", "swiglu", "kernel"  # what every project has, and what one of both kinds adds
METALLIB = "metallib"  # what a project that embeds a Metal library has instead


def fill(kind: str, values: Mapping[str, str], *instead: str) -> dict[str, str]:
    """The files of a kind of project by path, with these values; `instead` are parts with files in place of others.

    The folder `package` becomes the project's name.
    """
    found = {path: Template(text) for part in (COMMON, kind, *instead) for path, text in _read(part).items()}
    return {_rename(path, values["name"]): text.substitute(values) for path, text in found.items()}


def _rename(path: str, name: str) -> str:
    return f"{name}{path.removeprefix('package')}" if path.startswith("package/") else path


def _read(part: str) -> dict[str, str]:
    return {name: path.read_text() for name, path in find_installed(f"templates/extension/{part}").items()}


@dataclass(frozen=True)
class Project:
    """The name of the package and the texts of the project's files by path."""

    name: str
    files: Mapping[str, str]


def example(name: str, metallib: bool = False) -> Project:
    """A project with one operator, its gradient, and tests of both; on a Mac it may embed its kernels compiled.

    Raises PTR251.
    """
    instead = (METALLIB,) if metallib else ()
    return Project(check_name(name), fill(EXAMPLE, names_of(name), *instead))


def check_name(name: str) -> str:
    """The name, which has to fit a Python package and a namespace of torch's operators. Raises PTR251."""
    why = "it starts with an underscore" if name.startswith("_") else explain_module(name)
    if why:
        raise PorterError(
            "PTR251", f"`{name}` cannot be the name of an extension: {why}",
            hint="Use letters, digits and underscores, a letter first, and no name that another program has.",
        )  # fmt: skip
    return name


def names_of(name: str) -> dict[str, str]:
    """What stands for `$name` and `$project`."""
    return {"name": name, "project": name.lower().replace("_", "-")}


def write(project: Project, folder: Path) -> tuple[Path, ...]:
    """Writes a project into a folder that is empty or new. Raises PTR252, and PTR353 if it cannot be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PorterError(
            "PTR252", "there is something already", Place(str(folder)), "Choose another NAME or --out, or remove it."
        )
    written = []
    for path, text in project.files.items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            create_whole(target, text)
        except OSError as error:
            raise unwritable(error, target) from error
        written.append(target)
    return tuple(written)
