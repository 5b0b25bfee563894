"""Loop nests as the statements of a Metal kernel, in the words that a `Spelling` gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from math import prod

from porter.core.dtypes import BOOL, FLOAT, LONG, Kind
from porter.loops.expressions import Buffer, Expr, Loop, Op, ReductionKind, find_reductions, walk
from porter.loops.fusion import LoopNest, Shape, Store
from porter.loops.host_values import Named
from porter.metal.expression import Binding, Printed, fill_form, print_number, write_point
from porter.metal.loop_spelling import (
    COMPARED,
    VALUES_OF,
    Spelling,
    copies,
    drop_conversion,
    find_form_of,
    find_indexed,
    find_value,
    flatten_sum,
    is_shared,
    list_operands,
    list_uses,
    may_be_nan,
    name_reduction,
    runs_alone,
    strip_index,
    write_nan,
    write_size,
    write_start,
    write_turn,
)

_CONDITIONS = {Op.LESS: " < ", Op.EQUAL: " == ", Op.BOTH: " && "}
_FUNCTIONS = {Op.LEAST: "min", Op.GREATEST: "max", Op.DISTANCE: "abs"}


@dataclass
class ExpressionWriter:
    """Writes expressions. `bound` are those that have a variable where the text now stands."""

    spelling: Spelling
    is_copy: bool
    copied: str = ""  # the type of the elements that are moved
    bound: dict[Expr, str] = field(default_factory=dict)

    def text(self, expr: Expr) -> Printed:
        if expr in self.bound:
            return Printed(self.bound[expr])
        if self.is_copy and expr.op is Op.CALL:
            # A value that an index is computed from, where elements are moved
            copied, self.is_copy, self.copied = self.copied, False, ""
            text = self.text(expr)
            self.is_copy, self.copied = True, copied
            return text
        if isinstance(expr.attribute, Loop):
            return Printed(self.spelling.loop(expr.attribute))
        if expr.op is Op.LOAD:
            return Printed(self._read(expr))
        if expr.op is Op.SUM:
            return self.write_sum(expr.args)
        operands = list_operands(expr)
        args = [self.text(arg) for arg in operands]
        if expr.op is Op.PRODUCT:
            if operands[1].attribute == -1:
                return Printed(f"-{args[0].operand}", Binding.MINUS)
            by = args[1] if args[1].binding is Binding.MINUS else args[1].operand
            return Printed(f"{args[0].within(Binding.PRODUCT)} * {by}", Binding.PRODUCT)
        if expr.op in (Op.QUOTIENT, Op.REMAINDER):
            return Printed(self._divide(expr, args[0].operand, args[1].operand), Binding.QUOTIENT)
        if expr.op in _CONDITIONS:
            return Printed(_CONDITIONS[expr.op].join(arg.within(Binding.SUM) for arg in args), Binding.CONDITION)
        if expr.op in _FUNCTIONS:
            whole = [part.op is Op.INTEGER and not isinstance(part.attribute, Named) for part in operands]
            typed = [
                f"{self.spelling.index}({arg})" if is_whole else arg.text
                for arg, is_whole in zip(args, whole, strict=True)
            ]
            return Printed(f"{_FUNCTIONS[expr.op]}({', '.join(typed)})")
        return self._value_text(expr, args)

    def _value_text(self, expr: Expr, args: Sequence[Printed]) -> Printed:
        match expr.op:
            case Op.INTEGER if isinstance(expr.attribute, Named):
                return Printed(expr.attribute.name)
            case Op.INTEGER:
                assert isinstance(expr.attribute, int)
                return print_number(expr.attribute, Kind.INTEGRAL)
            case Op.NUMBER:
                return self._number(expr)
            case Op.CALL:
                return fill_form(find_form_of(expr, self.spelling.has_complex), args)
            case Op.CAST if expr.args[0].op is Op.LOAD and expr.args[0] not in self.bound and not self.is_copy:
                assert expr.dtype is not None
                return Printed(f"{self.converter(self.spelling.value(expr.dtype))}({self.load(expr.args[0])})")
            case Op.CAST | Op.INDEX_VALUE:
                return Printed(f"static_cast<{self.spelling.value(expr.dtype) if expr.dtype else 'int'}>({args[0]})")
            case Op.READ_INDEX:
                return Printed(f"static_cast<{self.spelling.index}>({args[0]})")
            case Op.SELECT:
                condition, yes, no = (arg.operand for arg in args)
                return Printed(f"{condition} ? {yes} : {no}", Binding.CONDITION)
        raise AssertionError(expr.op)

    def load(self, expr: Expr) -> str:
        assert isinstance(expr.attribute, Buffer)
        place = self.spelling.place(expr.attribute, self.text(expr.args[0]).text)
        return f"{self.spelling.buffers[expr.attribute]}[{place}]"

    def _read(self, expr: Expr) -> str:
        """An element as the type that is computed in."""
        assert isinstance(expr.attribute, Buffer) and expr.dtype is not None
        element, value = self.spelling.elements[expr.attribute], self.spelling.value(expr.dtype.opmath)
        if self.is_copy or element == value:
            return self.load(expr)
        return f"{self.converter(value)}({self.load(expr)})"

    def write_sum(self, terms: Sequence[Expr]) -> Printed:
        first, *others = [self.text(term) for term in flatten_sum(terms)]
        added = first.within(Binding.MINUS)
        for term in others:
            added += f" - {term.text[1:]}" if term.binding is Binding.MINUS else f" + {term.within(Binding.MINUS)}"
        return Printed(added, Binding.SUM) if others else first

    def _divide(self, expr: Expr, index: str, by: str) -> str:
        """C++ divides toward zero, indices are divided down."""
        if expr.args[0].bounds is not None and expr.args[0].bounds[0] >= 0:
            return f"{index} {'/' if expr.op is Op.QUOTIENT else '%'} {by}"
        remainder = f"({index} % {by} + {by}) % {by}"
        return remainder if expr.op is Op.REMAINDER else f"({index} - {remainder}) / {by}"

    def _number(self, expr: Expr) -> Printed:
        assert expr.dtype is not None
        written = self.copied or self.spelling.value(expr.dtype)
        if isinstance(expr.attribute, Named):
            if isinstance(expr.attribute.example, bool) or expr.attribute in self.spelling.scalars:
                return Printed(expr.attribute.name)
            number, is_real = expr.attribute, self.spelling.has_complex and expr.dtype == FLOAT
            is_float = isinstance(number.example, float) and (is_real or written == FLOAT.metal)
            converted = f"static_cast<{'float' if is_real else written}>({number.name})"
            return Printed(number.name if is_float else converted)
        assert isinstance(expr.attribute, (bool, int, float))
        if self.copied and expr.attribute == 0:
            return Printed(f"{self.copied}(0)")
        printed = print_number(expr.attribute, expr.dtype.kind)
        if self.copied and self.spelling.has_complex:
            return Printed(f"{self.spelling.cast}<{self.copied}>({printed})")
        if written in (FLOAT.metal, BOOL.metal):
            return write_point(printed)
        return Printed(f"{written}({printed})")

    def converter(self, type_: str) -> str:
        """What converts to a type of the template."""
        return f"{self.spelling.cast}<{type_}>"


_VALUES = (Op.LOAD, Op.CALL, Op.CAST, Op.SELECT, Op.READ_INDEX)
_INDICES = (Op.SUM, Op.PRODUCT, Op.QUOTIENT, Op.REMAINDER, Op.LEAST, Op.GREATEST, Op.DISTANCE)
_TRUTHS = (ReductionKind.ANY, ReductionKind.ALL)
_ACCUMULATED = (ReductionKind.SUM, ReductionKind.PRODUCT)


@dataclass(frozen=True)
class Shared:
    """A reduction that the threads of a row share, in a variable of a type.

    After the lines `joined`, each thread has there what all of them have reduced.
    """

    expr: Expr
    name: str
    type: str
    joined: tuple[str, ...]

    @property
    def kind(self) -> ReductionKind:
        return self.expr.reduction.kind


def write_nest(nest: LoopNest, spelling: Spelling) -> list[str]:
    """The statements of a kernel for a loop nest. Raises PTR345 for an operation that Metal lacks."""
    writer = NestWriter(spelling, is_copy=all(map(copies, nest.stores)))
    writer.write_body(nest)
    return writer.lines


@dataclass
class NestWriter(ExpressionWriter):
    """Writes the body of one kernel."""

    lines: list[str] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)
    rows: frozenset[Loop] = frozenset()  # of a nest whose rows threads share

    def write_body(self, nest: LoopNest) -> None:
        is_alone = nest.shape is Shape.MAP or runs_alone(nest, self.spelling)
        self.rows = frozenset(nest.rows) if nest.shape is Shape.ROWS and not is_alone else frozenset()
        self.split_index(self.spelling.row, nest.rows)
        if not is_alone and nest.shape is Shape.REDUCTION:
            self.write_reductions(nest.stores, nest, is_alone)
            self.write_once(nest.stores)
            return
        for columns, group in groupby(nest.stores, lambda store: tuple(e for e in store.loops if e not in nest.rows)):
            stores = tuple(group)
            if is_alone or columns:
                for store in stores:
                    self.write_reductions((store,), nest, is_alone)
                    self.write_guarded(store, () if is_alone else columns)
            else:
                self.write_reductions(stores, nest, is_alone)
                self.write_once(stores)

    def write_guarded(self, store: Store, columns: tuple[Loop, ...]) -> None:
        """A store of every thread, with `columns` in turns that the threads of a row share."""

        def write() -> None:
            if columns:
                self.bind_uniform(store.value)
                self.write_strided(columns, lambda: self.write_store(store))
            else:
                self.write_store(store)

        self._write_if(store.guard, write)

    def write_once(self, stores: Sequence[Store]) -> None:
        """Stores that one thread of a row does."""
        self.line(f"if ({self.spelling.lane} == 0) {{")
        self.indented(lambda: self.write_stores(stores))

    def write_stores(self, stores: Sequence[Store]) -> None:
        """Stores, each where its guard is true."""
        for guard, group in groupby(stores, lambda store: store.guard):
            self._write_if(guard, partial(self._write_all, tuple(group)))

    def _write_all(self, stores: Sequence[Store]) -> None:
        for store in stores:
            self.write_store(store)

    def _write_if(self, guard: Named | None, write: Callable[[], None]) -> None:
        """Statements that are run if a number is true."""
        if guard is None:
            write()
        else:
            self.line(f"if ({guard.name}) {{")
            self.indented(write)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def indented(self, write: Callable[[], None]) -> None:
        """Lines within braces, which this closes; what they bind is forgotten."""
        outer, known = self.lines, dict(self.bound)
        self.lines = []
        write()
        self.lines, self.bound = [*outer, *(f"  {line}" for line in self.lines), "}"], known

    def name(self, prefix: str) -> str:
        self.used[prefix] += 1
        return prefix if self.used[prefix] == 1 else f"{prefix}{self.used[prefix]}"

    def split_index(self, index: str, loops: Sequence[Loop]) -> None:
        """The variables of loops from their joined index."""
        for i, loop in enumerate(loops):
            inner = loops[i + 1 :]
            by = self.product(inner)
            text = index if not inner else f"{index} / {f'({by})' if ' ' in by else by}"
            text = f"{text} % {write_size(loop)}" if i else text
            if text != self.spelling.loop(loop):
                self.line(f"const {self.spelling.index} {self.spelling.loop(loop)} = {text};")

    def product(self, loops: Sequence[Loop]) -> str:
        known = prod(loop.size for loop in loops if loop.number is None)
        named = [loop.number.name for loop in loops if loop.number]
        return " * ".join(named + ([str(known)] if known != 1 or not named else []))

    def write_strided(self, loops: tuple[Loop, ...], write: Callable[[], None]) -> None:
        """A loop whose turns the threads of a row share."""
        name = self.spelling.loop(loops[0]) if len(loops) == 1 else self.name("turn")
        index, lane, width = self.spelling.index, self.spelling.lane, self.spelling.width
        self.line(f"for ({index} {name} = {lane}; {name} < {self.product(loops)}; {name} += {width}) {{")

        def body() -> None:
            self.split_index(name, loops)
            write()

        self.indented(body)

    def write_store(self, store: Store) -> None:
        element = self.spelling.elements[store.buffer]
        self.copied = element if self.is_copy else ""
        root = drop_conversion(store)
        self.bind_shared(root, store.place)
        value = self.text(root).text
        type_ = self._type(root)
        if not self.is_copy and type_ != element:
            value = f"{self.converter(element) if type_ == FLOAT.metal else f'static_cast<{element}>'}({value})"
        self.line(f"{self.place_result(store)} = {value};")

    def place_result(self, store: Store) -> str:
        """Where a store puts its value."""
        place = self.spelling.stored(store.buffer, self.text(store.place).text)
        return f"{self.spelling.buffers[store.buffer]}[{place}]"

    def _type(self, value: Expr) -> str:
        """The type of a value as written."""
        if isinstance(value.attribute, Buffer) and (self.is_copy or value in self.bound):
            return self.spelling.elements[value.attribute]
        return self.spelling.value(value.dtype) if value.dtype else self.spelling.index

    def write_reductions(self, stores: Sequence[Store], nest: LoopNest, is_alone: bool) -> None:
        """Variables for all reductions, in every thread of a row: they depend on the rows alone."""
        found: dict[Expr, Store] = {}
        for store in stores:
            found |= {each: store for each in find_reductions(store.value) if each not in found}
        for each, store in found.items():
            indexed = self._find_indexed(each, nest, is_alone)
            if each in self.bound:
                continue
            if indexed is not None:
                self.write_extreme(indexed)
            elif is_alone or not is_shared(each, self.spelling):
                name, type_ = self.name(name_reduction(each.reduction)), self.find_accumulator(each, store)
                self._write_alone(each, name, type_)
                self.bound[each] = name
            else:
                plain = [other for other in found if self._find_indexed(other, nest, is_alone) is None]
                self.write_shared([self._share(other, found[other]) for other in plain if self._may_join(other, each)])

    def _find_indexed(self, expr: Expr, nest: LoopNest, is_alone: bool) -> Expr | None:
        has_extremes = not is_alone and self.spelling.join_extreme is not None
        return find_indexed(expr, nest) if has_extremes else None

    def _may_join(self, other: Expr, first: Expr) -> bool:
        """Whether a reduction can be made in the turns of another one: over the same loops, of what is known there."""
        is_next = other.reduction.loops == first.reduction.loops and other not in self.bound
        needed = find_reductions(*other.args)
        return is_next and is_shared(other, self.spelling) and all(each in self.bound for each in needed)

    def _share(self, expr: Expr, store: Store) -> Shared:
        assert expr.dtype is not None
        name, type_ = self.name(name_reduction(expr.reduction)), self.find_accumulator(expr, store)
        joined = self.spelling.join(expr.reduction.kind, expr.dtype, name, type_)
        assert joined is not None, "only what is_shared has threads that share it"
        return Shared(expr, name, type_, joined)

    def find_accumulator(self, expr: Expr, store: Store) -> str:
        """The type that a reduction is made in: that of the result, if a sum is all that the store converts."""
        assert expr.dtype is not None
        if expr.reduction.kind in _TRUTHS:
            return "int" if is_shared(expr, self.spelling) else "bool"
        element, kind = self.spelling.elements[store.buffer], expr.reduction.kind
        stored = store.value.args[0] if store.value.op is Op.CAST else store.value
        is_total = kind in _ACCUMULATED and expr in (stored, store.value)
        if is_total and element.startswith("T") and element[1:].isdecimal():
            return self.spelling.widen(element)
        is_wide = is_total and element == LONG.metal and self.spelling.join(kind, LONG, "", "")
        return element if is_wide else self.spelling.value(expr.dtype)

    def write_shared(self, group: Sequence[Shared]) -> None:
        """Reductions over the same loops, whose turns the threads of a row share."""
        self.bind_uniform(*(arg for each in group for arg in each.expr.args))
        for each in group:
            start = write_start(each.kind, each.expr.dtype or FLOAT, each.type, self.spelling)
            self.line(f"{each.type} {each.name} = {start};")

        def body() -> None:
            self.bind_shared(*(each.expr.args[0] for each in group))
            for each in group:
                self.line(write_turn(each.kind, each.name, self.write_addend(each.expr, each.type), self.spelling))

        self.write_strided(group[0].expr.reduction.loops, body)
        for each in group:
            self.lines += each.joined
            self.bound[each.expr] = each.name

    def write_addend(self, expr: Expr, type_: str) -> str:
        """What a turn adds to a reduction; an element that is only added is converted to the sum's type at once."""
        element = expr.args[0]
        while element.op is Op.CAST:
            element = element.args[0]
        assert expr.dtype is not None
        if not isinstance(element.attribute, Buffer) or element in self.bound:
            return self.text(expr.args[0]).text
        if expr.reduction.kind in _TRUTHS:
            return f"::metal::any({self.load(element)} != {self.spelling.elements[element.attribute]}(0))"
        if type_ == self.spelling.value(expr.dtype):
            return self.text(expr.args[0]).text
        return f"{self.converter(type_)}({self.load(element)})"

    def write_extreme(self, expr: Expr) -> None:
        """The first index of the extreme value of a row, which its threads find together, and that value."""
        kind, value = expr.reduction.kind, expr.args[0]
        assert value.dtype is not None and self.spelling.join_extreme is not None
        name, extreme = self.name(name_reduction(expr.reduction)), self.name("extreme")
        type_, index = self.value_type(value), self.spelling.index
        none = f"::metal::numeric_limits<{index}>::max()"
        start = VALUES_OF[kind]
        self.line(f"{type_} {extreme} = {write_start(start, value.dtype.opmath, type_, self.spelling)};")
        self.line(f"{index} {name} = {none};")

        def body() -> None:
            self.bind_shared(*expr.args)
            if value not in self.bound:
                self._bind(value)
            text, place = self.text(value).text, self.text(strip_index(expr.args[1]))
            tests = [f"{text} {COMPARED[kind]} {extreme}", f"{name} == {none}"]
            if may_be_nan(value.dtype, self.spelling):
                is_nan, is_number = write_nan(text, self.spelling), write_nan(extreme, self.spelling, holds=False)
                tests.append(f"({is_nan} && {is_number})")
            self.line(f"if ({' || '.join(tests)}) {{")
            self.lines += [f"  {extreme} = {text};", f"  {name} = {place};", "}"]

        self.write_strided(expr.reduction.loops, body)
        for line in self.spelling.join_extreme(kind, name, index, extreme, type_):
            self.line(line)
        self.bound[expr] = name
        self.bound[find_value(expr)] = extreme

    def bind_uniform(self, *roots: Expr) -> None:
        """Variables for what all turns of a row compute alike of its reductions."""
        taken = (*self.spelling.buffers.values(),)
        for each in (found for root in roots for found in find_uniform(root, self.rows, self.bound) if self.rows):
            if each not in self.bound:
                name = name_uniform(each)
                self._bind(each, f"row_{name}" if name in taken else name)

    def _bind(self, expr: Expr, prefix: str = "value") -> None:
        """A variable for a value or an index."""
        name = self.name("offset" if expr.dtype is None else prefix)
        type_ = self._type(expr) if self.is_copy else self.value_type(expr)
        self.line(f"const {type_} {name} = {self.load(expr) if expr.op is Op.LOAD else self.text(expr)};")
        self.bound[expr] = name

    def _write_alone(self, expr: Expr, name: str, type_: str) -> None:
        """A reduction that every thread does by itself, in the order of its loops."""
        assert expr.dtype is not None
        reduction, index = expr.reduction, self.spelling.index
        is_last = reduction.kind is ReductionKind.LAST
        start = self.text(expr.args[2]) if is_last else write_start(reduction.kind, expr.dtype, type_, self.spelling)
        self.line(f"{type_} {name} = {start};")
        extreme = ""
        if reduction.kind in COMPARED:
            extreme = self.name("extreme")
            self.line(f"{self.value_type(expr.args[0])} {extreme} = 0;")
            self.line(f"bool {extreme}_found = false;")
        for loop in reduction.loops:
            i = self.spelling.loop(loop)
            self.line(f"for ({index} {i} = 0; {i} < {write_size(loop)}; {i}++) {{")
        self.indented(lambda: self._write_turn(expr, name, extreme))
        for _ in reduction.loops[1:]:
            self.line("}")

    def _write_turn(self, expr: Expr, name: str, extreme: str) -> None:
        kind = expr.reduction.kind
        self.bind_shared(*expr.args)
        first, *others = (self.text(arg) for arg in expr.args)
        if kind in COMPARED:
            better = is_first = f"{first.operand} {COMPARED[kind]} {extreme}"
            if may_be_nan(expr.args[0].dtype, self.spelling):
                is_nan, is_number = write_nan(first.text, self.spelling), write_nan(extreme, self.spelling, holds=False)
                is_first = f"({is_number} && ({is_nan} || {better}))"
            is_first = f"!{extreme}_found || {is_first}"
            self.line(f"if ({is_first}) {{ {extreme} = {first}; {name} = {others[0]}; {extreme}_found = true; }}")
        elif kind is ReductionKind.LAST:
            self.line(f"if ({first}) {{ {name} = {others[0]}; }}")
        else:
            addend = self.write_addend(expr, self.spelling.value(expr.dtype or FLOAT))
            self.line(write_turn(kind, name, addend, self.spelling))

    def bind_shared(self, *roots: Expr) -> None:
        """Variables for what is used more than once."""
        inner = walk(*roots, enters=lambda each: each not in self.bound and each.op is not Op.REDUCE, of=list_operands)
        evaluated = [value for value in inner if value in self.bound or value.op is not Op.REDUCE]
        uses = Counter(arg for value in evaluated for arg in list_uses(value))
        for value in evaluated:
            if value.op in (*_VALUES, *_INDICES) and uses[value] > 1 and value not in self.bound:
                self._bind(value)

    def value_type(self, expr: Expr) -> str:
        return self.spelling.value(expr.dtype.opmath) if expr.dtype else self.spelling.index


def find_uniform(root: Expr, rows: frozenset[Loop], bound: Collection[Expr]) -> Iterator[Expr]:
    """The largest values within one that depend on reductions and on no loop but those of rows; means come first."""
    stack = [root]
    while stack:
        each = stack.pop()
        if each in bound:
            continue
        if each.op is Op.CALL and each.loops <= rows and any(part in bound for part in walk(each)):
            yield from (part for part in walk(each) if name_uniform(part) != "value" and part is not each)
            yield each
        else:
            stack += each.args


def name_uniform(value: Expr) -> str:
    """What a value is called: the mean of a row, its variance, or any other."""
    total = value.args[0] if value.op is Op.CALL and value.attribute == "division" else None
    if total is None or total.op is not Op.REDUCE or total.reduction.kind is not ReductionKind.SUM:
        return "value"
    if value.args[1].op is not Op.NUMBER:
        return "value"
    return "variance" if total.args[0].attribute == "square" else "mean"
