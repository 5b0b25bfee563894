"""An include of an operator's header stays behind when the code that needed it goes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.core.layout import NATIVE_FUNCTIONS
from porter.review.change import Change, ChangedFile, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule

_HEADER = re.compile(r"ATen/ops/(\w+?)(_native|_meta|_ops|_compositeexplicitautograd_dispatch)?\.h")


def _check(change: Change) -> Iterator[Remark]:
    for file in change.host:
        if not file.before:
            continue
        after, before = _list_code_words(file, now=True), _list_code_words(file, now=False)
        for include in file.source.includes():
            header = _HEADER.fullmatch(include.path)
            if not header:
                continue
            names = _list_names(change, header[1])
            if _uses(before, names, header[1]) and not _uses(after, names, header[1]):
                what = f"nothing in this file needs <{include.path}> any more"
                line = file.after[include.start : include.end].rstrip("\n")
                yield file.remark(include.start, what, "Remove the include.", line, "")


def _list_code_words(file: ChangedFile, now: bool) -> frozenset[str]:
    source = file.source if now else file.earlier
    words = {token.text for token in source.code}
    return frozenset(words.union(*(re.findall(r"\w+", macro.body) for macro in source.macros())))


def _list_names(change: Change, base: str) -> frozenset[str]:
    """What code calls an operator by: its functions, and what its rows dispatch to, before the change and now."""
    kernels = {
        entry.kernel.rsplit("::", 1)[-1]
        for rows in (change.rows, change.earlier_rows)
        if rows.has(base)
        for row in rows.find_overloads(base)
        for entry in row.dispatch
    }
    return frozenset({base, f"{base}_", f"{base}_out", f"{base}_outf", *kernels})


def _uses(words: frozenset[str], names: frozenset[str], base: str) -> bool:
    return not words.isdisjoint(names) or any(word.startswith((f"{base}_", f"structured_{base}")) for word in words)


_UNARY = "aten/src/ATen/native/mps/operations/UnaryOps.mm"
_ERF = "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n"
_ROW = "    CPU, CUDA, MTIA: erf_out\n    MPS: erf_out_mps\n"
_PORT = ((NATIVE_FUNCTIONS, _ROW, "    CPU, CUDA, MPS, MTIA: erf_out\n"), (_UNARY, _ERF, ""))
RULE = Rule(
    "stale-include",
    Severity.WARNING,
    "A file includes the header of an operator that it no longer names.",
    _check,
    bad=(Case(edits=_PORT),),
    good=(Case(edits=(*_PORT, (_UNARY, "#include <ATen/ops/erf_native.h>\n", ""))),),
)
