"""A CUDA kernel of a person's own file as one scalar function: of one element of each input, and of numbers.

Three forms are read: a `__global__` kernel in which thread i stores element i, a host function that passes a lambda or
a functor to one of ATen's loops, and a `__device__` function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from porter.aten.branches import show
from porter.core.checkout import Checkout
from porter.core.dtypes import BFLOAT, BOOL, BY_CPP, DOUBLE, FLOAT, HALF, INT, LONG, DType
from porter.core.errors import Place, PorterError
from porter.cpu.kernels import CpuKernel, collect_lambdas
from porter.cpu.lowering import lower
from porter.cuda.loops import DeviceFiles
from porter.languages import cpp
from porter.languages.definitions import Definition, find_definitions, parse_definition
from porter.languages.identifiers import is_word, rename_identifiers

_INDEX = frozenset(
    f"{first}+{second}"
    for block in ("blockIdx.x*blockDim.x", "blockDim.x*blockIdx.x")
    for first, second in ((block, "threadIdx.x"), ("threadIdx.x", block))
)
_STORES = ("=", "+=", "-=", "*=", "/=")


@dataclass(frozen=True)
class ElementStore:
    """The scalar function of a kernel: the inputs and numbers it uses, and its body, which returns what is stored.

    `bound` is the parameter with the number of elements; `element` the type of all elements.
    """

    elements: tuple[str, ...]
    scalars: tuple[str, ...]
    element: str
    output: str
    bound: str
    body: cpp.Block


def read_threads(function: cpp.Function, found: Definition) -> ElementStore:
    """Reads a `__global__` kernel. Raises PTR337 where it is of another form."""
    index, rest = _split_index(function, found)
    bound, body = _split_guard(rest, index, found)
    pointers = {each.name: each.type for each in function.parameters if "*" in each.type}
    stored = dict.fromkeys(_list_stores(body, index))
    if len(stored) != 1:
        raise _refuse(f"it stores to {len(stored)} arrays at [{index}], not to one", found)
    output = next(iter(stored))
    scalar = _as_function(cpp.Block(body), index, output, found)
    named = tuple(dict.fromkeys(_list_names(scalar)))
    elements = tuple(name for name in pointers if name in named)
    types = {_strip_type(pointers[name]) for name in (*elements, output) if name in pointers}
    if len(types) != 1:
        raise _refuse(f"its arrays have different types: {', '.join(sorted(types))}", found)
    scalars = tuple(each.name for each in function.parameters if each.name in named and each.name not in pointers)
    return ElementStore(elements, scalars, types.pop(), output, bound, scalar)


def _refuse(what: str, found: Definition) -> PorterError:
    hint = "`porter explain PTR337` lists the forms that are read."
    return PorterError("PTR337", f"this is not a kernel of one element a thread: {what}", found.place, hint)


def _split_index(function: cpp.Function, found: Definition) -> tuple[str, tuple[cpp.Stmt, ...]]:
    """Returns the name of the thread's index, and the statements other than its declaration."""
    for at, statement in enumerate(function.body.statements):
        if isinstance(statement, cpp.Declaration) and statement.value is not None:
            text = re.sub(r"\s|static_cast<\w+>|\(\w+\)(?=\w)|[()]", "", show(statement.value))
            if text in _INDEX:
                return statement.name, (*function.body.statements[:at], *function.body.statements[at + 1 :])
    raise _refuse("it has no index blockIdx.x * blockDim.x + threadIdx.x", found)


def _split_guard(statements: tuple[cpp.Stmt, ...], index: str, found: Definition) -> tuple[str, tuple[cpp.Stmt, ...]]:
    """Returns the number of elements that the index is compared with, and what is computed for each."""
    for at, statement in enumerate(statements):
        if not isinstance(statement, cpp.If) or statement.otherwise is not None:
            continue
        test = statement.test
        if not isinstance(test, cpp.Binary) or show(test.left) != index or not is_word(bound := show(test.right)):
            continue
        inside = statement.then.statements if isinstance(statement.then, cpp.Block) else (statement.then,)
        before, after = statements[:at], statements[at + 1 :]
        if test.op == "<" and not after:
            return bound, (*before, *inside)
        if test.op == ">=" and inside in ((cpp.Return(None, inside[0].start),), ()):
            return bound, (*before, *after)
    raise _refuse(f"it has no `if ({index} < n)` around what it stores", found)


def _is_store(value: Any, index: str) -> bool:
    return isinstance(value, cpp.Binary) and value.op in _STORES and _element_of(value.left, index) != ""


def _element_of(value: Any, index: str) -> str:
    """Returns the array whose element at the index this is, or an empty string."""
    if not isinstance(value, cpp.Index) or not isinstance(value.value, cpp.Name):
        return ""
    return value.value.path if show(value.index) == index else ""


def _list_stores(code: Any, index: str) -> list[str]:
    if isinstance(code, tuple):
        return [name for each in code for name in _list_stores(each, index)]
    if not is_dataclass(code):
        return []
    here = [code.left.value.path] if isinstance(code, cpp.Binary) and _is_store(code, index) else []  # type: ignore[union-attr]
    return here + [name for each in fields(code) for name in _list_stores(getattr(code, each.name), index)]


def _list_names(code: Any) -> list[str]:
    if isinstance(code, tuple):
        return [name for each in code for name in _list_names(each)]
    if isinstance(code, cpp.Name):
        return [code.path]
    return [n for each in fields(code) for n in _list_names(getattr(code, each.name))] if is_dataclass(code) else []


def _as_function(block: cpp.Block, index: str, output: str, found: Definition) -> cpp.Block:
    """Returns the block with the store, which must come last on each path, as a return, and elements as values."""
    made = list(block.statements)
    for at, statement in enumerate(made):
        last = at == len(made) - 1
        if isinstance(statement, cpp.ExpressionStatement) and _is_store(statement.value, index):
            if not last:
                raise _refuse(f"it goes on after it stores to {output}", found)
            made[at] = _as_return(statement)
        elif isinstance(statement, cpp.If) and _list_stores(statement, index):
            if not last or statement.otherwise is None:
                raise _refuse(f"it stores to {output} on some paths only, or goes on after it", found)
            made[at] = replace(
                statement,
                then=_as_function(_block(statement.then), index, output, found),
                otherwise=_as_function(_block(statement.otherwise), index, output, found),
            )
    return _read_elements(cpp.Block(tuple(made), block.start), index)  # type: ignore[no-any-return]


def _block(statement: cpp.Stmt) -> cpp.Block:
    return statement if isinstance(statement, cpp.Block) else cpp.Block((statement,), statement.start)


def _as_return(statement: cpp.ExpressionStatement) -> cpp.Return:
    store = statement.value
    assert isinstance(store, cpp.Binary)
    if store.op == "=":
        return cpp.Return(store.right, statement.start)
    right = cpp.Paren(store.right, store.right.start)
    return cpp.Return(cpp.Binary(store.op[0], store.left, right, store.start), statement.start)


def _read_elements(code: Any, index: str) -> Any:
    if isinstance(code, tuple):
        return tuple(_read_elements(each, index) for each in code)
    if not is_dataclass(code) or isinstance(code, type):
        return code
    name = _element_of(code, index)
    if name:
        return cpp.Name(name, (), code.start)  # type: ignore[attr-defined]
    return replace(code, **{each.name: _read_elements(getattr(code, each.name), index) for each in fields(code)})


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
    return PorterError("PTR337", what, place, "`porter explain PTR337` lists the forms that are read.")


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
    return ElementStore(names, (), _strip_type(function.parameters[0].type), "", "", function.body)


_SPECIFIERS = frozenset(("inline", "static", "constexpr"))


def _strip_type(written: str) -> str:
    """The type without `const` and of what a pointer or a reference goes to."""
    return " ".join(rename_identifiers(written, {"const": ""}).translate({ord("*"): " ", ord("&"): " "}).split())


def _wrap(function: cpp.Function, store: ElementStore, scalars: tuple[cpp.Parameter, ...]) -> cpp.Function:
    """Returns a host function that passes the scalar function to a loop of ATen."""
    parameters = tuple(cpp.Parameter(store.element, name) for name in store.elements)
    words = (word for word in function.returns.split() if word not in _SPECIFIERS and not word.startswith("__"))
    returns = store.element if store.bound else " ".join(words)
    loop = cpp.Call(cpp.Name("gpu_kernel"), (cpp.Name("iter"), cpp.LambdaExpr(parameters, returns, store.body)))
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
