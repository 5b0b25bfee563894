"""The old path is really deleted: no function, macro or helper of the graph stays that nothing calls any more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.core.layout import NATIVE_FUNCTIONS
from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.host_facts import builds_graph, launches_kernel, list_dispatched
from porter.review.rule import Case, Rule


def _check(change: Change) -> Iterator[Remark]:
    lost = list_dispatched(change.earlier_rows) - list_dispatched(change.rows)
    yield from _find_undispatched(change, lost)
    for file in change.host:
        if file.before and file.is_readable:
            yield from _find_dead(change, file)
            yield from _find_both(file)


def _find_undispatched(change: Change, lost: frozenset[str]) -> Iterator[Remark]:
    """Implementations to which a row dispatched before the change, and none does now."""
    changed = {file.path: file for file in change.host}
    for path, text in change.host_texts.items():
        if not any(name in text for name in lost):
            continue
        file = changed.get(path) or ChangedFile(path, text, text)
        spans = [(f.name, f.start) for f in (file.source.functions() if file.is_readable else ())]
        spans += [(use.arguments[0], use.start) for use in file.source.macro_uses() if use.arguments]
        for name, start in spans:
            if name in lost and not _is_called(change, name):
                what = f"no row dispatches to `{name}` any more, and it is still there"
                yield file.remark(start, what, "Delete the old path.")


def _is_called(change: Change, name: str) -> bool:
    """Whether host code calls a function besides defining it."""
    called = re.compile(rf"\b{re.escape(name)}\s*\((?!.*\)\s*\{{)")
    texts = change.host_texts.values()
    return sum(len(called.findall(text)) for text in texts) > 1


def _find_dead(change: Change, file: ChangedFile) -> Iterator[Remark]:
    """Static functions and macros of a changed file that were used before the change, and are not now."""
    uses = {name: len(re.findall(rf"\b{name}\b", file.after)) for name in _list_helpers(file)}
    before = {name: len(re.findall(rf"\b{name}\b", file.before)) for name in uses}
    for name, start in _list_helpers(file).items():
        if uses[name] == 1 and before[name] > 1 and not _is_used_elsewhere(change, file, name):
            yield file.remark(start, f"nothing in this file uses `{name}` any more", "Delete it with the old path.")


def _list_helpers(file: ChangedFile) -> dict[str, int]:
    helpers = {f.name: f.start for f in file.source.functions() if f.static and f.name.isidentifier()}
    helpers |= {macro.name: file.after.find(f"#define {macro.name}") for macro in file.source.function_macros}
    return helpers


def _is_used_elsewhere(change: Change, file: ChangedFile, name: str) -> bool:
    is_shared = file.path.endswith(".h")
    return is_shared and any(name in text for path, text in change.host_texts.items() if path != file.path)


def _find_both(file: ChangedFile) -> Iterator[Remark]:
    """Functions that launch a kernel since the change, and build a graph still."""
    for function in file.functions():
        text, earlier = file.text_of(function), file.earlier.find_again(function)
        if earlier is None or not (builds_graph(text) and launches_kernel(text)):
            continue
        old = file.before[earlier.start : earlier.end]
        if builds_graph(old) and not launches_kernel(old):
            what = f"`{function.name}` launches a kernel now, and builds a graph still"
            yield file.remark(function.start, what, "Delete the old path, or say in the text what it is still for.")


_UNARY = "aten/src/ATen/native/mps/operations/UnaryOps.mm"
_ERF = "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n"
_ROW = "    CPU, CUDA, MTIA: erf_out\n    MPS: erf_out_mps\n"
RULE = Rule(
    "old-path-left",
    Severity.ERROR,
    "The old path is not deleted: an implementation without a row, a helper without a use, a graph beside the kernel.",
    _check,
    bad=(Case(edits=((NATIVE_FUNCTIONS, _ROW, "    CPU, CUDA, MPS, MTIA: erf_out\n"),)),),
    good=(Case(edits=((NATIVE_FUNCTIONS, _ROW, "    CPU, CUDA, MPS, MTIA: erf_out\n"), (_UNARY, _ERF, ""))),),
)
