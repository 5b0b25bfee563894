"""Rules about threads that work together: lost totals, barriers that order nothing, returns before a barrier."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from aten_overlay.errors import OverlayError, Place
from aten_overlay.lint.finding import SIMDGROUP, Across, Finding
from aten_overlay.metal.source.arguments import Argument, attributes
from aten_overlay.metal.source.declarations import (
    Instance,
    Kernel,
    Unit,
    find_definition,
    find_name,
    kernel_arguments,
    thread_limit,
)
from aten_overlay.metal.source.lexer import Source
from aten_overlay.metal.source.reach import find_reached
from aten_overlay.metal.source.statements import LOOPS, Assignment, Header, Statement, assignments, mentions, statements
from aten_overlay.metal.source.syntax import Declaration, class_key, head_end, is_explicit

LIMIT = "max_total_threads_per_threadgroup"
_REDUCTIONS = frozenset(f"simd_{name}" for name in ("sum", "product", "min", "max", "and", "or", "xor"))
_FIRST = "simd_is_first"
_BARRIERS = frozenset(("threadgroup_barrier", "simdgroup_barrier"))
_IN_GROUP = frozenset(("thread_index_in_threadgroup", "thread_position_in_threadgroup"))
_LANE, _SIMDGROUP, _GROUP = (
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "threadgroup_position_in_grid",
)
_COMPOUND = frozenset("+-*/%&|^")


@dataclass
class Body:
    """A kernel's body and its positions. `varying` are values that differ in threads of different simdgroups, `inner`
    what is made of a thread's place in its threadgroup, and `indices` that place itself, or its column."""

    unit: Unit
    kernel: Kernel
    instance: Instance
    arguments: tuple[Argument, ...] = ()
    indices: set[str] = field(default_factory=set)
    varying: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.arguments = kernel_arguments(self.unit, self.kernel)
        self.indices = self.named(*_IN_GROUP)
        self.varying = self.indices | self.named("thread_position_in_grid", _SIMDGROUP)
        self.inner = self.indices | self.named(_LANE, _SIMDGROUP)

    @property
    def source(self) -> Source:
        return self.unit.source

    @property
    def declared(self) -> int:
        """How many threads its threadgroups may have as its attribute says it; 0 without one."""
        head = attributes(self.source, self.kernel.declaration.start, head_end(self.kernel.declaration))
        limited = any(attribute.name == LIMIT for attribute in head)
        return thread_limit(self.unit, self.kernel, self.instance) if limited else 0

    def named(self, *kinds: str) -> set[str]:
        """The names of the positions of some kinds."""
        return {a.name for a in self.arguments if a.kind in kinds and a.name}

    def statements(self) -> Iterator[Statement]:
        """Its statements in order, with what is assigned noted before the next comes."""
        body = self.kernel.declaration.body
        for statement in statements(self.source, body + 1, self.source.match[body]):
            yield statement
            for assigned in assignments(self.source, statement.start, statement.end):
                for names in (self.varying, self.inner):
                    if mentions(self.source, assigned.start, assigned.end, names):
                        names.add(self.source.tokens[assigned.name])
                if self._copies_index(assigned):
                    self.indices.add(self.source.tokens[assigned.name])

    def _copies_index(self, assigned: Assignment) -> bool:
        """Whether a name becomes a thread's index, or its column of the threadgroup."""
        words = self.source.tokens[assigned.start : assigned.end]
        return not assigned.indexed and bool(words) and words[0] in self.indices and words[1:] in ([], [".", "x"])

    def place(self, token: int) -> Place:
        return self.source.place(token)


def bodies(unit: Unit) -> Iterator[Body]:
    """The kernels that have a host name, each once for each definition."""
    seen: set[int] = set()
    for instance in unit.instances:
        with suppress(OverlayError):  # such a kernel is refused once it is asked for
            kernel = find_definition(unit, instance)
            body = Body(unit, kernel, instance)
            if id(kernel.declaration) not in seen:
                seen.add(id(kernel.declaration))
                yield body


def find_lost_totals(unit: Unit) -> Iterator[Finding]:
    """PTR291: what a simdgroup reduces to is stored by one thread, or by one of each simdgroup over the other's, as
    what the threadgroup reduces to.

    Kernels that combine simdgroups in any way (threadgroup memory, a barrier, the index of the simdgroup) are let off,
    and reductions of what every simdgroup has alike.
    """
    if _REDUCTIONS.isdisjoint(unit.source.tokens):
        return
    for body in bodies(unit):
        reached = find_reached(unit, body.instance)
        text = unit.source.tokens[body.kernel.opening : body.kernel.declaration.end]
        combined = "threadgroup_barrier" in reached or "threadgroup" in text or body.named(_SIMDGROUP)
        if combined or 0 < body.declared <= SIMDGROUP:
            continue
        yield from _lost_totals(body)


def _lost_totals(body: Body) -> Iterator[Finding]:
    source, totals = body.source, dict[str, str]()
    targets = {a.name for a in body.arguments if a.kind == "buffer"}
    for statement in body.statements():
        conditional = [h for h in statement.inside if h.word != "for"]
        if source.tokens[statement.start] == "return" and _is_varied(body, statement.inside):
            return  # the threads that go on may be one simdgroup
        stored = {totals[source.tokens[i]] for i in range(statement.start, statement.end) if source.tokens[i] in totals}
        if not stored:
            stores = assignments(source, statement.start, statement.end)
            stored = {_find_reduction(body, assignment) for assignment in stores if assignment.indexed}
        if any(stored) and (across := _find_storing(body, statement, targets)) is not None:
            what = (
                f"`{max(stored)}` reduces a simdgroup, and what one thread stores of it is taken for the threadgroup's"
            )
            hint = "Let each simdgroup store its part in threadgroup memory, and reduce these after a barrier."
            yield Finding(
                "PTR291", body.instance.host_name, what, body.place(statement.start), hint, across, body.declared
            )
        for assigned in assignments(source, statement.start, statement.end):
            reduction = _find_reduction(body, assigned)
            copied = {totals[t] for t in source.tokens[assigned.start : assigned.end] if t in totals}
            if not assigned.indexed and (copied or (reduction and not _is_varied(body, tuple(conditional)))):
                totals[source.tokens[assigned.name]] = reduction or min(copied)


def _is_varied(body: Body, inside: tuple[Header, ...]) -> bool:
    """Whether some threads alone get into a branch."""
    lanes = body.named(_LANE)
    return any(mentions(body.source, h.start, h.end, body.varying | lanes) for h in inside)


def _find_reduction(body: Body, assigned: Assignment) -> str:
    """The reduction of varying values in what is assigned, or ""."""
    source = body.source
    for i in range(assigned.start, assigned.end - 1):
        called = source.tokens[i] in _REDUCTIONS and source.tokens[i + 1] == "("
        if called and mentions(source, i + 2, source.match[i + 1], body.varying):
            return source.tokens[i]
    return ""


def _find_storing(body: Body, statement: Statement, targets: set[str]) -> Across | None:
    """In which threadgroups only one thread of several simdgroups, or one of each over the others', makes a store."""
    source = body.source
    store = next((a for a in assignments(source, statement.start, statement.end) if a.indexed), None)
    atomic = source.tokens[statement.start].startswith("atomic_")
    if not atomic and (store is None or source.tokens[store.name] not in targets):
        return None
    headers = [h for h in statement.inside if h.word == "if"]
    subscript = source.tokens[store.name + 2 : store.start - 2] if store else ["?"]
    alone = {*body.named(_GROUP), "x", "y", "z", ".", "+", "*"}
    is_shared = all(t in alone or t.isdigit() for t in subscript)  # by all simdgroups of a threadgroup
    for header in headers:
        chosen = _find_chosen(body, header)
        if chosen is not None:
            return chosen
        is_lane = _is_zero(source, header, body.named(_LANE)) or _FIRST in source.tokens[header.start : header.end]
        if is_lane and is_shared:
            return Across.ALL
    return Across.ALL if is_shared and not headers else None


def _find_chosen(body: Body, header: Header) -> Across | None:
    """Which threads a condition chooses one of: `tid == 0`, `!tid`, `tid.x == 0`."""
    source = body.source
    if not _is_zero(source, header, body.indices):
        return None
    words = source.tokens[header.start : header.end]
    types = {a.name: a for a in body.arguments}
    name = next(word for word in words if word in body.indices)
    if name in types and types[name].kind == "thread_index_in_threadgroup":
        return Across.ALL
    return Across.ALL if "y" in words else Across.ROW


def _is_zero(source: Source, header: Header, names: set[str]) -> bool:
    """Whether a condition says that one of `names` is 0, and nothing is an alternative to it."""
    text = " ".join(source.tokens[header.start : header.end])
    choice = "|".join(map(re.escape, sorted(names)))
    if not names or "||" in text:
        return False
    return bool(
        re.search(rf"(?<![\w.] )\b(?:{choice})\b(?: \. [xyz])? == 0u?\b|\b0u? == (?:{choice})\b|! (?:{choice})\b", text)
    )


def find_unordered(unit: Unit) -> Iterator[Finding]:
    """PTR292: a barrier that orders no threadgroup memory, between accesses of an array there of which one writes."""
    if "mem_none" not in unit.source.tokens and "mem_device" not in unit.source.tokens:
        return
    for declaration in unit.declarations:
        if declaration.body < 0 or class_key(unit.source, declaration) or is_explicit(unit.source, declaration):
            continue
        yield from _unordered(unit, declaration)


def _unordered(unit: Unit, declaration: Declaration) -> Iterator[Finding]:
    source, tokens = unit.source, unit.source.tokens
    barriers = [i for i in range(declaration.body, declaration.end) if tokens[i] in _BARRIERS and tokens[i + 1] == "("]
    idle = [i for i in barriers if "mem_threadgroup" not in tokens[i : source.match[i + 1]] and _has_flags(source, i)]
    shared = _shared_arrays(source, declaration) if idle else {}
    if not shared:
        return
    ordering = set(barriers) - set(idle)
    body = list(statements(source, declaration.body + 1, source.match[declaration.body]))
    for at in idle:
        inside = next((s.inside for s in body if s.start <= at < s.end), ())
        loop = next((h for h in reversed(inside) if h.word in LOOPS), None)
        sequence = list(range(declaration.body + 1, source.match[declaration.body]))
        start = sequence.index(at)
        if loop is not None:  # its turns follow each other
            first, stop = sequence.index(loop.start), sequence.index(loop.body_end - 1) + 1
            turn = sequence[first:stop]
            sequence = [*sequence[:first], *turn, *turn, *sequence[stop:]]
        before, after = sequence[:start][::-1], sequence[start + 1 :]
        pairs = (
            (x, y)
            for x in _accesses(source, _until(before, ordering), shared)
            for y in _accesses(source, _until(after, ordering), shared)
        )
        name = next((x.name for x, y in pairs if x.depends_on(y)), None)
        if name is not None:
            what = f"this `{tokens[at]}` orders no threadgroup memory, and `{name}` is accessed before and after it"
            kernel = find_name(source, declaration)[0]
            named = tokens[kernel] if any(k.declaration is declaration for k in unit.kernels) else ""
            yield Finding("PTR292", named, what, source.place(at), "Use mem_flags::mem_threadgroup.")


def _has_flags(source: Source, barrier: int) -> bool:
    """Whether the flags of a barrier are written out, and not a variable's."""
    arguments = source.tokens[barrier + 2 : source.match[barrier + 1]]
    return any(word in arguments for word in ("mem_none", "mem_device", "mem_texture"))


def _shared_arrays(source: Source, declaration: Declaration) -> dict[str, int]:
    """A function's arrays in threadgroup memory, and its pointers there: the token that declares each."""
    names: dict[str, int] = {}
    for i in range(declaration.start, declaration.end):
        if source.tokens[i] != "threadgroup" or source.tokens[i - 1] == "::":
            continue
        j = i + 1
        while j < declaration.end and source.tokens[j] not in (";", ")", "=", "{", ">"):
            ends = source.tokens[j + 1] in ("[", ",", ";", ")", "=")
            if source.kinds[j] == "name" and ends and source.tokens[j + 1 : j + 3] != ["[", "["]:
                names[source.tokens[j]] = j
            if source.tokens[j] == "," and i < declaration.body:
                break
            j = source.match[j] + 1 if source.tokens[j] == "[" else j + 1
    return names


@dataclass(frozen=True)
class _Access:
    name: str
    index: str
    writes: bool

    def depends_on(self, other: _Access) -> bool:
        """Whether two threads may access one element here, of which one writes.

        A thread's own element needs no order, and two elements with different numbers are two.
        """
        numbers = self.index.isdigit() and other.index.isdigit()
        return self.name == other.name and (self.writes or other.writes) and self.index != other.index and not numbers


def _until(sequence: list[int], ordering: set[int]) -> list[int]:
    end = next((n for n, i in enumerate(sequence) if i in ordering), len(sequence))
    return sequence[:end]


def _accesses(source: Source, sequence: list[int], shared: Mapping[str, int]) -> Iterator[_Access]:
    """The elements of shared arrays that some tokens read or write."""
    tokens = source.tokens
    for i in sequence:
        if shared.get(tokens[i], i) == i or tokens[i + 1] != "[" or tokens[i - 1] in (".", "->"):
            continue  # none of them, or its declaration
        end, index = i + 1, []
        while tokens[end] == "[":
            index.append(source.joined(end + 1, source.match[end]))
            end = source.match[end] + 1
        yield _Access(tokens[i], " ".join(index), _is_written(tokens, end))


def _is_written(tokens: list[str], end: int) -> bool:
    following = tokens[end : end + 2]
    stepped = following in (["+", "+"], ["-", "-"])
    return following[0] == "=" or stepped or (following[0] in _COMPOUND and following[1] == "=")


def find_early_returns(unit: Unit) -> Iterator[Finding]:
    """PTR293: some threads of a threadgroup return, and the others wait for them at a barrier."""
    if "threadgroup_barrier" not in unit.source.tokens:
        return
    for body in bodies(unit):
        for place in find_divided_returns(body):
            what = "some threads of a threadgroup return here, and others wait for them at a barrier"
            hint = "Guard the accesses, not the barrier, and return after the last one."
            yield Finding("PTR293", body.instance.host_name, what, body.place(place), hint)


def find_divided_returns(body: Body) -> Iterator[int]:
    """The tokens at which some threads of a threadgroup return before a barrier."""
    source, waiting = body.source, _find_waiting(body.unit)
    for statement in body.statements():
        divided = [h for h in statement.inside if source.tokens[statement.start] == "return" and _divides(body, h)]
        if divided and mentions(source, divided[0].body_end, body.kernel.declaration.end, waiting):
            yield statement.start


def _divides(body: Body, header: Header) -> bool:
    """Whether a condition is of a thread's place in its threadgroup."""
    return header.word == "if" and mentions(body.source, header.start, header.end, body.inner)


def _find_waiting(unit: Unit) -> set[str]:
    """The names from which a barrier can be reached, with its own."""
    waiting = {"threadgroup_barrier"}
    while more := {name for name, names in unit.references.items() if names & waiting} - waiting:
        waiting |= more
    return waiting
