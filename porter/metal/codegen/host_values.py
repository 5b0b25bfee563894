"""Values of host code as C++, by the names that the tensors and arguments of a call have there.

Source: c10/util/accumulate.h (products of sizes), c10/core/WrapDimMinimal.h, ATen/native/NonEmptyUtils.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from porter.core.errors import PorterError, explained
from porter.loops.host_values import (
    Binary,
    Constant,
    Element,
    EndDim,
    Given,
    HostValue,
    Length,
    Named,
    Number,
    Operator,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    WrappedDim,
    describe,
    list_operands,
    list_scalars,
)
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.expression import parenthesize

ACCUMULATE = "c10/util/accumulate.h"
NON_EMPTY = "ATen/native/NonEmptyUtils.h"
WRAP_DIM = "ATen/WrapDimUtils.h"
_FUNCTIONS = {Operator.LEAST: "std::min", Operator.GREATEST: "std::max"}


@dataclass(frozen=True)
class Names:
    """How host code names what the schema names: variables of arguments and results, and the types of the schema."""

    variables: Mapping[str, str]
    types: Mapping[str, str]
    optional: frozenset[str] = frozenset()  # the variables that are optional tensors
    references: frozenset[str] = frozenset()  # the variables that are optional references to scalars
    given: frozenset[str] = frozenset()  # the variables of results that callers give and nothing has checked
    code: KeptCode = field(default_factory=KeptCode)  # of the function, around the launch
    shown: Mapping[str, str] = field(default_factory=dict)  # what messages call variables instead
    common: frozenset[str] = frozenset()  # the tensors that host code gives one type
    locals: Mapping[str, str] | None = None  # the variables that values are written as, by these

    def variable(self, name: str) -> str:
        """The variable of an argument, of a result (`result0`), or an element (`tensors[0]`). Raises PTR371."""
        base, bracket, rest = name.partition("[")
        if base not in self.variables:
            raise explained("PTR371", f"the host code has no variable of its own for `{base}`")
        return f"{self.variables[base]}{bracket}{rest}"

    def member(self, name: str) -> str:
        """The variable of a tensor, and the operator before its members."""
        variable = self.variable(name)
        return f"{variable}->" if variable in self.optional else f"{variable}."

    def show(self, name: str) -> str:
        """What messages call the variable of a tensor."""
        return self.shown.get(variable := self.variable(name), variable)

    def use(self, text: str) -> str:
        """C++ for a value: the variable that holds it, if there is one."""
        return self.locals.get(text, text) if self.locals else text

    def is_free(self, name: str) -> bool:
        """Whether a new variable may have a name."""
        return self.code.is_free(name) and name not in self.variables.values()

    def find_free(self, name: str) -> str:
        """A name for a new variable."""
        return name if self.is_free(name) else self.find_free(f"{name}_")


def list_results(variables: Mapping[str, str]) -> dict[int, str]:
    """The variables of results by their places, among those of all that a schema names."""
    places = ((name.removeprefix("result"), variable) for name, variable in variables.items())
    return {int(place): variable for place, variable in places if place.isdecimal()}


def write_value(value: HostValue, names: Names) -> str:
    """The value as C++, with variables for what they hold. Raises PTR371."""
    return names.use(_write(value, names))


def _write(value: HostValue, names: Names) -> str:
    match value:
        case Constant(number):
            return repr(number) if not isinstance(number, bool) else str(number).lower()
        case Scalar(name, default):
            # A scalar argument, or the variable that has its value, and where it is left out its default.
            variables = names.code.find_scalars(_spell_scalar(name, None, names)) if names.locals is not None else ()
            alike = (variable for variable, instead in variables if default in (None, instead))
            return next(alike, None) or _spell_scalar(name, default, names)
        case Element(name, index) if index >= 0:
            return f"{names.variable(name)}[{index}]"
        case Element(name, index):
            variable = names.variable(name)
            return f"{variable}[{names.use(f'{variable}.size()')} - {-index}]"
        case Length(name):
            size = f"{names.variable(name)}.size()"
            return f"static_cast<int64_t>({names.use(size)})"
        case Rank(tensor):
            return f"{names.member(tensor)}dim()"
        case WrappedDim(dim, tensor):
            return f"maybe_wrap_dim({write_value(dim, names)}, {write_value(Rank(tensor), names)})"
        case Size(tensor, WrappedDim(dim, _)):
            return _write_size(tensor, write_value(dim, names), names)
        case Size(tensor, dim):
            return f"{names.member(tensor)}size({write_value(dim, names)})"
        case SizeProduct():
            return _write_product(value, names)
        case SizesOver():
            return _write_sizes_over(value, names)
        case Given(tensor):
            return write_given(tensor, names)
        case EndDim():
            raise _unknown(value)
        case Binary(Operator.LEAST | Operator.GREATEST as operator, left, right):
            type_ = "double" if _is_floating(value, names) else "int64_t"
            return f"{_FUNCTIONS[operator]}<{type_}>({write_value(left, names)}, {write_value(right, names)})"
        case Binary(Operator.DIVIDE, left, right):
            return f"static_cast<double>({write_value(left, names)}) / {parenthesize(write_value(right, names))}"
        case Binary(operator, left, right):
            sign = "/" if operator is Operator.FLOOR_DIVIDE else operator.value
            return f"{parenthesize(write_value(left, names))} {sign} {parenthesize(write_value(right, names))}"


def write_given(tensor: str, names: Names) -> str:
    """Whether a tensor is given that may be left out: an optional one may also have a tensor that is undefined."""
    variable = names.variable(tensor)
    has_value = names.use(f"{variable}.has_value()")
    return f"{has_value} && {variable}->defined()" if variable in names.optional else f"{variable}.defined()"


def _spell_scalar(name: str, default: Number | None, names: Names) -> str:
    """A scalar argument; one that may be left out is an optional one, or a reference to one."""
    variable, type_ = names.variable(name), names.types.get(name, "")
    if not type_.startswith("Scalar"):
        given = f"{variable}.value()" if type_.endswith("?") else variable
        return given if default is None else f"{variable}.value_or({default!r})"
    if variable in names.references:
        given = f"{variable}.get().to<double>()"
        return given if default is None else f"({variable}.has_value() ? {given} : {default!r})"
    if type_ == "Scalar?":
        return f"{variable}->to<double>()" if default is None else f"{variable}.value_or({default!r}).to<double>()"
    return f"{variable}.to<double>()"


def _is_floating(value: HostValue, names: Names) -> bool:
    """Whether a value is computed in floating-point numbers."""
    match value:
        case Scalar(name, _):
            return names.types.get(name, "").rstrip("?") in ("Scalar", "float")
        case Constant(number):
            return isinstance(number, float)
        case Binary(operator, left, right):
            return operator is Operator.DIVIDE or _is_floating(left, names) or _is_floating(right, names)
    return False


def list_headers(value: HostValue) -> frozenset[str]:
    """The headers that declare what the C++ of a value calls."""
    match value:
        case SizeProduct(_, None, None):
            return frozenset()
        case SizeProduct(_, begin, end):
            inner = frozenset[str]().union(*(list_headers(each) for each in (begin, end) if each is not None))
            return inner | {ACCUMULATE}
        case WrappedDim():
            return frozenset((WRAP_DIM,))
        case Size(_, WrappedDim()) | SizesOver():
            return frozenset((NON_EMPTY,))
        case Size(_, dim):
            return list_headers(dim)
        case Binary(_, left, right):
            return list_headers(left) | list_headers(right)
    return frozenset()


def _write_product(value: SizeProduct, names: Names) -> str:
    tensor = names.member(value.tensor)
    sizes = names.use(f"{tensor}sizes()")
    if value.begin is None and value.end is None:
        return f"{tensor}numel()"
    begin = _write_bound(value.begin, tensor, names)
    end = _write_bound(value.end, tensor, names)
    if value.end is None:
        return f"c10::numelements_from_dim({begin}, {sizes})"
    if value.begin is None:
        return f"c10::numelements_to_dim({end}, {sizes})"
    return f"c10::numelements_between_dim({begin}, {end}, {sizes})"


def _write_sizes_over(value: SizesOver, names: Names) -> str:
    tensor, dims, type_ = names.member(value.tensor), names.variable(value.dims), names.types.get(value.dims, "")
    if type_ == "int":
        size = _write_size(value.tensor, dims, names)
        return f"{names.use(f'{tensor}numel()')} / {size}" if value.others else size
    if not type_.startswith("int[") or type_.endswith("?"):
        raise _unknown(value)
    numel = names.use(f"{tensor}numel()")
    product = "[&](int64_t size, int64_t dim) { return size * " + tensor + "size(dim); }"
    over = f"std::accumulate({dims}.begin(), {dims}.end(), int64_t(1), {product})"
    if value.others:
        return f"{dims}.empty() ? 1 : {numel} / {over}"
    return f"{dims}.empty() ? {numel} : {over}"


def _write_size(tensor: str, dim: str, names: Names) -> str:
    """The size of a dimension that an argument names: 1 of a tensor without dimensions, which has one to name."""
    pointer = "*" if names.member(tensor).endswith("->") else ""
    return names.use(f"ensure_nonempty_size({pointer}{names.variable(tensor)}, {dim})")


def _unknown(value: HostValue) -> PorterError:
    return explained("PTR372", f"no C++ is known for `{describe(value)}`")


def _write_bound(bound: HostValue | None, tensor: str, names: Names) -> str:
    if isinstance(bound, Constant) and bound.value < 0:
        return f"{names.use(f'{tensor}dim()')} - {-bound.value}"
    return "" if bound is None else write_value(bound, names)


_INDICES = ("int", "SymInt")


def write_fits(tensors: Sequence[str], numbers: Sequence[str], largest: str = "") -> str:
    """The condition as C++: what is added to a number still fits where tensors have less than half of the range."""
    tests = [f"canUse32BitIndexMath({each}{f', {largest}' if largest else ''})" for each in dict.fromkeys(tensors)]
    ranges = [f"{each} >= INT_MIN / 2 && {each} <= INT_MAX / 2" for each in dict.fromkeys(numbers)]
    return " && ".join((*tests, *ranges))


def list_chosen(numbers: Sequence[Named], types: Mapping[str, str]) -> list[Named]:
    """The whole numbers that follow from arguments of a schema's `types` which no size of a tensor limits.

    What an argument is multiplied with is a size or a stride, and so is the product.
    """
    factors = {name for each in numbers for name in _list_factors(each.value)}
    chosen = []
    for number in (each for each in numbers if isinstance(each.example, int)):
        names = [each.name for each in list_scalars(number.value)]
        if any(types.get(each) in _INDICES and each not in factors for each in names):
            chosen.append(number)
    return chosen


def _list_factors(value: HostValue) -> Iterator[str]:
    products = (part for part in list_operands(value) if isinstance(part, Binary))
    for product in (product for product in products if product.operator is Operator.MULTIPLY):
        yield from (scalar.name for scalar in list_scalars(product))
