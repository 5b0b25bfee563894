"""Synchronising kernels for a whole threadgroup at a time: between two waits, every unit becomes a loop over lanes.

Fibers run one lane after the other, each on its own; here all lanes go through a unit before any goes on, so that the
loops can be vectorised. Values that outlive a unit are kept in arrays, one element a lane. While all lanes go the same
way control flow is the kernel's own; once they part, the lowest unit with lanes waiting runs for those (see `units`),
until all of them have met again.

Loads are contiguous only if addresses are known to be: values guessed to be the same in all lanes, or to grow by one
from lane to lane, are checked when a unit begins, and what it does then is compiled once for each answer.
"""

from __future__ import annotations

import re

from aten_overlay.metal.ir import LOCAL, Instruction, NotUnderstood, read_function
from aten_overlay.metal.lane_loop import LaneLoop, stored
from aten_overlay.metal.units import Unit, units
from aten_overlay.metal.values import Values, is_free, is_plain_load

SOURCE, RESULT = "@pm_lane_source_", "@pm_lockstep_"
_ENDED = 1 << 30  # the unit of a lane that has ended: as in runtime/lockstep.cpp
_STRIDE = 64  # lanes: keeps every array aligned to a cache line
_FEW = 100  # units: with more, vectorising what lanes do apart takes too long
_FENCE = ' asm sideeffect "", "=r,0,'  # keeps a value where it is taken
DECLARATIONS = """
declare ptr @pm_lane_memory(i64)
declare void @pm_lanes_part(ptr, ptr, i32, i32)
declare i32 @pm_lanes_next(ptr)
declare void @pm_step_all(ptr, ptr)
declare void @pm_step_some(ptr, i32, i32, ptr)
"""


def together(text: str, name: str, waiting: set[str], metadata: int) -> tuple[str, int]:
    """The definition of `pm_lockstep_N` made of `pm_lane_source_N(buffers, threadgroup, where, index, x, y, z)`, and
    the number of metadata nodes it takes from `metadata` on. `waiting` are functions a lane may wait in.

    Raises NotUnderstood.
    """
    writer = _Writer(text, name, waiting, metadata)
    return writer.text(), 3 * (writer.loops + 1)


class _Writer:
    """Writes one kernel."""

    def __init__(self, text: str, name: str, waiting: set[str], metadata: int) -> None:
        self.function = read_function(text)
        self.units = units(self.function)
        self.values = Values(self.function, self.units, waiting)
        self.groupwide = self.values.groupwide
        self.parting = self.values.parting()
        self.arrays = self._arrays()
        self.number = name.removeprefix(SOURCE)
        self.metadata, self.loops = metadata, 0
        self.lines: list[str] = []
        self.nodes = [f"!{metadata} = distinct !{{}}"]

    def text(self) -> str:
        """The definition, with its metadata."""
        self._write_entry()
        for number, unit in enumerate(self.units):
            self._write_together(number, unit)
            if number in self.parting:
                self._write_apart(number, unit)
        self._write_dispatch()
        attributes = re.search(r" (#\d+)(?: comdat)?[^#]*\{$", self.function.head)
        parameters = ", ".join(f"ptr {name}" for name in (*self.function.parameters[:3], "%lanes"))
        head = f"define hidden void {RESULT}{self.number}({parameters}) {attributes[1] if attributes else ''} {{"
        return "\n".join([head, "start:", *self.lines, "}", *self.nodes, ""])

    def _arrays(self) -> dict[str, str]:
        arrays = {name: f"%s.{n}" for n, name in enumerate(self.values.slots)}
        return arrays | dict(zip(self.values.places, ("%x", "%y", "%z"), strict=True))

    def _write_entry(self) -> None:
        for n, name in enumerate(("exchange", "x", "y", "z", "unit")):
            self._write(f"%at.{name} = getelementptr i8, ptr %lanes, i64 {8 * n}")
            self._write(f"%{name} = load ptr, ptr %at.{name}")
        self._write("%at.n = getelementptr i8, ptr %lanes, i64 40")
        self._write("%n = load i32, ptr %at.n")
        self._write(f"%padded = add i32 %n, {_STRIDE - 1}")
        self._write(f"%whole = and i32 %padded, {-_STRIDE}")
        self._write("%stride = zext i32 %whole to i64")
        self._write_memory()
        for unit in self.units:
            for i in unit.instructions:
                if i.result in self.groupwide:
                    text = "getelementptr i8, ptr %exchange, i64 0" if i.callee == "@pm_simd_begin" else i.text
                    self._write(f"{self.groupwide[i.result]} = {self._renamed(text, {})}")
        self._write("br label %together.0")

    def _write_memory(self) -> None:
        """One stretch for all arrays; each starts at the sum of the sizes before it, times the number of lanes."""
        kept = [(self.arrays[name], _size(stored(kind))) for name, kind in self.values.slots.items()]
        kept.append(("%s.condition", "1"))
        for name, n in self.values.private.items():
            kind = self.values.defined[name][1].text.removeprefix("alloca ").split(", align")[0]
            if re.search(r", i\d+ ", kind):
                raise NotUnderstood(kind)
            self._write(f"%a.{n}.size = add i64 {_size(kind)}, {_STRIDE - 1}")
            self._write(f"%a.{n}.step = and i64 %a.{n}.size, {-_STRIDE}")
            kept.append((f"%a.{n}", f"%a.{n}.step"))
        offsets = ["0"]
        for n, (_, size) in enumerate(kept):
            self._write(f"%b.{n} = mul i64 {size}, %stride")
            self._write(f"%o.{n} = add i64 {offsets[-1]}, %b.{n}")
            offsets.append(f"%o.{n}")
        self._write(f"%memory = call ptr @pm_lane_memory(i64 {offsets[-1]})")
        for (name, _), start in zip(kept, offsets, strict=False):
            self._write(f"{name} = getelementptr i8, ptr %memory, i64 {start}")

    def _write_dispatch(self) -> None:
        rows = [f"i32 {2 * n}, label %apart.{n} i32 {2 * n + 1}, label %together.{n}" for n in sorted(self.parting)]
        self._write("dispatch:")
        self._write("%next = call i32 @pm_lanes_next(ptr %lanes)")
        self._write(f"switch i32 %next, label %done [ {' '.join(rows)} ]")
        self._write("done:")
        self._write("ret void")

    def _write_together(self, number: int, unit: Unit) -> None:
        """The unit when all lanes are in it."""
        self._write(f"together.{number}:")
        if unit.waits:
            if unit.step:
                self._write(f"call void @pm_step_all(ptr %lanes, ptr {unit.step})")
            self._write(f"br label %together.{unit.edges[0].target}")
            return
        checked = self.values.checkable(unit)
        if checked:
            firsts = self._write_checks(number, checked)
            self._write(f"fast.{number}:")
            self._write_loop(f"fast.{number}", unit, firsts, True)
            self._write(f"slow.{number}:")
        self._write_loop(f"slow.{number}", unit, {}, not checked)

    def _write_checks(self, number: int, checked: list[str]) -> dict[str, str]:
        """Branches to the fast loop if the guesses hold, else to the slow one. The first lane's values, by name."""
        loop = self._loop()
        firsts, conditions = {}, []
        for n, name in enumerate(checked):
            kind, first = self.values.type_of(name), f"%first.{number}.{n}"
            firsts[name] = first
            loop.before.append(f"{first} = load {kind}, ptr {self.arrays[name]}")
            here = loop.load(kind, self.arrays[name])
            if kind == "ptr":
                loop.before.append(f"{first}.i = ptrtoint ptr {first} to i64")
                loop.body.append(f"{here}.i = ptrtoint ptr {here} to i64")
                kind, here, first = "i64", f"{here}.i", f"{first}.i"
            if self.values.guesses[name] == "next":
                # It must not wrap on the way to the last lane, signed or not.
                loop.before.append(f"{first}.low = icmp ult {kind} {first}, {(1 << int(kind[1:]) - 1) - 1024}")
                conditions.append(f"{first}.low")
                first = loop.counter(kind, first)
            conditions.append(f"icmp eq {kind} {loop.differing(kind, here, first)}, 0")
        self._write_for_all(loop, True)
        holds = "true"
        for n, condition in enumerate(conditions):
            if condition.startswith("icmp"):
                self._write(f"%as.{number}.{n} = {condition}")
                condition = f"%as.{number}.{n}"
            self._write(f"%ok.{number}.{n} = and i1 {holds}, {condition}")
            holds = f"%ok.{number}.{n}"
        self._write(f"br i1 {holds}, label %fast.{number}, label %slow.{number}")
        return firsts

    def _write_loop(self, tag: str, unit: Unit, firsts: dict[str, str], parallel: bool) -> None:
        loop = self._loop()
        self._fill(loop, unit, firsts, True)
        condition = loop.names.get(unit.condition, "")
        count = ""
        if condition:
            count = loop.counted(condition)
            loop.store("i1", condition, "%s.condition")
        self._write_for_all(loop, parallel)
        targets = [f"label %together.{e.target}" for e in unit.edges]
        if not targets:
            self._write("ret void")
        elif len(targets) == 1:
            self._write(f"br {targets[0]}")
        elif not condition:
            self._write(f"br i1 {self.groupwide.get(unit.condition, unit.condition)}, {', '.join(targets)}")
        else:
            self._write_parting(tag, unit, count)

    def _write_parting(self, tag: str, unit: Unit, count: str) -> None:
        """Goes one way or the other with all lanes, or lets them part."""
        yes, no = (e.target for e in unit.edges)
        self._write(f"switch i32 {count}, label %some.{tag} [ i32 0, label %together.{no} ]")
        self._write(f"some.{tag}:")
        self._write(f"%all.{tag} = icmp eq i32 {count}, %n")
        self._write(f"br i1 %all.{tag}, label %together.{yes}, label %part.{tag}")
        self._write(f"part.{tag}:")
        self._write(f"call void @pm_lanes_part(ptr %lanes, ptr %s.condition, i32 {yes}, i32 {no})")
        self._write("br label %dispatch")

    def _write_apart(self, number: int, unit: Unit) -> None:
        """The unit for the lanes that are in it."""
        self._write(f"apart.{number}:")
        if unit.waits:
            there, step = unit.edges[0].target, unit.step or "null"
            self._write(f"call void @pm_step_some(ptr %lanes, i32 {number}, i32 {there}, ptr {step})")
            self._write("br label %dispatch")
            return
        loop = self._loop()
        self._fill(loop, unit, {}, False)
        targets = [str(e.target) for e in unit.edges] or [str(_ENDED)]
        going = targets[0]
        if len(targets) == 2:
            condition = loop.names.get(unit.condition) or self.groupwide.get(unit.condition, unit.condition)
            going = f"%to.{loop.number}"
            loop.body.append(f"{going} = select i1 {condition}, i32 {targets[0]}, i32 {targets[1]}")
        self.lines += loop.for_those_in(number, going, "dispatch")
        self.nodes += loop.metadata(len(self.units) <= _FEW)

    def _fill(self, loop: LaneLoop, unit: Unit, firsts: dict[str, str], all_here: bool) -> None:
        """What one lane does in the unit: takes what it needs, computes, keeps what is needed later. The values in
        `firsts` are known to be as guessed; `all_here` tells whether all lanes are in the unit."""
        values = self.values
        loop.names[values.index] = loop.lane
        needed = [n for n in values.needs(unit) if n != values.index]
        same: set[str] = set()
        for name in needed:
            if name in firsts and values.guesses[name] == "same":
                loop.names[name] = firsts[name]
                same.add(name)
            elif name in firsts:
                loop.names[name] = loop.counter(values.type_of(name), firsts[name])
            elif name not in values.recomputed:
                loop.names[name] = loop.load(values.type_of(name), self.arrays[name])
        again = sorted((n for n in needed if n in values.recomputed), key=values.place_of)
        written = not all_here
        for i in [values.defined[n][1] for n in again] + list(unit.instructions):
            if i.result not in self.groupwide and i.result not in loop.names:
                self._fill_one(loop, i, same, written)
                written |= not (is_free(i) or i.opcode == "load")
        self._keep(loop, unit)

    def _fill_one(self, loop: LaneLoop, i: Instruction, same: set[str], written: bool) -> None:
        name = f"%v.{len(loop.names)}.{loop.number}"
        if i.callee == "@pm_index":
            name = loop.lane
        elif _FENCE in i.text:
            value = self.values.read(i)[0]
            name = loop.names.get(value) or self.groupwide[value]
        elif i.opcode == "alloca":
            n = self.values.private[i.result]
            loop.body.append(f"{name}.w = zext i32 {loop.lane} to i64")
            loop.body.append(f"{name}.o = mul i64 {name}.w, %a.{n}.step")
            loop.body.append(f"{name} = getelementptr i8, ptr %a.{n}, i64 {name}.o")
        else:
            text = self._renamed(i.text, loop.names).replace("load volatile", "load").replace("store volatile", "store")
            if i.opcode in ("load", "store"):
                text += loop.independent
            # All lanes read the same before any writes: once is enough.
            once = is_free(i) or (is_plain_load(i) and not written)
            once = once and all(o in same or o in self.groupwide for o in self.values.read(i))
            (loop.before if once else loop.body).append(f"{name} = {text}" if i.result else text)
            if once:
                same.add(i.result)
        if i.result:
            loop.names[i.result] = name

    def _keep(self, loop: LaneLoop, unit: Unit) -> None:
        for i in unit.instructions:
            if i.result in self.values.slots:
                loop.store(self.values.slots[i.result], loop.names[i.result], self.arrays[i.result])
        for edge in unit.edges:
            for copy in edge.copies:
                value = loop.names.get(copy.value) or self.groupwide.get(copy.value, copy.value)
                loop.store(copy.type, value, self.arrays[copy.phi])

    def _loop(self) -> LaneLoop:
        self.loops += 1
        return LaneLoop(self.loops, self.metadata)

    def _write_for_all(self, loop: LaneLoop, parallel: bool) -> None:
        self.lines += loop.for_all()
        self.nodes += loop.metadata(parallel)

    def _renamed(self, text: str, names: dict[str, str]) -> str:
        return LOCAL.sub(lambda m: names.get(m[0]) or self.groupwide.get(m[0], m[0]), text)

    def _write(self, line: str) -> None:
        self.lines.append(line)


def _size(kind: str) -> str:
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"
