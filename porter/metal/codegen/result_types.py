"""What host code makes of arguments before kernels read them: expanded, conjugated, or of another type.

Source: ATen/native/ReduceOps.cpp (`infer_dtype_from_optional`, `sum_out`), c10/core/ScalarType.h (`isIntegralType`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from porter.core.dtypes import BOOL, BY_METAL, LONG, DType, Kind
from porter.languages.identifiers import contains_identifier, rename_identifiers
from porter.languages.patterns import match_code, replace_code
from porter.loops.fusion import Shape
from porter.loops.program import Programs, ResultBuffer, SymbolicProgram, count_own_dims
from porter.metal.codegen.elements import KEY, Elements
from porter.metal.codegen.host_code import Block, Line, Node, declare
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import NativeKernel

_CHOICE = "dtype"  # what the argument is called that says the result's type
_RESULT = "result0"
_WHOLE = (Kind.INTEGRAL, Kind.BOOL)


@dataclass(frozen=True)
class Conversion:
    """The tensor that becomes of the type of `result`; with `as_long`, not where its integers give 64-bit ones.

    With `is_bool` it becomes bool: kernels of bools serve results of that type, whatever the tensor's.
    """

    tensor: str
    result: str
    as_long: bool = False
    is_floating: bool = False  # the result, in every kernel
    is_bool: bool = False


def chooses_type(names: Names) -> bool:
    """Whether the caller chooses the result's type."""
    return _CHOICE in names.types


def takes_bools_alone(program: SymbolicProgram) -> bool:
    """Whether bools are all that a program reads of its first tensor."""
    return {dtype.kind for dtype in program.dtypes} == {Kind.BOOL}


def find_conversion(program: SymbolicProgram, kernels: Sequence[NativeKernel], names: Names) -> Conversion | None:
    """The conversion that an operator needs whose caller chooses the result's type; None if its kernels convert."""
    if not chooses_type(names):
        return None
    if takes_bools_alone(program) and any(find_fixed_results(program, kernels, names)):
        return Conversion(program.key, "result0", is_bool=True)
    for kernel in kernels:
        result = next((each for each in kernel.buffers if program.roles[each] == ResultBuffer(0)), None)
        pairs = _list_pairs(kernel.elements, kernel.elements.types[result]) if result else []
        differing = [(given, made) for given, made in pairs if given != made]
        if pairs and all(made == LONG and given.kind in _WHOLE for given, made in differing):
            is_floating = not any(made.kind in _WHOLE for _, made in pairs)
            return Conversion(program.key, "result0", bool(differing), is_floating)
    return None


def find_fixed_results(
    program: SymbolicProgram, kernels: Sequence[NativeKernel], names: Names
) -> Iterator[tuple[str, DType]]:
    """The results, as `result0`, that a kernel stores in one type where callers may choose another; and this type."""
    buffers = [(kernel.elements.types[each], program.roles[each]) for kernel in kernels for each in kernel.buffers]
    for spelled, role in buffers if chooses_type(names) else ():
        if isinstance(role, ResultBuffer) and spelled in BY_METAL:
            yield f"result{role.index}", BY_METAL[spelled]


def find_long_of_bools(program: SymbolicProgram, kernels: Sequence[NativeKernel], names: Names) -> Iterator[str]:
    """The results, as `result0`, of reductions that kernels store of bools as 64-bit integers, where callers may choose
    bool. ATen's scans make no bools.
    """
    reduces = all(each.nest.shape is Shape.REDUCTION for each in program.nests)
    for kernel in kernels if chooses_type(names) and reduces else ():
        for buffer in kernel.buffers:
            role, pairs = program.roles[buffer], _list_pairs(kernel.elements, kernel.elements.types[buffer])
            if isinstance(role, ResultBuffer) and (BOOL, LONG) in pairs and all(made != BOOL for _, made in pairs):
                yield f"result{role.index}"


def _list_pairs(elements: Elements, type_: str) -> list[tuple[DType, DType]]:
    """The types of the first tensor and of a result of the template type `type_`, as a kernel is instantiated."""
    names = [each.name for each in elements.parameters]
    at = names.index(type_) if type_ in names else None
    return [] if at is None else [(each[names.index(KEY)], each[at]) for each in elements.instances]


def write_conversion(conversion: Conversion, name: str, tensor: str, result: str, code: KeptCode) -> Iterator[Node]:
    """A variable called `name` for the variable of a tensor, in the type of that of a result.

    Integral results of kernels that make none are refused, unless the function has what to return of integers.
    """
    if conversion.is_bool:
        yield declare(name, f"{tensor}.to(kBool)")
        return
    given, made = f"{tensor}.scalar_type()", f"{result}.scalar_type()"
    if conversion.is_floating:
        is_integral = f"isIntegralType({made}, /*includeBool=*/true)"
        if returned := _find_integral_return(code, tensor):
            returned = rename_identifiers(returned, {tensor: f"{tensor}.to({made})"})
            yield Block(f"if ({is_integral}) {{", (Line(f"return {returned};"),))
        else:
            words = f'"result type ", {given}, " can\'t be cast to the desired output type ", {made}'
            yield Line(f"TORCH_CHECK(!{is_integral}, {words});")
    converted = f"{tensor}.to({made})"
    if conversion.as_long:
        is_wide = f"{made} == kLong && isIntegralType({given}, /*includeBool=*/true)"
        converted = f"{is_wide} ? {tensor} : {converted}"
    yield declare(name, converted)


def _find_integral_return(code: KeptCode, tensor: str) -> str:
    """What a function returns where a tensor is integral, of bools too: a call that takes the tensor; or nothing."""
    tests = (f"if (isIntegralType({tensor}.scalar_type(), true)) {brace}" for brace in ("", "{"))
    returned = code.find(*(f"{test} return $$call;" for test in tests))
    calls = (each["call"] for each in returned if contains_identifier(each["call"], tensor))
    return next((call for call in calls if match_code(call, "$$function($$arguments)")), "")


_COMMON = "$type = result_type($one, $other);"


def write_as_read(old: KeptCode, names: Names) -> tuple[Names, tuple[str, ...]]:
    """Makes of tensors what the graph of the `old` code read: of the type that two have in common, or conjugated.

    Recorded calls may show neither: samples have one type, and none is only marked as conjugated. Gives the names by
    which kernels are launched after the statements, and these. Source: TensorCompare.mm and Blas.mm of 2.14.
    """
    tensors = {names.variables[name]: name for name, type_ in names.types.items() if type_ == "Tensor"}
    lines, read_as, common = list[str](), dict[str, str](), set[str]()
    for place in old.find(_COMMON):
        pair, is_cast = (place["one"], place["other"]), f"castMPSTensor($$tensor, {place['type']})"
        if tensors.keys() >= set(pair) and len(list(old.find(is_cast))) > 1:
            type_ = names.find_free(place["type"])
            lines.append(f"const auto {type_} = at::result_type({', '.join(pair)});")
            read_as |= {each: f"{each}.to({type_})" for each in pair}
            common |= {tensors[each] for each in pair}
    read_as |= {each: f"{read_as.get(each, each)}.resolve_conj()" for each in tensors if old.has(f"{each}.is_conj()")}
    variables, shown = dict(names.variables), dict(names.shown)
    for variable, value in read_as.items():
        new = names.find_free(f"{variable}_{'resolved' if value.endswith('_conj()') else 'cast'}")
        lines.append(f"const auto {new} = {value};")
        variables[tensors[variable]], shown[new] = new, names.show(tensors[variable])
    return replace(names, variables=variables, shown=shown, common=frozenset(common)), tuple(lines)


def write_expanded(programs: Programs, names: Names) -> tuple[Names, tuple[str, ...]]:
    """Expands the arguments that the graph expanded: to the sizes of the result, but for dimensions of their own.

    Gives the names by which kernels are launched after the statements, and these. Dimensions that stay an argument's
    own are those of the expanded one in the code. Raises PTR361 where recorded calls do not agree on these, and PTR371
    for an argument without a variable.
    """
    lines = list[str]()
    variables, shown, text = dict(names.variables), dict(names.shown), names.code.text
    for name, count in count_own_dims(programs.calls).items():
        variable = names.variable(name)
        expanded = names.find_free(f"{variable}_expanded")
        lines += _expand(variable, expanded, count, names)
        variables[name], shown[expanded] = expanded, names.show(name)
        for at in range(1, count + 1):
            text = replace_code(text, f"{expanded}.size(-{at})", f"{variable}.size(-{at})")
    return replace(names, variables=variables, shown=shown, code=KeptCode(text, names.code.before)), tuple(lines)


def _expand(variable: str, expanded: str, count: int, names: Names) -> Iterator[str]:
    result = names.variable(_RESULT)
    if not count:
        yield f"const auto {expanded} = {variable}.expand_as({result});"
        return
    if f"{variable}.dim() >= {count}" not in names.code.text:
        yield f"TORCH_CHECK({variable}.dim() >= {count});"
    sizes = names.find_free(f"{variable}_sizes")
    yield f"auto {sizes} = {result}.sizes().vec();"
    yield f"std::copy({variable}.sizes().end() - {count}, {variable}.sizes().end(), {sizes}.end() - {count});"
    yield f"const auto {expanded} = {variable}.expand({sizes});"
