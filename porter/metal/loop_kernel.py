"""Loop nests as Metal kernels, with their numbers as they are: what the loop form means, on the device.

A map has a thread for each element. A nest with reductions has a simdgroup for each row: lanes stride over the loops of
a reduction and of a store, and combine with simd functions; a reduction that has none is done by every lane alone.
Source: Metal Shading Language Specification, sections 6.9 (SIMD-group functions) and 4.2 (address spaces).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from porter.core.dtypes import BOOL, FLOAT, DType, Kind
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, ReductionKind, find_reductions
from porter.loops.fusion import LoopNest, Shape, Store
from porter.metal.expression import literal
from porter.mpsgraph.operations import by_op

LANES = 32
HEADER = """\
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
"""
_INDICES = {
    Op.SUM: " + ", Op.PRODUCT: " * ", Op.QUOTIENT: " / ", Op.REMAINDER: " % ", Op.LESS: " < ", Op.EQUAL: " == ",
    Op.BOTH: " && ",
}  # fmt: skip
_FUNCTIONS = {Op.LEAST: "min", Op.GREATEST: "max", Op.DISTANCE: "abs"}
_FORMS = {
    "bitwiseAND": "{0} & {1}", "bitwiseOR": "{0} | {1}", "bitwiseXOR": "{0} ^ {1}", "bitwiseNOT": "~{0}",
    "bitwiseLeftShift": "{0} << {1}", "bitwiseRightShift": "{0} >> {1}",
    "floorModulo": "c10::metal::remainder({0}, {1})", "modulo": "c10::metal::fmod({0}, {1})",
}  # fmt: skip


@dataclass(frozen=True)
class LoopKernel:
    """A kernel: its text, the buffers that it binds in order, and how many threads it is launched with."""

    name: str
    source: str
    buffers: tuple[Buffer, ...]
    threads: int
    group: int | None  # None: as the launcher likes


def write_loop_kernel(nest: LoopNest, name: str, dtypes: Mapping[Buffer, DType]) -> LoopKernel:
    """A loop nest as a kernel; `dtypes` are the element types of the buffers that it reads."""
    written = [store.buffer for store in nest.stores]
    buffers = (*written, *nest.reads())
    types = {**dtypes, **{store.buffer: store.dtype for store in nest.stores}}
    names = {buffer: f"b{i}" for i, buffer in enumerate(buffers)}
    rows = prod(loop.size for loop in nest.rows)
    is_map = nest.shape is Shape.MAP
    arguments = [
        f"device {'' if buffer in written else 'const '}{types[buffer].metal}* {names[buffer]}" for buffer in buffers
    ]
    arguments.append("uint row [[thread_position_in_grid]]" if is_map else "uint row [[threadgroup_position_in_grid]]")
    arguments += [] if is_map else ["uint lane [[thread_index_in_simdgroup]]"]
    writer = _Writer(names)
    writer.write_body(nest)
    body = "\n".join(f"  {line}" for line in writer.lines)
    source = f"kernel void {name}(\n    " + ",\n    ".join(arguments) + f") {{\n{body}\n}}\n"
    return LoopKernel(name, source, buffers, rows if is_map else rows * LANES, None if is_map else LANES)


@dataclass
class _Writer:
    """Writes the body of one kernel. `bound` are expressions that have a variable where the text now stands."""

    buffers: Mapping[Buffer, str]
    lines: list[str] = field(default_factory=list)
    bound: dict[Expr, str] = field(default_factory=dict)
    count: int = 0

    def write_body(self, nest: LoopNest) -> None:
        self._split_index("int(row)", nest.rows)
        is_map = nest.shape is Shape.MAP
        for store in nest.stores:
            self._write_reductions(store.value)
            columns = tuple(loop for loop in store.loops if loop not in nest.rows)
            if is_map:
                self._write_store(store)
            elif columns:
                self._write_strided(columns, lambda store=store: self._write_store(store))  # type: ignore[misc]
            else:
                self._line("if (lane == 0) {")
                self._indented(lambda store=store: self._write_store(store))  # type: ignore[misc]

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _indented(self, write: Callable[[], None]) -> None:
        """Lines within braces, which this closes; what they bind is forgotten."""
        outer, known = self.lines, dict(self.bound)
        self.lines = []
        write()
        self.lines, self.bound = [*outer, *(f"  {line}" for line in self.lines), "}"], known

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _split_index(self, index: str, loops: Sequence[Loop]) -> None:
        """The variables of loops from their joined index."""
        inner = prod(loop.size for loop in loops)
        for i, loop in enumerate(loops):
            inner //= loop.size
            text = index if inner == 1 else f"{index} / {inner}"
            text = f"{text} % {loop.size}" if i else text
            self._line(f"const int {_loop(loop)} = {text};")

    def _write_strided(self, loops: tuple[Loop, ...], write: Callable[[], None]) -> None:
        """A loop whose turns the lanes share."""
        name = self._name("turn")
        self._line(f"for (int {name} = lane; {name} < {prod(loop.size for loop in loops)}; {name} += {LANES}) {{")

        def body() -> None:
            self._split_index(name, loops)
            write()

        self._indented(body)

    def _write_store(self, store: Store) -> None:
        self._bind_shared(store.value)
        value = self._text(store.value)
        value = value if store.value.dtype == store.dtype else f"static_cast<{store.dtype.metal}>({value})"
        self._line(f"{self.buffers[store.buffer]}[{self._text(store.place)}] = {value};")

    def _write_reductions(self, root: Expr) -> None:
        """Variables for all reductions, in every lane: they depend on the rows alone."""
        for each in find_reductions(root):
            if each not in self.bound:
                is_wide = each.dtype is not None and each.dtype.size > 4  # simd functions take 32 bits
                is_shared = each.reduction.kind in _SHARED and not is_wide
                self.bound[each] = self._write_shared(each) if is_shared else self._write_alone(each)

    def _write_shared(self, expr: Expr) -> str:
        """A reduction that lanes share and simd functions combine."""
        assert expr.dtype is not None
        kind, name = expr.reduction.kind, self._name(_prefix(expr.reduction))
        self._line(f"{expr.dtype.metal} {name} = {_start(kind, expr.dtype)};")

        def body() -> None:
            self._bind_shared(expr.args[0])
            self._line(_TURNS[kind].format(name, self._text(expr.args[0])))

        self._write_strided(expr.reduction.loops, body)
        joined = f"{_SHARED[kind]}({name})"
        keeps_nan = kind in (ReductionKind.MAX_NAN, ReductionKind.MIN_NAN) and expr.dtype.kind is Kind.FLOATING
        self._line(f"{name} = {f'simd_any(isnan({name})) ? NAN : {joined}' if keeps_nan else joined};")
        return name

    def _write_alone(self, expr: Expr) -> str:
        """A reduction that every lane does by itself, in the order of its loops."""
        assert expr.dtype is not None
        reduction, name = expr.reduction, self._name(_prefix(expr.reduction))
        is_last = reduction.kind is ReductionKind.LAST
        start = self._text(expr.args[2]) if is_last else _start(reduction.kind, expr.dtype)
        self._line(f"{expr.dtype.metal} {name} = {start};")
        extreme = ""
        if reduction.kind in _COMPARED:
            operand = expr.args[0].dtype or FLOAT
            extreme = self._name("extreme")
            self._line(f"{operand.metal} {extreme} = 0;")
            self._line(f"bool {extreme}_found = false;")
        for loop in reduction.loops:
            self._line(f"for (int {_loop(loop)} = 0; {_loop(loop)} < {loop.size}; {_loop(loop)}++) {{")
        self._indented(lambda: self._write_turn(expr, name, extreme))
        for _ in reduction.loops[1:]:
            self._line("}")
        return name

    def _write_turn(self, expr: Expr, name: str, extreme: str) -> None:
        kind = expr.reduction.kind
        texts = []
        for arg in expr.args:
            self._bind_shared(arg)
            texts.append(self._text(arg))
        if kind in _COMPARED:
            better = f"{texts[0]} {_COMPARED[kind]} {extreme}"
            is_first = f"!{extreme}_found || {better}"
            if expr.args[0].dtype is not None and expr.args[0].dtype.kind is Kind.FLOATING:
                is_first = f"!{extreme}_found || (!isnan({extreme}) && (isnan({texts[0]}) || {better}))"
            self._line(f"if ({is_first}) {{ {extreme} = {texts[0]}; {name} = {texts[1]}; {extreme}_found = true; }}")
        elif kind is ReductionKind.LAST:
            self._line(f"if ({texts[0]}) {{ {name} = {texts[1]}; }}")
        else:
            self._line(_TURNS[kind].format(name, texts[0]))

    def _bind_shared(self, root: Expr) -> None:
        """Variables for values that are used more than once."""
        uses = Counter(arg for each in self._within(root) for arg in _list_uses(each))
        for each in self._within(root):
            is_value = each.op in (Op.LOAD, Op.CALL, Op.CAST, Op.SELECT, Op.READ_INDEX)
            if is_value and uses[each] > 1 and each not in self.bound:
                text, name = self._text(each), self._name("v")
                self._line(f"const {each.dtype.metal if each.dtype else 'int'} {name} = {text};")
                self.bound[each] = name

    def _within(self, root: Expr) -> list[Expr]:
        found: dict[Expr, None] = {}
        stack = [(root, False)]
        while stack:
            each, is_done = stack.pop()
            if is_done:
                found[each] = None
            elif each not in found and not (each.op is Op.REDUCE and each not in self.bound):
                stack.append((each, True))
                stack += [(arg, False) for arg in reversed(() if each in self.bound else each.args)]
        return list(found)

    def _text(self, expr: Expr) -> str:
        if expr in self.bound:
            return self.bound[expr]
        if isinstance(expr.attribute, Loop):
            return _loop(expr.attribute)
        args = [self._text(arg) for arg in expr.args]
        if isinstance(expr.attribute, Buffer):
            return f"{self.buffers[expr.attribute]}[{args[0]}]"
        if expr.op in (Op.QUOTIENT, Op.REMAINDER) and (expr.args[0].bounds is None or expr.args[0].bounds[0] < 0):
            return _floor(expr.op, *args)
        if expr.op in _INDICES:
            return f"({_INDICES[expr.op].join(args)})"
        if expr.op in _FUNCTIONS:
            return f"{_FUNCTIONS[expr.op]}({', '.join(args)})"
        match expr.op:
            case Op.INTEGER:
                return str(expr.integer)
            case Op.NUMBER:
                return _number(expr)
            case Op.CALL:
                return f"({_form(str(expr.attribute)).format(*args)})"
            case Op.CAST | Op.INDEX_VALUE:
                return f"static_cast<{expr.dtype.metal if expr.dtype else 'int'}>({args[0]})"
            case Op.READ_INDEX:
                return f"static_cast<int>({args[0]})"
            case Op.SELECT:
                return f"({args[0]} ? {args[1]} : {args[2]})"
        raise AssertionError(expr.op)


_SHARED: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "simd_sum", ReductionKind.MAX_NAN: "simd_max", ReductionKind.MIN_NAN: "simd_min",
}  # fmt: skip
_TURNS: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "{0} += {1};",
    ReductionKind.PRODUCT: "{0} *= {1};",
    ReductionKind.MAX: "{0} = ::metal::max({0}, {1});",
    ReductionKind.MIN: "{0} = ::metal::min({0}, {1});",
    ReductionKind.MAX_NAN: "{0} = c10::metal::max({0}, {1});",
    ReductionKind.MIN_NAN: "{0} = c10::metal::min({0}, {1});",
    ReductionKind.ANY: "{0} = {0} || {1};",
    ReductionKind.ALL: "{0} = {0} && {1};",
}
_COMPARED = {ReductionKind.ARG_MAX: ">", ReductionKind.ARG_MIN: "<"}
_LEAST = (ReductionKind.MAX, ReductionKind.MAX_NAN)
_GREATEST = (ReductionKind.MIN, ReductionKind.MIN_NAN)


def _start(kind: ReductionKind, dtype: DType) -> str:
    """What a reduction starts from. A maximum without NaN is NaN only of NaN alone."""
    if kind in (ReductionKind.MAX, ReductionKind.MIN) and dtype.kind is Kind.FLOATING:
        return "NAN"
    if kind in (*_LEAST, *_GREATEST):
        limits = f"::metal::numeric_limits<{dtype.metal}>"
        if dtype.kind is Kind.FLOATING:
            return f"{'-' if kind in _LEAST else ''}INFINITY"
        return f"{limits}::lowest()" if kind in _LEAST else f"{limits}::max()"
    return "1" if kind in (ReductionKind.PRODUCT, ReductionKind.ALL) else "0"


def _prefix(reduction: Reduction) -> str:
    return reduction.kind.name.split("_")[0].lower()


def _loop(loop: Loop) -> str:
    return loop.name.replace(".", "_").replace("'", "b")


def _number(expr: Expr) -> str:
    assert expr.dtype is not None and isinstance(expr.attribute, (bool, int, float))
    text = literal(expr.attribute, expr.dtype.kind)
    return text if expr.dtype in (FLOAT, BOOL) and "." in text else f"{expr.dtype.metal}({text})"


def _floor(op: Op, index: str, by: str) -> str:
    """A division, or its remainder, of an index that may be negative: C++'s own goes toward zero."""
    remainder = f"(({index} % {by} + {by}) % {by})"
    return remainder if op is Op.REMAINDER else f"(({index} - {remainder}) / {by})"


def _list_uses(expr: Expr) -> list[Expr]:
    """The operands of an expression, as often as its form has them."""
    if expr.op is not Op.CALL:
        return list(expr.args)
    form = _form(str(expr.attribute))
    return [arg for i, arg in enumerate(expr.args) for _ in range(form.count(f"{{{i}}}"))]


def _form(operation: str) -> str:
    """The MSL form of an operation. Raises PTR345 if there is none."""
    row = by_op().get(operation)
    found = row.msl if row and row.msl else _FORMS.get(operation)
    if found is None:
        raise PorterError("PTR345", f"the operation `{operation}` has no loop form", hint="See docs/errors/PTR345.md.")
    return found
