"""ATen's CPU kernel of a stub: the element types it supports and, for each, its scalar lambda in Metal.

Source: aten/src/ATen/native/cpu/*.cpp, `REGISTER_DISPATCH` of ATen/native/DispatchStub.h, `cpu_kernel` of cpu/Loops.h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

from porter.aten.branches import Facts
from porter.aten.stubs import find_native_definitions
from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, BFLOAT, HALF, HALF2, DType
from porter.core.errors import Place, PorterError
from porter.core.layout import CPU_KERNELS, NATIVE
from porter.cpu.loops import CPU_LOOPS, Loops, ScalarFunction
from porter.cpu.lowering import LoweredKernel, lower
from porter.languages import cpp
from porter.languages.brackets import split_at_commas
from porter.languages.definitions import Definition, expand_use, find_definitions, find_macro_uses, parse_definition

_REGISTER = r"REGISTER\w*_DISPATCH\(\s*{stub}\s*,\s*&?\s*([\w:]+)\s*\)"


@dataclass(frozen=True)
class ScalarArgument:
    """A scalar used by the lambda: its `name` in the body, its Metal `type`, and the kernel parameter it comes from."""

    name: str
    type: str
    source: str

    @property
    def is_presence(self) -> bool:
        """Whether it says that an optional number is given."""
        return self.name == f"has_{self.source}"


@dataclass(frozen=True)
class Lambda:
    """The CPU kernel's computation for one element, in Metal, for all of `dtypes`.

    `body` is an expression or, if `is_block`, statements that return. `params` are the names of the elements, in the
    order of the iterator's inputs. `result` is a Metal type; `T` is the element type. With `opmath`, half and bfloat
    have to compute in float. `helpers` are function templates that the body calls; `checks` are conditions on which the
    CPU kernel raises. It `chooses` if its first element is a condition, of type bool whatever the type of the others.
    """

    params: tuple[str, ...]
    scalars: tuple[ScalarArgument, ...]
    body: str
    is_block: bool
    dtypes: tuple[DType, ...]
    result: str
    opmath: bool
    helpers: tuple[str, ...]
    checks: tuple[str, ...]
    place: Place
    chooses: bool = False


@dataclass(frozen=True)
class Untranslated:
    """Types that the kernel supports but whose lambda cannot be translated to Metal, and why."""

    dtypes: tuple[DType, ...]
    error: PorterError


@dataclass(frozen=True)
class CpuKernel:
    """A stub's kernel for the CPU, or for CUDA. `dtypes` are the common types it supports that Metal has too.

    `parameters` are those of the function after the iterator. `own` is the kernel without the functions of
    c10::metal that the fork defines for the CPU too, if its lambdas call any. One that `keeps_scalars` computes with a
    CPU scalar as it is given, which in the elements' type may have fewer digits.
    """

    stub: str
    function: str
    parameters: tuple[str, ...]
    dtypes: tuple[DType, ...]
    lambdas: tuple[Lambda, ...]
    untranslated: tuple[Untranslated, ...]
    place: Place
    device: str = CPU_LOOPS.device
    own: CpuKernel | None = None
    keeps_scalars: bool = False

    def find_lambda(self, dtype: DType) -> Lambda | None:
        """Returns the lambda for a common type, or None."""
        return next((one for one in self.lambdas if dtype in one.dtypes), None)


_GIVEN_SCALAR = "original_scalar_value<"

# Lowers a kernel for a common type; returns None if its dispatch does not cover it.
LowerFor = Callable[[DType], LoweredKernel | None]


def same_type(dtype: DType) -> DType:
    """Returns the type itself: the output type of an operator that keeps its input type."""
    return dtype


def read_cpu_kernel(
    checkout: Checkout,
    stub: str,
    output: Callable[[DType], DType] = same_type,
    bound: Mapping[str, str] | None = None,
    loops: Loops = CPU_LOOPS,
) -> CpuKernel:
    """Returns the CPU kernel that `native/cpu` registers for a stub. `output` maps common types to result types.

    `bound` are the enumerators that parameters have, `loops` those to find scalar functions in.

    Raises PTR077 if none is registered. Lambdas that cannot be translated are not errors but in `untranslated`.
    """
    found, function = find_registered_kernel(checkout, stub)

    def collect(own: bool) -> CpuKernel:
        return collect_lambdas(
            stub,
            found,
            function,
            lambda dtype: lower(checkout, found, dtype, output(dtype), loops=loops, own=own, bound=bound),
        )

    kernel = collect(own=False)
    if not any(any("c10::metal::" in text for text in (each.body, *each.helpers)) for each in kernel.lambdas):
        return kernel
    own = collect(own=True)
    return kernel if own.lambdas == kernel.lambdas else replace(kernel, own=own)


def read_inline_kernel(
    checkout: Checkout, name: str, function: str, output: Callable[[DType], DType] = same_type
) -> CpuKernel:
    """Returns the kernel of this name that a function of native_functions.yaml runs itself, without a stub."""
    [found] = find_native_definitions(checkout, function)
    return collect_lambdas(name, found, function, lambda dtype: lower(checkout, found, dtype, output(dtype)))


def collect_lambdas(
    stub: str, found: Definition, function: str, lower_for: LowerFor, device: str = CPU_LOOPS.device
) -> CpuKernel:
    """Returns a kernel with its lambdas, each for all types that have the same one."""
    groups: dict[LoweredKernel, tuple[DType, ...]] = {}
    failures: dict[tuple[str, str, str], Untranslated] = {}
    for dtype in ALL:
        try:
            lowered = lower_for(dtype)
        except PorterError as error:
            key = (error.code, error.what.replace(str(dtype), "T"), str(error.place))
            before = failures.get(key, Untranslated((), error))
            failures[key] = replace(before, dtypes=(*before.dtypes, dtype))
            continue
        if lowered is not None:
            groups[lowered] = (*groups.get(lowered, ()), dtype)
    untranslated = tuple(failures.values())
    supported = {d for types in groups.values() for d in types} | {d for one in untranslated for d in one.dtypes}
    return CpuKernel(
        stub,
        function,
        tuple(p.name for p in parse_definition(found).parameters if "TensorIterator" not in p.type),
        tuple(d for d in ALL if d in supported),
        tuple(_make_lambda(lowered, dtypes) for lowered, dtypes in groups.items()),
        untranslated,
        found.place,
        device,
        keeps_scalars=_GIVEN_SCALAR in found.text,
    )


def find_registered_name(text: str, stub: str) -> str:
    """The function that a text registers for a stub; empty if there is none."""
    match = re.search(_REGISTER.format(stub=re.escape(stub)), text)
    return match[1] if match else ""


def find_registered_kernel(checkout: Checkout, stub: str) -> tuple[Definition, str]:
    """Returns the definition and name of the function registered for a stub. Raises PTR077 if there is none."""
    base = stub.removesuffix("_stub")
    word = re.escape(stub)
    for path in checkout.folder(CPU_KERNELS, ".cpp").files_containing(stub, rf"DISPATCH\(\s*{word}\b", whole=True):
        if name := find_registered_name(checkout.read(path), stub):
            return _find_definition(checkout, path, name)
    for path in checkout.folder(CPU_KERNELS, ".cpp").files_containing(f"({base})", rf"^[A-Z_]\w*\({re.escape(base)}\)"):
        text = checkout.read(path)
        for macro, arguments, _ in find_macro_uses(path, text):
            made = expand_use(text, macro, arguments) if base in arguments else ""
            if name := find_registered_name(made, stub):
                return _find_definition(checkout, path, name)
    raise PorterError(
        "PTR077",
        f"no CPU kernel is registered for {stub}",
        Place(CPU_KERNELS),
        "It may be generated; write the functor by hand.",
    )


def _find_definition(checkout: Checkout, path: str, name: str) -> tuple[Definition, str]:
    bare = name.rpartition("::")[2]
    found = find_definitions(path, checkout.read(path), bare)
    if not found:
        raise PorterError(
            "PTR077", f"the CPU kernel {name} is not defined here", Place(path), "Write the functor by hand."
        )
    return found[0], bare


def _make_lambda(lowered: LoweredKernel, dtypes: tuple[DType, ...]) -> Lambda:
    only = len(lowered.lines) == 1 and lowered.lines[0].startswith("return ")
    body = lowered.lines[0][len("return ") : -1] if only else "\n".join(lowered.lines)
    reduced = any(dtype in (HALF, BFLOAT, HALF2) for dtype in dtypes)
    return Lambda(
        lowered.params,
        tuple(ScalarArgument(*one) for one in lowered.scalars),
        body,
        not only,
        dtypes,
        lowered.result,
        reduced and lowered.roundings > 1,
        lowered.helpers,
        lowered.checks,
        lowered.place,
        lowered.chooses,
    )


_LOOP = "cpu_kernel_multiple_outputs"
_TUPLES = frozenset(("", "tuple", "make_tuple"))
_NAMED = re.compile(r"\breturn\s*(?:std::(?:make_)?tuple(?:<[^;{}()]*>)?\s*)?[({]([\w\s,]+)[)}]\s*;")
_RETURNED = re.compile(r"(?:std::)?tuple<(.*)>", re.S)


def read_result_kernels(
    checkout: Checkout, stub: str, count: int, output: Callable[[DType], DType]
) -> tuple[tuple[str, CpuKernel], ...]:
    """Returns the kernel of each of a stub's results, with the name of the result in the CPU's code.

    Raises PTR077, or PTR018 for one whose kernel is not such a loop.
    """
    found, _ = find_registered_kernel(checkout, stub)
    if _LOOP not in found.text:
        what = f"{stub} has {count} results, but a functor has one"
        raise PorterError("PTR018", what, found.place, "Port it by hand.")
    kernels = (read_cpu_kernel(checkout, stub, output, loops=_make_loops(at)) for at in range(count))
    return tuple(zip(_read_names(found, count), kernels, strict=True))


def _make_loops(at: int) -> Loops:
    return replace(CPU_LOOPS, names=frozenset((_LOOP,)), read=partial(_read_result, at))


def _read_result(at: int, found: Definition, call: cpp.Call, facts: Facts) -> ScalarFunction | None:
    whole = CPU_LOOPS.read(found, call, facts)
    if whole is None:
        return None
    returned = _RETURNED.fullmatch(whole.body.returns.strip())
    returns = split_at_commas(returned[1])[at].strip() if returned else ""
    body = replace(whole.body, returns=returns, body=_select(whole.body.body, at))
    return replace(whole, body=body)


def _select(statement: Any, at: int) -> Any:
    """Returns a statement with one element of each tuple that it returns."""
    if isinstance(statement, cpp.Return):
        return replace(statement, value=_take(statement.value, at))
    if isinstance(statement, tuple):
        return tuple(_select(each, at) for each in statement)
    if not is_dataclass(statement) or isinstance(statement, type | cpp.LambdaExpr):
        return statement
    return replace(statement, **{each.name: _select(getattr(statement, each.name), at) for each in fields(statement)})


def _take(value: cpp.Expr | None, at: int) -> cpp.Expr | None:
    if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Name) and value.function.last in _TUPLES:
        return value.arguments[at]
    return value


def _read_names(found: Definition, count: int) -> tuple[str, ...]:
    """Returns what the kernel calls the elements that it returns, or their numbers."""
    for match in _NAMED.finditer(found.text):
        names = tuple(each.strip() for each in match[1].split(","))
        if len(names) == count and all(each.isidentifier() for each in names):
            return names
    return tuple(map(str, range(count)))


_GENERATED = """void {name}_kernel(TensorIteratorBase& iter{scalars}) {{
{converted}
  cpu_kernel(iter, [=]({elements}) -> scalar_t {{ return {name}({given}); }});
}}"""


def read_generated_kernel(
    checkout: Checkout, stub: str, scalars: tuple[str, ...], output: Callable[[DType], DType] = same_type
) -> CpuKernel:
    """Returns the kernel of a stub that torchgen generates, for a row with these scalars.

    It computes every type that Metal has. Raises PTR077 if the fork has no function of one element for it.
    """
    name = stub.removesuffix("_stub")
    path = f"{NATIVE}/ufunc/{name}.h"
    found = find_definitions(path, checkout.read(path), name) if checkout.exists(path) else ()
    element = next((each for each in found if "Vectorized" not in each.text[: each.text.index("{")]), None)
    if element is None:
        raise PorterError("PTR077", f"no file defines the element of {stub}", Place(path), "Write the functor by hand.")
    loop = Definition(path, _write_loop(name, element, scalars), element.place, expanded=True)
    types = {"scalar_t": "T"}
    return collect_lambdas(stub, loop, name, lambda dtype: lower(checkout, loop, dtype, output(dtype), types=types))


def _write_loop(name: str, element: Definition, scalars: tuple[str, ...]) -> str:
    """Returns the generated function: each parameter that is no scalar of the row is an element."""
    given = [each.name for each in parse_definition(element).parameters]
    elements = [f"scalar_t {each}" for each in given if each not in scalars]
    return _GENERATED.format(
        name=name,
        scalars="".join(f", const Scalar& {each}" for each in scalars),
        converted="\n".join(f"  auto {each}_ = {each}.to<scalar_t>();" for each in scalars),
        elements=", ".join(elements),
        given=", ".join(f"{each}_" if each in scalars else each for each in given),
    )
