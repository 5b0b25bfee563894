"""A `__global__` kernel in which thread i reads element i of its inputs and stores element i of its output.

Source: CUDA C++ Programming Guide, "Thread Hierarchy".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from porter.aten.branches import show
from porter.core.errors import PorterError
from porter.languages import cpp
from porter.languages.definitions import Definition

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
    types = {re.sub(r"\bconst\b|[*\s]", "", pointers[name]) for name in (*elements, output) if name in pointers}
    if len(types) != 1:
        raise _refuse(f"its arrays have different types: {', '.join(sorted(types))}", found)
    scalars = tuple(each.name for each in function.parameters if each.name in named and each.name not in pointers)
    return ElementStore(elements, scalars, types.pop(), output, bound, scalar)


def _refuse(what: str, found: Definition) -> PorterError:
    hint = "See docs/errors/PTR337.md for the forms that are read."
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
        test = re.fullmatch(r"(\w+) (<|>=) (\w+)", show(statement.test))
        if test is None or test[1] != index:
            continue
        inside = statement.then.statements if isinstance(statement.then, cpp.Block) else (statement.then,)
        before, after = statements[:at], statements[at + 1 :]
        if test[2] == "<" and not after:
            return test[3], (*before, *inside)
        if test[2] == ">=" and inside in ((cpp.Return(None, inside[0].start),), ()):
            return test[3], (*before, *after)
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
