"""A CUDA kernel of a person's own file as one scalar function: of one element of each input, and of numbers.

Three forms are read: a `__global__` kernel in which thread i stores element i, a host function that passes a lambda or
a functor to one of ATen's loops, and a `__device__` function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from porter.core.checkout import Checkout
from porter.core.dtypes import BFLOAT, BOOL, BY_CPP, DOUBLE, FLOAT, HALF, INT, LONG, DType
from porter.core.errors import Place, PorterError
from porter.cpu.kernels import CpuKernel, collect_lambdas
from porter.cpu.lowering import lower
from porter.cuda.loops import DeviceFiles
from porter.cuda.threads import ElementStore, read_threads
from porter.languages import cpp
from porter.languages.definitions import Definition, find_definitions, parse_definition

_FLOATING = (FLOAT, HALF, BFLOAT)
_ITERATOR = "TensorIteratorBase&"


_WHOLE = re.compile(r"(?:unsigned|int|long|short|size_t|u?int\d+_t)(?: .*)?")


class Form(Enum):
    """How a kernel is written."""

    THREADS = "__global__ kernel"
    LOOP = "loop of ATen"
    FUNCTION = "__device__ function"


@dataclass(frozen=True)
class OwnKernel:
    """A kernel of a person's own. `parameters` are all of its own, as written; `elements` and `scalars` those it uses.

    `element` is the C++ type of its elements, empty for a template, and `bound` the number of elements it takes.
    """

    name: str
    form: Form
    parameters: tuple[cpp.Parameter, ...]
    elements: tuple[str, ...]
    scalars: tuple[cpp.Parameter, ...]
    element: str
    output: str
    bound: str
    kernel: CpuKernel


def read_own_kernel(checkout: Checkout, path: str, name: str) -> OwnKernel:
    """Reads a kernel of a file. Raises PTR337 (no kernel of a known form), PTR079 or PTR080 (no Metal equivalent)."""
    files = DeviceFiles.read(checkout, path, jiterator=False)
    found = find_definitions(path, files.checkout.read(path), name)
    if not found:
        raise refuse(f"this file defines no function {name}", Place(path))
    function = parse_definition(found[0])
    if any("TensorIterator" in each.type for each in function.parameters):
        return _read_loop(files, found[0], function)
    store = read_threads(function, found[0]) if "__global__" in function.returns else _read_function(function, found[0])
    types = {template.split()[-1] for template in function.templates}
    element = "" if store.element in types else store.element
    dtypes = _FLOATING if not element else (_find_dtype(element, found[0]),)
    form = Form.THREADS if store.bound else Form.FUNCTION
    scalars = tuple(each for each in function.parameters if each.name in store.scalars)
    kernel = _lower_function(files, found[0], _wrap(function, store, scalars), {store.element: "T"}, dtypes)
    kernel = replace(kernel, parameters=tuple(each.name for each in scalars))
    return OwnKernel(
        name, form, function.parameters, store.elements, scalars, element, store.output, store.bound, kernel
    )


def refuse(what: str, place: Place) -> PorterError:
    """Returns the error for a kernel of an unknown form."""
    return PorterError("PTR337", what, place, "See docs/errors/PTR337.md for the forms that are read.")


def _read_loop(files: DeviceFiles, found: Definition, function: cpp.Function) -> OwnKernel:
    """Reads a host function that calls one of ATen's loops; without a dispatch it is one of float."""
    dispatched = "AT_DISPATCH" in found.text
    types, dtypes = ({}, ()) if dispatched else ({FLOAT.cpp: "T"}, (FLOAT,))
    kernel = _lower_function(files, found, function, types, dtypes)
    used = {scalar.source for each in kernel.lambdas for scalar in each.scalars}
    scalars = tuple(each for each in function.parameters if each.name in used)
    element = "" if dispatched else FLOAT.cpp
    elements = kernel.lambdas[0].params
    return OwnKernel(function.name, Form.LOOP, function.parameters, elements, scalars, element, "", "", kernel)


def _read_function(function: cpp.Function, found: Definition) -> ElementStore:
    """Reads a function of elements, which all have the type of the first."""
    if not function.parameters or any(each.type != function.parameters[0].type for each in function.parameters):
        raise refuse(f"the parameters of {function.name} differ in type, or there are none", found.place)
    names = tuple(each.name for each in function.parameters)
    type_ = re.sub(r"\bconst\b|&", "", function.parameters[0].type).strip()
    return ElementStore(names, (), type_, "", "", function.body)


def _wrap(function: cpp.Function, store: ElementStore, scalars: tuple[cpp.Parameter, ...]) -> cpp.Function:
    """Returns a host function that passes the scalar function to a loop of ATen."""
    parameters = tuple(cpp.Parameter(store.element, name) for name in store.elements)
    returns = store.element if store.bound else re.sub(r"\b(?:inline|static|constexpr|__\w+)\b", "", function.returns)
    loop = cpp.Call(cpp.Name("gpu_kernel"), (cpp.Name("iter"), cpp.LambdaExpr(parameters, returns.strip(), store.body)))
    body = cpp.Block((cpp.ExpressionStatement(loop),))
    numbers = tuple(cpp.Parameter(_number(each.type), each.name) for each in scalars)
    return cpp.Function(function.name, (cpp.Parameter(_ITERATOR, "iter"), *numbers), body)


def _number(written: str) -> str:
    """Returns the type that stands for one of a number: those of a template are floating."""
    bare = written.replace("const", "").strip()
    return BOOL.cpp if bare == BOOL.cpp else LONG.cpp if _WHOLE.fullmatch(bare) else FLOAT.cpp


def _lower_function(
    files: DeviceFiles, found: Definition, function: cpp.Function, types: Mapping[str, str], dtypes: tuple[DType, ...]
) -> CpuKernel:
    """Lowers a function for these types of elements, or all that it dispatches on. Raises what keeps it from that."""
    kernel = collect_lambdas(
        "",
        found,
        function.name,
        lambda dtype: (
            lower(files.checkout, found, dtype, dtype, files.loops, function, types)
            if not dtypes or dtype in dtypes
            else None
        ),
        files.loops.device,
    )
    if kernel.untranslated:
        raise kernel.untranslated[0].error
    if not kernel.lambdas:
        raise refuse(f"{function.name} computes no type of element that Metal has", found.place)
    return kernel


def _find_dtype(written: str, found: Definition) -> DType:
    """Returns the element type of Metal that stands for a C++ type: float for double, which Metal lacks."""
    dtype = {DOUBLE.cpp: FLOAT, "int": INT, "half": HALF, "__half": HALF}.get(written) or BY_CPP.get(written)
    if dtype is None:
        raise refuse(f"its elements are of type {written}, which Metal lacks", found.place)
    return dtype
