"""Damage to a text: lines, tokens, brackets, bytes, truncation, duplication, Unicode and huge repeats."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

MOST = 400_000  # characters of a damaged text
_TOKEN = re.compile(r"\w+|[^\w\s]+")
_BRACKETS = "()[]{}<>"
_STRANGE = (
    "\ufeff", "\u0000", "\u2028", "\udcff", "\U0001f600", "é", "\r", "\x0c", "\t", "\\", '"', "'", "`", "$", "\x1b[2J",
)  # fmt: skip
_PIECES = (
    "template <typename T>\n", 'R"(', "/*", "//", "#define A(x) A(x) A(x)\n", "#if 0\n", "#include <ATen/native/x.h>\n",
    "(", "[", "{", "<", "!", "-", "(float)", "a && ", "a + ", "a.b", "->x", "[&] {", "^{", "@[", "? a : ", "::", "##",
    "<<<<<<< HEAD\n", ">>>>>>> x\n", "namespace a {", "struct A {", "if (a) {", "return ", "f(f(", "x = ", ", ", ";",
    "\\\n", "'", '"', '"""', "f'{", "lambda: ", "not ", "*", "**", "- ", ": ", "&a [*a]", "? ", "| ", "\n\n", " ",
    "constant float a [[function_constant(0)]];\n", "kernel void f() {}\n", "[[host_name(\"a\")]] ", "inline ", "R\"x(",
)  # fmt: skip
_ROWS = (
    "    MPS:\n", "    MPS: [a, b]\n", "    [MPS, CPU]: a\n", "    CPU, CUDA, MPS: atan2_out\n", "    MPS: \"\"\n",
    "- func: x\n", "- func: [a]\n", "- {}\n", "- 1\n", "  dispatch: a\n", "    MPS: ''\n", "    ? a\n",
    "- func: a() -> ()\n",
    "  structured_delegate: atan2.out\n", "    MPS: (\n", "    MPS: a b\n", "    : a\n",
)  # fmt: skip


def damage(chance: random.Random, text: str, ending: str, is_rows: bool) -> str:
    """The text with a few changes, each of one kind."""
    kinds: list[Callable[[random.Random, str], str]] = [
        _lines, _lines, _tokens, _tokens, _tokens, _brackets, _bytes, _cut, _double, _strange, _repeat, _piece,
        _renamed,
    ]  # fmt: skip
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        made = _row(chance, text) if is_rows and chance.random() < 0.4 else chance.choice(kinds)(chance, text)
        text = made[:MOST]
    return text


def _at(chance: random.Random, text: str) -> int:
    return chance.randint(0, len(text))


def _lines(chance: random.Random, text: str) -> str:
    """Lines go, come twice, or change places."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    one, two = sorted((chance.randrange(len(lines)), chance.randrange(len(lines))))
    two = min(two, one + chance.choice((1, 2, 5, 40)))
    part = lines[one : two + 1]
    change = chance.randrange(3)
    if change == 0:
        return "".join(lines[:one] + lines[two + 1 :])
    if change == 1:
        return "".join(lines[:one] + part * chance.choice((2, 3, 50)) + lines[two + 1 :])
    rest = lines[:one] + lines[two + 1 :]
    at = chance.randint(0, len(rest))
    return "".join(rest[:at] + part + rest[at:])


def _tokens(chance: random.Random, text: str) -> str:
    """A token goes, or becomes another of the text."""
    found = list(_TOKEN.finditer(text, max(_at(chance, text) - 2000, 0)))[:400]
    if not found:
        return text
    one, other = chance.choice(found), chance.choice(found)
    new = chance.choice(
        ("", other[0], one[0] + other[0], f"{one[0]} {one[0]}", one[0].upper(), "0", "T", "self", "mps")
    )
    return text[: one.start()] + new + text[one.end() :]


def _renamed(chance: random.Random, text: str) -> str:
    """A word becomes another one of the text, everywhere."""
    words = re.findall(r"[A-Za-z_]\w+", text[:20000])
    if not words:
        return text
    return re.sub(rf"\b{chance.choice(words)}\b", chance.choice(words), text)


def _brackets(chance: random.Random, text: str) -> str:
    places = [at for at, character in enumerate(text) if character in _BRACKETS]
    if not places:
        return text
    at = chance.choice(places)
    return (
        text[:at] + chance.choice(("", chance.choice(_BRACKETS), text[at] * chance.choice((2, 300)))) + text[at + 1 :]
    )


def _bytes(chance: random.Random, text: str) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(chance.choice((1, 4, 40))):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    return data.decode("utf-8", "surrogateescape")


def _cut(chance: random.Random, text: str) -> str:
    one, two = sorted((_at(chance, text), _at(chance, text)))
    return chance.choice((text[:one], text[one:], text[:one] + text[two:], text[:0]))


def _double(chance: random.Random, text: str) -> str:
    one = _at(chance, text)
    two = min(len(text), one + chance.choice((10, 200, 5000, 10**6)))
    return text[:two] + text[one:]


def _strange(chance: random.Random, text: str) -> str:
    at = chance.choice((0, _at(chance, text)))
    return text[:at] + chance.choice(_STRANGE) + text[at:]


def _piece(chance: random.Random, text: str) -> str:
    at = _at(chance, text)
    return text[:at] + chance.choice(_PIECES) + text[at:]


def _repeat(chance: random.Random, text: str) -> str:
    """A piece many times over, in the middle of code or of a line of its own."""
    at = chance.choice((_at(chance, text), text.rfind("\n", 0, _at(chance, text)) + 1, 0, len(text)))
    times = chance.choice((3, 100, 3000, 12000))
    return text[:at] + chance.choice(_PIECES) * times + text[at:]


def _row(chance: random.Random, text: str) -> str:
    """A strange line among the rows."""
    at = text.find("\n", _at(chance, text)) + 1
    return text[:at] + chance.choice(_ROWS) + text[at:]
