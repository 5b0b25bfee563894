"""Which operators a change touches: by rows, host code and what it calls, kernels by name, and test lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from porter.aten.declarations import MPS_KEY
from porter.aten.native_functions import NativeFunction
from porter.aten.operator import find_served
from porter.aten.stubs import find_stub_names
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.languages.identifiers import find_words
from porter.languages.source import Source, parse_source
from porter.review.change import Change, ChangedFile
from porter.review.metal_facts import find_named_kernels, list_instances


class Touch(Enum):
    """How a change touches an operator."""

    ROW = "row"
    HOST = "host code"
    KERNEL = "kernel"
    LIST = "test list"


@dataclass(frozen=True)
class TouchedOperator:
    """An operator that MPS serves, by its base name, how the change touches it, and whether it moved to Metal by it."""

    name: str
    touches: tuple[Touch, ...]
    moved: bool


def find_touched(change: Change) -> tuple[TouchedOperator, ...]:
    """The operators that MPS serves and whose rows, host code, kernels or list entries differ, by name."""
    touches: dict[str, set[Touch]] = {row.base: {Touch.ROW} for row in change.changed_rows}
    for row, kinds in _find_served_by(change, _find_changed_names(change)):
        touches.setdefault(row.base, set()).update(kinds)
    for base in _find_listed(change):
        touches.setdefault(base, set()).add(Touch.LIST)
    served = {row.base for row in change.rows.all if row.entry_for(MPS_KEY)}
    moved = {base for base in touches.keys() & served if touches[base] != {Touch.LIST} and is_moved(change, base)}
    return tuple(
        TouchedOperator(base, tuple(touch for touch in Touch if touch in kinds), base in moved)
        for base, kinds in sorted(touches.items())
        if base in served
    )


def find_touched_rows(change: Change) -> dict[str, tuple[Touch, ...]]:
    """The rows on MPS that differ or whose code does, by name, with how; without what only test lists say."""
    touches: dict[str, set[Touch]] = {row.name: {Touch.ROW} for row in change.changed_rows if row.entry_for(MPS_KEY)}
    for row, kinds in _find_served_by(change, _find_changed_names(change)):
        touches.setdefault(row.name, set()).update(kinds)
    return {name: tuple(touch for touch in Touch if touch in kinds) for name, kinds in touches.items()}


def is_moved(change: Change, base: str) -> bool:
    """Whether a row of an operator built a graph before the change, and none does now."""
    if not change.rows.has(base) or not change.earlier_rows.has(base):
        return False
    before = [find_served(change.before, row) for row in change.earlier_rows.find_overloads(base)]
    if not any(row and row.builds_graph for row in before):
        return False
    now = [find_served(change.after, row) for row in change.rows.find_overloads(base)]
    return any(now) and not any(row and (row.builds_graph or row.error) for row in now)


Names = Mapping[str, set[Touch]]


def _find_served_by(change: Change, names: Names) -> Iterator[tuple[NativeFunction, set[Touch]]]:
    """The rows whose function on MPS, or a stub that it calls, has one of these names."""
    stubs = any(name.endswith("_stub") for name in names)
    for row in change.rows.all:
        entry = row.entry_for(MPS_KEY)
        if entry is None:
            continue
        called = {entry.kernel.rsplit("::", 1)[-1]}
        if stubs and "CPU" in entry.keys:
            called.update(list_stubs(change.after, entry.kernel))
        kinds = set[Touch]().union(*(names[name] for name in called & names.keys()))
        if kinds:
            yield row, kinds


def list_stubs(checkout: Checkout, kernel: str) -> tuple[str, ...]:
    """The stubs that a function calls; none where its code cannot be read."""
    try:
        return find_stub_names(checkout, kernel)
    except PorterError:
        return ()


def _find_changed_names(change: Change) -> dict[str, set[Touch]]:
    """Host functions and stubs whose code is another, or that launch kernels that are others."""
    kernels = _find_changed_kernels(change)
    changed = {file.path for file in change.host}
    names: dict[str, set[Touch]] = {}
    for path, text in change.host_texts.items():
        launches = any(f'"{name}' in text for name in kernels)
        if path not in changed and not launches:
            continue
        file = change.host_file(path)
        if file.is_readable:
            _spread(file, _find_roots(file, kernels if launches else set()), names)
    return names


def _find_roots(file: ChangedFile, kernels: set[str]) -> dict[str, set[Touch]]:
    """The functions of a host file that differ themselves, and those that launch some of the kernels."""
    roots: dict[str, set[Touch]] = {}
    for function in file.source.functions():
        if file.touches(function.start, function.end):
            roots.setdefault(function.name, set()).add(Touch.HOST)
        named = find_named_kernels(file, function.start, function.end)
        if kernels and any(_is_kernel_of(kernel.prefix, kernels) for kernel in named):
            roots.setdefault(function.name, set()).add(Touch.KERNEL)
    for use in file.source.macro_uses():
        if file.touches(use.start, use.end):
            for argument in use.arguments:
                roots.setdefault(argument.lstrip("& "), set()).add(Touch.HOST)
    now = {function.name for function in file.source.functions()}
    gone = {function.name for function in file.earlier.functions()} - now if file.earlier.is_readable else set()
    for name in gone:
        roots.setdefault(name, set()).add(Touch.HOST)
    return roots


def _is_kernel_of(prefix: str, kernels: set[str]) -> bool:
    stem = prefix.rstrip("_")
    return bool(stem) and any(
        name == stem or name.startswith(f"{stem}_") or stem.startswith(f"{name}_") for name in kernels
    )


def _spread(file: ChangedFile, roots: dict[str, set[Touch]], names: dict[str, set[Touch]]) -> None:
    """Adds to `names` the roots, what calls them in their file, and the stubs that are registered for these."""
    words = {f.name: set(find_words(file.text_of(f))) - {f.name} for f in file.source.functions()}
    pending = list(roots)
    while pending:
        name = pending.pop()
        for caller, called in words.items():
            if name in called and not roots[name] <= roots.get(caller, set()):
                roots.setdefault(caller, set()).update(roots[name])
                pending.append(caller)
    for use in file.source.macro_uses():
        arguments = [argument.lstrip("& ") for argument in use.arguments]
        kinds = set[Touch]().union(*(roots[argument] for argument in arguments if argument in roots))
        for argument in arguments if kinds else ():
            roots.setdefault(argument, set()).update(kinds)
    for name, kinds in roots.items():
        names.setdefault(name, set()).update(kinds)


def _find_changed_kernels(change: Change) -> set[str]:
    """Functors and kernels whose code, helpers or registrations differ, by the names that host code has for them."""
    changed = set[str]()
    for file in change.files:
        if not file.is_metal or not file.is_readable:
            continue
        changed |= {function.name for function in file.functions()}
        changed |= _find_structs(file)
        now = {(i.functor, i.input, i.output) for i in list_instances(change, file.path)} if file.after else set()
        earlier = Change(change.before, change.before, ())
        instances = list_instances(earlier, file.path) if change.before.exists(file.path) else ()
        before = {(i.functor, i.input, i.output) for i in instances}
        changed |= {functor for functor, _, _ in now ^ before}
    if not changed:
        return set()
    for _ in range(2):  # a helper of a helper
        for path, text in change.kernel_texts.items():
            source = parse_source(path, text)
            if not any(name in text for name in changed) or not source.is_readable:
                continue
            changed |= {
                f.name for f in source.functions()
                if f.name.isidentifier() and changed & list_used_names(source, f.start, f.end)
            }  # fmt: skip
    return {name.removesuffix("_functor") for name in changed}


def list_used_names(source: Source, start: int, end: int) -> set[str]:
    """The names that code uses and does not declare: a variable `sum` is not the kernel `sum` of another file."""
    tokens = [token.text for token in source.code if start <= token.start < end]
    declared = {
        name for before, name in pairwise(tokens)
        if before.isidentifier() and name.isidentifier() and before not in ("return", "else", "case")
    }  # fmt: skip
    return {text for text in tokens if text.isidentifier()} - declared


def _find_structs(file: ChangedFile) -> set[str]:
    """The structs of a Metal file in which a line differs."""
    code, source = file.source.code, file.source
    return {
        code[at + 1].text for at, token in enumerate(code[:-2])
        if token.text == "struct" and code[at + 2].text == "{"
        and file.touches(token.start, code[source.partners[at + 2]].end)
    }  # fmt: skip


def _find_listed(change: Change) -> Iterator[str]:
    """The operators whose entries of test lists are others."""
    now = {(found.name, e.name, e.dtypes) for found in change.lists for e in found.entries}
    before = {(found.name, e.name, e.dtypes) for found in change.earlier_lists for e in found.entries}
    for _, name, _ in now ^ before:
        if change.rows.has(name):
            yield name
