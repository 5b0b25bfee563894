"""Names the numbers and the memory of programs, and prints their kernels as pseudocode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from porter.core.dtypes import Kind
from porter.languages.identifiers import find_words
from porter.loops import host_values as host
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, walk
from porter.loops.fusion import LoopNest, Store
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Table, Temporary

_FROM_BACK = {-1: "width", -2: "height", -3: "depth"}
_WORDS = {
    "+": "plus", "-": "minus", "*": "times", "quotient": "by",
    "/": "over", "min": "or_less", "max": "or_more",
}  # fmt: skip
_INFIX = {
    "addition": "+", "subtraction": "-", "multiplication": "*", "division": "/", "equal": "==", "notEqual": "!=",
    "lessThan": "<", "lessThanOrEqualTo": "<=", "greaterThan": ">", "greaterThanOrEqualTo": ">=", "logicalAND": "&&",
    "logicalOR": "||",
}  # fmt: skip
_INDEX_INFIX = {
    Op.SUM: " + ", Op.PRODUCT: " * ", Op.QUOTIENT: " // ", Op.REMAINDER: " % ", Op.LESS: " < ", Op.EQUAL: " == ",
    Op.BOTH: " && ",
}  # fmt: skip
_FUNCTIONS = {Op.LEAST: "min", Op.GREATEST: "max", Op.DISTANCE: "abs", Op.READ_INDEX: "index"}
_SIMPLE = (Op.INTEGER, Op.LOOP, Op.NUMBER)


def name_number(value: host.HostValue, used: Collection[str]) -> str:
    """A C identifier for a value, unlike those in use: without the tensor that it is of, if that tells it from them."""
    tensors = {
        part.tensor
        for part in host.list_operands(value)
        if isinstance(part, host.Size | host.SizeProduct | host.SizesOver)
    }
    whole = _spell_identifier(value, tensors)
    short = whole if len(tensors) > 1 else _spell_identifier(value, ())
    numbered = (f"{whole}_{i}" for i in range(2, len(used) + 3))
    return next(name for name in (short, whole, *numbered) if name not in used)


def _spell_identifier(value: host.HostValue, tensors: Collection[host.HostTensor]) -> str:
    name = "_".join(find_words(_name(value, tensors))).strip("_")
    return f"number_{name}" if name[:1].isdigit() else name


def name_tensor(name: str) -> str:
    """A tensor as kernels call it: `input` for `self`, `output` for the first result."""
    name = {"self": "input", "result0": "output"}.get(name, name)
    return f"output{name.removeprefix('result')}" if name.startswith("result") else name


def _name(value: host.HostValue, tensors: Collection[host.HostTensor]) -> str:
    """The words of a value; only `tensors` are named before their sizes."""

    def of(tensor: host.HostTensor) -> str:
        return f"{name_tensor(host.describe(tensor))}_" if tensor in tensors else ""

    match value:
        case host.Constant(number):
            return f"minus_{-number}" if number < 0 else str(number)
        case host.Scalar(name):
            return name
        case host.Element(name, index):
            return f"{name}_{index}" if index >= 0 else f"{name}_last" if index == -1 else f"{name}_back_{-index}"
        case host.Length(name):
            return f"{name}_count"
        case host.Rank(tensor):
            return f"{name_tensor(host.describe(tensor))}_rank"
        case host.Given(tensor):
            return f"has_{name_tensor(tensor)}"
        case host.WrappedDim(dim, _):
            return _name(dim, tensors)
        case host.EndDim(dims, _, is_last):
            return f"{'last' if is_last else 'first'}_{dims}"
        case host.Size(tensor, host.Constant(number)):
            at = _FROM_BACK.get(int(number), f"size_{number}" if number >= 0 else f"size_back_{-number}")
            return f"{of(tensor)}{at}"
        case host.Size(tensor, dim):
            return f"{of(tensor)}{_name(dim, tensors)}_size"
        case host.SizeProduct(tensor, None, None):
            return f"{of(tensor)}numel"
        # of contiguous tensors, the stride of the dimensions before it
        case host.SizeProduct(tensor, host.WrappedDim() | host.EndDim(_, _, False), None):
            return f"{of(tensor)}outer_stride"
        case host.SizeProduct(tensor, begin, end):
            return f"{of(tensor)}{'outer' if begin is None else 'inner' if end is None else 'middle'}_size"
        case host.SizesOver(tensor, _, others):
            return f"{of(tensor)}{'kept' if others else 'reduced'}_size"
        case host.Apply("/", (left, host.Apply("max", (host.Apply("-", (whole, _)), host.Constant(0))))) if (
            left == whole
        ):
            return "bessel_correction"
        case host.Apply("min" | "max" as function, (host.Scalar(), host.Scalar())):
            return "lower" if function == "min" else "upper"
        case host.Apply("/", (host.Apply("-", (host.Scalar(), host.Scalar())), _)):
            return "step"
        case host.Apply("-", (host.Constant(1), right)):
            return f"one_minus_{_name(right, tensors)}"
        case host.Apply("/", (host.Constant(1), right)):
            return f"inverse_{_name(right, tensors)}"
        case host.Apply(function, (left, right)) if function in _WORDS:
            return f"{_name(left, tensors)}_{_WORDS[function]}_{_name(right, tensors)}"
    return host.describe(value)


def nest_lines(nest: LoopNest, names: Mapping[Buffer, str]) -> Iterator[str]:
    """Lines such as `row-wise, for i0 < 12:`, then those of its body; `names` are those of its buffers."""
    yield f"{nest.shape.value}{', for ' if nest.rows else ''}{_loops(nest.rows)}:"
    printer = _Printer(nest, names)
    for store in nest.stores:
        yield from (f"  {line}" for line in printer.store_lines(store))


def name_buffers(nests: Sequence[LoopNest], feeds: Mapping[Buffer, str]) -> dict[Buffer, str]:
    """The names of feeds, and of results and temporaries: `out0`, `tmp0`."""
    names = dict(feeds)
    for store in (store for nest in nests for store in nest.stores):
        prefix = "tmp" if store.buffer.is_temporary else "out"
        names[store.buffer] = f"{prefix}{sum(name.startswith(prefix) for name in names.values())}"
    read = (buffer for nest in nests for buffer in nest.reads() if buffer not in names)
    return names | {buffer: f"constant{i}" for i, buffer in enumerate(dict.fromkeys(read))}


def _loops(loops: Sequence[Loop]) -> str:
    return ", ".join(f"{_loop(each)} < {each.number.name if each.number else each.size}" for each in loops)


def _loop(loop: Loop) -> str:
    return loop.name.replace(".", "_")


class _Printer:
    """Prints the stores of one loop nest; a reduction, and a value used twice, is bound once."""

    def __init__(self, nest: LoopNest, names: Mapping[Buffer, str]) -> None:
        self._nest, self._buffers = nest, names
        self._bound: dict[Expr, str] = {}

    def store_lines(self, store: Store) -> Iterator[str]:
        yield from self._reductions(store.value, "")
        columns = [each for each in store.loops if each not in self._nest.rows]
        indent = ""
        if columns:
            yield f"for {_loops(columns)}:"
            indent = "  "
        yield from (f"{indent}{line}" for line in self._shared(store.value))
        given = f"if {store.guard.name}: " if store.guard else ""
        yield f"{indent}{given}{self._buffers[store.buffer]}[{self._text(store.place)}] = {self._text(store.value)}"

    def _reductions(self, root: Expr, indent: str) -> Iterator[str]:
        for each in walk(root):
            if each.op is Op.REDUCE and each not in self._bound:
                reduction = each.reduction
                name = (
                    f"{_short(reduction)}{sum(bound.startswith(_short(reduction)) for bound in self._bound.values())}"
                )
                operands = ", ".join(self._text(arg) for arg in each.args)
                yield f"{indent}{name} = {reduction.kind.value} for {_loops(reduction.loops)} of {operands}"
                self._bound[each] = name

    def _shared(self, root: Expr) -> Iterator[str]:
        """Values that an element uses more than once."""
        # What is evaluated for an element: nothing in the bodies of reductions, which have a variable by now
        evaluated = list(walk(root, enters=lambda value: value.args if value not in self._bound else ()))
        uses = Counter(arg for value in evaluated for arg in value.args)
        for value in evaluated:
            is_value = value.dtype is not None and value.op not in (*_SIMPLE, Op.REDUCE, Op.LESS, Op.EQUAL, Op.BOTH)
            if is_value and uses[value] > 1 and value not in self._bound:
                text = self._text(value)
                self._bound[value] = f"t{sum(bound.startswith('t') for bound in self._bound.values())}"
                yield f"{self._bound[value]} = {text}"

    def _text(self, expr: Expr) -> str:
        if expr in self._bound:
            return self._bound[expr]
        args = [self._text(arg) for arg in expr.args]
        if isinstance(expr.attribute, Loop):
            return _loop(expr.attribute)
        if isinstance(expr.attribute, Buffer):
            return f"{self._buffers[expr.attribute]}[{args[0]}]"
        if expr.op in _INDEX_INFIX:
            return self._infix(expr, args, _INDEX_INFIX[expr.op]).replace(" + -", " - ")
        if expr.op in _FUNCTIONS:
            return f"{_FUNCTIONS[expr.op]}({', '.join(args)})"
        match expr.op:
            case Op.INTEGER | Op.NUMBER:
                if isinstance(expr.attribute, host.Named):
                    return expr.attribute.name
                if expr.dtype is not None and expr.dtype.kind is Kind.BOOL:
                    return str(expr.attribute).lower()
                return f"{expr.attribute:g}" if isinstance(expr.attribute, float) else str(expr.attribute)
            case Op.CALL if str(expr.attribute) in _INFIX:
                return self._infix(expr, args, f" {_INFIX[str(expr.attribute)]} ")
            case Op.CALL:
                return f"{expr.attribute}({', '.join(args)})"
            case Op.CAST | Op.INDEX_VALUE:
                return f"{expr.dtype}({args[0]})"
            case Op.SELECT:
                return f"{self._operand(expr.args[0])} ? {self._operand(expr.args[1])} : {self._operand(expr.args[2])}"
        raise AssertionError(expr.op)

    def _infix(self, expr: Expr, args: Sequence[str], operator: str) -> str:
        if expr.op is Op.SUM:
            return operator.join(args)
        return operator.join(self._operand(arg) for arg in expr.args)

    def _operand(self, expr: Expr) -> str:
        """An operand, in parentheses where an operator within would not bind first."""
        text = self._text(expr)
        is_infix = expr.op in _INDEX_INFIX or expr.op is Op.SELECT or str(expr.attribute) in _INFIX
        return f"({text})" if is_infix and expr not in self._bound else text


def _short(reduction: Reduction) -> str:
    """The start of a reduction's name."""
    return reduction.kind.name.split("_")[0].lower()


def program_lines(program: SymbolicProgram) -> Iterator[str]:
    """Lines such as `input_size_0 = self.size(0)`, then those of the kernels, each with its number of rows."""
    if program.when:
        yield f"when {', '.join(map(str, program.when))}"
    yield from (f"{number.name} = {host.describe(number.value)}" for number in program.numbers)
    names = name_memory(program)
    yield from (
        f"{names[buffer]}: {host.describe(role.size)} of {role.dtype.metal}"
        for buffer, role in program.roles.items()
        if isinstance(role, Temporary)
    )
    for each in program.nests:
        yield from nest_lines(each.nest, names)


def name_memory(program: SymbolicProgram) -> dict[Buffer, str]:
    """The names of buffers: those of arguments, `output`, `temporary0`, `table0`."""
    names: dict[Buffer, str] = {}
    counts = {Temporary: 0, Table: 0}
    has_one = sum(isinstance(role, ResultBuffer) for role in program.roles.values()) == 1
    for buffer, role in program.roles.items():
        match role:
            case ArgumentBuffer(name):
                names[buffer] = name_tensor(name)
            case ResultBuffer(index):
                names[buffer] = "output" if has_one else f"output{index}"
            case Temporary() | Table():
                names[buffer] = f"{type(role).__name__.lower()}{counts[type(role)]}"
                counts[type(role)] += 1
    return names
