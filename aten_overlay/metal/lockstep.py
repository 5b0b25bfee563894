"""Synchronising kernels for a whole threadgroup at a time: between two waits, every unit becomes a loop over its lanes.

Fibers run one lane after the other, each on its own; here all lanes go through a unit before any goes on, so the loops can
be vectorised. Values that outlive a unit are kept in arrays, one element a lane. While all lanes go the same way control
flow is the kernel's own; once they part, the lowest unit with lanes waiting runs for those (see `units`), until all of
them have met again.

Loads are contiguous only if addresses are known to be: values guessed to be the same in all lanes, or to grow by one from
lane to lane, are checked when a unit begins, and what it does then is compiled once for each answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aten_overlay.metal.ir import (
    CHEAP,
    LOCAL,
    PURE,
    TRAPS,
    Instruction,
    NotUnderstood,
    read_function,
    result_type,
)
from aten_overlay.metal.units import Unit, units

SOURCE, RESULT = "@pm_lane_source_", "@pm_lockstep_"
_MOST_INSTRUCTIONS = 3000  # beyond, compiling takes longer than fibers do
_ENDED = 1 << 30  # the unit of a lane that has ended: as in runtime/lockstep.cpp
_STRIDE = 64  # lanes: keeps every array aligned to a cache line
_LANE_TYPES = re.compile(r"i(8|16|32|64)|half|bfloat|float|double|ptr")
_FENCE = ' asm sideeffect "", "=r,0,'  # keeps a value where it is taken
_STEPPABLE = ("i16", "i32", "i64")


def together(text: str, name: str, waiting: set[str], metadata: int) -> tuple[str, int]:
    """The definition of `pm_lockstep_N` made of that of `pm_lane_source_N(buffers, threadgroup, where, index, x, y, z)`,
    and the number of metadata nodes it takes from `metadata` on. `waiting` are functions a lane may wait in.

    Raises NotUnderstood.
    """
    writer = _Writer(text, name, waiting, metadata)
    return writer.text(), 3 * (writer.loops + 1)


DECLARATIONS = """
declare ptr @pm_lane_memory(i64)
declare void @pm_lanes_part(ptr, ptr, i32, i32)
declare i32 @pm_lanes_next(ptr)
declare void @pm_step_all(ptr, ptr)
declare void @pm_step_some(ptr, i32, i32, ptr)
"""


@dataclass
class _Loop:
    """The text of one loop over lanes being written: what comes before it, its first lines, and its body."""

    number: int
    before: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


class _Writer:
    """Writes one kernel."""

    def __init__(self, text: str, name: str, waiting: set[str], metadata: int) -> None:
        self.function = read_function(text)
        self.units = units(self.function)
        self.number = name.removeprefix(SOURCE)
        if sum(len(u.instructions) for u in self.units) > _MOST_INSTRUCTIONS:
            raise NotUnderstood("too many instructions")
        self.metadata, self.loops = metadata, 0
        self.lines: list[str] = []
        self.properties: list[str] = []
        self.buffers, self.threadgroup, self.where, self.index, *self.places = self.function.parameters
        self.defined: dict[str, tuple[int, Instruction]] = {}
        self.phis: dict[str, str] = {}
        self.groupwide: dict[str, str] = {}
        self.recomputed: set[str] = set()
        self.private: dict[str, int] = {}
        self._survey(waiting)
        self.slots = self._find_slots()
        self.guesses = self._guess()
        self.parting = self._parting()

    # What is known of values.

    def _survey(self, waiting: set[str]) -> None:
        for number, unit in enumerate(self.units):
            for instruction in unit.instructions:
                if instruction.callee in waiting:
                    raise NotUnderstood(f"{instruction.callee} waits, and was not inlined")
                if instruction.result:
                    self.defined[instruction.result] = (number, instruction)
            for edge in unit.edges:
                self.phis |= {c.phi: c.type for c in edge.copies}
        self.groupwide = {name: name for name in (self.buffers, self.threadgroup, self.where)}
        lanes = {self.index, *self.places}
        stored = False
        for number, unit in enumerate(self.units):
            for i in unit.instructions:
                if i.callee == "@pm_index":
                    self.recomputed.add(i.result)
                elif i.opcode == "alloca":
                    self.private[i.result] = len(self.private)
                    self.recomputed.add(i.result)
                elif i.callee == "@pm_simd_begin" or self._is_same(i, number == 0 and not stored):
                    self.groupwide[i.result] = f"%g{len(self.groupwide)}"
                elif _is_free(i):
                    known = (o in lanes or o in self.recomputed or o in self.groupwide for o in self._read(i))
                    if i.opcode in CHEAP or all(known):
                        self.recomputed.add(i.result)
                else:
                    stored |= i.opcode != "load"

    def _is_same(self, instruction: Instruction, readable: bool) -> bool:
        """Whether every lane, whenever it computes this, gets the same. `readable` memory is not written before."""
        if not all(o in self.groupwide for o in self._read(instruction)):
            return False
        return _is_free(instruction) or (readable and _is_plain_load(instruction))

    def _read(self, instruction: Instruction) -> list[str]:
        """The values an instruction reads."""
        return [o for o in instruction.operands if self._is_value(o)]

    def _is_value(self, name: str) -> bool:
        return name in self.defined or name in self.phis or name in self.function.parameters

    def _needs(self, unit: Unit) -> list[str]:
        """The values a unit reads from outside and has to have kept, in no order; and those it computes again."""
        own = {i.result for i in unit.instructions if i.result not in self.groupwide}
        names = [o for i in unit.instructions if i.result not in self.groupwide for o in self._read(i)]
        names += [n for n in (unit.condition, *(c.value for e in unit.edges for c in e.copies)) if self._is_value(n)]
        found: dict[str, None] = {}
        while names:
            name = names.pop()
            if name in found or name in own or name in self.groupwide:
                continue
            found[name] = None
            if name in self.recomputed:
                names += self._read(self.defined[name][1])
        return list(found)

    def _find_slots(self) -> dict[str, str]:
        """The type of each value that is kept, by name."""
        slots = dict(self.phis)
        for unit in self.units:
            for name in self._needs(unit):
                if name in self.defined and name not in self.recomputed:
                    slots[name] = result_type(self.defined[name][1])
        return slots

    def _guess(self) -> dict[str, str]:
        """What values are taken to be until checked: "same" in all lanes, "next" to each other, or "" for neither."""
        guesses = dict.fromkeys(self.groupwide, "same")
        guesses |= {self.index: "next", self.places[0]: "next", self.places[1]: "same", self.places[2]: "same"}
        order = [(i.result, i) for u in self.units for i in u.instructions if i.result and i.result not in guesses]
        copies = [c for u in self.units for e in u.edges for c in e.copies]
        for _ in range(8):
            before = dict(guesses)
            for name, instruction in order:
                known = [guesses.get(o) for o in self._read(instruction)]
                if None not in known:
                    guesses[name] = _guess_of(instruction, [k or "" for k in known])
            merged: dict[str, set[str]] = {}
            for copy in copies:
                guess = guesses.get(copy.value) if self._is_value(copy.value) else "same"
                if guess is not None:
                    merged.setdefault(copy.phi, set()).add(guess)
            guesses |= {phi: found.pop() if len(found) == 1 else "" for phi, found in merged.items()}
            if guesses == before:
                break
        return guesses

    def _parting(self) -> set[int]:
        """The units that may run while lanes are apart."""
        frontier = [
            e.target for u in self.units if len(u.edges) == 2 and u.condition not in self.groupwide for e in u.edges
        ]
        found: set[int] = set()
        while frontier:
            number = frontier.pop()
            if number not in found:
                found.add(number)
                frontier += [e.target for e in self.units[number].edges]
        return found

    # The function.

    def text(self) -> str:
        """The definition, with its metadata."""
        self._write_entry()
        for number, unit in enumerate(self.units):
            self._write_together(number, unit)
            if number in self.parting:
                self._write_apart(number, unit)
        self._write_dispatch()
        attributes = re.search(r" (#\d+)(?: comdat)?[^#]*\{$", self.function.head)
        head = (
            f"define hidden void {RESULT}{self.number}(ptr {self.buffers}, ptr {self.threadgroup}, ptr {self.where}, "
            f"ptr %lanes) {attributes[1] if attributes else ''} {{"
        )
        group = f"!{self.metadata} = distinct !{{}}\n"
        return "\n".join([head, "start:", *self.lines, "}", *self.properties, group])

    def _write_entry(self) -> None:
        for n, name in enumerate(("exchange", "x", "y", "z", "unit")):
            self._line(f"%at.{name} = getelementptr i8, ptr %lanes, i64 {8 * n}")
            self._line(f"%{name} = load ptr, ptr %at.{name}")
        self._line("%at.n = getelementptr i8, ptr %lanes, i64 40")
        self._line("%n = load i32, ptr %at.n")
        self._line(f"%padded = add i32 %n, {_STRIDE - 1}")
        self._line(f"%whole = and i32 %padded, {-_STRIDE}")
        self._line("%stride = zext i32 %whole to i64")
        self._write_memory()
        for unit in self.units:
            for i in unit.instructions:
                if i.result in self.groupwide:
                    text = "getelementptr i8, ptr %exchange, i64 0" if i.callee == "@pm_simd_begin" else i.text
                    self._line(f"{self.groupwide[i.result]} = {self._renamed(text, {})}")
        self._line("br label %together.0")

    def _write_memory(self) -> None:
        """One stretch for all arrays; each starts at the sum of the sizes before it, times the number of lanes."""
        kept = [(f"%s.{n}", _size(_stored(kind))) for n, kind in enumerate(self.slots.values())]
        kept.append(("%s.condition", "1"))
        for name, n in self.private.items():
            text = self.defined[name][1].text
            if re.search(r", i\d+ ", text):
                raise NotUnderstood(text)
            size = _size(text.removeprefix("alloca ").split(", align")[0])
            self._line(f"%a.{n}.size = add i64 {size}, {_STRIDE - 1}")
            self._line(f"%a.{n}.step = and i64 %a.{n}.size, {-_STRIDE}")
            kept.append((f"%a.{n}", f"%a.{n}.step"))
        offset, offsets = "0", []
        for n, (_, size) in enumerate(kept):
            offsets.append(offset)
            self._line(f"%b.{n} = mul i64 {size}, %stride")
            self._line(f"%o.{n} = add i64 {offset}, %b.{n}")
            offset = f"%o.{n}"
        self._line(f"%memory = call ptr @pm_lane_memory(i64 {offset})")
        for (name, _), start in zip(kept, offsets, strict=True):
            self._line(f"{name} = getelementptr i8, ptr %memory, i64 {start}")

    def _write_dispatch(self) -> None:
        rows = [f"i32 {2 * n}, label %apart.{n} i32 {2 * n + 1}, label %together.{n}" for n in sorted(self.parting)]
        self._label("dispatch")
        self._line("%next = call i32 @pm_lanes_next(ptr %lanes)")
        self._line(f"switch i32 %next, label %done [ {' '.join(rows)} ]")
        self._label("done")
        self._line("ret void")

    # Units.

    def _write_together(self, number: int, unit: Unit) -> None:
        """The unit when all lanes are in it."""
        self._label(f"together.{number}")
        if unit.waits:
            if unit.step:
                self._line(f"call void @pm_step_all(ptr %lanes, ptr {unit.step})")
            self._line(f"br label %together.{unit.edges[0].target}")
            return
        checked = self._checkable(unit)
        if checked:
            slow = self._write_checks(number, checked)
            self._write_loop(f"fast.{number}", number, unit, checked, True)
            self._label(slow)
        self._write_loop(f"slow.{number}", number, unit, [], not checked)

    def _checkable(self, unit: Unit) -> list[str]:
        """The kept values from which this unit computes addresses, and of which something is guessed."""
        addresses = {o for i in unit.instructions if i.opcode in ("load", "store") for o in self._read(i)[-1:]}
        own = {i.result: i for i in unit.instructions}
        frontier, seen = list(addresses), set()
        while frontier:
            name = frontier.pop()
            if name in seen or name in self.groupwide:
                continue
            seen.add(name)
            source = own.get(name) or (self.defined[name][1] if name in self.recomputed else None)
            if source is not None and (source.opcode in PURE or source.opcode == "load"):
                frontier += self._read(source)
        kept = [n for n in seen if n not in own and (n in self.slots or n in self.places)]
        kinds = {n: self.slots.get(n, "i32") for n in kept}
        allowed = {"same": (*_STEPPABLE, "ptr"), "next": _STEPPABLE, "": ()}
        return sorted(n for n in kept if kinds[n] in allowed[self.guesses.get(n, "")])

    def _write_checks(self, number: int, names: list[str]) -> str:
        """Branches to the fast loop if the guesses hold; returns the label to go to when they do not."""
        loop = self._loop()
        passed = []
        for n, name in enumerate(names):
            kind, first = self.slots.get(name, "i32"), f"%first.{number}.{n}"
            loop.before.append(f"{first} = load {kind}, ptr {self._array(name)}")
            here = self._load(loop, kind, self._array(name))
            if kind == "ptr":
                loop.before.append(f"{first}.i = ptrtoint ptr {first} to i64")
                loop.body.append(f"{here}.i = ptrtoint ptr {here} to i64")
                kind, here, start = "i64", f"{here}.i", f"{first}.i"
            else:
                start = first
            if self.guesses[name] == "next":
                start = self._counter(loop, kind, start, "")
                low = f"%low.{number}.{n}"
                loop.before.append(f"{low} = icmp ult {kind} {first}, {(1 << int(kind[1:]) - 1) - 1100}")
                passed.append(low)
            off, so_far = f"%off.{loop.number}.{n}", f"%sum.{loop.number}.{n}"
            loop.heads.append(f"{so_far} = phi {kind} [ 0, %pre.{loop.number} ], [ {so_far}.next, %loop.{loop.number} ]")
            loop.body.append(f"{off} = xor {kind} {here}, {start}")
            loop.body.append(f"{so_far}.next = or {kind} {so_far}, {off}")
            passed.append(f"{kind} {so_far}.next")
        self._finish(loop, True)
        result = "true"
        for n, name in enumerate(passed):
            if " " in name:
                self._line(f"%ok.{number}.{n}.t = icmp eq {name}, 0")
                name = f"%ok.{number}.{n}.t"
            self._line(f"%ok.{number}.{n} = and i1 {result}, {name}")
            result = f"%ok.{number}.{n}"
        self._line(f"br i1 {result}, label %fast.{number}, label %slow.{number}")
        self._label(f"fast.{number}")
        return f"slow.{number}"

    def _write_loop(self, tag: str, number: int, unit: Unit, checked: list[str], parallel: bool) -> None:
        loop = self._loop()
        self._write_body(loop, unit, checked, True)
        condition = loop.names.get(unit.condition, "")
        if condition:
            count = f"%count.{loop.number}"
            loop.heads.append(f"{count} = phi i32 [ 0, %pre.{loop.number} ], [ {count}.next, %loop.{loop.number} ]")
            loop.body.append(f"{count}.one = zext i1 {condition} to i32")
            loop.body.append(f"{count}.next = add i32 {count}, {count}.one")
            self._store(loop, "i1", condition, "%s.condition")
        self._finish(loop, parallel)
        if not unit.edges:
            self._line("ret void")
        elif len(unit.edges) == 1:
            self._line(f"br label %together.{unit.edges[0].target}")
        elif not condition:
            targets = ", ".join(f"label %together.{e.target}" for e in unit.edges)
            self._line(f"br i1 {self.groupwide.get(unit.condition, unit.condition)}, {targets}")
        else:
            yes, no = (e.target for e in unit.edges)
            self._line(f"switch i32 {count}.next, label %part.{tag} [ i32 0, label %together.{no} ]")
            self._label(f"part.{tag}")
            self._line(f"{count}.all = icmp eq i32 {count}.next, %n")
            self._line(f"br i1 {count}.all, label %together.{yes}, label %really.{tag}")
            self._label(f"really.{tag}")
            self._line(f"call void @pm_lanes_part(ptr %lanes, ptr %s.condition, i32 {yes}, i32 {no})")
            self._line("br label %dispatch")

    def _write_apart(self, number: int, unit: Unit) -> None:
        """The unit for the lanes that are in it."""
        self._label(f"apart.{number}")
        if unit.waits:
            step = unit.step or "null"
            self._line(f"call void @pm_step_some(ptr %lanes, i32 {number}, i32 {unit.edges[0].target}, ptr {step})")
            self._line("br label %dispatch")
            return
        loop = self._loop()
        self._write_body(loop, unit, [], False)
        k = loop.number
        targets = [str(e.target) for e in unit.edges] or [str(_ENDED)]
        going = targets[0]
        if len(targets) == 2:
            condition = loop.names.get(unit.condition) or self.groupwide.get(unit.condition, unit.condition)
            loop.body.append(f"%to.{k} = select i1 {condition}, i32 {targets[0]}, i32 {targets[1]}")
            going = f"%to.{k}"
        self._line(f"br label %pre.{k}")
        self._label(f"pre.{k}")
        self.lines += loop.before
        self._line(f"br label %loop.{k}")
        self._label(f"loop.{k}")
        self._line(f"%l.{k} = phi i32 [ 0, %pre.{k} ], [ %l.{k}.next, %skip.{k} ]")
        self._line(f"%here.{k} = getelementptr i32, ptr %unit, i32 %l.{k}")
        self._line(f"%in.{k} = load i32, ptr %here.{k}")
        self._line(f"%mine.{k} = icmp eq i32 %in.{k}, {number}")
        self._line(f"br i1 %mine.{k}, label %body.{k}, label %skip.{k}")
        self._label(f"body.{k}")
        self.lines += loop.body
        self._line(f"store i32 {going}, ptr %here.{k}")
        self._line(f"br label %skip.{k}")
        self._label(f"skip.{k}")
        self._close(k, False, "dispatch")

    def _write_body(self, loop: _Loop, unit: Unit, checked: list[str], together: bool) -> None:
        """What one lane does in the unit: takes what it needs, computes, keeps what is needed later."""
        lane = f"%l.{loop.number}"
        loop.names[self.index] = lane
        needed = self._needs(unit)
        same: set[str] = set()
        for name in needed:
            if name in self.recomputed or name == self.index:
                continue
            kind = self.slots.get(name, "i32")
            if name in checked and self.guesses[name] == "same":
                loop.names[name] = f"%first.{self._position(unit)}.{checked.index(name)}"
                same.add(name)
            elif name in checked:
                first = f"%first.{self._position(unit)}.{checked.index(name)}"
                loop.names[name] = self._counter(loop, kind, first, ".f")
            else:
                loop.names[name] = self._load(loop, kind, self._array(name))
        again = sorted((n for n in needed if n in self.recomputed), key=self._defined_at)
        stored = False
        for i in [self.defined[n][1] for n in again] + list(unit.instructions):
            if i.result in self.groupwide or (i.result in loop.names):
                continue
            stored = self._write_instruction(loop, i, same, stored or not together)
        self._write_results(loop, unit)

    def _write_instruction(self, loop: _Loop, i: Instruction, same: set[str], stored: bool) -> bool:
        """Returns whether memory may have been written by then."""
        name = f"%v.{len(loop.names)}.{loop.number}"
        if i.callee == "@pm_index":
            loop.names[i.result] = f"%l.{loop.number}"
            return stored
        if _FENCE in i.text:
            value = self._read(i)[0]
            loop.names[i.result] = loop.names.get(value) or self.groupwide[value]
            return stored
        if i.opcode == "alloca":
            n = self.private[i.result]
            loop.body.append(f"{name}.w = zext i32 %l.{loop.number} to i64")
            loop.body.append(f"{name}.o = mul i64 {name}.w, %a.{n}.step")
            loop.body.append(f"{name} = getelementptr i8, ptr %a.{n}, i64 {name}.o")
            loop.names[i.result] = name
            return stored
        text = self._renamed(i.text, loop.names).replace("load volatile", "load").replace("store volatile", "store")
        known = all(o in same or o in self.groupwide for o in self._read(i))
        if i.opcode in ("load", "store"):
            text = f"{text}, !llvm.access.group !{self.metadata}"
        # All lanes read the same before any writes: once is enough.
        once = known and (_is_free(i) or (_is_plain_load(i) and not stored))
        (loop.before if once else loop.body).append(f"{name} = {text}" if i.result else text)
        if i.result:
            loop.names[i.result] = name
            if once:
                same.add(i.result)
        return stored or not (_is_free(i) or i.opcode == "load")

    def _write_results(self, loop: _Loop, unit: Unit) -> None:
        for i in unit.instructions:
            if i.result in self.slots:
                self._store(loop, self.slots[i.result], loop.names[i.result], self._array(i.result))
        for edge in unit.edges:
            for copy in edge.copies:
                value = loop.names.get(copy.value) or self.groupwide.get(copy.value, copy.value)
                self._store(loop, copy.type, value, self._array(copy.phi))

    def _position(self, unit: Unit) -> int:
        return next(n for n, u in enumerate(self.units) if u is unit)

    def _defined_at(self, name: str) -> tuple[int, int]:
        number, instruction = self.defined[name]
        return number, self.units[number].instructions.index(instruction)

    # Lines.

    def _loop(self) -> _Loop:
        self.loops += 1
        return _Loop(self.loops)

    def _array(self, name: str) -> str:
        if name in self.places:
            return f"%{'xyz'[self.places.index(name)]}"
        return f"%s.{list(self.slots).index(name)}"

    def _load(self, loop: _Loop, kind: str, array: str) -> str:
        name = f"%k.{len(loop.body)}.{loop.number}"
        kept = _stored(kind)
        group = f", !llvm.access.group !{self.metadata}"
        loop.body.append(f"{name}.p = getelementptr {kept}, ptr {array}, i32 %l.{loop.number}")
        if kept == kind:
            loop.body.append(f"{name} = load {kind}, ptr {name}.p{group}")
        else:
            loop.body.append(f"{name}.b = load {kept}, ptr {name}.p{group}")
            loop.body.append(f"{name} = trunc {kept} {name}.b to {kind}")
        return name

    def _store(self, loop: _Loop, kind: str, value: str, array: str) -> None:
        name, kept = f"%w.{len(loop.body)}.{loop.number}", _stored(kind)
        loop.body.append(f"{name}.p = getelementptr {kept}, ptr {array}, i32 %l.{loop.number}")
        if kept != kind:
            loop.body.append(f"{name}.b = zext {kind} {value} to {kept}")
            value = f"{name}.b"
        loop.body.append(f"store {kept} {value}, ptr {name}.p, !llvm.access.group !{self.metadata}")

    def _counter(self, loop: _Loop, kind: str, start: str, suffix: str) -> str:
        """A value that begins with `start` and grows by one with the lane."""
        name = f"{start}{suffix}.at.{loop.number}"
        loop.heads.append(f"{name} = phi {kind} [ {start}, %pre.{loop.number} ], [ {name}.next, %loop.{loop.number} ]")
        loop.body.append(f"{name}.next = add nuw nsw {kind} {name}, 1")
        return name

    def _finish(self, loop: _Loop, parallel: bool) -> None:
        k = loop.number
        self._line(f"br label %pre.{k}")
        self._label(f"pre.{k}")
        self.lines += loop.before
        self._line(f"br label %loop.{k}")
        self._label(f"loop.{k}")
        self._line(f"%l.{k} = phi i32 [ 0, %pre.{k} ], [ %l.{k}.next, %loop.{k} ]")
        self.lines += loop.heads
        self.lines += loop.body
        self._close(k, parallel, f"end.{k}")
        self._label(f"end.{k}")

    def _close(self, k: int, parallel: bool, after: str) -> None:
        self._line(f"%l.{k}.next = add nuw nsw i32 %l.{k}, 1")
        self._line(f"%more.{k} = icmp ult i32 %l.{k}.next, %n")
        self._line(f"br i1 %more.{k}, label %loop.{k}, label %{after}, !llvm.loop !{self.metadata + 3 * k}")
        own, first, second = (self.metadata + 3 * k + n for n in range(3))
        parts = '"llvm.loop.vectorize.enable", i1 false'
        if parallel:
            parts = f'"llvm.loop.parallel_accesses", !{self.metadata}'
        self.properties.append(f"!{own} = distinct !{{!{own}, !{first}, !{second}}}")
        self.properties.append(f'!{first} = !{{!{parts}}}\n!{second} = !{{!"llvm.loop.unroll.disable"}}')

    def _renamed(self, text: str, names: dict[str, str]) -> str:
        return LOCAL.sub(lambda m: names.get(m[0]) or self.groupwide.get(m[0], m[0]), text)

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _label(self, text: str) -> None:
        self.lines.append(f"{text}:")


def _is_free(instruction: Instruction) -> bool:
    """Whether it may be computed anywhere, any number of times."""
    if instruction.opcode in PURE:
        return instruction.opcode not in TRAPS
    return instruction.callee.startswith(("@llvm.threadlocal.address", "@llvm.fma", "@llvm.fabs", "@llvm.umin"))


def _is_plain_load(instruction: Instruction) -> bool:
    return instruction.opcode == "load" and not instruction.text.startswith(("load volatile", "load atomic"))


def _guess_of(instruction: Instruction, known: list[str]) -> str:
    if instruction.callee == "@pm_index":
        return "next"
    if all(k == "same" for k in known):
        return "same" if instruction.opcode in PURE or instruction.opcode == "load" else ""
    if instruction.opcode in ("add", "zext", "sext", "trunc", "freeze") or " disjoint " in instruction.text:
        return "next" if sorted(known) in (["next"], ["next", "same"]) else ""
    if instruction.opcode == "sub":
        return "next" if known[0] == "next" and known[1:] in ([], ["same"]) else ""
    return ""


def _stored(kind: str) -> str:
    """The type a value is kept as: whole bytes, so that arrays of it can be read as vectors."""
    return "i8" if kind == "i1" else kind


def _size(kind: str) -> str:
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)" if not kind.isdigit() else kind
