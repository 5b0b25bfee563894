"""Atomic updates of memory that one host thread alone reaches: written without a lock.

A threadgroup's own memory is always such. Memory of the device is while one thread runs a launch and no other launch
updates any, which the runtime tells by `pm_alone` (see runtime/threads.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from aten_overlay.metal.passes.ir import LOCAL, Instruction

_UPDATE = re.compile(r"atomicrmw (?:volatile )?(\w+) ptr ([^,]+), (\w+) (\S+) monotonic(, align \d+)?$")
_OPERATIONS = frozenset(("add", "sub", "and", "or", "xor", "fadd", "fsub"))
_EXTREMES = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}
_BASE = re.compile(rf"\bptr ({LOCAL.pattern})")

_ALONE, _UPDATES = "@pm_alone", "@pm_updates = weak hidden constant i32 "
_SHARED = re.compile(
    rf"^( *{LOCAL.pattern} = )atomicrmw (?:volatile )?(\w+) ptr ([^\s,]+), (\w+) ([^\s,]+) monotonic, align (\d+)",
    re.M,
)
_EXCHANGE = re.compile(
    rf"^( *{LOCAL.pattern} = )cmpxchg (?:weak )?(?:volatile )?ptr ([^\s,]+), (i\d+) ([^\s,]+), i\d+ ([^\s,]+) "
    r"monotonic monotonic, align (\d+)",
    re.M,
)


def tell_of_updates(module: str) -> str:
    """`module`, with what the runtime reads of whether it has atomic updates."""
    has_any = any(word in module for word in (" = atomicrmw ", " = cmpxchg "))
    return module.replace(f"{_UPDATES}0", f"{_UPDATES}1") if has_any else module


def ask_for_lock(module: str) -> str:
    """`module` with each atomic update a call that locks only where other threads may update the same memory."""
    written: dict[str, str] = {}

    def update(found: re.Match[str]) -> str:
        result, operation, pointer, kind, value, alignment = found.groups()
        name = f"@pm_update.{operation}.{kind}.{alignment}"
        locked = f"atomicrmw {operation} ptr %p, {kind} %v monotonic, align {alignment}"
        if not (plain := list(write_update(locked, "%was"))):
            return found[0]
        written[name] = _write_choice(name, kind, f"{kind} %v", locked, plain)
        return f"{result}call {kind} {name}(ptr {pointer}, {kind} {value})"

    def exchange(found: re.Match[str]) -> str:
        result, pointer, kind, expected, value, alignment = found.groups()
        name, pair = f"@pm_update.cmpxchg.{kind}.{alignment}", f"{{ {kind}, i1 }}"
        locked = f"cmpxchg ptr %p, {kind} %e, {kind} %v monotonic monotonic, align {alignment}"
        plain = [
            f"%had = load {kind}, ptr %p, align {alignment}",
            f"%same = icmp eq {kind} %had, %e",
            f"%new = select i1 %same, {kind} %v, {kind} %had",
            f"store {kind} %new, ptr %p, align {alignment}",
            f"%half = insertvalue {pair} poison, {kind} %had, 0",
            f"%was = insertvalue {pair} %half, i1 %same, 1",
        ]
        written[name] = _write_choice(name, pair, f"{kind} %e, {kind} %v", locked, plain)
        return f"{result}call {pair} {name}(ptr {pointer}, {kind} {expected}, {kind} {value})"

    module = _EXCHANGE.sub(exchange, _SHARED.sub(update, module))
    if not written:
        return module
    declared = "" if f"{_ALONE} = " in module else f"{_ALONE} = external global i32\n"
    return "\n".join([module, declared, *written.values()])


def _write_choice(name: str, result: str, values: str, locked: str, plain: list[str]) -> str:
    lines = [
        f"define internal {result} {name}(ptr %p, {values}) alwaysinline nounwind {{",
        f"  %alone = load i32, ptr {_ALONE}",
        "  %shared = icmp eq i32 %alone, 0",
        "  br i1 %shared, label %locked, label %plain",
        "locked:",
        f"  %old = {locked}",
        f"  ret {result} %old",
        "plain:",
        *(f"  {line}" for line in plain),
        f"  ret {result} %was",
        "}\n",
    ]
    return "\n".join(lines)


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
