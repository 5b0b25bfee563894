"""What reductions make of many rows, known from a few, and what kernels make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from aten_overlay.device import load
from aten_overlay.device.placements import Boundary
from porter.verdict.suite.large import compare_reduced, predict, reduces_rows

SAMPLE = torch.tensor([[1.0, -2.0], [4.0, 0.5], [3.0, -7.0]])
FAR = Boundary("2^17 elements", lambda itemsize: 1 << 17)  # in rows of two
SUM = """kernel void total(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant long& rows [[buffer(2)]], uint column [[thread_position_in_grid]]) {
  float sum = 0;
  for (INDEX row = 0; row < INDEX(rows); ++row) sum += x[row * 2 + column];
  out[column] = sum;
}"""


def named(name: str) -> OpInfo:
    return next(op for op in op_db if op.name == name)


@pytest.mark.parametrize(
    ("name", "arguments", "zeros", "expected"),
    [
        ("sum", (0,), 10**10, SAMPLE.sum(0)),
        ("amax", (0,), 10**10, torch.tensor([4.0, 0.5])),
        ("amin", (), 10**10, torch.tensor(-7.0)),
        ("argmax", (0,), 10**10, torch.tensor([10**10 + 1, 10**10 + 1])),
        ("argmin", (), 2**32, torch.tensor(2**33 + 5)),
        ("count_nonzero", (0,), 2**32, torch.tensor([3, 3])),
        ("prod", (0,), 10**10, torch.tensor([0.0, 0.0])),
    ],
)
def test_a_few_rows_tell_of_many(name: str, arguments: tuple[int, ...], zeros: int, expected: torch.Tensor) -> None:
    sample = SampleInput(SAMPLE, args=arguments)
    assert reduces_rows(named(name), sample)
    predicted = predict(named(name), sample)
    assert predicted is not None
    torch.testing.assert_close(predicted(zeros), expected)


def test_what_a_few_rows_do_not_tell_is_left() -> None:
    for name in ("mean", "var", "logsumexp"):
        sample = SampleInput(SAMPLE, args=(0,))
        assert reduces_rows(named(name), sample) and predict(named(name), sample) is None


def test_operators_that_keep_rows_reduce_none() -> None:
    assert not reduces_rows(named("exp"), SampleInput(SAMPLE))
    assert not reduces_rows(named("sum"), SampleInput(SAMPLE, args=(1,)))
    assert not reduces_rows(named("sum"), SampleInput(torch.empty(0, 2), args=(0,)))
    assert not reduces_rows(named("sum"), SampleInput(torch.tensor(1.0)))


def summing(index: str) -> Any:
    library = torch.mps.compile_shader(SUM.replace("INDEX", index))

    def add_rows(x: torch.Tensor) -> torch.Tensor:
        if x.device.type == "cpu":
            return x.sum(0)
        out = torch.empty(2, device="mps")
        library.total(x, out, len(x))
        return out

    return add_rows


@pytest.fixture
def sparse() -> Iterator[None]:
    device = load.started()
    assert device is not None and device.allocate_sparsely(1 << 12)
    yield
    device.allocate_sparsely(0)


@pytest.mark.usefixtures("sparse")
def test_an_index_that_wraps_loses_the_last_rows() -> None:
    sample = SampleInput(SAMPLE)
    for index, wrong in (("long", False), ("ushort", True)):
        op = summing(index)
        predicted = predict(op, sample)
        assert predicted is not None
        found = compare_reduced(op, sample, predicted, FAR)
        assert bool(found.wrong) is wrong and found.refused == ""
        assert not wrong or ("PTR270 kernel" in found.wrong and "65540 rows" in found.wrong)


def test_an_operator_that_fails_is_refused() -> None:
    def refuse(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("too large")

    op: Any = refuse
    found = compare_reduced(op, SampleInput(SAMPLE), lambda zeros: SAMPLE, FAR)
    assert found.wrong == "" and found.refused == "refused: RuntimeError: too large"
