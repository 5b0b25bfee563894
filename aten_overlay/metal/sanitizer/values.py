"""Floating-point operations that make NaN or an infinity: the runtime looks at each with its operands.

The calls are made of what clang lowered, before it moves operations to where the source does not make them. Which line
they are of is known once functions are inlined: an operation within the standard library has the line of its call.
"""

from __future__ import annotations

import re
from itertools import count

from aten_overlay.metal.passes.ir import LOCAL, functions, write_string
from aten_overlay.metal.passes.undefined import NOTE
from aten_overlay.metal.sanitizer.places import Places

WEIGHED, OPENED = "nan", "arithmetic"  # the checks
_OPERATIONS = ("fadd", "fsub", "fmul", "fdiv", "frem", "fptrunc", "call")  # in the order of runtime/widths.cpp
_RESULT = re.compile(
    rf"^  ({LOCAL.pattern}) = (?:tail |notail |musttail )?(fadd|fsub|fmul|fdiv|frem|fptrunc|call) (.*), !dbg !(\d+)"
)
_TYPE = re.compile(r"(?:^|[ (])(half|float) ")
_ARGUMENT = re.compile(rf"\b(half|float) (?:noundef )?({LOCAL.pattern}|-?[\d.]+e[+-]\d+|0x[HR]?[0-9A-F]+)")
_HOOK = "@pm_check_value"
_MOST = 3
_PLACED = re.compile(
    rf"^(  (?:tail )?call void (?:{_HOOK}|{NOTE})\([^\n]*, )ptr (?:\w+ )*inttoptr \(i64 (\d+) to ptr\)\)"
    r"[^\n]*!dbg !(\d+)[^\n]*\n",
    re.M,
)


def watch_values(module: str) -> str:
    """`module` with a call of the runtime after each such operation; `place_values` tells it of their lines."""
    numbers, pieces, at = count(), [], 0
    for start, end, _ in functions(module):
        pieces.append(module[at:start])
        for line in module[start:end].splitlines(keepends=True):
            pieces.append(line)
            operation = _RESULT.match(line)
            read = _read(operation[2], operation[3]) if operation else None
            if operation is None or read is None:
                continue
            of_type, operands = read
            number, names = next(numbers), list[str]()
            for index, (kind, name) in enumerate([*operands, (of_type, operation[1])]):
                names.append(name if kind == "float" else f"%pm.value.{number}.{index}")
                if kind == "half":
                    pieces.append(f"  {names[-1]} = fpext half {name} to float\n")
            floats = ", ".join(f"float {names[min(place, len(operands) - 1)]}" for place in range(_MOST))
            site = f"ptr inttoptr (i64 {_OPERATIONS.index(operation[2]) + 1} to ptr)"
            pieces.append(f"  call void {_HOOK}({floats}, float {names[-1]}, {site}), !dbg !{operation[4]}\n")
        at = end
    declared = f"declare void {_HOOK}(float, float, float, float, ptr) nounwind memory(inaccessiblemem: readwrite)"
    return "\n".join(["".join([*pieces, module[at:]]), declared, ""])


def place_values(module: str) -> str:
    """`module`, optimized, with the line of the source in each of these calls, and without those that have none; also
    in those that tell of an operation whose result is open.
    """
    places, sites, files = Places.read(module), dict[str, int](), dict[str, int]()

    def tell_place(call: re.Match[str]) -> str:
        place = places.find(call[3])
        if place is None:
            return ""
        file = f"@pm.value.file.{files.setdefault(place[0], len(files))}"
        site = f"{{ ptr {file}, i32 {place[1]}, i32 {int(call[2]) - 1} }}"
        return f"{call[1]}ptr @pm.value.{sites.setdefault(site, len(sites))})\n"

    text = _PLACED.sub(tell_place, module)
    named = [f"@pm.value.file.{n} = private constant {write_string(file)}" for file, n in files.items()]
    tables = [f"@pm.value.{n} = private constant {{ ptr, i32, i32 }} {site}" for site, n in sites.items()]
    return "\n".join([text, *named, *tables, ""])


def _read(opcode: str, rest: str) -> tuple[str, list[tuple[str, str]]] | None:
    """The type of a result and the operands with theirs; None for what has none of floating point, or too many."""
    if opcode == "fptrunc":
        converted = re.match(rf"(?:\w+ )*float ({LOCAL.pattern}) to half$", rest)
        return ("half", [("float", converted[1])]) if converted else None
    head, _, arguments = rest.partition("(") if opcode == "call" else ("", "", rest)
    if opcode == "call":
        kind = _TYPE.findall(head)
        operands = [(argument[1], argument[2]) for argument in _ARGUMENT.finditer(arguments)]
        return (kind[-1], operands) if kind and 1 <= len(operands) <= _MOST and _HOOK not in head else None
    pair = re.match(r"(?:\w+ )*?(half|float) (\S+), (\S+)$", arguments)
    return (pair[1], [(pair[1], pair[2]), (pair[1], pair[3])]) if pair else None
