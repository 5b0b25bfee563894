"""A CUDA file as one compilation for the device sees it, with every line and offset where it was.

Conditional parts that are not compiled, words that only say where a function runs, and jiterator strings become spaces;
the strings, which are code too, are kept by name. Source: ATen/jit_macros.h, c10/macros/Macros.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from porter.languages import cpp
from porter.languages.brackets import find_closing_end
from porter.languages.cpp_parser import parse_expression
from porter.languages.directives import parse_condition
from porter.languages.identifiers import find_words
from porter.languages.lexer import Token, directives

JITERATOR = "AT_USE_JITERATOR"
# What a build with CUDA defines; any other name is 0 in a condition. `AT_USE_JITERATOR()` is the caller's choice.
_DEFINED = {"__CUDACC__": 1, "CUDA_VERSION": 12080, "CUDART_VERSION": 12080, "__CUDA_ARCH__": 800}
_QUALIFIERS = re.compile(
    r"\b(?:GPU_LAMBDA|C10_LAMBDA|__device__|__host__|__forceinline__|__noinline__|__inline__|__restrict__|__restrict"
    r"|C10_HOST_DEVICE|C10_DEVICE|C10_HOST|C10_NOINLINE|C10_ALWAYS_INLINE|__launch_bounds__\([^()]*\))(?!\w)"
)
_STRING = re.compile(
    r"(?:static\s+)?const(?:expr)?\s+auto\s+(\w+)\s*=\s*((?:\w+\s*\+\s*)*)jiterator_stringify\s*(?=\()"
)
_ALSO = re.compile(r"jiterator_also_stringify_as\s*\(\s*jiterator_code\s*(?=\()")
_ALSO_END = re.compile(r"\s*,\s*(\w+)\s*\)\s*;?")
_NAME = re.compile(r"\bchar\s+(\w+)\s*\[\s*\]\s*=\s*\"(\w+)\"")


@dataclass(frozen=True)
class DeviceSource:
    """The code of a file that one compilation sees, its jiterator strings, and the names in its character arrays.

    A string has the text of the file with nothing but its own functions; `before` are the strings put in front of it.
    """

    text: str
    strings: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=256)
def read_device_source(text: str, jiterator: bool) -> DeviceSource:
    """Returns the file as compiled with or without the jiterator."""
    # The text with directives of conditions, and the parts they leave out, as spaces
    out, at, opened = list[str](), 0, list[_Branch]()
    for token in directives(text):
        out.append(_keep(text[at : token.start], opened))
        conditional = _follow(token, opened, {**_DEFINED, JITERATOR: int(jiterator)})
        out.append(_blank(token.text) if conditional else _keep(token.text, opened))
        at = token.end
    chosen = "".join([*out, _keep(text[at:], opened)])
    plain = _QUALIFIERS.sub(lambda word: _blank(word[0]), chosen)
    strings, before, spans = dict[str, str](), dict[str, tuple[str, ...]](), list[tuple[int, int]]()
    for match in _STRING.finditer(plain):
        end = find_closing_end(plain, match.end())
        strings[match[1]] = _only(plain, match.end() + 1, end - 1)
        before[match[1]] = tuple(find_words(match[2]))
        spans.append((match.start(), end + (plain[end : end + 1] == ";")))
    for match in _ALSO.finditer(plain):
        end = find_closing_end(plain, match.end())
        after = _ALSO_END.match(plain, end)
        if after:
            strings[after[1]] = _only(plain, match.end() + 1, end - 1)
            spans += [(match.start(), match.end() + 1), (end - 1, after.end())]
    for start, end in spans:
        plain = plain[:start] + _blank(plain[start:end]) + plain[end:]
    return DeviceSource(plain, strings, before, dict(_NAME.findall(plain)))


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _only(text: str, start: int, end: int) -> str:
    return _blank(text[:start]) + text[start:end] + _blank(text[end:])


@dataclass
class _Branch:
    """An open `#if`: whether one of its parts was compiled, and whether this one is."""

    taken: bool
    now: bool


def _keep(text: str, opened: list[_Branch]) -> str:
    return text if all(each.now for each in opened) else _blank(text)


def _follow(token: Token, opened: list[_Branch], defined: Mapping[str, int]) -> bool:
    """Follows a directive; whether it is one of a condition."""
    condition = parse_condition(token)
    if condition is None:
        return False
    word, rest = condition[0], re.sub(r"//.*|/\*.*?\*/|\\\n", " ", condition[1]).strip()
    if word in ("if", "ifdef", "ifndef"):
        holds = evaluate(rest, defined) if word == "if" else (rest in defined) == (word == "ifdef")
        opened.append(_Branch(holds, holds))
    elif opened and word == "endif":
        opened.pop()
    elif opened:
        holds = not opened[-1].taken and (word == "else" or evaluate(rest, defined))
        opened[-1] = _Branch(opened[-1].taken or holds, holds)
    return True


def evaluate(condition: str, defined: Mapping[str, int]) -> bool:
    """Whether a condition of `#if` holds. A name that is not defined is 0, and so is what cannot be read."""
    spelled = re.sub(r"\bdefined\s*\(?\s*(\w+)\s*\)?", lambda name: str(int(name[1] in defined)), condition)
    try:
        return bool(_value(parse_expression("#if", spelled), defined))
    except (cpp.ParseError, IndexError, ValueError):
        return False


def _value(value: cpp.Expr, defined: Mapping[str, int]) -> int:
    match value:
        case cpp.Literal(text=text):
            return int(text.rstrip("uUlL"), 0)
        case cpp.Name(path=path):
            return defined.get(path, 0)
        case cpp.Call(function=cpp.Name(path=path)):
            return defined.get(path, 0)
        case cpp.Paren(value=inner):
            return _value(inner, defined)
        case cpp.Unary(op="!", value=inner):
            return int(not _value(inner, defined))
        case cpp.Binary(op=op, left=left, right=right):
            return _combine(op, _value(left, defined), _value(right, defined))
    raise ValueError


def _combine(op: str, left: int, right: int) -> int:
    found = {
        "&&": left and right,
        "||": left or right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    if op not in found:
        raise ValueError
    return int(found[op])
