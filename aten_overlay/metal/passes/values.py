"""Analyzes the values of a kernel before it is rewritten for a whole threadgroup (see `lockstep`)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from aten_overlay.metal.passes.ir import CHEAP, PURE, TRAPS, Function, Instruction, NotUnderstood, result_type
from aten_overlay.metal.passes.regions import Region
from aten_overlay.metal.passes.wide import WIDE_FUNCTIONS

_MOST_INSTRUCTIONS = 3000  # beyond, compiling takes longer than fibers do
_STEPPABLE = ("i16", "i32", "i64")
_SPLIT = re.compile(r"(?:lshr|and) (i16|i32|i64) (%\S+), (\d+)$")
_FREE_CALL = re.compile(
    r"@llvm\.(threadlocal\.address|fma|fabs|sqrt|floor|ceil|trunc|rint|copysign|m(in|ax)num|[us]m(in|ax)|abs|ctpop"
    r"|ct[lt]z|fsh[lr]|bswap|bitreverse|[us](add|sub)\.sat)\."
)
_LANE_BITS = 5  # of a simdgroup
_CHECKABLE = {"same": (*_STEPPABLE, "ptr"), "next": _STEPPABLE, "": ()}


@dataclass(frozen=True)
class Split:
    """A number of type `kind` that grows by one with the lane, divided by 2^`bits` (`is_quotient`) or the remainder."""

    number: str
    kind: str
    bits: int
    is_quotient: bool


@dataclass(frozen=True)
class Facts:
    """What is assumed about the values that addresses in a region are computed from: stored ones, and splits by name,
    whose quotients are taken to be uniform and whose remainders to grow by one.
    """

    stored: tuple[str, ...]
    splits: dict[str, Split]


@dataclass(frozen=True)
class Known:
    """What holds in a loop: the first lane's values of what was checked, and splits with their number's first value."""

    starts: Mapping[str, str]
    splits: Mapping[str, tuple[Split, str]]


class Values:
    """Where each value of a kernel `(buffers, threadgroup, where, index, x, y, z)` comes from.

    `groupwide` values are the same for all lanes and computed once, under the names it gives; `recomputed` ones are
    recomputed in each region that reads them; `slots` are stored for each lane, with their types; `private` numbers the
    variables that each lane has a copy of; `assumptions` are checked at run time: "same" (uniform across lanes), "next"
    (consecutive), or "" for neither.
    """

    def __init__(self, function: Function, regions: list[Region], waiting: set[str]) -> None:
        """`waiting` are functions in which a lane may wait; a call of one raises NotUnderstood."""
        self.regions = regions
        self.parameters = function.parameters
        self.index, *self.positions = function.parameters[3:]
        self.defined: dict[str, tuple[int, Instruction]] = {}
        self.phis: dict[str, str] = {}
        self.groupwide = {name: name for name in function.parameters[:3]}
        self.recomputed: set[str] = set()
        self.private: dict[str, int] = {}
        self._collect(waiting)
        self._classify()
        self.slots = self._find_slots()
        self.assumptions = self._assume()

    def read(self, instruction: Instruction) -> list[str]:
        """The values an instruction reads."""
        return [o for o in instruction.operands if self.is_value(o)]

    def is_value(self, name: str) -> bool:
        """Whether `name` is a value, not a type, label or constant."""
        return name in self.defined or name in self.phis or name in self.parameters

    def find_inputs(self, region: Region) -> list[str]:
        """The values that a region reads from outside and those they are recomputed from, `groupwide` ones left out."""
        inside = [i for i in region.instructions if i.result not in self.groupwide]
        own = {i.result for i in inside}
        names = [o for i in inside for o in self.read(i)]
        names += [n for n in (region.condition, *(c.value for e in region.edges for c in e.copies)) if self.is_value(n)]
        found: dict[str, None] = {}
        while names:
            name = names.pop()
            if name in found or name in own or name in self.groupwide:
                continue
            found[name] = None
            if name in self.recomputed:
                names += self.read(self.defined[name][1])
        return list(found)

    def definition_order(self, name: str) -> tuple[int, int]:
        """Sorts values by definition: its region, and the index in it."""
        number, instruction = self.defined[name]
        return number, self.regions[number].instructions.index(instruction)

    def find_facts(self, region: Region) -> Facts:
        """What is assumed about the values from which a region computes addresses."""
        own = {i.result: i for i in region.instructions}
        frontier = [o for i in region.instructions if i.opcode in ("load", "store") for o in self.read(i)[-1:]]
        seen: set[str] = set()
        splits: dict[str, Split] = {}
        while frontier:
            name = frontier.pop()
            if name in seen or name in self.groupwide:
                continue
            seen.add(name)
            source = own.get(name) or (self.defined[name][1] if name in self.recomputed else None)
            if source is not None and (is_free(source) or source.opcode in (*TRAPS, "load")):
                frontier += self.read(source)
                split = read_split(source)
                if split and self._counts_lanes(split.number, own):
                    splits[name] = split
        stored = [n for n in seen if n not in own and self._is_stored(n)]
        checked = sorted(n for n in stored if self.type_of(n) in _CHECKABLE[self.assumptions.get(n, "")])
        return Facts(tuple(checked), dict(sorted(splits.items())))

    def is_index(self, name: str) -> bool:
        """Whether a value is the thread's index in its threadgroup."""
        return name == self.index or (name in self.defined and self.defined[name][1].callee == "@pm_index")

    def _counts_lanes(self, name: str, own: Container[str]) -> bool:
        """Whether a value is known to grow by one with the lane wherever the facts hold."""
        stored = name not in own and self._is_stored(name) and self.assumptions.get(name) == "next"
        return self.is_index(name) or stored

    def _is_stored(self, name: str) -> bool:
        return name in self.slots or name in self.positions

    def type_of(self, name: str) -> str:
        """The type of a stored value or of a coordinate of the thread."""
        return self.slots.get(name, "i32")

    def find_divergent_regions(self) -> set[int]:
        """The regions that may run while lanes are divergent."""
        branches = [u for u in self.regions if len(u.edges) == 2 and u.condition not in self.groupwide]
        frontier = [e.target for u in branches for e in u.edges]
        found: set[int] = set()
        while frontier:
            number = frontier.pop()
            if number not in found:
                found.add(number)
                frontier += [e.target for e in self.regions[number].edges]
        return found

    def _collect(self, waiting: set[str]) -> None:
        if sum(len(u.instructions) for u in self.regions) > _MOST_INSTRUCTIONS:
            raise NotUnderstood("too many instructions")
        for number, region in enumerate(self.regions):
            for instruction in region.instructions:
                if instruction.callee in waiting:
                    raise NotUnderstood(f"{instruction.callee} waits, and was not inlined")
                if instruction.result:
                    self.defined[instruction.result] = (number, instruction)
            for edge in region.edges:
                self.phis |= {c.phi: c.type for c in edge.copies}

    def _classify(self) -> None:
        """Fills `groupwide`, `recomputed` and `private`."""
        written = False
        for number, region in enumerate(self.regions):
            for i in region.instructions:
                if i.callee == "@pm_index":
                    self.recomputed.add(i.result)
                elif i.opcode == "alloca":
                    self.private[i.result] = len(self.private)
                    self.recomputed.add(i.result)
                elif i.callee == "@pm_simd_begin" or self._is_groupwide(i, number == 0 and not written):
                    self.groupwide[i.result] = f"%g{len(self.groupwide)}"
                elif is_free(i):
                    if i.opcode in CHEAP or self._is_known(self.read(i)):
                        self.recomputed.add(i.result)
                else:
                    written |= i.opcode != "load"

    def _is_known(self, names: Iterable[str]) -> bool:
        lanes = (self.index, *self.positions)
        return all(n in lanes or n in self.recomputed or n in self.groupwide for n in names)

    def _is_groupwide(self, instruction: Instruction, readable: bool) -> bool:
        """Whether every lane, whenever it computes this, gets the same. `readable` memory is not written before."""
        if not all(o in self.groupwide for o in self.read(instruction)):
            return False
        return is_free(instruction) or (readable and is_plain_load(instruction))

    def _find_slots(self) -> dict[str, str]:
        slots = dict(self.phis)
        for region in self.regions:
            for name in self.find_inputs(region):
                if name in self.defined and name not in self.recomputed:
                    slots[name] = result_type(self.defined[name][1])
        return slots

    def _assume(self) -> dict[str, str]:
        """Optimistic, and so repeated: a phi of a loop is first taken to be what comes from outside the loop."""
        assumptions = dict.fromkeys(self.groupwide, "same")
        x, y, z = self.positions
        assumptions |= {self.index: "next", x: "next", y: "same", z: "same"}
        instructions = [i for u in self.regions for i in u.instructions]
        order = [(i.result, i) for i in instructions if i.result and i.result not in assumptions]
        copies = [c for u in self.regions for e in u.edges for c in e.copies]
        for _ in range(8):
            before = dict(assumptions)
            for name, instruction in order:
                known = [assumptions.get(o) for o in self.read(instruction)]
                if None not in known:
                    assumptions[name] = _derive(instruction, [k or "" for k in known])
            merged: dict[str, set[str]] = {}
            for copy in copies:
                assumed = assumptions.get(copy.value) if self.is_value(copy.value) else "same"
                if assumed is not None:
                    merged.setdefault(copy.phi, set()).add(assumed)
            assumptions |= {phi: found.pop() if len(found) == 1 else "" for phi, found in merged.items()}
            if assumptions == before:
                break
        return assumptions


def is_free(instruction: Instruction) -> bool:
    """Whether it may be computed anywhere, any number of times."""
    if instruction.opcode in PURE:
        return instruction.opcode not in TRAPS
    return bool(_FREE_CALL.match(instruction.callee)) or instruction.callee in WIDE_FUNCTIONS


def is_plain_load(instruction: Instruction) -> bool:
    """Whether it reads memory and that is all."""
    return instruction.opcode == "load" and not instruction.text.startswith(("load volatile", "load atomic"))


def read_split(instruction: Instruction) -> Split | None:
    """The split of a number into simdgroups, or several of them, and what is left; None for any other instruction."""
    found = _SPLIT.match(instruction.text)
    if not found:
        return None
    kind, name, number = found[1], found[2], int(found[3])
    is_quotient = instruction.opcode == "lshr"
    bits = number if is_quotient else number.bit_length()
    whole = is_quotient or number == (1 << bits) - 1
    return Split(name, kind, bits, is_quotient) if whole and bits >= _LANE_BITS else None


def _derive(instruction: Instruction, known: list[str]) -> str:
    if instruction.callee == "@pm_index":
        return "next"
    split = read_split(instruction)
    if split and known == ["next"]:
        return "same" if split.is_quotient else "next"
    if all(k == "same" for k in known):
        return "same" if is_free(instruction) or instruction.opcode in (*TRAPS, "load") else ""
    if instruction.opcode in ("add", "zext", "sext", "trunc", "freeze") or " disjoint " in instruction.text:
        return "next" if sorted(known) in (["next"], ["next", "same"]) else ""
    if instruction.opcode == "sub":
        return "next" if known[0] == "next" and known[1:] in ([], ["same"]) else ""
    return ""
