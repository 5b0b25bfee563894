"""Rewrites synchronizing kernels to run a whole threadgroup in lockstep: each parallel region is a loop over lanes.

Fibers run one lane after the other; here all lanes finish a region before any enters the next, so that the loops can be
vectorized. Values that outlive a region are stored in arrays, one element per lane. While control flow is uniform it is
the kernel's own; once lanes diverge, the lowest region with lanes waiting runs for those lanes (see `regions`), until
all have reconverged.

Loads are contiguous only if addresses are known to be: values assumed to be uniform, or to grow by one from lane to
lane, are checked on entry to a region, which is compiled once for each answer. What does not hold for all lanes is
checked again for each chunk of them, a simdgroup or a row of the threadgroup.
"""

from __future__ import annotations

import re

from aten_overlay.metal.passes.ir import LOCAL, Instruction, NotUnderstood, read_function
from aten_overlay.metal.passes.lane_loop import NODES, LaneLoop, storage_type
from aten_overlay.metal.passes.regions import Region, form_regions
from aten_overlay.metal.passes.updates import is_threadgroups, write_update
from aten_overlay.metal.passes.values import Facts, Known, Split, Values, is_free, is_plain_load

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


_NOTHING = Known({}, {})


def write_lockstep(text: str, name: str, waiting: set[str], metadata: int) -> tuple[str, int]:
    """The definition of `pm_lockstep_N` made of `pm_lane_source_N(buffers, threadgroup, where, index, x, y, z)`, and
    the number of metadata nodes it takes from `metadata` on. `waiting` are functions a lane may wait in.

    Raises NotUnderstood.
    """
    writer = _Writer(text, name, waiting, metadata)
    return writer.text(), NODES * (writer.loops + 1)


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
        for name, offset in (("n", 40), ("chunk", 44)):
            self._write(f"%at.{name} = getelementptr i8, ptr %lanes, i64 {offset}")
            self._write(f"%{name} = load i32, ptr %at.{name}")
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
        facts = self.values.find_facts(region)
        has_count = len(region.edges) > 1 and self.values.is_value(region.condition)
        has_count = has_count and region.condition not in self.groupwide
        if facts.stored or facts.splits:
            count = self._write_chunks(number, region, facts, has_count)
        else:
            count = self._write_lanes(self._start_loop(), region, _NOTHING, True, has_count, "0")
        self._write_branch(number, region, count)

    def _write_chunks(self, number: int, region: Region, facts: Facts, has_count: bool) -> str:
        """The region for all lanes if the facts hold for all of them, else for one chunk after the other. The lanes
        that meet its condition are counted if `has_count`: the count's name."""
        k = number
        phis = {
            "from": ("0", f"%from.{k}", f"%to.{k}"),
            "width": ("%chunk" if facts.splits else "%n", "%chunk", f"%width.{k}"),
        }
        if has_count:
            phis["sum"] = ("0", f"%sum.{k}", f"%sum.next.{k}")
        self._write(f"br label %enter.{k}")
        self._write(f"enter.{k}:")
        self._write(f"br label %chunks.{k}")
        self._write(f"chunks.{k}:")
        for name, (start, narrow, further) in phis.items():
            rows = f"[ {start}, %enter.{k} ], [ {narrow}, %narrow.{k} ], [ {further}, %next.{k} ]"
            self._write(f"%{name}.{k} = phi i32 {rows}")
        self._write(f"%reach.{k} = add i32 %from.{k}, %width.{k}")
        self._write(f"%last.{k} = icmp ugt i32 %reach.{k}, %n")
        self._write(f"%to.{k} = select i1 %last.{k}, i32 %n, i32 %reach.{k}")
        known = self._write_checks(k, facts)
        counts = []
        for tag, given in (("fast", known), ("slow", _NOTHING)):
            self._write(f"{tag}.{k}:")
            loop = self._start_chunk(k)
            count = self._write_lanes(loop, region, given, given is known, has_count, f"%sum.{k}")
            counts.append(f"[ {count}, %{loop.exit} ]")
            self._write(f"br label %next.{k}")
        self._write(f"next.{k}:")
        if has_count:
            self._write(f"%sum.next.{k} = phi i32 {', '.join(counts)}")
        self._write(f"%more.of.{k} = icmp ult i32 %to.{k}, %n")
        self._write(f"br i1 %more.of.{k}, label %chunks.{k}, label %leave.{k}")
        self._write(f"leave.{k}:")
        return f"%sum.next.{k}" if has_count else ""

    def _write_checks(self, number: int, facts: Facts) -> Known:
        """Branches to the fast loop if the facts hold for a chunk, to smaller chunks if there are any, else to the
        slow loop. What is known in the fast one."""
        loop = self._start_chunk(number)
        starts: dict[str, str] = {}
        conditions: list[str] = []
        for n, name in enumerate(facts.stored):
            kind, first = self.values.type_of(name), f"%first.{number}.{n}"
            starts[name] = first
            loop.before.append(f"{first}.p = getelementptr {kind}, ptr {self.arrays[name]}, i32 {loop.first}")
            loop.before.append(f"{first} = load {kind}, ptr {first}.p")
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
        if facts.stored:
            self._write_for_all(loop, True)
        known = Known(starts, {name: (s, starts.get(s.number, loop.first)) for name, s in facts.splits.items()})
        conditions += self._write_split_checks(number, known)
        holds = "true"
        for n, condition in enumerate(conditions):
            if condition.startswith("icmp"):
                self._write(f"%as.{number}.{n} = {condition}")
                condition = f"%as.{number}.{n}"
            self._write(f"%ok.{number}.{n} = and i1 {holds}, {condition}")
            holds = f"%ok.{number}.{n}"
        self._write(f"br i1 {holds}, label %fast.{number}, label %miss.{number}")
        self._write(f"miss.{number}:")
        self._write(f"%wide.{number} = icmp ugt i32 %width.{number}, %chunk")
        self._write(f"br i1 %wide.{number}, label %narrow.{number}, label %slow.{number}")
        self._write(f"narrow.{number}:")
        self._write(f"br label %chunks.{number}")
        return known

    def _write_split_checks(self, number: int, known: Known) -> list[str]:
        """The conditions under which quotients are the same for the first and the last lane of a chunk."""
        conditions = []
        self._write(f"%span.{number} = sub i32 %to.{number}, %from.{number}")
        self._write(f"%steps.{number} = sub i32 %span.{number}, 1")
        checked = sorted({(start, s.kind, s.bits) for s, start in known.splits.values()})
        for n, (start, kind, bits) in enumerate(checked):
            name, steps = f"%split.{number}.{n}", f"%steps.{number}"
            if kind != "i32":
                steps = f"{name}.steps"
                self._write(f"{steps} = {'zext' if kind == 'i64' else 'trunc'} i32 %steps.{number} to {kind}")
            self._write(f"{name}.last = add {kind} {start}, {steps}")
            self._write(f"{name} = xor {kind} {start}, {name}.last")
            conditions.append(f"icmp ult {kind} {name}, {1 << bits}")
        return conditions

    def _write_lanes(
        self, loop: LaneLoop, region: Region, known: Known, parallel: bool, has_count: bool, start: str
    ) -> str:
        """One loop of the region; how many lanes meet its condition, added to `start`."""
        self._fill(loop, region, known, True)
        count = ""
        if has_count:
            condition = loop.names[region.condition]
            count = loop.count_lanes(condition, start)
            loop.store("i1", condition, "%s.condition")
        self._write_for_all(loop, parallel)
        return count

    def _write_branch(self, number: int, region: Region, count: str) -> None:
        """Where all lanes go from a region, or that they diverge."""
        targets = [f"label %uniform.{e.target}" for e in region.edges]
        if not targets:
            self._write("ret void")
        elif len(targets) == 1:
            self._write(f"br {targets[0]}")
        elif not count:
            self._write(f"br i1 {self.groupwide.get(region.condition, region.condition)}, {', '.join(targets)}")
        else:
            self._write_divergence(number, region, count)

    def _write_divergence(self, tag: int, region: Region, count: str) -> None:
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
        self._fill(loop, region, _NOTHING, False)
        targets = [str(e.target) for e in region.edges] or [str(_ENDED)]
        going = targets[0]
        if len(targets) == 2:
            condition = loop.names.get(region.condition) or self.groupwide.get(region.condition, region.condition)
            going = f"%going.{loop.number}"
            loop.body.append(f"{going} = select i1 {condition}, i32 {targets[0]}, i32 {targets[1]}")
        self.lines += loop.write_for_region(number, going, "dispatch")
        self.nodes += loop.write_metadata(len(self.regions) <= _FEW)

    def _fill(self, loop: LaneLoop, region: Region, known: Known, all_here: bool) -> None:
        """Writes what one lane does in the region: loads its inputs, computes, stores what is needed later.
        `all_here` says whether all lanes are in the region."""
        values = self.values
        loop.names[values.index] = loop.lane
        needed = [n for n in values.find_inputs(region) if n != values.index]
        same: set[str] = set()
        for name in needed:
            first = known.starts.get(name)
            if first and values.assumptions[name] == "same":
                loop.names[name] = first
                same.add(name)
            elif first:
                loop.names[name] = loop.add_counter(values.type_of(name), first)
            elif name not in values.recomputed:
                loop.names[name] = loop.load(values.type_of(name), self.arrays[name])
        again = sorted((n for n in needed if n in values.recomputed), key=values.definition_order)
        written = not all_here
        for i in [values.defined[n][1] for n in again] + list(region.instructions):
            if i.result in known.splits:
                self._fill_split(loop, i.result, *known.splits[i.result], same)
            elif i.result not in self.groupwide and i.result not in loop.names:
                self._fill_one(loop, i, same, written)
                written |= not (is_free(i) or i.opcode == "load")
        self._store_results(loop, region)

    def _fill_split(self, loop: LaneLoop, result: str, split: Split, start: str, same: set[str]) -> None:
        name = f"%v.{len(loop.names)}.{loop.number}"
        if split.is_quotient:
            loop.before.append(f"{name} = lshr {split.kind} {start}, {split.bits}")
            loop.names[result] = name
            same.add(result)
        else:
            loop.before.append(f"{name} = and {split.kind} {start}, {(1 << split.bits) - 1}")
            loop.names[result] = loop.add_counter(split.kind, name)

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
            update = i.opcode == "atomicrmw" and is_threadgroups(i, self.values.defined, self.values.parameters[1])
            if update and (lines := list(write_update(text, name))):
                loop.body += lines
                loop.names |= {i.result: name} if i.result else {}
                return
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

    def _start_chunk(self, region: int) -> LaneLoop:
        """A loop over one chunk of a region's lanes."""
        self.loops += 1
        return LaneLoop(self.loops, self.metadata, f"%from.{region}", f"%to.{region}")

    def _write_for_all(self, loop: LaneLoop, parallel: bool) -> None:
        self.lines += loop.write_for_all()
        self.nodes += loop.write_metadata(parallel)

    def _rename(self, text: str, names: dict[str, str]) -> str:
        return LOCAL.sub(lambda m: names.get(m[0]) or self.groupwide.get(m[0], m[0]), text)

    def _write(self, line: str) -> None:
        self.lines.append(line)


def _size(kind: str) -> str:
    return f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"
