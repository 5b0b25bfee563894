"""The version of the Metal language that this process compiles for: what is newer is refused, at its line.

Sources: Apple's "Metal Shading Language Specification", the tables of what each version adds, "What's new in Metal";
pytorch/pytorch#172230 for the versions that PyTorch asks for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.source.lexer import Source

VARIABLE = "PORTER_METAL"
METAL_4 = INCLUDE / "metal4"  # the headers that no older version has
_LAMBDAS, _TENSORS = 320, 400
_BEFORE_LAMBDA = frozenset(("=", "(", ",", "return", "{", ";", "&&", "||", "?", ":"))
# What Metal 3.2 added, by words of a program: fences, memory that the whole device sees, logs.
_WORDS = {"atomic_thread_fence": "atomic_thread_fence", "coherent": "coherent(...)", "os_log_default": "os_log"}
_MISSING = re.compile(r"'([^']+)' file not found")


@dataclass(frozen=True)
class Language:
    """A version of the language. `number` is its `__METAL_VERSION__`; macOS has it from release `macos` on.

    `older_tiles`: cooperative tensors lie in registers as for targets before macOS 26.2 (pytorch/pytorch#191794).
    """

    name: str
    number: int
    macos: int
    older_tiles: bool = False


OLDER_TILES = Language("4.0 of macOS 26.0", 400, 26, older_tiles=True)
LANGUAGES = (Language("3.1", 310, 14), Language("3.2", 320, 15), Language("4.0", 400, 26))


def select(environment: Mapping[str, str] | None = None) -> Language | None:
    """The version that `$PORTER_METAL` names; None where it names none. Raises PTR280."""
    name = (os.environ if environment is None else environment).get(VARIABLE)
    return parse(name) if name else None


def choose(metal: str = "", macos: str = "") -> Language:
    """The version that a program is compiled for where it names one, runs on a release of macOS, or both.

    A release runs older versions than its newest. Raises PTR280, also for a version that the release has not.
    """
    newest = parse_macos(macos) if macos else LANGUAGES[-1]
    language = parse(metal) if metal else newest
    if language.number == newest.number:
        return newest
    if language.number > newest.number:
        hint = f"Compile for {newest.name} or an older version, or name macOS {language.macos} or a later one."
        raise OverlayError("PTR280", f"macOS {macos} has no Metal {metal}", hint=hint)
    return language


def parse(name: str) -> Language:
    """A version by its number, such as `3.2`. Raises PTR280."""
    for language in (*LANGUAGES, OLDER_TILES):
        if language.name == name:
            return language
    names = ", ".join(language.name for language in LANGUAGES)
    raise OverlayError("PTR280", f"there is no Metal {name}", hint=f"Choose one of {names}.")


def parse_macos(text: str) -> Language:
    """The newest version that a release of macOS has, such as `15` or `26.2`. Raises PTR280."""
    release, _, minor = text.partition(".")
    available = [language for language in LANGUAGES if release.isdigit() and language.macos <= int(release)]
    if not available or (minor and not minor.replace(".", "").isdigit()):
        hint = f"Name one from {LANGUAGES[0].macos} on, such as 15 or 26.2."
        raise OverlayError("PTR280", f"there is no macOS {text} with a Metal that porter knows", hint=hint)
    is_older = int(release) == OLDER_TILES.macos and minor.partition(".")[0] in ("0", "1")
    return OLDER_TILES if is_older else available[-1]


def write_flags() -> tuple[str, ...]:
    """What keeps code compiled for the version that was asked for apart from other code."""
    language = select()
    tiles = ("-DPM_OLDER_TILES",) if language and language.older_tiles else ()
    return (f"-DPM_METAL={language.number}", *tiles) if language else ()


def include_folders() -> tuple[Path, ...]:
    """The folders with Metal's headers, of the version that was asked for; all of them where none was."""
    language = select()
    return (INCLUDE,) if language and language.number < _TENSORS else (INCLUDE, METAL_4)


def refuse_newer(source: Source) -> None:
    """Raises PTR281 for the first lambda, or word of Metal 3.2, of a source whose version has none."""
    language = select()
    if language is None or language.number >= _LAMBDAS:
        return
    for at, token in enumerate(source.tokens):
        if token in _WORDS and source.tokens[at - 1] not in (".", "->") and source.tokens[at + 1] in ("(", "."):
            what = f"`{_WORDS[token]}` is of Metal 3.2, not of {language.name}"
            raise OverlayError("PTR281", what, source.place(at), _HINT)
        if token != "[" or at == 0 or source.tokens[at - 1] not in _BEFORE_LAMBDA or source.tokens[at + 1] == "[":
            continue
        if source.tokens[source.match[at] + 1 : source.match[at] + 2] in (["("], ["{"]):
            what = f"a lambda is of Metal 3.2, not of {language.name}"
            raise OverlayError("PTR281", what, source.place(at), _HINT)


@contextmanager
def naming_headers() -> Iterator[None]:
    """Says of a header that is not found that a newer version has it. Raises PTR281."""
    try:
        yield
    except OverlayError as error:
        language, missing = select(), _MISSING.search(error.what)
        if language is None or missing is None or not (METAL_4 / missing[1]).is_file():
            raise
        raise OverlayError(
            "PTR281", f"<{missing[1]}> is of Metal 4.0, not of {language.name}", error.place, _HINT
        ) from error


_HINT = "Guard it with __METAL_VERSION__ or __has_include, or compile for a newer version."
