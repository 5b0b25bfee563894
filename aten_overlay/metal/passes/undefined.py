"""Gives a value to the integer operations that C++ leaves undefined and Metal does not, before anything is optimised.

Reads and writes what clang makes of C++ with no pass run, in LLVM's intermediate representation. A shift's amount is
taken modulo the width (Metal Shading Language Specification, section 3.1). What Metal leaves open, a division or
remainder by zero, the least value divided by -1, and a float converted to an integer that cannot hold it, yields
`pm_open_value`, which every launch makes another: no result can be right by it. So does what clang itself found to
have no value, when it computed with constants; a constant shifted by a constant past its width is among that.
Where the sanitizer follows them, open values are marked as variables without a value are (sanitizer/marks.py), and the
runtime records which operation left one open.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count

from aten_overlay.metal.passes.ir import functions

_WORD = "@pm_open_value"
_END = r"(?:, !.*)?$"  # metadata describes what is replaced
_DIVISION = re.compile(rf"^ +(%\S+) = ([su])(div|rem) (?:exact )?i(\d+) (\S+), (\S+?){_END}", re.M)
_SHIFT = re.compile(rf"^ +(%\S+) = (shl|lshr|ashr) (?:(?:nuw|nsw|exact) )*i(\d+) (\S+), (\S+?){_END}", re.M)
_CONVERSION = re.compile(rf"^ +(%\S+) = (fpto([su])i (half|bfloat|float|double) (\S+) to i(\d+)){_END}", re.M)
_DIVISIONS, _SHIFTS = (" = sdiv ", " = udiv ", " = srem ", " = urem "), (" = shl ", " = lshr ", " = ashr ")
_CONVERSIONS, _POISON = (" = fptosi ", " = fptoui "), "poison"
_WORDS = (*_DIVISIONS, *_SHIFTS, *_CONVERSIONS, _POISON)
_SCALAR = r"(i\d+|half|float|double)"
_TYPED = re.compile(rf"\b{_SCALAR}((?: (?:noundef|signext|zeroext))*) poison\b")
# An operand whose type is that of the instruction: the second of two, or one of a phi.
_UNTYPED = re.compile(rf"(= (?:phi|[a-z]?cmp \w+|\w+)(?: [a-z]+)* {_SCALAR} [^<]*?(?:, |\[ ))poison\b")
_ENTRY = re.compile(r"\{\n(?:[-\w.]+:[^\n]*\n)?")
_WIDTHS = {"half": 16, "float": 32, "double": 64}
_LOCATION = re.compile(r", !dbg !\d+")
UNDEFINED = "@pm_undefined_"  # what the names of marks start with: calls that nothing can be known of
_MARKED = re.compile(rf"call (\w+) {UNDEFINED}")
NOTE = "@pm_note_open"
_NOTED = {"div": 0, "rem": 1, "fpto": 2}  # as runtime/widths.cpp has them
_SIGNED = 8

Lines = Iterator[str]


def defined(module: str, follows: bool = False) -> str:
    """`module` with a value for every such operation; those on clang's own vectors, which Metal lacks, are left.

    Where the sanitizer `follows` them the values are marks of it.
    """
    pieces, at = [], 0
    for start, end, _ in functions(module):
        text = module[start:end]
        if any(word in text for word in _WORDS):
            pieces += [module[at:start], _function(text, follows)]
            at = end
    text = "".join([*pieces, module[at:]])
    needed = [f"{_WORD} = external global i64"] if _WORD in text else []
    if follows:
        marks = map(write_mark, sorted(set(_MARKED.findall(text))))
        needed += [mark for mark in marks if f"\n{mark}\n" not in text]
        needed.append(f"declare void {NOTE}(i1 zeroext, i64, i64, ptr) nounwind memory(inaccessiblemem: readwrite)")
    return "\n".join([text, *needed, ""]) if needed else text


def write_mark(kind: str) -> str:
    """The line that declares the marks of one type."""
    return f"declare {kind} {UNDEFINED}{kind}() nounwind willreturn memory(none)"


def _function(text: str, follows: bool) -> str:
    text = _without_poison(text, follows)
    numbers = count(1)
    for words, pattern, rewritten in (
        (_DIVISIONS, _DIVISION, _division),
        (_SHIFTS, _SHIFT, _shift),
        (_CONVERSIONS, _CONVERSION, _conversion),
    ):
        text = _edit_lines(text, words, partial(pattern.sub, _replacing(rewritten, numbers, follows)))
    return text


def _edit_lines(text: str, words: Iterable[str], edit: Callable[[str], str]) -> str:
    """`text` with an edit made to each line that has one of the words; most have none."""
    spans = sorted({_find_line(text, at) for word in words for at in _find_all(text, word)})
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], edit(text[start:end])]
        done = end
    return "".join([*pieces, text[done:]])


def _find_all(text: str, word: str) -> Iterator[int]:
    at = -1
    while (at := text.find(word, at + 1)) >= 0:
        yield at


def _find_line(text: str, at: int) -> tuple[int, int]:
    return text.rfind("\n", 0, at) + 1, text.find("\n", at)


def _replacing(
    rewritten: Callable[[re.Match[str], int, bool], Lines], numbers: Iterator[int], follows: bool
) -> Callable[..., str]:
    return lambda found: "\n".join(f"  {line}" for line in rewritten(found, next(numbers), follows))


def _open(name: str, width: int, number: int, follows: bool) -> Lines:
    """Integer `name`, an open value: the launch's word, by an odd number so that two operations differ; or a mark."""
    if follows:
        yield f"{name} = call i{width} {UNDEFINED}i{width}()"
        return
    yield f"{name}.word = load i64, ptr {_WORD}, align 8, !invariant.load !{{}}"
    yield f"{name}.64 = mul i64 {name}.word, {2 * number + 1}"
    if width < 64:
        yield f"{name}.top = lshr i64 {name}.64, {64 - width}"
        yield f"{name} = trunc i64 {name}.top to i{width}"
    else:
        yield f"{name} = {'bitcast' if width == 64 else 'zext'} i64 {name}.64 to i{width}"


def _note(line: str, condition: str, operation: int, kind: str, *operands: str) -> Lines:
    """Tells the runtime of an operation whose result is open where `condition` holds; values.py adds its place."""
    location = _LOCATION.search(line)
    if not location:
        return
    words = [f"{condition}.{at}" for at in range(len(operands))]
    for word, operand in zip(words, operands, strict=True):
        if kind in _WIDTHS:
            wide = operand if kind == "double" else f"{word}.wide"
            if kind != "double":
                yield f"{wide} = fpext {kind} {operand} to double"
            yield f"{word} = bitcast double {wide} to i64"
        else:
            conversion = "bitcast" if kind == "i64" else "sext" if operation & _SIGNED else "zext"
            yield f"{word} = {conversion} {kind} {operand} to i64"
    site = f"ptr inttoptr (i64 {operation + 1} to ptr)"
    yield f"call void {NOTE}(i1 zeroext {condition}, i64 {words[0]}, i64 {words[-1]}, {site}){location[0]}"


def _division(found: re.Match[str], number: int, follows: bool) -> Lines:
    result, sign, kind, width, a, b = found.groups()
    t, name = f"i{width}", f"%pm.{number}"
    if b.lstrip("-").isdigit() and int(b) not in (0, -1):
        yield found[0].strip()
        return
    yield f"{name}.a = freeze {t} {a}"
    yield f"{name}.b = freeze {t} {b}"
    yield from _open(f"{name}.open", int(width), number, follows)
    made = f"{name}.made"
    if sign == "s":
        # By -1 nothing is divided: one comparison keeps it and 0 from the divisor, which is all the division waits for.
        made = f"{name}.any"
        yield f"{name}.next = add {t} {name}.b, 1"
        yield f"{name}.one = icmp ult {t} {name}.next, 2"
        yield f"{name}.by = select i1 {name}.one, {t} 1, {t} {name}.b"
        yield f"{name}.made = s{kind} {t} {name}.a, {name}.by"
        yield f"{name}.back = icmp eq {t} {name}.b, -1"
        yield f"{name}.least = icmp eq {t} {name}.a, {-(1 << int(width) - 1)}"
        yield f"{name}.turned = {'sub' if kind == 'div' else 'and'} {t} 0, {name}.a"
        yield f"{name}.backed = select i1 {name}.least, {t} {name}.open, {t} {name}.turned"
        yield f"{made} = select i1 {name}.back, {t} {name}.backed, {t} {name}.made"
        yield f"{name}.zero = icmp eq {t} {name}.b, 0"
    else:
        yield f"{name}.zero = icmp eq {t} {name}.b, 0"
        yield f"{name}.by = select i1 {name}.zero, {t} 1, {t} {name}.b"
        yield f"{made} = u{kind} {t} {name}.a, {name}.by"
    if follows and int(width) <= 64:
        condition = f"{name}.zero"
        if sign == "s":
            condition = f"{name}.lost"
            yield f"{name}.past = and i1 {name}.back, {name}.least"
            yield f"{condition} = or i1 {name}.zero, {name}.past"
        operation = _NOTED[kind] | _SIGNED * (sign == "s") | int(width) << 8
        yield from _note(found[0], condition, operation, t, f"{name}.a", f"{name}.b")
    yield f"{result} = select i1 {name}.zero, {t} {name}.open, {t} {made}"


def _shift(found: re.Match[str], number: int, follows: bool) -> Lines:
    result, operator, width, value, amount = found.groups()
    last = int(width) - 1
    if int(width) & last or (amount.isdigit() and int(amount) <= last):  # a bit-field, or what has a value
        yield found[0].strip()
        return
    yield f"%pm.{number}.by = and i{width} {amount}, {last}"
    yield f"{result} = {operator} i{width} {value}, %pm.{number}.by"


def _conversion(found: re.Match[str], number: int, follows: bool) -> Lines:
    result, converted, sign, kind, value, width = found.groups()
    name = f"%pm.{number}"
    if kind in ("half", "bfloat"):
        yield f"{name}.wide = fpext {kind} {value} to float"
        kind, value = "float", f"{name}.wide"
    above, low, high = _range(sign == "s", int(width), 24 if kind == "float" else 53)
    yield f"{name}.low = fcmp {above} {kind} {value}, {low}"
    yield f"{name}.high = fcmp olt {kind} {value}, {high}"
    yield f"{name}.held = and i1 {name}.low, {name}.high"
    yield f"{name}.made = {converted}"
    yield from _open(f"{name}.open", int(width), number, follows)
    if follows:
        yield f"{name}.lost = xor i1 {name}.held, true"
        operation = _NOTED["fpto"] | _SIGNED * (sign == "s") | int(width) << 8
        yield from _note(found[0], f"{name}.lost", operation, kind, value)
    yield f"{result} = select i1 {name}.held, i{width} {name}.made, i{width} {name}.open"


def _range(signed: bool, width: int, digits: int) -> tuple[str, str, str]:
    """What an integer holds: floats above the first bound, or from it on (`ogt` or `oge`), and below the second."""
    if not signed:
        return "ogt", _literal(-1.0), _literal(2.0**width if width < 128 or digits > 24 else float("inf"))
    half = 2.0 ** (width - 1)
    return ("ogt", _literal(-half - 1), _literal(half)) if width <= digits else ("oge", _literal(-half), _literal(half))


def _literal(value: float) -> str:
    return f"0x{struct.pack('>d', value).hex().upper()}"


def _without_poison(text: str, follows: bool) -> str:
    """Scalar operands without a value replaced by open ones, which the function's first lines make."""
    kinds: dict[str, None] = {}

    def named(kind: str) -> str:
        kinds[kind] = None
        return f"%pm.open.{kind}"

    def replace(line: str) -> str:
        given = _TYPED.sub(lambda m: f"{m[1]}{m[2]} {named(m[1])}", line)
        while (changed := _UNTYPED.sub(lambda m: f"{m[1]}{named(m[2])}", given)) != given:
            given = changed
        return given

    body = _edit_lines(text, (_POISON,), lambda line: replace(line) if line.startswith(" ") else line)
    made = "".join(f"  {line}\n" for kind in kinds for line in _open_constant(kind, follows))
    return _ENTRY.sub(lambda m: m[0] + made, body, count=1)


def _open_constant(kind: str, follows: bool) -> Lines:
    if kind.startswith("i"):
        yield from _open(f"%pm.open.{kind}", int(kind[1:]), 0, follows)
    else:
        yield from _open(f"%pm.open.{kind}.bits", _WIDTHS[kind], 0, follows)
        yield f"%pm.open.{kind} = bitcast i{_WIDTHS[kind]} %pm.open.{kind}.bits to {kind}"
