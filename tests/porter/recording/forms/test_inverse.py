"""Whether an operator inverts matrices is found from what its calls return."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.metal.forms.contraction import Inverse
from porter.recording.calls import OpCall
from porter.recording.forms.algebra import find_inverse
from porter.recording.runs import RecordedRun

OPERATOR = torch.ops.aten.linalg_inv_ex.default
FORM = Inverse("A", "check_errors", dtypes=(FLOAT,))


def list_calls(wrong: bool = False, tells: bool = True) -> Iterator[RecordedRun]:
    """Calls of matrices, the last of which is singular, where a graph told no pivots."""
    for shape in ((3, 3), (2, 4, 4), (5, 2, 1, 1), (2, 2, 6, 6), (7, 7), (8, 2, 2), (4, 4)):
        matrices = torch.randn(shape) if shape != (4, 4) else torch.zeros(shape)
        inverse, info = torch.linalg.inv_ex(matrices)
        results = inverse + wrong, info if tells else torch.zeros_like(info)
        yield RecordedRun(OpCall(OPERATOR, {"A": matrices, "check_errors": False}), {"A": matrices}, (), results, False)


def test_an_inverse_is_found() -> None:
    """Where a graph tells no pivots, what the CPU makes of the call counts."""
    assert find_inverse(list(list_calls())) == find_inverse(list(list_calls(tells=False))) == FORM
    assert find_inverse(list(list_calls(wrong=True))) is None


def test_what_is_printed() -> None:
    assert list(FORM.describe()) == [
        "sum over k of A[i, k] * result0[k, j] = 1 where i is j, else 0",
        "result1 = the first pivot that is 0, by its place from 1 on; 0 if none is",
        "of the last two dimensions",
    ]


def test_what_the_kernel_reads_and_writes() -> None:
    shapes = {"A": (5, 4, 4), "result0": (5, 4, 4), "result1": (5,)}
    [cost] = FORM.count_costs(Arguments({name: TensorValue(shape, FLOAT) for name, shape in shapes.items()}, {}))
    assert (cost.rows, cost.turns, cost.written) == (20, 5 * 4**3, 5 * 4 * 4 * 4)
    assert cost.reads == {"A": (320,) * 5}
