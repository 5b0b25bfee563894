"""Kernels that go over rows several times: threads keep elements of their rows, and what they compute of them.

Where rows are dense and aligned, a thread reads several neighbors at once and stores as many. Each pass over a row is
a reduction or a store. What a later pass needs of an element stays in registers, where a threadgroup has room for the
row; in the instances that serve any row, each pass computes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from porter.loops.expressions import Buffer, Expr, Loop, Op, ReductionKind, find_reductions, walk
from porter.loops.fusion import LoopNest, Shape, Store
from porter.loops.host_values import Named
from porter.metal.codegen.scan import put_loop
from porter.metal.codegen.schedule import COUNT, MOST_ARRAYS, PLAIN, WIDTH, Schedule
from porter.metal.expression import Binding, Printed
from porter.metal.loop_spelling import Spelling, drop_conversion, flatten_sum, is_shared
from porter.metal.loop_text import NestWriter, Shared

_VALUES = (Op.LOAD, Op.CALL, Op.CAST, Op.SELECT)


@dataclass(frozen=True)
class Pass:
    """One pass over a row: its loop, and what it computes of each element."""

    loop: Loop
    roots: tuple[Expr, ...]


@dataclass(frozen=True)
class KeptRows:
    """What the passes over a row keep of an element, with each in the array of a place; all in the loop `along`."""

    along: Loop
    arrays: dict[Expr, int]
    passes: tuple[Pass, ...]
    inner: Named | None = None  # how many neighboring rows are adjacent in memory

    @property
    def count(self) -> int:
        return max(self.arrays.values(), default=-1) + 1


@dataclass(frozen=True)
class Alignment:
    """What host code asks before neighbors are read at once: steps that are 1, and what neighbors have to divide."""

    units: tuple[Named, ...]
    multiples: tuple[Named | int, ...]


def find_kept(nest: LoopNest, spelling: Spelling) -> KeptRows | None:
    """What threads can keep of rows; None where passes go over different elements, or keep too much."""
    passes = _list_passes(nest, spelling) if nest.shape is Shape.ROWS else None
    if not passes or any(_describe(one.loop) != _describe(passes[0].loop) for one in passes):
        return None
    along = passes[0].loop
    computed: set[Expr] = set()
    first: dict[Expr, int] = {}  # in the order of the text, which is the same for every element type
    last: dict[Expr, int] = {}
    for at, one in enumerate(passes):
        roots = [put_loop(root, one.loop, along) for root in one.roots]
        last |= {value: at for root in roots for value in _find_kept(root, computed, along)}
        within = dict.fromkeys(walk(*roots, enters=_computes))
        first |= {value: at for value in within if value not in computed}
        computed |= within.keys()
    kept = KeptRows(along, _place(last, first), passes, find_adjacent(nest, passes))
    return kept if 0 < kept.count <= MOST_ARRAYS else None


def _list_passes(nest: LoopNest, spelling: Spelling) -> tuple[Pass, ...] | None:
    """The passes of a nest's text in order; None where one has several loops, or no threads share it."""
    passes: list[Pass] = []
    listed: set[Expr] = set()
    for store in nest.stores:
        columns = [loop for loop in store.loops if loop not in nest.rows]
        if len(columns) != 1:
            return None
        joined: set[Expr] = set()  # the reductions of the last pass
        for value in (value for value in find_reductions(store.value) if value not in listed):
            if len(value.reduction.loops) != 1 or len(value.args) != 1 or not is_shared(value, spelling):
                return None
            [loop] = value.reduction.loops
            if joined and loop == passes[-1].loop and joined.isdisjoint(find_reductions(*value.args)):
                passes[-1] = Pass(loop, (*passes[-1].roots, *value.args))
                joined.add(value)
            else:
                passes.append(Pass(loop, value.args))
                joined = {value}
            listed.add(value)
        passes.append(Pass(columns[0], (drop_conversion(store),)))
    return tuple(passes)


def _describe(loop: Loop) -> object:
    return loop.number.value if loop.number else loop.size


def find_adjacent(nest: LoopNest, passes: Sequence[Pass]) -> Named | None:
    """How many neighboring rows are adjacent in memory, if passes over a row step over as many."""
    last = nest.rows[-1] if len(nest.rows) > 1 else None
    if last is None or last.number is None:
        return None
    for one in passes:
        for load in (part for root in one.roots for part in walk(root, enters=_enters) if part.op is Op.LOAD):
            terms = flatten_sum([load.args[0]])
            steps = [term for term in terms if one.loop in term.loops]
            if any(term.op is not Op.PRODUCT or term.args[1].attribute != last.number for term in steps):
                return None
            if not any(term.attribute == last for term in terms):
                return None
    return last.number


def find_alignment(nest: LoopNest, kept: KeptRows) -> Alignment | None:
    """What makes the elements of all passes neighbors that are aligned; None where a pass needs more than those."""
    places = [(store.place, loop) for store in nest.stores for loop in store.loops if loop not in nest.rows]
    for one in kept.passes:
        stack = list(one.roots)
        while stack:
            value = stack.pop()
            if value.op is Op.LOAD and one.loop in value.loops:
                places.append((value.args[0], one.loop))
            elif value.op is not Op.REDUCE and one.loop in value.loops:
                if value.op is Op.SELECT or not value.args:
                    return None
                stack += value.args
    units, multiples, ones = dict[Named, None](), dict[Named | int, None](), set[Named | None]()
    for place, loop in places:
        for term in flatten_sum([place]):
            first, factor = (term.args if term.op is Op.PRODUCT else (term, None)) if term.loops else (None, term)
            number = factor.attribute if factor is not None and factor.op is Op.INTEGER else None
            if loop in term.loops and (first is None or first.attribute != loop):
                return None
            if factor is None and isinstance(term.attribute, Loop):
                ones |= {term.attribute.number} if term.attribute != loop else set()
            elif loop in term.loops and isinstance(number, Named):
                units[number] = None
            elif loop not in term.loops and isinstance(number, (Named, int)):
                multiples[number] = None
            else:
                return None
    return Alignment(tuple(units), tuple(multiples)) if ones <= units.keys() else None


def _enters(value: Expr) -> bool:
    return value.op is not Op.REDUCE and bool(value.args)


def _computes(value: Expr) -> bool:
    """Whether the operands of a value are computed wherever it is: of a choice, only one is."""
    return _enters(value) and value.op is not Op.SELECT


def _find_kept(root: Expr, computed: set[Expr], along: Loop) -> Iterator[Expr]:
    """The largest values within one that earlier passes computed of an element."""
    stack = [root]
    while stack:
        value = stack.pop()
        is_value = value.op in _VALUES and value.dtype is not None and along in value.loops
        if is_value and value in computed and any(part.op is Op.LOAD for part in walk(value, enters=_enters)):
            yield value
        elif _computes(value):
            stack += value.args


def _place(last: dict[Expr, int], first: dict[Expr, int]) -> dict[Expr, int]:
    """Arrays for values from the pass that computes each to the last that needs it; that one may reuse its array."""
    arrays: dict[Expr, int] = {}
    for value in (value for value in first if value in last):
        used = {arrays[other] for other in arrays if last[other] > first[value]}
        arrays[value] = next(i for i in range(len(last)) if i not in used)
    return arrays


@dataclass
class RowWriter(NestWriter):
    """Writes kernels whose threads keep what `kept` has; `starts` are the parts of places that rows alone decide."""

    kept: KeptRows | None = None
    schedule: Schedule = PLAIN
    starts: dict[tuple[Expr, ...], str] = field(default_factory=dict)
    inverses: dict[Expr, str] = field(default_factory=dict)
    roots: tuple[Expr, ...] = ()  # of all stores
    current: tuple[Expr, ...] = ()  # of the pass that is written
    computed: set[Expr] = field(default_factory=set)
    elements: dict[Expr, str] = field(default_factory=dict)  # the variables for neighbors that are read
    storing: Store | None = None  # what the pass that is written stores neighbors of

    @property
    def is_wide(self) -> bool:
        """Whether there are instances that read neighbors at once."""
        return self.schedule.neighbors > 1

    def write_rows(self, nest: LoopNest) -> None:
        """The body of a kernel."""
        self.rows, self.roots = frozenset(nest.rows), tuple(store.value for store in nest.stores)
        self.split_index(self.spelling.row, nest.rows)
        assert self.kept is not None
        places = [each.args[0] for store in nest.stores for each in walk(store.value) if each.op is Op.LOAD]
        for place in (*places, *(store.place for store in nest.stores)):
            terms = self._list_row_terms(flatten_sum([place]))
            if terms and terms not in self.starts and terms != (place,):
                name = self.name("start")
                self.line(f"const {self.spelling.index} {name} = {self.write_sum(terms)};")
                self.starts[terms] = name
        type_ = self.spelling.value
        for i in range(self.kept.count):
            dtype = next(each.dtype for each, at in self.kept.arrays.items() if at == i)
            assert dtype is not None
            self.line(f"{type_(dtype.opmath)} {_name_array(i)}[{COUNT}];")
        size, width = self.product((self.kept.along,)), self.spelling.width
        step = f"({width} * {WIDTH})" if self.is_wide else width
        turns = f"{COUNT} / {WIDTH}" if self.is_wide else COUNT
        less = step.strip("()")
        self.line(f"const {self.spelling.index} turns = {COUNT} > 1 ? {turns} : ({size} + {less} - 1) / {step};")
        for store in nest.stores:
            self.write_reductions((store,), nest, False)
            self.current, self.storing = (drop_conversion(store),), store if self.is_wide else None
            self.write_guarded(store, tuple(each for each in store.loops if each not in nest.rows))
            self.storing = None

    def _list_row_terms(self, terms: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(each for each in terms if each.loops and each.loops <= self.rows)

    def write_sum(self, terms: Sequence[Expr]) -> Printed:
        flat = flatten_sum(terms)
        of_row = self._list_row_terms(flat)
        if of_row not in self.starts:
            return super().write_sum(terms)
        rest = [each for each in flat if each not in of_row]
        start = self.starts[of_row]
        if not rest:
            return Printed(start)
        return Printed(f"{start} + {super().write_sum(rest).within(Binding.SUM)}", Binding.SUM)

    def write_shared(self, group: Sequence[Shared]) -> None:
        self.current = tuple(arg for each in group for arg in each.expr.args)
        super().write_shared(group)
        for total in (shared for shared in group if self._divides(shared.expr)):
            self.inverses[total.expr] = self.name("inverse")
            self.line(f"const {total.type} {self.inverses[total.expr]} = 1 / {total.name};")

    def _divides(self, total: Expr) -> bool:
        """Whether elements are divided by a sum of exponentials of which the largest is 1: it has a reciprocal."""
        power = total.args[0].args[0] if total.args[0].attribute == "exponent" else None
        if total.reduction.kind is not ReductionKind.SUM or power is None or power.attribute != "subtraction":
            return False
        largest = power.args[1]
        is_largest = largest.op is Op.REDUCE and largest.reduction.kind is ReductionKind.MAX_NAN
        return is_largest and any(
            part.attribute == "division" and part.args[1] is total for root in self.roots for part in walk(root)
        )

    def text(self, expr: Expr) -> Printed:
        if expr.attribute == "division" and expr.args[1] in self.inverses and expr not in self.bound:
            return Printed(f"{self.text(expr.args[0]).operand} * {self.inverses[expr.args[1]]}", Binding.PRODUCT)
        return super().text(expr)

    def write_strided(self, loops: tuple[Loop, ...], write: Callable[[], None]) -> None:
        """A pass over a row, which keeps what later ones need."""
        [loop] = loops
        index, name, lane, width = (
            self.spelling.index,
            self.spelling.loop(loop),
            self.spelling.lane,
            self.spelling.width,
        )
        used = self.used.copy()

        def write_element() -> None:
            self._use_kept(loop)
            write()

        def write_neighbors() -> None:
            self._read_neighbors(loop)
            store = self.storing
            type_ = f"neighbors<{self.spelling.elements[store.buffer]}, {WIDTH}>" if store else ""
            self.lines += [f"{type_} results;"] if store else []
            self.line(f"for ({index} j = 0; j < {WIDTH}; j++) {{")
            self.indented(write_element)
            if store:
                place = f"{self.spelling.buffers[store.buffer]} + {self.text(store.place).within(Binding.SUM)}"
                self.line(f"*reinterpret_cast<device {type_}*>({place}) = results;")
            self.elements = {}

        def write_turn() -> None:
            first = f"{lane} + i * {width}"
            self.line(f"const {index} {name} = {f'({first}) * {WIDTH}' if self.is_wide else first};")
            self.line(f"if ({name} < {self.product(loops)}) {{")
            self.indented(write_neighbors if self.is_wide else write_element)

        self.lines += ["#pragma unroll", f"for ({index} i = 0; i < turns; i++) {{"]
        self.indented(write_turn)
        self.used = used

    def _read_neighbors(self, loop: Loop) -> None:
        """Variables for the neighbors that a pass reads: none are read again that are kept."""
        assert self.kept is not None
        along, kept = self.kept.along, dict[Expr, bool]()
        roots = [put_loop(root, loop, along) for root in self.current]
        needed = {value for root in roots for value in _find_kept(root, self.computed, along)}
        stack = [(root, False) for root in self.current]
        while stack:
            value, is_kept = stack.pop()
            is_kept |= put_loop(value, loop, along) in needed
            if value.op is Op.LOAD and loop in value.loops:
                kept[value] = kept.get(value, True) and is_kept
            elif _computes(value):
                stack += [(arg, is_kept) for arg in value.args]
        for load in (value for value in walk(*self.current, enters=_computes) if value in kept):
            assert isinstance(load.attribute, Buffer)
            space = "device" if self.storing and load.attribute == self.storing.buffer else "constant"
            type_ = f"neighbors<{self.spelling.elements[load.attribute]}, {WIDTH}>"
            place = f"{self.spelling.buffers[load.attribute]} + {self.text(load.args[0]).within(Binding.SUM)}"
            text = f"*reinterpret_cast<{space} {type_}*>({place})"
            name = self.name("elements")
            self.line(f"const auto {name} = {f'{COUNT} > 1 ? {type_}() : {text}' if kept[load] else text};")
            self.elements[load] = name

    def load(self, expr: Expr) -> str:
        return f"{self.elements[expr]}.at[j]" if expr in self.elements else super().load(expr)

    def place_result(self, store: Store) -> str:
        return "results.at[j]" if self.storing else super().place_result(store)

    def _use_kept(self, loop: Loop) -> None:
        """Variables for what earlier passes kept and for what this one keeps of an element."""
        assert self.kept is not None
        along, within = self.kept.along, dict[Expr, Expr]()
        for value in (value for root in self.current for value in walk(root, enters=_computes)):
            within.setdefault(put_loop(value, loop, along), value)
        roots = [put_loop(root, loop, along) for root in self.current]
        needed = {value for root in roots for value in _find_kept(root, self.computed, along)}
        for same, value in within.items():
            is_old = same in self.computed and same not in needed
            if same not in self.kept.arrays or value in self.bound or is_old:
                continue
            array, text, name = _name_array(self.kept.arrays[same]), self.text(value).text, self.name("value")
            at = f"i * {WIDTH} + j" if self.is_wide else "i"
            text = f"{COUNT} > 1 ? {array}[{at}] : {text}" if same in needed else text
            self.line(f"const {self.value_type(value)} {name} = {text};")
            if same not in needed:
                self.line(f"{array}[{f'({at})' if self.is_wide else at} % {COUNT}] = {name};")
            self.bound[value] = name
        self.computed |= within.keys()


def _name_array(at: int) -> str:
    return f"kept{at + 1 if at else ''}"


def write_kept(nest: LoopNest, kept: KeptRows, spelling: Spelling, schedule: Schedule) -> list[str]:
    """The statements of a kernel whose threads keep elements of rows."""
    writer = RowWriter(spelling, is_copy=False, kept=kept, schedule=schedule)
    writer.write_rows(nest)
    return writer.lines
