"""Values of host code as C++, by the names that the tensors and arguments of a call have there.

Source: c10/util/accumulate.h (products of sizes), c10/core/WrapDimMinimal.h, ATen/native/NonEmptyUtils.h.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from porter.core.errors import PorterError, explained
from porter.loops import host_values as host
from porter.loops.host_algebra import is_never_negative, is_tensor, type_of
from porter.metal.codegen.kept_code import KeptCode

ACCUMULATE = "c10/util/accumulate.h"
NON_EMPTY = "ATen/native/NonEmptyUtils.h"
WRAP_DIM = "ATen/WrapDimUtils.h"


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


# A quotient of counts binds less than a product: it stands in brackets there, as it is rounded first.
OPERAND, _UNARY, _PRODUCT, _QUOTIENT, _SUM, _EQUAL, _AND, _OR, ANY = 9, 8, 7, 6, 5, 3, 2, 1, 0


def write_value(value: host.HostValue, names: Names, level: int = ANY) -> str:
    """The value as C++, with variables for what they hold, in brackets as `Printer.print` has them.

    Raises PTR371 and PTR372.
    """
    return Printer(names).print(value, level)


# What a message says, with values that are printed within it.
Message: TypeAlias = tuple[str | host.HostValue | host.HostSizes, ...]


def write_check(
    condition: host.HostValue, message: Message, names: Names | None = None, macro: str = "TORCH_CHECK"
) -> str:
    """The statement that raises an error with a message unless a condition holds. Raises PTR371 and PTR372."""
    printer = Printer(names)
    words = ", ".join(quote(part) if isinstance(part, str) else printer.print(part) for part in message)
    return f"{macro}({printer.print(condition)}, {words});"


def quote(text: str) -> str:
    """A text as a C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_LEVELS = {
    "or": _OR, "and": _AND, "==": _EQUAL, "!=": _EQUAL, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "quotient": _QUOTIENT, "%": _PRODUCT,
}  # fmt: skip
_SIGNS = {"or": "||", "and": "&&", "//": "/", "quotient": "/"}
_TYPES = {"int": "int64_t", "float": "double", "bool": "bool"}
_ROUNDED = ("floor", "ceil")


@dataclass
class Printer:
    """Prints values as C++ with the brackets that precedence asks for.

    Arguments are called as `names` says, or as the schema does. Values in `held` are printed by their variables there,
    which `declarations` declare if they were used.
    """

    names: Names | None = None
    held: Mapping[host.Node, str] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    def print(self, node: host.Node, level: int = ANY) -> str:
        """C++ for a value, in brackets if it binds less than `level`. Raises PTR371 and PTR372."""
        variable = self.held.get(node)
        if variable is not None:
            self._declare(node, variable)
            return variable
        text, own = self._spell(node)
        used = self._use(text)
        return f"({text})" if own < level and used == text else used

    @property
    def declarations(self) -> tuple[str, ...]:
        """The declarations of the variables that were used, each after those that it uses."""
        return tuple(self.declared.values())

    def listed(self, sizes: host.Node) -> str:
        """Sizes as an argument of a function that takes an IntArrayRef."""
        if isinstance(sizes, host.Listed) and sizes not in self.held:
            return "{" + ", ".join(map(self.print, sizes.sizes)) + "}" if sizes.sizes else "IntArrayRef{}"
        return self.print(sizes)

    def _declare(self, node: host.Node, name: str) -> None:
        if name not in self.declared:
            text, _ = self._spell(node)
            type_ = "Tensor" if is_tensor(node) else _TYPES[type_of(node)]
            self.declared[name] = f"const {type_} {name} = {text};"

    def _use(self, text: str) -> str:
        return self.names.use(text) if self.names else text

    def _variable(self, name: str) -> str:
        return self.names.variable(name) if self.names else name

    def _spell(self, node: host.Node) -> tuple[str, int]:
        match node:
            case host.Constant():
                return _spell_constant(node)
            case str(name):
                return self._variable(name), OPERAND
            case host.CppName(name):
                return name, OPERAND
            case host.Scalar(name, default):
                return self._scalar(name, default), OPERAND
            case host.Element(name, index):
                variable = self._variable(name)
                at = str(index) if index >= 0 else f"{self._use(f'{variable}.size()')} - {-index}"
                return f"{variable}[{at}]", OPERAND
            case host.Length(name):
                return f"static_cast<int64_t>({self._use(f'{self._variable(name)}.size()')})", OPERAND
            case host.Given(tensor):
                text = write_given(tensor, self.names) if self.names else f"{tensor}.defined()"
                return text, _AND if " && " in text else OPERAND
            case host.WrappedDim(dim, tensor):
                return f"maybe_wrap_dim({self.print(dim)}, {self.print(host.Rank(tensor))})", OPERAND
            case host.SizesOver():
                return self._over(node)
            case host.EndDim():
                raise _unknown(node)
            case host.Apply():
                return self._apply(node)
            case host.Select(condition, yes, no):
                return f"{self.print(condition, _OR)} ? {self.print(yes, _OR)} : {self.print(no, _OR)}", ANY
            case host.SameSizes(left, right):
                return f"{self.print(left, _SUM)} == {self.print(right, _SUM)}", _EQUAL
            case host.Listed():
                return f"IntArrayRef({self.listed(node)})", OPERAND
            case host.Method(tensor, name, arguments):
                return f"{self.print(tensor, OPERAND)}.{name}({', '.join(map(self.listed, arguments))})", OPERAND
            case host.Rank() | host.Size() | host.Property() | host.SizeProduct() | host.Sizes():
                return self._ask(node), OPERAND

    def _scalar(self, name: str, default: host.Number | None) -> str:
        """A scalar argument, or the variable that has its value, and where it is left out its default."""
        if self.names is None:
            return name
        plain = _spell_scalar(name, None, self.names)
        variables = self.names.code.find_scalars(plain) if self.names.locals is not None else ()
        alike = (variable for variable, instead in variables if default in (None, instead))
        return next(alike, None) or _spell_scalar(name, default, self.names)

    def _member(self, tensor: host.HostTensor) -> str:
        """A tensor whose sizes are asked for, and the operator before its members: of a dense copy that is held too."""
        if isinstance(tensor, str) and self.names:
            return self.names.member(tensor)
        if not isinstance(tensor, str) and tensor not in self.held:
            copies = (node for node in self.held if is_tensor(node) and _without_copies(node) == tensor)
            return f"{self.print(next(copies, tensor), OPERAND)}."
        return f"{self.print(tensor, OPERAND)}."

    def _ask(self, asked: host.Rank | host.Size | host.Property | host.SizeProduct | host.Sizes) -> str:
        """What a tensor says of itself."""
        if isinstance(asked, host.SizeProduct):
            return self._product(asked)
        if isinstance(asked, host.Size) and isinstance(asked.dim, host.WrappedDim) and isinstance(asked.tensor, str):
            return self._size(asked.tensor, self.print(asked.dim.dim))
        member = self._member(asked.tensor)
        match asked:
            case host.Rank():
                return f"{member}dim()"
            case host.Size():
                return f"{member}size({self.print(asked.dim)})"
            case host.Property():
                return f"{member}{asked.name}({self.print(asked.dim) if asked.dim else ''})"
            case host.Sizes():
                return f"{member}sizes(){_slice(f'{member}dim()', asked.start, asked.stop)}"

    def _size(self, tensor: str, dim: str) -> str:
        """The size of a dimension that an argument names: 1 of a tensor without dimensions, which has one to name."""
        pointer = "*" if self._member(tensor).endswith("->") else ""
        return self._use(f"ensure_nonempty_size({pointer}{self._variable(tensor)}, {dim})")

    def _product(self, value: host.SizeProduct) -> str:
        member = self._member(value.tensor)
        sizes = self._use(f"{member}sizes()")
        if value.begin is None and value.end is None:
            return f"{member}numel()"
        begin, end = (self._bound(each, member) for each in (value.begin, value.end))
        if value.end is None:
            return f"c10::numelements_from_dim({begin}, {sizes})"
        if value.begin is None:
            return f"c10::numelements_to_dim({end}, {sizes})"
        return f"c10::numelements_between_dim({begin}, {end}, {sizes})"

    def _bound(self, bound: host.HostValue | None, member: str) -> str:
        if isinstance(bound, host.Constant) and bound.value < 0:
            return f"{self._use(f'{member}dim()')} - {-bound.value}"
        return "" if bound is None else self.print(bound)

    def _over(self, value: host.SizesOver) -> tuple[str, int]:
        """Sizes of dimensions that an argument names, multiplied."""
        member, dims = self._member(value.tensor), self._variable(value.dims)
        type_ = self.names.types.get(value.dims, "") if self.names else ""
        numel = self._use(f"{member}numel()")
        if type_ == "int":
            size = self._size(value.tensor, dims)
            return (f"{numel} / {size}", _QUOTIENT) if value.others else (size, OPERAND)
        if not type_.startswith("int[") or type_.endswith("?"):
            raise _unknown(value)
        product = "[&](int64_t size, int64_t dim) { return size * " + member + "size(dim); }"
        over = f"std::accumulate({dims}.begin(), {dims}.end(), int64_t(1), {product})"
        ways = f"1 : {numel} / {over}" if value.others else f"{numel} : {over}"
        return f"{dims}.empty() ? {ways}", ANY

    def _apply(self, node: host.Apply) -> tuple[str, int]:
        function, arguments = node.function, node.arguments
        type_ = _TYPES[type_of(node, self.names.types if self.names else {})]
        if function in ("min", "max"):
            return f"std::{function}<{type_}>({', '.join(map(self.print, arguments))})", OPERAND
        if function == "ceil_div":
            return f"at::ceil_div<int64_t>({', '.join(map(self.print, arguments))})", OPERAND
        if function in ("neg", "not"):
            return f"{'-' if function == 'neg' else '!'}{self.print(arguments[0], _UNARY)}", _UNARY
        if function in ("float", "int"):
            return f"static_cast<{type_}>({self.print(arguments[0])})", OPERAND
        if function in _ROUNDED:
            return f"static_cast<int64_t>(std::{function}({self._double(arguments[0])}))", OPERAND
        if function == "pow":
            power = f"std::pow({', '.join(map(self._double, arguments))})"
            return (f"static_cast<int64_t>({power})" if type_ == "int64_t" else power), OPERAND
        if function not in _LEVELS:
            passed = self.print(arguments[0]) if function == "abs" else self._double(arguments[0])
            return f"std::{function}({passed})", OPERAND
        if function in ("//", "%") and not all(map(is_never_negative, arguments)):
            return _rounded_down(function, *map(self.print, arguments)), OPERAND
        left, right = arguments
        level = _LEVELS[function]
        if function in ("and", "or"):
            return f" {_SIGNS[function]} ".join(self._term(function, each) for each in arguments), level
        first = self._double(left) if function == "/" else self.print(left, level)
        return f"{first} {_SIGNS.get(function, function)} {self.print(right, level + 1)}", level

    def _term(self, function: str, node: host.Node) -> str:
        is_alike = isinstance(node, host.Apply) and node.function == function
        return self.print(node, _OR if is_alike else _EQUAL)

    def _double(self, node: host.HostValue) -> str:
        # An argument's type in the schema does not say the type of the variable that holds its value.
        text = self.print(node)
        return text if type_of(node) == "float" else f"static_cast<double>({text})"


def _slice(rank: str, start: int, stop: int | None) -> str:
    """The call that takes sizes from `start` to before `stop` of those of all dimensions."""
    if (start, stop) == (0, None):
        return ""
    first = str(start) if start >= 0 else f"{rank} - {-start}"
    if stop is None:
        return f".slice({first})"
    if start >= 0 and stop >= 0:
        return f".slice({start}, {stop - start})"
    end = str(stop) if stop >= 0 else f"{rank} - {-stop}"
    return f".slice({first}, {end}{f' - ({first})' if start else ''})"


def _rounded_down(function: str, left: str, right: str) -> str:
    """Python's division of numbers that may be negative."""
    quotient = f"c10::div_floor_integer<int64_t>({left}, {right})"
    return quotient if function == "//" else f"(({left}) - {quotient} * ({right}))"


def _without_copies(tensor: host.Node) -> host.Node:
    match tensor:
        case host.Method(inner, "contiguous"):
            return _without_copies(inner)
        case host.Select(condition, yes, no):
            return host.Select(condition, _without_copies(yes), _without_copies(no))
    return tensor


def _spell_constant(node: host.Constant) -> tuple[str, int]:
    if node.type == "bool":
        return str(node.value).lower(), OPERAND
    if isinstance(node.value, float) and not math.isfinite(node.value):
        name = "quiet_NaN" if math.isnan(node.value) else "infinity"
        return f"{'-' if node.value < 0 else ''}std::numeric_limits<double>::{name}()", _UNARY
    return repr(node.value), OPERAND if node.value >= 0 else _UNARY


def write_given(tensor: str, names: Names) -> str:
    """Whether a tensor is given that may be left out: an optional one may also have a tensor that is undefined."""
    variable = names.variable(tensor)
    has_value = names.use(f"{variable}.has_value()")
    return f"{has_value} && {variable}->defined()" if variable in names.optional else f"{variable}.defined()"


def _spell_scalar(name: str, default: host.Number | None, names: Names) -> str:
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


def list_headers(value: host.Node) -> frozenset[str]:
    """The headers that declare what the C++ of a value calls."""
    match value:
        case host.WrappedDim():
            return frozenset((WRAP_DIM,))
        case host.Size(_, host.WrappedDim()) | host.SizesOver():
            return frozenset((NON_EMPTY,))
    parts = host.list_parts(value)
    called = (ACCUMULATE,) if isinstance(value, host.SizeProduct) and len(parts) > 1 else ()
    return frozenset(called).union(*map(list_headers, parts))


def _unknown(value: host.HostValue) -> PorterError:
    return explained("PTR372", f"no C++ is known for `{host.describe(value)}`")


_INDICES = ("int", "SymInt")


def write_fits(tensors: Sequence[str], numbers: Sequence[str], largest: str = "") -> str:
    """The condition as C++: what is added to a number still fits where tensors have less than half of the range."""
    tests = [f"canUse32BitIndexMath({each}{f', {largest}' if largest else ''})" for each in dict.fromkeys(tensors)]
    ranges = [f"{each} >= INT_MIN / 2 && {each} <= INT_MAX / 2" for each in dict.fromkeys(numbers)]
    return " && ".join((*tests, *ranges))


def list_chosen(numbers: Sequence[host.Named], types: Mapping[str, str]) -> list[host.Named]:
    """The whole numbers that follow from arguments of a schema's `types` which no size of a tensor limits.

    What an argument is multiplied with is a size or a stride, and so is the product.
    """
    factors = {name for each in numbers for name in _list_factors(each.value)}
    chosen = []
    for number in (each for each in numbers if isinstance(each.example, int)):
        names = [each.name for each in host.list_scalars(number.value)]
        if any(types.get(each) in _INDICES and each not in factors for each in names):
            chosen.append(number)
    return chosen


def _list_factors(value: host.HostValue) -> Iterator[str]:
    for part in host.list_operands(value):
        if isinstance(part, host.Apply) and part.function == "*":
            yield from (scalar.name for scalar in host.list_scalars(part))
