"""Formats new code with the fork's own `.clang-format`."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import yaml

from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import CLANG_FORMAT
from porter.core.yaml_text import choose_loader

_INHERIT = "inheritparentconfig"  # clang-format takes any case, and since 22 also `InheritParentConfig=FOLDER`
_NO_LETTERS = re.compile(r"[^a-z]+")
_LARGEST = 64 * 1024  # characters of a style: PyTorch's has 3,400
_DEEPEST = 20  # collections in collections: PyTorch's style has three
_SECONDS = 60  # for one block, which takes some hundredths of one
# The language that clang-format assumes for a suffix; it treats Metal as C++.
LANGUAGES = {".mm": "block.mm", ".metal": "block.cpp", ".h": "block.cpp", ".cpp": "block.cpp"}


def format_block(checkout: Checkout, file: str, block: str) -> str:
    """Returns `block`, whole declarations of `file`, in the fork's style, or unchanged if the fork has none.

    Raises PTR064 (no clang-format), PTR065 (clang-format failed, or the style is none) or PTR066 (the style inherits).
    """
    if not block.strip() or not checkout.exists(CLANG_FORMAT):
        return block
    style = checkout.read(CLANG_FORMAT)
    _refuse_inheritance(style)
    return _format(style, LANGUAGES.get(PurePosixPath(file).suffix, "block.cpp"), block)


@lru_cache(maxsize=1024)
def _format(style: str, name: str, text: str) -> str:
    """Formats a text. Cached by content, on disk too: planning many operators formats hundreds of blocks."""
    program = _find_clang_format()
    known = _find_cached(program, style, name, text)
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
    """Formats by a private copy of the style that was checked, beside a style that inherits nothing: where the copy did
    inherit, for whatever reason, the search for more would end there.
    """
    ends = len(text) - len(text.rstrip("\r\n"))
    data = text.encode("utf-8", "surrogateescape")
    with TemporaryDirectory(prefix="porter-style-") as folder:
        copy = Path(folder) / "style"
        copy.write_bytes(style.encode("utf-8", "surrogateescape"))
        (Path(folder) / ".clang-format").write_text("BasedOnStyle: LLVM\n")
        command = [program, f"--style=file:{copy}", f"--assume-filename={name}"]
        try:
            done = subprocess.run(  # in a folder without a style, or a list of what to ignore, of somebody else's
                command, input=data, capture_output=True, check=False, cwd="/", timeout=_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise _refuse_style(f"no answer after {_SECONDS} seconds") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise _refuse_style(said[0].replace(str(copy), CLANG_FORMAT) if said else "failed")
    out = done.stdout.decode("utf-8", "surrogateescape")
    return out.rstrip("\r\n") + text[len(text) - ends :]


@lru_cache(maxsize=4)
def _refuse_inheritance(style: str) -> None:
    """A style that inherits is looked for in the folders above, or in one that it names: outside the checkout.

    No text is expanded: aliases of aliases, which clang-format does not take either, could stand for any amount.
    """
    if len(style) > _LARGEST:
        raise _refuse_style(f"the style is longer than {_LARGEST // 1024} KiB")
    try:
        words = [style, *_read_scalars(style)]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _refuse_style("the style is not valid YAML") from error
    if any(_INHERIT in _NO_LETTERS.sub("", word.lower()) for word in words):
        hint = f"Write out the inherited settings in {CLANG_FORMAT}."
        raise PorterError("PTR066", "the style inherits from outside the checkout", Place(CLANG_FORMAT), hint)


def _read_scalars(style: str) -> Iterator[str]:
    """Every key and value as YAML spells it: with escapes, folded, or quoted. Raises PTR065 for an alias."""
    depth = 0
    for event in yaml.parse(style, choose_loader(style)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _refuse_style(f"the style nests deeper than {_DEEPEST} levels")
        if isinstance(event, yaml.AliasEvent):
            raise _refuse_style(f"the style has an alias, *{event.anchor}")
        if isinstance(event, yaml.ScalarEvent):
            yield event.value


def _refuse_style(what: str) -> PorterError:
    return PorterError("PTR065", f"clang-format: {what}", Place(CLANG_FORMAT))


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
