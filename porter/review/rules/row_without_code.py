"""A row that dispatches to what no file defines, or shares code whose stub MPS registers nothing for."""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.declarations import MPS_KEY
from porter.aten.native_functions import NativeFunction
from porter.aten.operator import find_served
from porter.core.layout import NATIVE_FUNCTIONS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule

_NO_CODE = "PTR032"


def _check(change: Change) -> Iterator[Remark]:
    for row in _find_touched(change):
        now, before = find_served(change.after, row), None
        earlier = change.earlier_rows.by_name.get(row.name)
        if earlier is not None:
            before = find_served(change.before, earlier)
        if now and now.error and now.error.code == _NO_CODE and not (before and before.error):
            what = f"{row.name} has no code on MPS: {now.error.what}"
            yield Remark(NATIVE_FUNCTIONS, now.entry.place.line, what, now.error.hint)


def _find_touched(change: Change) -> Iterator[NativeFunction]:
    """The rows that are others now, and those whose code, or a stub of it, a removed line names."""
    changed = {row.name for row in change.changed_rows}
    removed = "\n".join(line for file in change.files if file.is_host for line in file.removed)
    for row in change.rows.all:
        entry = row.entry_for(MPS_KEY)
        if entry is None:
            continue
        stem = entry.kernel.rsplit("::", 1)[-1]
        if row.name in changed or stem in removed or (removed and f"{row.base}_stub" in removed):
            yield row


_UNARY = "aten/src/ATen/native/mps/operations/UnaryOps.mm"
_ERF = "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n"
_ROW = "    CPU, CUDA, MTIA: erf_out\n    MPS: erf_out_mps\n"
_SHARED = (NATIVE_FUNCTIONS, _ROW, "    CPU, CUDA, MPS, MTIA: erf_out\n")
RULE = Rule(
    "row-without-code",
    Severity.ERROR,
    "A row dispatches on MPS to a function that no file defines, or to shared code whose stub has no MPS kernel.",
    _check,
    bad=(
        Case(edits=((NATIVE_FUNCTIONS, "MPS: erf_out_mps", "MPS: erff_out_mps"),)),
        Case(edits=(_SHARED, (_UNARY, _ERF, ""))),
        Case(edits=((_UNARY, _ERF, ""),)),
        Case(
            edits=(
                (
                    "aten/src/ATen/native/mps/operations/BinaryKernel.mm",
                    "REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)\n",
                    "",
                ),
            )
        ),
    ),
    good=(Case(edits=((_UNARY, _ERF, _ERF + "\n"),)),),
)
