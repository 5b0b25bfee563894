"""Formats new code with the fork's own `.clang-format`."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath

import yaml

from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import CLANG_FORMAT
from porter.core.yaml_text import choose_loader

_INHERIT = "InheritParentConfig"
# The language that clang-format assumes for a suffix; it treats Metal as C++.
LANGUAGES = {".mm": "block.mm", ".metal": "block.cpp", ".h": "block.cpp", ".cpp": "block.cpp"}


def format_block(checkout: Checkout, file: str, block: str) -> str:
    """Returns `block`, whole declarations of `file`, in the fork's style, or unchanged if the fork has none.

    Raises PTR064 (no clang-format), PTR065 (clang-format failed) or PTR066 (the style inherits).
    """
    if not block.strip() or not checkout.exists(CLANG_FORMAT):
        return block
    text = checkout.read(CLANG_FORMAT)
    _refuse_inheritance(text)
    return _format(str((checkout.root / CLANG_FORMAT).resolve()), text, _choose_file_name(file), block)


@lru_cache(maxsize=1024)
def _format(style: str, style_text: str, name: str, text: str) -> str:
    """Formats a text. Cached by content, on disk too: planning many operators formats hundreds of blocks."""
    program = _find_clang_format()
    known = _find_cached(program, style_text, name, text)
    with suppress(OSError):
        if known and (found := cache.get(known)) is not None:
            return found
    made = _run_clang_format(program, style, name, text)
    with suppress(OSError):  # a plan needs no cache
        if known:
            cache.put(known, made)
    return made


def _find_cached(program: str, *parts: str) -> Path | None:
    """The file with what the program makes of these parts; None where the cache is not this user's alone."""
    try:
        stat = Path(program).stat()
        return cache.key("formatted", "", program, f"{stat.st_size} {stat.st_mtime_ns}", *parts)
    except (OSError, PorterError):
        return None


def _run_clang_format(program: str, style: str, name: str, text: str) -> str:
    ends = len(text) - len(text.rstrip("\r\n"))
    command = [program, f"--style=file:{style}", f"--assume-filename={name}"]
    data = text.encode("utf-8", "surrogateescape")
    done = subprocess.run(command, input=data, capture_output=True, check=False, cwd="/")  # no style of where we are
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise PorterError("PTR065", f"clang-format: {said[0] if said else 'failed'}", Place(CLANG_FORMAT))
    out = done.stdout.decode("utf-8", "surrogateescape")
    return out.rstrip("\r\n") + text[len(text) - ends :]


@lru_cache(maxsize=4)
def _refuse_inheritance(style: str) -> None:
    """A style that inherits is looked for in the folders above: outside the checkout."""
    try:
        documents = list(yaml.load_all(style, choose_loader(style)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise PorterError("PTR065", "clang-format: the style is not valid YAML", Place(CLANG_FORMAT)) from error
    if _INHERIT in style or any(map(_inherits, documents)):
        hint = f"Write out the inherited settings in {CLANG_FORMAT}."
        raise PorterError("PTR066", "the style inherits from outside the checkout", Place(CLANG_FORMAT), hint)


def _inherits(value: object) -> bool:
    """However YAML spells it: `style` may hold the word with escapes."""
    if isinstance(value, dict):
        return any(_INHERIT in str(part) for pair in value.items() for part in pair)
    return False


def _choose_file_name(file: str) -> str:
    return LANGUAGES.get(PurePosixPath(file).suffix, "block.cpp")


@lru_cache(maxsize=1)
def _find_clang_format() -> str:
    """Returns the binary itself: the wheel's launcher script would start Python on every call."""
    try:
        import clang_format  # type: ignore[import-not-found, import-untyped, unused-ignore]

        binary = Path(clang_format.__file__).parent / "data" / "bin" / "clang-format"
        if binary.exists():
            return str(binary)
    except ImportError:
        pass
    found = shutil.which("clang-format")
    if found is None:
        raise PorterError("PTR064", "clang-format is not installed", hint="pip install clang-format")
    return found
