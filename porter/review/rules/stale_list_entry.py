"""An operator that moved to Metal, and an entry that still expects its old failures (189420)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.aten.skip_lists import ListKind, find_entries
from porter.core.layout import COMMON_MPS, NATIVE_FUNCTIONS
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.operators import find_touched
from porter.review.rule import Case, Rule


def _check(change: Change) -> Iterator[Remark]:
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


_BINARY = "aten/src/ATen/native/mps/operations"
_KERNELS = "aten/src/ATen/native/mps/kernels/BinaryKernel.metal"
_START = "TORCH_IMPL_FUNC(atan2_out_mps)"
_PORT = (
    (NATIVE_FUNCTIONS, "    CPU, CUDA: atan2_out\n    MPS: atan2_out_mps\n", "    CPU, CUDA, MPS: atan2_out\n"),
    (
        f"{_BINARY}/BinaryKernel.mm",
        "REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)\n",
        "static void atan2_mps_kernel(TensorIteratorBase& iter) {\n"
        '  lib.exec_binary_kernel(iter, "atan2");\n'
        "}\n\n"
        "REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)\n"
        "REGISTER_DISPATCH(atan2_stub, &atan2_mps_kernel)\n",
    ),
    (
        _KERNELS,
        "REGISTER_FLOAT_BINARY_OP(copysign);\n",
        "REGISTER_FLOAT_BINARY_OP(copysign);\nREGISTER_FLOAT_BINARY_OP(atan2);\nREGISTER_INT2FLOAT_BINARY_OP(atan2);\n",
    ),
)
_LISTED = '            # MPS does not support int64 input\n            "atan2": [torch.int64],\n'
RULE = Rule(
    "stale-list-entry",
    Severity.WARNING,
    "An operator moves to Metal, and a test list still has an entry for its old failures.",
    _check,
    bad=(Case(edits=_PORT),),
    good=(Case(edits=(*_PORT, (COMMON_MPS, _LISTED, ""))),),
)
