"""Atomic updates of memory that one host thread alone reaches, as a threadgroup's own: written without a lock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from aten_overlay.metal.ir import LOCAL, Instruction

_UPDATE = re.compile(r"atomicrmw (?:volatile )?(\w+) ptr ([^,]+), (\w+) (\S+) monotonic(, align \d+)?$")
_OPERATIONS = frozenset(("add", "sub", "and", "or", "xor", "fadd", "fsub"))
_EXTREMES = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}
_BASE = re.compile(rf"\bptr ({LOCAL.pattern})")


def write_update(text: str, old: str) -> Iterator[str]:
    """The lines of an atomic update whose result is called `old`; none if it is not understood."""
    found = _UPDATE.match(text)
    if not found:
        return
    operation, pointer, kind, value, alignment = found.groups("")
    if operation in _OPERATIONS:
        new = [f"{old}.new = {operation} {kind} {old}, {value}"]
    elif operation in _EXTREMES:
        new = [
            f"{old}.more = icmp {_EXTREMES[operation]} {kind} {value}, {old}",
            f"{old}.new = select i1 {old}.more, {kind} {value}, {kind} {old}",
        ]
    else:
        return
    yield f"{old} = load {kind}, ptr {pointer}{alignment}"
    yield from new
    yield f"store {kind} {old}.new, ptr {pointer}{alignment}"


def is_threadgroups(update: Instruction, defined: Mapping[str, tuple[int, Instruction]], given: str) -> bool:
    """Whether an atomic update is of memory that a threadgroup declares, or that `given` points to."""
    name = _find_base(update)
    while name in defined:
        source = defined[name][1]
        if source.callee.startswith("@llvm.threadlocal.address"):
            return True
        if source.opcode not in ("getelementptr", "load"):
            return False
        name = _find_base(source)
        if source.opcode == "load":
            while name in defined and defined[name][1].opcode == "getelementptr":
                name = _find_base(defined[name][1])
            return name == given
    return False


def _find_base(instruction: Instruction) -> str:
    found = _BASE.search(instruction.text)
    return found[1] if found else ""
