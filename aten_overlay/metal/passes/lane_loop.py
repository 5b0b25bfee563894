"""The text of one loop over the lanes of a threadgroup, in LLVM's intermediate representation."""

from __future__ import annotations

from dataclasses import dataclass, field

NODES = 4  # of metadata, for a loop


@dataclass
class LaneLoop:
    """Loop number `number` of a function. `group` is the metadata node of accesses that lanes make independently.

    `before` is computed once, `body` for each lane, whose number is `lane`; `names` are what values are called in it.
    The lanes are those from `first` on, before `end`.
    """

    number: int
    group: int
    first: str = "0"
    end: str = "%n"
    before: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    @property
    def lane(self) -> str:
        return f"%l.{self.number}"

    @property
    def exit(self) -> str:
        """The label behind the loop that `write_for_all` writes."""
        return f"end.{self.number}"

    @property
    def properties(self) -> int:
        """The first of the metadata nodes that say how the loop may be compiled."""
        return self.group + NODES * self.number

    def load(self, kind: str, array: str) -> str:
        """Reads this lane's element of an array; its name."""
        name, memory = f"%k.{len(self.body)}.{self.number}", storage_type(kind)
        self.body.append(f"{name}.p = getelementptr {memory}, ptr {array}, i32 {self.lane}")
        if memory == kind:
            self.body.append(f"{name} = load {kind}, ptr {name}.p{self.independent}")
        else:
            self.body.append(f"{name}.b = load {memory}, ptr {name}.p{self.independent}")
            self.body.append(f"{name} = trunc {memory} {name}.b to {kind}")
        return name

    def store(self, kind: str, value: str, array: str) -> None:
        """Writes this lane's element of an array."""
        name, memory = f"%w.{len(self.body)}.{self.number}", storage_type(kind)
        self.body.append(f"{name}.p = getelementptr {memory}, ptr {array}, i32 {self.lane}")
        if memory != kind:
            self.body.append(f"{name}.b = zext {kind} {value} to {memory}")
            value = f"{name}.b"
        self.body.append(f"store {memory} {value}, ptr {name}.p{self.independent}")

    @property
    def independent(self) -> str:
        return f", !llvm.access.group !{self.group}"

    def carry(self, name: str, kind: str, start: str) -> None:
        """`name` is `start` in the first lane and what `name.next` was in the others."""
        k = self.number
        self.heads.append(f"{name} = phi {kind} [ {start}, %pre.{k} ], [ {name}.next, %loop.{k} ]")

    def add_counter(self, kind: str, start: str) -> str:
        """A value that begins with `start` and grows by one with the lane; its name."""
        name = f"{start}.at.{self.number}"
        self.carry(name, kind, start)
        self.body.append(f"{name}.next = add nuw nsw {kind} {name}, 1")
        return name

    def count_lanes(self, condition: str, start: str) -> str:
        """The number of lanes for which a condition holds, added to `start`; its name after the loop."""
        name = f"%count.{self.number}"
        self.carry(name, "i32", start)
        self.body.append(f"{name}.one = zext i1 {condition} to i32")
        self.body.append(f"{name}.next = add i32 {name}, {name}.one")
        return f"{name}.next"

    def collect_differences(self, kind: str, value: str, expected: str) -> str:
        """A value that is 0 after the loop if `value` was as expected in every lane; its name."""
        name = f"%differ.{len(self.body)}.{self.number}"
        self.carry(name, kind, "0")
        self.body.append(f"{name}.here = xor {kind} {value}, {expected}")
        self.body.append(f"{name}.next = or {kind} {name}, {name}.here")
        return f"{name}.next"

    def write_for_all(self) -> list[str]:
        """The loop over its lanes; what follows it comes next."""
        k = self.number
        return [*self._start(f"loop.{k}"), *self.heads, *self.body, *self._end(self.exit), f"{self.exit}:"]

    def write_for_region(self, region: int, going: str, after: str) -> list[str]:
        """The loop over the lanes in one region, which continue in region `going`; then control goes to `after`."""
        k = self.number
        here = [
            f"%here.{k} = getelementptr i32, ptr %region, i32 {self.lane}",
            f"%in.{k} = load i32, ptr %here.{k}{self.independent}",
            f"%mine.{k} = icmp eq i32 %in.{k}, {region}",
            f"br i1 %mine.{k}, label %body.{k}, label %skip.{k}",
            f"body.{k}:",
        ]
        there = [f"store i32 {going}, ptr %here.{k}{self.independent}", f"br label %skip.{k}", f"skip.{k}:"]
        return [*self._start(f"skip.{k}"), *here, *self.body, *there, *self._end(after)]

    def _start(self, latch: str) -> list[str]:
        k = self.number
        entered = [f"br label %pre.{k}", f"pre.{k}:", *self.before, f"br label %loop.{k}", f"loop.{k}:"]
        return [*entered, f"{self.lane} = phi i32 [ {self.first}, %pre.{k} ], [ {self.lane}.next, %{latch} ]"]

    def _end(self, after: str) -> list[str]:
        k = self.number
        return [
            f"{self.lane}.next = add nuw nsw i32 {self.lane}, 1",
            f"%more.{k} = icmp ult i32 {self.lane}.next, {self.end}",
            f"br i1 %more.{k}, label %loop.{k}, label %{after}, !llvm.loop !{self.properties}",
        ]

    def write_metadata(self, parallel: bool) -> list[str]:
        """The nodes of `properties`. A loop that is not parallel is not worth vectorizing."""
        own, first, second, third = (self.properties + n for n in range(NODES))
        said = f'"llvm.loop.parallel_accesses", !{self.group}' if parallel else '"llvm.loop.vectorize.enable", i1 false'
        return [
            f"!{own} = distinct !{{!{own}, !{first}, !{second}, !{third}}}",
            f"!{first} = !{{!{said}}}",
            f'!{second} = !{{!"llvm.loop.unroll.disable"}}',
            f'!{third} = !{{!"llvm.loop.interleave.count", i32 1}}',
        ]


def storage_type(kind: str) -> str:
    """The type in which a value is stored: whole bytes, so that arrays of it load as vectors."""
    return "i8" if kind == "i1" else kind
