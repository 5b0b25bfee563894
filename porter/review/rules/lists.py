"""The lists of tests that are skipped or expected to fail."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from porter.aten.skip_lists import Entry, ListKind, SkipList, find_entries
from porter.core.layout import COMMON_MPS, KERNELS, NATIVE_FUNCTIONS, OPERATIONS, OPINFO_DEFINITIONS, OPINFOS
from porter.review.change import Change, Remark
from porter.review.operators import Touch, find_touched
from porter.review.rule import Severity, edit_case, rule

_HYPOT = '            "hypot": [torch.float16],\n'
_EXPLAINED_HYPOT = "            # The squares overflow in half precision\n" + _HYPOT


@rule(
    Severity.ERROR,
    "A test list has an operator twice, or an entry has a dtype twice.",
    bad=(
        edit_case((COMMON_MPS, _HYPOT, _HYPOT + '            # Also this\n            "hypot": [torch.bfloat16],\n')),
        edit_case((COMMON_MPS, _HYPOT, _HYPOT.replace("float16]", "float16, torch.float16]"))),
    ),
    good=(edit_case((COMMON_MPS, _HYPOT, _HYPOT.replace("float16]", "float16, torch.bfloat16]"))),),
)
def duplicate_list_entry(change: Change) -> Iterator[Remark]:
    """Two entries of one name in a test list: Python keeps the second, and nobody sees that the first is gone."""
    added = {file.path: file.added for file in change.tests}
    for skip_list in change.lists:
        seen = set[str]()
        for entry in skip_list.entries:
            new = entry.line in added.get(skip_list.file, ())
            if entry.name in seen and skip_list.file in added and _is_new(change, skip_list.name, entry.name):
                what = f"{skip_list.name} has `{entry.name}` twice: the first is not read"
                yield Remark(skip_list.file, entry.line, what, "Join the two.")
            seen.add(entry.name)
            twice = [dtype for dtype, count in Counter(entry.dtypes or ()).items() if count > 1]
            if twice and new:
                what = f"`{entry.name}` of {skip_list.name} names {', '.join(twice)} twice"
                yield Remark(skip_list.file, entry.line, what, "Remove one.")


def _is_new(change: Change, name: str, entry: str) -> bool:
    """Whether the fork before the change had an entry once at most."""
    earlier = (e.name for found in change.earlier_lists if found.name == name for e in found.entries)
    return Counter(earlier)[entry] < 2


@rule(
    Severity.WARNING,
    "A change silences a test, and no comment at the entry says why.",
    bad=(
        edit_case((COMMON_MPS, _HYPOT, _HYPOT + '            "atan2": [torch.float16],\n')),
        edit_case((COMMON_MPS, _EXPLAINED_HYPOT, _HYPOT.replace("float16]", "float16, torch.float32]"))),
    ),
    good=(
        edit_case(
            (COMMON_MPS, _HYPOT, _HYPOT + '            # Off by one ULP\n            "atan2": [torch.float16],\n')
        ),
        edit_case((COMMON_MPS, _EXPLAINED_HYPOT, "")),
    ),
)
def new_list_entry(change: Change) -> Iterator[Remark]:
    """A test that a change silences: reviewers ask why, and the reason stands above the entry."""
    before = {(found.name, e.name): e for found in change.earlier_lists for e in found.entries}
    for skip_list, entry in _find_added(change):
        if skip_list.kind in (ListKind.SKIP, ListKind.XFAIL, ListKind.REFUSE) and not _is_explained(skip_list, entry):
            grown = _find_growth(before.get((skip_list.name, entry.name)), entry)
            if grown:
                what = f"{skip_list.name} silences {grown} of `{entry.name}`, and no comment says why"
                yield Remark(skip_list.file, entry.line, what, "Mend the kernel, or say above the entry what fails.")


def _find_added(change: Change) -> Iterator[tuple[SkipList, Entry]]:
    """The entries on lines that are new or different."""
    added = {file.path: file.added for file in change.tests}
    for skip_list in change.lists:
        yield from ((skip_list, entry) for entry in skip_list.entries if entry.line in added.get(skip_list.file, ()))


def _find_growth(earlier: Entry | None, entry: Entry) -> str:
    """What an entry silences that it did not before: dtypes, or every test."""
    if entry.dtypes is None:
        return "" if earlier is not None and earlier.dtypes is None else "every test"
    if earlier is not None and earlier.dtypes is None:
        return ""
    return ", ".join(dtype for dtype in entry.dtypes if earlier is None or dtype not in (earlier.dtypes or ()))


def _is_explained(skip_list: SkipList, entry: Entry) -> bool:
    """Whether a comment stands on the line, or above it with nothing but entries between."""
    lines = skip_list.text.splitlines()
    if "#" in lines[entry.line - 1]:
        return True
    return lines[entry.line - 2].lstrip().startswith("#")


_PORT = (
    (NATIVE_FUNCTIONS, "    CPU, CUDA: atan2_out\n    MPS: atan2_out_mps\n", "    CPU, CUDA, MPS: atan2_out\n"),
    (
        f"{OPERATIONS}/BinaryKernel.mm",
        "REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)\n",
        "static void atan2_mps_kernel(TensorIteratorBase& iter) {\n"
        '  lib.exec_binary_kernel(iter, "atan2");\n'
        "}\n\n"
        "REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)\n"
        "REGISTER_DISPATCH(atan2_stub, &atan2_mps_kernel)\n",
    ),
    (
        f"{KERNELS}/BinaryKernel.metal",
        "REGISTER_FLOAT_BINARY_OP(copysign);\n",
        "REGISTER_FLOAT_BINARY_OP(copysign);\nREGISTER_FLOAT_BINARY_OP(atan2);\nREGISTER_INT2FLOAT_BINARY_OP(atan2);\n",
    ),
)
_LISTED = '            # MPS does not support int64 input\n            "atan2": [torch.int64],\n'


@rule(
    Severity.WARNING,
    "An operator moves to Metal, and a test list still has an entry for its old failures.",
    bad=(edit_case(*_PORT),),
    good=(edit_case(*_PORT, (COMMON_MPS, _LISTED, "")),),
)
def stale_list_entry(change: Change) -> Iterator[Remark]:
    """An operator that moved to Metal, and an entry that still expects its old failures (189420)."""
    moved = {operator.name for operator in find_touched(change) if operator.moved}
    added = {file.path: file.added for file in change.tests}
    for skip_list, entry in find_entries(change.lists, moved):
        if entry.line in added.get(skip_list.file, ()):  # the change decided about it
            continue
        if skip_list.kept_because or skip_list.kind is ListKind.ALLOW:
            continue
        types = ", ".join(entry.dtypes) if entry.dtypes else "every dtype"
        what = f"`{entry.name}` runs Metal now, and {skip_list.name} still expects it to fail for {types}"
        yield Remark(skip_list.file, entry.line, what, "Remove it if its tests pass; say above it what fails if not.")


_LITERAL = re.compile(r"""["']([\w.]*)["']""")


@rule(
    Severity.ERROR,
    "An entry that a change adds to a test list names no operator.",
    bad=(edit_case((COMMON_MPS, _HYPOT, '            # Squares\n            "hypott": [torch.float16],\n')),),
    good=(edit_case((COMMON_MPS, _HYPOT, _HYPOT + '            # As hypot\n            "atan2": [torch.float16],\n')),),
)
def unknown_list_entry(change: Change) -> Iterator[Remark]:
    """An entry of a test list that names no operator silences nothing, and hides what it was to silence."""
    entries = tuple(_find_added(change))
    names = _list_known(change) if entries else frozenset()
    for skip_list, entry in entries:
        if not _is_known(change, entry.name, names):
            what = f"`{entry.name}` of {skip_list.name} names no operator and no OpInfo"
            yield Remark(
                skip_list.file, entry.line, what, "Name a test by its OpInfo's name and variant, or remove it."
            )


def _list_known(change: Change) -> frozenset[str]:
    """Every string of the OpInfos: their names and their variants' are among them."""
    paths = (OPINFOS, *change.after.list(OPINFO_DEFINITIONS, ".py"))
    texts = (change.after.read(path) for path in paths if change.after.exists(path))
    return frozenset(word for text in texts for word in _LITERAL.findall(text))


def _is_known(change: Change, name: str, names: frozenset[str]) -> bool:
    """Whether a name is an OpInfo's or an operator's, with a variant behind it or not."""
    base = name.strip("_").rpartition(".")[2]
    if name in names or change.rows.has(name) or change.rows.has(base) or base in names:
        return True
    heads = (name[:end] for end in range(len(name) - 1, 0, -1))
    return any((head in names or change.rows.has(head)) and name[len(head) :].lstrip("_") in names for head in heads)


_IGAMMA = '            # Not an operator of this fork\n            "igamma": None,\n'


@rule(
    Severity.WARNING,
    "An entry leaves a test list, and the change touches no code of its operator.",
    bad=(edit_case((COMMON_MPS, _EXPLAINED_HYPOT, "")),),
    good=(edit_case((COMMON_MPS, _IGAMMA, "")),),
)
def unproven_removal(change: Change) -> Iterator[Remark]:
    """An entry that leaves a test list though no code of its operator changed: nobody saw its test pass."""
    paths = {file.path for file in change.tests}
    if not paths:
        return
    now = {(found.name, e.name): e.dtypes for found in change.lists for e in found.entries}
    touched = {operator.name for operator in find_touched(change) if operator.touches != (Touch.LIST,)}
    for skip_list in change.earlier_lists:
        if skip_list.kind is ListKind.ALLOW or skip_list.file not in paths:
            continue
        for entry in skip_list.entries:
            gone = (skip_list.name, entry.name) not in now
            remaining = now.get((skip_list.name, entry.name))
            narrowed = not gone and remaining is not None and set(entry.dtypes or ()) - set(remaining)
            if (gone or narrowed) and change.rows.has(entry.name) and entry.name not in touched:
                what = f"`{entry.name}` leaves {skip_list.name}, and nothing of its code changes"
                hint = "Say what made its tests pass, and show that they do: `porter verify`."
                yield Remark(skip_list.file, 0, what, hint)
