"""From the recorded calls of one case to its program: every number that varies becomes an expression, or blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from porter.core.dtypes import DType
from porter.core.errors import PorterError, explained
from porter.loops import host_values as host
from porter.loops.expressions import Buffer, Expr, Loop, Op, intern
from porter.loops.fit import MIN_CALLS, Fit, is_close, list_atoms, list_fixed_sizes
from porter.loops.fusion import LoopNest
from porter.loops.numbers import Leaf, Occurrence, Use, replace_numbers
from porter.loops.printing import name_number, program_lines
from porter.loops.program import Role, SymbolicNest, SymbolicProgram, Temporary
from porter.mpsgraph.conditions import Answered, Compared
from porter.mpsgraph.graph import Value

Column = tuple[host.Number, ...]
_LEARNED = 48  # calls that numbers are found from
_ROUNDS = 3  # of learning from calls that the numbers found before do not foretell
_MISSED = 16  # of these
_SHOWN = 6  # values of a number that has no expression
_MOST = 4  # expressions of a size
_TRIED = 16  # programs
_ASKED = 8  # own calls that have what may equal a size, which all are compared in then


@dataclass(frozen=True)
class CallProgram:
    """What one call computes; `structure` is all of it but its numbers. `facts` are for conditions."""

    arguments: host.Arguments
    facts: Mapping[str, Value]
    key: str
    dtype: DType  # of `key`, the first tensor argument
    nests: tuple[LoopNest, ...]
    roles: Mapping[Buffer, Role]
    structure: str
    numbers: tuple[Occurrence, ...]


Values = Sequence[host.HostValue | None]  # of every number, in the order of visits


def build_program(name: str, calls: Sequence[CallProgram]) -> tuple[SymbolicProgram, Values]:
    """The program of calls that share a structure, and what its numbers are.

    Raises PTR363 for an unknown number, PTR364 for too few calls.
    """
    calls = list({repr((call.arguments, call.dtype)): call for call in calls}.values())
    if len(calls) < MIN_CALLS:
        count = f"{len(calls)} call{'s' if len(calls) > 1 else ''}"
        shapes = ", ".join(f"{each} {tensor.shape}" for each, tensor in calls[0].arguments.tensors.items())
        what = f"{count} of a case of {name} recorded, of {MIN_CALLS} that its numbers take: {shapes}"
        raise explained("PTR364", what)
    learned = list(calls[:: -(-len(calls) // _LEARNED)])  # of all samples: those of one may share a size
    for _ in range(_ROUNDS):
        fit = Fit([call.arguments for call in learned])
        values, fixed = _find_values(learned, fit)
        missed = [call for call in calls if not _foretells(values, call)][:_MISSED]
        if not missed:
            break
        learned = [*missed, *(call for call in learned if call not in missed)][:_LEARNED]
    return _build(name, learned, values, fixed, fit), values


def _foretells(values: Values, call: CallProgram) -> bool:
    """Whether the expressions of numbers give those of a call."""
    pairs = zip(values, call.numbers, strict=True)
    return all(is_close(host.evaluate(value, call.arguments), each.value) for value, each in pairs if value is not None)


def transfer_program(program: SymbolicProgram, values: Values, calls: Sequence[CallProgram]) -> SymbolicProgram | None:
    """The program of calls of another element type, whose numbers are those of a program; None if they are not."""
    columns = _columns(calls)
    if len(columns) != len(values):
        return None
    uses = [each.use for each in calls[0].numbers]
    own = [_transfer_value(*each, calls) for each in zip(values, columns, uses, strict=True)]
    return None if None in own else _build(program.name, calls, own, program.when, None)


def _transfer_value(
    value: host.HostValue | None, column: Column, use: Use, calls: Sequence[CallProgram]
) -> host.HostValue | None:
    if isinstance(value, host.Constant):  # a least value depends on the type
        return host.Constant(column[0]) if len(set(column)) == 1 else None
    if value is None:
        return None
    found = [host.evaluate(value, call.arguments) for call in calls]
    if use is not Use.INDEX:  # host code may have fed it from memory of this type
        found = [
            each if each is None or is_close(each, number) else host.round_number(each, call.dtype)
            for each, number, call in zip(found, column, calls, strict=True)
        ]
    return value if all(map(is_close, found, column)) else None


def _build(
    name: str, calls: Sequence[CallProgram], values: Values, fixed: Sequence[Answered], fit: Fit | None
) -> SymbolicProgram:
    """The nests of the first call with the values for numbers. Raises PTR363."""
    names = _Names()
    leaves = iter(zip(values, _columns(calls), strict=True))

    def visit(occurrence: Occurrence) -> Leaf:
        value, column = next(leaves)
        return names.unknown(column, occurrence) if value is None else names.leaf(value, occurrence)

    first = calls[0]
    nests = replace_numbers(first.nests, visit)
    sizes = _Sizes([call.arguments for call in calls], fit)
    program = SymbolicProgram(
        name,
        tuple(fixed),
        first.key,
        (first.dtype,),
        tuple(SymbolicNest(nest, sizes.of(nest.rows)) for nest in nests),
        _size_temporaries(first.roles, nests, sizes),
        tuple(names.numbers.values()),
        first.arguments,
        tuple(call.arguments for call in calls),
    )
    if names.unknowns:
        raise _report_unknown(program, names.unknowns)
    return program


def _columns(calls: Sequence[CallProgram]) -> list[Column]:
    """The values of every number in the calls."""
    return [tuple(each.value for each in row) for row in zip(*(call.numbers for call in calls), strict=True)]


def _find_values(calls: Sequence[CallProgram], fit: Fit) -> tuple[list[host.HostValue | None], list[Answered]]:
    """The expression of every number; and conditions for the sizes that no call varies, if a number may be one."""
    known: dict[tuple[Column, bool], host.HostValue | None] = {}
    columns = [(column, each.use is Use.VALUE) for column, each in zip(_columns(calls), calls[0].numbers, strict=True)]
    for column, is_value in columns:
        if (column, is_value) not in known:
            scalar = fit.find_scalar(column, calls[0].dtype) if is_value and not fit.find_constant(column) else None
            known[column, is_value] = scalar or fit.find(column)
    constants = {
        float(each.value) for each in known.values() if isinstance(each, host.Constant) and abs(each.value) > 1
    }
    counts = dict(_list_counts([call.arguments for call in calls]))
    values = [value and host.substitute(value, counts) for value in (known[each] for each in columns)]
    return values, list(_fixed_conditions(calls, constants))


def _list_counts(calls: Sequence[host.Arguments]) -> Iterator[tuple[host.HostValue, host.HostValue]]:
    """The sizes of results that always have one dimension, as the number of elements: callers may give more."""
    for name in filter(host.is_result, calls[0].tensors):
        if all(name in call.tensors and len(call.tensors[name].shape) == 1 for call in calls):
            yield from ((host.Size(name, host.Constant(dim)), host.SizeProduct(name)) for dim in (0, -1))


def _fixed_conditions(calls: Sequence[CallProgram], constants: set[float]) -> list[Answered]:
    first = calls[0].arguments
    found = []
    for size in list_fixed_sizes([call.arguments for call in calls]):
        value = host.evaluate(size, first)
        is_front = not isinstance(size, host.Size) or (isinstance(size.dim, host.Constant) and size.dim.value >= 0)
        if (
            value is not None
            and float(value) in constants
            and not host.is_result(getattr(size, "tensor", ""))
            and is_front
        ):
            found.append(Answered(Compared(host.describe(size), "==", value), True))
    return found


@dataclass
class _Names:
    """The numbers of a program, each named when it is first met, with its value in the first call.

    A scalar that is computed with and one that counts are two: one call's may be an integer, another's not.
    """

    numbers: dict[tuple[host.HostValue, bool], host.Named] = field(default_factory=dict)
    unknowns: dict[Column, str] = field(default_factory=dict)

    def leaf(self, value: host.HostValue, occurrence: Occurrence) -> Leaf:
        if isinstance(value, host.Constant):
            return occurrence.value
        if occurrence.use is Use.INDEX:
            return self._index(value, int(occurrence.value))
        return self._named(value, occurrence.value)

    def unknown(self, column: Column, occurrence: Occurrence) -> host.Named:
        name = self.unknowns.setdefault(column, f"?{len(self.unknowns)}")
        return host.Named(name, host.Constant(occurrence.value), occurrence.value)

    def _named(self, value: host.HostValue, example: host.Number) -> host.Named:
        example = int(example) if _counts(value) else example
        key = value, isinstance(example, int)
        if key not in self.numbers:
            used = [each.name for each in self.numbers.values()]
            self.numbers[key] = host.Named(name_number(value, used), value, example)
        return self.numbers[key]

    def _index(self, value: host.HostValue, example: int) -> Expr:
        """An index of named numbers: what adds a constant or multiplies by one is done by the kernel."""
        match value:
            case host.Apply("+" | "-" as function, (left, host.Constant(int(offset)))):
                offset = offset if function == "+" else -offset
                return intern(Op.SUM, (self._index(left, example - offset), _integer(offset)))
            case host.Apply("*", (host.Constant(int(factor)), right)):
                return intern(Op.PRODUCT, (self._index(right, example // factor), _integer(factor)))
        return _integer(self._named(value, example))


def _counts(value: host.HostValue) -> bool:
    """Whether a value is a count of elements or dimensions, in every call."""
    match value:
        case host.Constant(number):
            return isinstance(number, int)
        case host.Scalar() | host.Element():
            return False
        case host.Apply(function, arguments):
            return function != "/" and all(map(_counts, arguments))
    return True


def _integer(value: int | host.Named) -> Expr:
    return intern(Op.INTEGER, (), None, value)


class _Sizes:
    """How many turns loops have; as short expressions, if there are calls to find these from."""

    def __init__(self, calls: Sequence[host.Arguments], fit: Fit | None) -> None:
        self._calls, self._fit = calls, fit
        self._counts = dict(_list_counts(calls))

    def of(self, loops: Sequence[Loop]) -> host.HostValue:
        sizes = [loop.number.value if loop.number else host.Constant(loop.size) for loop in loops]
        product: host.HostValue = host.Constant(1)
        for size in sizes:
            product = size if product == host.Constant(1) else host.Apply("*", (product, size))
        known = [each for call in self._calls if (each := host.evaluate(product, call)) is not None]
        short = self._fit.find(known) if self._fit and len(known) == len(self._calls) else None
        return host.substitute(short, self._counts) if short else product


def _size_temporaries(roles: Mapping[Buffer, Role], nests: Sequence[LoopNest], sizes: _Sizes) -> dict[Buffer, Role]:
    made = dict(roles)
    for store in (store for nest in nests for store in nest.stores):
        role = made[store.buffer]
        if isinstance(role, Temporary):
            made[store.buffer] = replace(role, size=sizes.of(store.loops))
    return made


def _report_unknown(program: SymbolicProgram, unknowns: Mapping[Column, str]) -> PorterError:
    """The first number without an expression, with its place."""
    column, name = next(iter(unknowns.items()))
    lines = [line.strip() for line in program_lines(program) if name in line]
    shown = ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in column[:_SHOWN])
    more = f" (and {len(unknowns) - 1} others)" if len(unknowns) > 1 else ""
    at = f" in `{lines[0]}`" if lines else ""
    what = f"{name}{at} of {program.name} is {shown} in its calls, which no expression of the arguments foretells{more}"
    return explained("PTR363", what)


def list_alternatives(
    program: SymbolicProgram, values: Values, calls: Sequence[CallProgram], others: Sequence[host.Arguments]
) -> Iterator[tuple[SymbolicProgram, Values]]:
    """The program with every choice of sizes that can be evaluated in other calls, and are not the same there."""
    parts = [part for each in values if each is not None for part in host.list_operands(each)]
    sizes = list[host.HostValue](
        dict.fromkeys(part for part in parts if isinstance(part, (host.Size, host.SizeProduct)))
    )
    own = [call.arguments for call in calls]
    atoms = [each for each in list_atoms(own[:_ASKED]) if isinstance(each, (host.Size, host.SizeProduct))]
    choices = [list(islice(_list_equal(each, atoms, own, others), _MOST)) for each in sizes]
    for chosen in islice(product(*choices), _TRIED):
        changes = dict(zip(sizes, chosen, strict=True))
        made = [host.substitute(each, changes) if each is not None else None for each in values]
        if made != list(values):
            yield _build(program.name, calls, made, program.when, None), made


def _list_equal(
    size: host.HostValue,
    atoms: Sequence[host.HostValue],
    own: Sequence[host.Arguments],
    others: Sequence[host.Arguments],
) -> Iterator[host.HostValue]:
    """What equals a size in its own calls: one of those that are equal in other calls too, itself first."""
    here = [host.evaluate(size, call) for call in own]
    known: set[tuple[host.Number | None, ...]] = set()
    for atom in (size, *(each for each in atoms if each != size)):
        if all(host.evaluate(atom, call) == value for call, value in zip(own, here, strict=True)):
            there = tuple(host.evaluate(atom, call) for call in others)
            if None not in there and there not in known:
                known.add(there)
                yield atom
