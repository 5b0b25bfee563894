"""Which matrix product an operator is, is found from what its calls return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.contraction import Contraction, LinearGradients, Operands
from porter.recording.calls import OpCall
from porter.recording.forms.algebra import find_contraction, find_linear_gradients, list_gradients
from porter.recording.runs import RecordedRun

aten = torch.ops.aten
SIZES = ((3, 5, 4), (2, 7, 6), (5, 2, 8), (6, 3, 9))  # rows, inner, columns
FACTORS = ((1, 1), (0.5, 2), (0, 3))  # beta and alpha


def run(overload: Any, values: Sequence[Any]) -> RecordedRun:
    names = [each.name for each in overload._schema.arguments]
    call = OpCall(overload, dict(zip(names, values, strict=True)))
    return RecordedRun(call, call.tensors(), (), (call.run(),), False)


def draw(*shapes: Sequence[int]) -> list[torch.Tensor]:
    return [torch.randn(*shape) for shape in shapes]


def list_products(name: str) -> Iterator[RecordedRun]:
    """Calls of an operator at some sizes."""
    for (rows, inner, columns), (beta, alpha) in product(SIZES, FACTORS):
        match name:
            case "mm":
                yield run(aten.mm.default, draw((rows, inner), (inner, columns)))
            case "bmm":
                yield run(aten.bmm.default, draw((2, rows, inner), (2, inner, columns)))
            case "addmm":
                tensors = draw((rows, columns), (rows, inner), (inner, columns))
                yield run(aten.addmm.default, [*tensors, beta, alpha])
            case "addbmm":
                tensors = draw((rows, columns), (3, rows, inner), (3, inner, columns))
                yield run(aten.addbmm.default, [*tensors, beta, alpha])
            case "addmv":
                yield run(aten.addmv.default, [*draw((rows,), (rows, inner), (inner,)), beta, alpha])
            case "linear":
                shape = (rows, inner) if beta else (2, rows, inner)
                bias = torch.randn(columns) if alpha > 1 else None
                yield run(aten.linear.default, [*draw(shape, (columns, inner)), bias])


SCALED = {"added": "self", "beta": "beta", "alpha": "alpha", "dtypes": (FLOAT,)}
FOUND = {
    "mm": Contraction(Operands.MATRICES, "self", "mat2", dtypes=(FLOAT,)),
    "bmm": Contraction(Operands.BATCHES, "self", "mat2", dtypes=(FLOAT,)),
    "addmm": Contraction(Operands.MATRICES, "mat1", "mat2", **SCALED),  # type: ignore[arg-type]
    "addbmm": Contraction(Operands.SUMMED, "batch1", "batch2", **SCALED),  # type: ignore[arg-type]
    "addmv": Contraction(Operands.VECTOR, "mat", "vec", **SCALED),  # type: ignore[arg-type]
    "linear": Contraction(
        Operands.ROWS, "input", "weight", is_right_transposed=True, added="bias", dtypes=(FLOAT,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    assert find_contraction(list(list_products(name))) == FOUND[name]


def test_square_matrices_do_not_tell_what_is_transposed() -> None:
    """Of symmetric ones each way is the same, so that none is chosen."""
    squares = [matrix @ matrix.T for matrix in draw((3, 3), (4, 4), (5, 5), (6, 6))]
    assert find_contraction([run(aten.mm.default, [each, each]) for each in squares]) is None


def test_calls_that_differ_or_few_calls_tell_nothing() -> None:
    runs = list(list_products("mm"))
    assert find_contraction(runs[:1]) is None
    for changed in runs:
        changed.results[0][0] += 1
    assert find_contraction(runs) is None


def test_what_is_printed() -> None:
    assert list(FOUND["addbmm"].describe()) == [
        "result[i, j] = alpha * (sum over b, k of batch1[i, k] * batch2[k, j]) + beta * self[i, j]",
        "of as many matrices each, whose products are added up",
        "without self where beta is 0",
    ]
    assert next(FOUND["linear"].describe()) == "result[i, j] = sum over k of input[i, k] * weight[j, k] + bias[i, j]"


def test_whole_numbers_are_multiplied_by_what_a_factor_has_of_them() -> None:
    runs = [
        run(aten.addmv.default, [*(torch.randint(-9, 9, shape) for shape in shapes), beta, alpha])
        for (rows, inner, _), (beta, alpha) in product(SIZES, ((1.7, 2.9), (3, 0.4), (0.5, 6)))
        for shapes in [[(rows,), (rows, inner), (inner,)]]
    ]
    form = find_contraction(runs)
    assert form is not None and replace(form, dtypes=(FLOAT,)) == FOUND["addmv"]


GRADIENTS = LinearGradients("self", "weight", "grad_output", dtypes=(FLOAT,))


def list_gradient_calls() -> Iterator[RecordedRun]:
    """Calls that ask for all gradients, or for some: what is not asked for has any values, or is not there."""
    for (rows, inner, columns), mask in product(
        SIZES, ([True, True, True], [True, False, False], [False, True, False])
    ):
        input_, output, weight = draw((2, rows, inner), (2, rows, columns), (columns, inner))
        tensors = {"self": input_, "grad_output": output, "weight": weight}
        listed = list_gradients(GRADIENTS, tensors)
        results = [gradient.float() if asked else torch.rand(3) for gradient, asked in zip(listed, mask, strict=True)]
        count = 3 if mask[1] else 1
        call = OpCall(aten.linear_backward.default, {**tensors, "output_mask": mask})
        yield RecordedRun(call, tensors, (), tuple(results[:count]), False, tuple(range(count)))


def test_gradients_of_a_linear_layer_are_found() -> None:
    runs = list(list_gradient_calls())
    assert find_linear_gradients(runs) == GRADIENTS
    runs[0].results[2][0] += 1
    assert find_linear_gradients(runs) is None
