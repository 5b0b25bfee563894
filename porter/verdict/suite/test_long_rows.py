"""`TestLongRowsMPS.test_long_rows_<op>_mps_<dtype>`: OpInfo samples with rows that one threadgroup is too small for.

OpInfo's reductions have a few elements, which the largest of kernels compute like the smallest. Here a dimension of
every sample is long, or columns are: kernels that choose their threads by size take other ways, and have the rest of
their rows to combine.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.consistency import Consistency, Refused, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.opinfos import is_pointwise, opinfos, parametrize_over

OPINFOS = opinfos(get_context())
REDUCING = [each for each in OPINFOS.select("mps_ops_modifier") if not is_pointwise(each)]
DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool]
LONG, COLUMNS = 100_003, (3_001, 33)
SHORT = (101, (67, 3))  # as these, to tell whether an operator reduces
SAMPLES = 12


class TestLongRows(Consistency):
    """Where a kernel splits rows, all parts count, and count once."""

    opinfos = OPINFOS

    @parametrize_over(REDUCING, allowed_dtypes=DTYPES)
    def test_long_rows(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.samples(op, dtype)[:SAMPLES]:
                pairs = zip(lengthen(sample), lengthen(sample, *SHORT), strict=True)
                for (label, long), (_, short) in pairs:
                    with self.noting(), suppress(Refused):
                        if reduces(self.cpu(op, short), short):
                            self.match(op, dtype, long, device, f"{label}: ")
            if not self.elements:
                self.skipTest("nothing reduces long rows")


def reduces(result: Any, sample: SampleInput) -> bool:
    """Whether results have far fewer elements than a sample's input."""
    found = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
    return bool(found) and all(each.numel() * 2 <= sample.input.numel() for each in found)


def lengthen(
    sample: SampleInput, long: int = LONG, columns: tuple[int, int] = COLUMNS
) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its first or its last dimension long, or with long columns, and other dimensions short.

    Tensors of the input's shape are changed with it.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel() or not sample.input.ndim:
        return
    rank = sample.input.ndim
    shapes = {"a long first dimension": (long, *(1 for _ in range(rank - 1)))}
    if rank > 1:
        shapes["a long last dimension"] = (2, *(1 for _ in range(rank - 2)), long)
        shapes["long columns"] = (columns[0], *(1 for _ in range(rank - 2)), columns[1])
    for (label, shape), rest in ((each, rest) for each in shapes.items() for rest in (1, 0)):
        yield f"{label}, of {rest}s", sample.transform(lambda value, s=shape, r=rest: _enlarge(value, sample, s, r))


def _enlarge(value: Any, sample: SampleInput, shape: tuple[int, ...], rest: int) -> Any:
    """A tensor of another shape: its first elements at the start and at the end, and a number between."""
    if not isinstance(value, torch.Tensor) or value.shape != sample.input.shape:
        return value
    made = torch.full(shape, rest, dtype=value.dtype)
    few = value.detach().flatten()[: made.numel() // 2]
    made.flatten()[: len(few)].copy_(few)
    made.flatten()[-len(few) :].copy_(few.flip(0))
    return made


instantiate(TestLongRows, globals())
