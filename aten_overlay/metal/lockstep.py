"""Rewrites synchronizing kernels to run a whole threadgroup in lockstep: each parallel region is a loop over lanes.

Fibers run one lane after the other; here all lanes finish a region before any enters the next, so that the loops can be
vectorized. Values that outlive a region are stored in arrays, one element per lane. While control flow is uniform it is
the kernel's own; once lanes diverge, the lowest region with lanes waiting runs for those lanes (see `regions`), until
all have reconverged.

Loads are contiguous only if addresses are known to be: values assumed to be uniform, or to grow by one from lane to
lane, are checked on entry to a region, which is compiled once for each answer.
"""

from __future__ import annotations

import re

from aten_overlay.metal.ir import LOCAL, Instruction, NotUnderstood, read_function
from aten_overlay.metal.lane_loop import LaneLoop, storage_type
from aten_overlay.metal.regions import Region, form_regions
from aten_overlay.metal.values import Values, is_free, is_plain_load

SOURCE, RESULT = "@pm_lane_source_", "@pm_lockstep_"
_ENDED = 1 << 30  # the region of a lane that has ended: as in runtime/lockstep.cpp
_STRIDE = 64  # lanes: keeps every array aligned to a cache line
_FEW = 100  # regions: with more, vectorizing their divergent form takes too long
_FENCE = ' asm sideeffect "", "=r,0,'  # pins a value where it is read
DECLARATIONS = """
declare ptr @pm_lane_memory(i64)
declare void @pm_lanes_diverge(ptr, ptr, i32, i32)
declare i32 @pm_lanes_next(ptr)
declare void @pm_step_all(ptr, ptr)
declare void @pm_step_some(ptr, i32, i32, ptr)
"""


def write_lockstep(text: str, name: str, waiting: set[str], metadata: int) -> tuple[str, int]:
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
        self.regions = form_regions(self.function)
        self.values = Values(self.function, self.regions, waiting)
        self.groupwide = self.values.groupwide
        self.divergent = self.values.find_divergent_regions()
        self.arrays = self._name_arrays()
        self.number = name.removeprefix(SOURCE)
        self.metadata, self.loops = metadata, 0
        self.lines: list[str] = []
        self.nodes = [f"!{metadata} = distinct !{{}}"]

    def text(self) -> str:
        """The definition, with its metadata."""
        self._write_entry()
        for number, region in enumerate(self.regions):
            self._write_uniform(number, region)
            if number in self.divergent:
                self._write_divergent(number, region)
        self._write_dispatch()
        attributes = re.search(r" (#\d+)(?: comdat)?[^#]*\{$", self.function.head)
        parameters = ", ".join(f"ptr {name}" for name in (*self.function.parameters[:3], "%lanes"))
        head = f"define hidden void {RESULT}{self.number}({parameters}) {attributes[1] if attributes else ''} {{"
        return "\n".join([head, "start:", *self.lines, "}", *self.nodes, ""])

    def _name_arrays(self) -> dict[str, str]:
        arrays = {name: f"%s.{n}" for n, name in enumerate(self.values.slots)}
        return arrays | dict(zip(self.values.positions, ("%x", "%y", "%z"), strict=True))

    def _write_entry(self) -> None:
        for n, name in enumerate(("exchange", "x", "y", "z", "region")):
            self._write(f"%at.{name} = getelementptr i8, ptr %lanes, i64 {8 * n}")
            self._write(f"%{name} = load ptr, ptr %at.{name}")
        self._write("%at.n = getelementptr i8, ptr %lanes, i64 40")
        self._write("%n = load i32, ptr %at.n")
        self._write(f"%padded = add i32 %n, {_STRIDE - 1}")
        self._write(f"%whole = and i32 %padded, {-_STRIDE}")
        self._write("%stride = zext i32 %whole to i64")
        self._write_memory()
        for region in self.regions:
            for i in region.instructions:
                if i.result in self.groupwide:
                    text = "getelementptr i8, ptr %exchange, i64 0" if i.callee == "@pm_simd_begin" else i.text
                    self._write(f"{self.groupwide[i.result]} = {self._rename(text, {})}")
        self._write("br label %uniform.0")

    def _write_memory(self) -> None:
        """Allocates all arrays at once; each starts at the sum of the sizes before it, times the number of lanes."""
        arrays = [(self.arrays[name], _size(storage_type(kind))) for name, kind in self.values.slots.items()]
        arrays.append(("%s.condition", "1"))
        for name, n in self.values.private.items():
            kind = self.values.defined[name][1].text.removeprefix("alloca ").split(", align")[0]
            if re.search(r", i\d+ ", kind):
                raise NotUnderstood(kind)
            self._write(f"%a.{n}.size = add i64 {_size(kind)}, {_STRIDE - 1}")
            self._write(f"%a.{n}.step = and i64 %a.{n}.size, {-_STRIDE}")
            arrays.append((f"%a.{n}", f"%a.{n}.step"))
        offsets = ["0"]
        for n, (_, size) in enumerate(arrays):
            self._write(f"%b.{n} = mul i64 {size}, %stride")
            self._write(f"%o.{n} = add i64 {offsets[-1]}, %b.{n}")
            offsets.append(f"%o.{n}")
        self._write(f"%memory = call ptr @pm_lane_memory(i64 {offsets[-1]})")
        for (name, _), start in zip(arrays, offsets, strict=False):
            self._write(f"{name} = getelementptr i8, ptr %memory, i64 {start}")

    def _write_dispatch(self) -> None:
        rows = [
            f"i32 {2 * n}, label %divergent.{n} i32 {2 * n + 1}, label %uniform.{n}" for n in sorted(self.divergent)
        ]
        self._write("dispatch:")
        self._write("%next = call i32 @pm_lanes_next(ptr %lanes)")
        self._write(f"switch i32 %next, label %done [ {' '.join(rows)} ]")
        self._write("done:")
        self._write("ret void")

    def _write_uniform(self, number: int, region: Region) -> None:
        """The region while control flow is uniform: all lanes are in it."""
        self._write(f"uniform.{number}:")
        if region.waits:
            if region.step:
                self._write(f"call void @pm_step_all(ptr %lanes, ptr {region.step})")
            self._write(f"br label %uniform.{region.edges[0].target}")
            return
        checked = self.values.find_checkable(region)
        if checked:
            firsts = self._write_checks(number, checked)
            self._write(f"fast.{number}:")
            self._write_loop(f"fast.{number}", region, firsts, True)
            self._write(f"slow.{number}:")
        self._write_loop(f"slow.{number}", region, {}, not checked)

    def _write_checks(self, number: int, checked: list[str]) -> dict[str, str]:
        """Branches to the fast loop if the assumptions hold, else to the slow one; the first lane's values, by name."""
        loop = self._start_loop()
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
            if self.values.assumptions[name] == "next":
                # It must not wrap on the way to the last lane, signed or not.
                loop.before.append(f"{first}.low = icmp ult {kind} {first}, {(1 << int(kind[1:]) - 1) - 1024}")
                conditions.append(f"{first}.low")
                first = loop.add_counter(kind, first)
            conditions.append(f"icmp eq {kind} {loop.collect_differences(kind, here, first)}, 0")
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

    def _write_loop(self, tag: str, region: Region, firsts: dict[str, str], parallel: bool) -> None:
        loop = self._start_loop()
        self._fill(loop, region, firsts, True)
        condition = loop.names.get(region.condition, "")
        count = ""
        if condition:
            count = loop.count_lanes(condition)
            loop.store("i1", condition, "%s.condition")
        self._write_for_all(loop, parallel)
        targets = [f"label %uniform.{e.target}" for e in region.edges]
        if not targets:
            self._write("ret void")
        elif len(targets) == 1:
            self._write(f"br {targets[0]}")
        elif not condition:
            self._write(f"br i1 {self.groupwide.get(region.condition, region.condition)}, {', '.join(targets)}")
        else:
            self._write_divergence(tag, region, count)

    def _write_divergence(self, tag: str, region: Region, count: str) -> None:
        """Takes one side of a branch with all lanes, or lets them diverge."""
        yes, no = (e.target for e in region.edges)
        self._write(f"switch i32 {count}, label %some.{tag} [ i32 0, label %uniform.{no} ]")
        self._write(f"some.{tag}:")
        self._write(f"%all.{tag} = icmp eq i32 {count}, %n")
        self._write(f"br i1 %all.{tag}, label %uniform.{yes}, label %diverge.{tag}")
        self._write(f"diverge.{tag}:")
        self._write(f"call void @pm_lanes_diverge(ptr %lanes, ptr %s.condition, i32 {yes}, i32 {no})")
        self._write("br label %dispatch")

    def _write_divergent(self, number: int, region: Region) -> None:
        """The region while control flow is divergent: only for the lanes that are in it."""
        self._write(f"divergent.{number}:")
        if region.waits:
            there, step = region.edges[0].target, region.step or "null"
            self._write(f"call void @pm_step_some(ptr %lanes, i32 {number}, i32 {there}, ptr {step})")
            self._write("br label %dispatch")
            return
        loop = self._start_loop()
        self._fill(loop, region, {}, False)
        targets = [str(e.target) for e in region.edges] or [str(_ENDED)]
        going = targets[0]
        if len(targets) == 2:
            condition = loop.names.get(region.condition) or self.groupwide.get(region.condition, region.condition)
            going = f"%to.{loop.number}"
            loop.body.append(f"{going} = select i1 {condition}, i32 {targets[0]}, i32 {targets[1]}")
        self.lines += loop.write_for_region(number, going, "dispatch")
        self.nodes += loop.write_metadata(len(self.regions) <= _FEW)

    def _fill(self, loop: LaneLoop, region: Region, firsts: dict[str, str], all_here: bool) -> None:
        """Writes what one lane does in the region: loads its inputs, computes, stores what is needed later. The
        assumptions about the values in `firsts` hold; `all_here` says whether all lanes are in the region."""
        values = self.values
        loop.names[values.index] = loop.lane
        needed = [n for n in values.find_inputs(region) if n != values.index]
        same: set[str] = set()
        for name in needed:
            if name in firsts and values.assumptions[name] == "same":
                loop.names[name] = firsts[name]
                same.add(name)
            elif name in firsts:
                loop.names[name] = loop.add_counter(values.type_of(name), firsts[name])
            elif name not in values.recomputed:
                loop.names[name] = loop.load(values.type_of(name), self.arrays[name])
        again = sorted((n for n in needed if n in values.recomputed), key=values.definition_order)
        written = not all_here
        for i in [values.defined[n][1] for n in again] + list(region.instructions):
            if i.result not in self.groupwide and i.result not in loop.names:
                self._fill_one(loop, i, same, written)
                written |= not (is_free(i) or i.opcode == "load")
        self._store_results(loop, region)

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
            text = self._rename(i.text, loop.names).replace("load volatile", "load").replace("store volatile", "store")
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

    def _store_results(self, loop: LaneLoop, region: Region) -> None:
        for i in region.instructions:
            if i.result in self.values.slots:
                loop.store(self.values.slots[i.result], loop.names[i.result], self.arrays[i.result])
        for edge in region.edges:
            for copy in edge.copies:
                value = loop.names.get(copy.value) or self.groupwide.get(copy.value, copy.value)
                loop.store(copy.type, value, self.arrays[copy.phi])

    def _start_loop(self) -> LaneLoop:
        self.loops += 1
        return LaneLoop(self.loops, self.metadata)

    def _write_for_all(self, loop: LaneLoop, parallel: bool) -> None:
        self.lines += loop.write_for_all()
        self.nodes += loop.write_metadata(parallel)

    def _rename(self, text: str, names: dict[str, str]) -> str:
        return LOCAL.sub(lambda m: names.get(m[0]) or self.groupwide.get(m[0], m[0]), text)

    def _write(self, line: str) -> None:
        self.lines.append(line)


def _size(kind: str) -> str:
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"
