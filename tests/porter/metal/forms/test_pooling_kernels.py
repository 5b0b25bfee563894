"""The kernels that pool windows against torch, over tensors whose strides have gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
import torch

from porter.core.dtypes import FLOAT, HALF, INT, LONG, UCHAR, DType
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.form import RESULT, Argument
from porter.metal.forms.pooling import Pooled, Pooling
from tests.porter.metal.compiled import compile_soon
from tests.porter.metal.forms.launching import with_gaps

HEADS = "#include <c10/metal/atomic.h>\n#include <c10/metal/utils.h>\nusing namespace metal;\n"
LISTS = ("kernel_size", "stride", "padding")
MAXIMUM = Pooling(Pooled.MAXIMUM, "self", *LISTS, "dilation", results=2)
AVERAGE = Pooling(Pooled.AVERAGE, "self", *LISTS, "", "count_include_pad", "divisor_override")
SHAPES = ((2, 3, 9, 7), (3, 8, 10))
# Sizes, strides, paddings and dilations.
WINDOWS = (
    ((3, 2), (3, 2), (1, 1), (1, 1)), ((2, 2), (1, 2), (0, 0), (2, 1)), ((3, 4), (2, 3), (1, 2), (1, 1)),
    ((2, 3), (1, 1), (1, 1), (3, 2)), ((1, 1), (3, 2), (0, 0), (1, 1)),
)  # fmt: skip
Numbers = tuple[tuple[int, int], ...]


def launch(
    found: Pooling,
    tensors: dict[str, torch.Tensor],
    lists: Numbers,
    counts: bool = True,
    divisor: int = 0,
    dtype: DType = FLOAT,
) -> None:
    """Writes the results among some tensors."""
    kernel = found.write_kernels("tested", (dtype,), KernelStyle(True, False))
    name = f"tested_{dtype.metal}_int"
    library = compile_soon(HEADS + kernel.source, name)
    listed = dict(zip((*LISTS, "dilation"), lists, strict=True))

    def value(argument: Argument) -> torch.Tensor:
        if argument.kind == "list":
            return torch.tensor(listed[argument.tensor])
        if argument.kind in ("flag", "number"):
            return torch.tensor([counts] if argument.kind == "flag" else [divisor])
        tensor = tensors[argument.tensor]
        made = {
            "tensor": tensor, "sizes": torch.tensor(tensor.shape), "strides": torch.tensor(tensor.stride()),
            "rank": torch.tensor([tensor.ndim]),
        }  # fmt: skip
        return made[argument.kind]

    threads = tensors[found.walked].numel()
    library.run(name, [value(each) for each in kernel.arguments], (threads,), (32,))


def fresh(like: torch.Tensor, fill: float = -7) -> torch.Tensor:
    return with_gaps(torch.full(like.shape, fill, dtype=like.dtype))


def can_be(shape: Sequence[int], lists: Numbers) -> bool:
    """Whether windows fit into a padded source."""
    return all((k - 1) * d < n + 2 * p for n, k, p, d in zip(shape[-2:], lists[0], lists[2], lists[3], strict=True))


CASES = [(shape, lists, ceil) for shape, lists, ceil in product(SHAPES, WINDOWS, (False, True)) if can_be(shape, lists)]


@pytest.mark.parametrize(("shape", "lists", "ceil"), CASES)
def test_maxima_and_their_gradients(shape: tuple[int, ...], lists: Numbers, ceil: bool) -> None:
    source = torch.randint(-9, 9, shape).float()  # with equal elements
    source.view(-1)[::11], source.view(-1)[5] = float("nan"), -float("inf")
    values, positions = torch.ops.aten.max_pool2d_with_indices(source, *lists, ceil)
    made, at = fresh(values), fresh(positions)
    launch(MAXIMUM, {"self": with_gaps(source), RESULT: made, "result1": at}, lists)
    torch.testing.assert_close(made, values, rtol=0, atol=0, equal_nan=True)
    assert at.equal(positions)
    inside = values != -float("inf")  # others may have no element
    gradient = torch.randint(-8, 9, values.shape).float() * inside
    positions = torch.where(inside, positions, 0)
    expected = torch.zeros_like(source).flatten(-2)
    expected = expected.scatter_add(-1, positions.flatten(-2), gradient.flatten(-2)).reshape(shape)
    tensors = {"self": with_gaps(source), "grad_output": with_gaps(gradient), "indices": with_gaps(positions)}
    back = replace(MAXIMUM, gradient="grad_output", indices="indices", results=1)
    for found, start in ((back, -7.0), (replace(back, indices=""), 0.0)):
        grad_input = fresh(source, start)
        launch(found, {**tensors, RESULT: grad_input}, lists)
        assert grad_input.equal(expected)


@pytest.mark.parametrize(("shape", "lists", "ceil"), [each for each in CASES if each[1][3] == (1, 1)])
def test_averages_and_their_gradients(shape: tuple[int, ...], lists: Numbers, ceil: bool) -> None:
    for counts, divisor in ((True, 0), (False, 0), (True, 5)):
        source = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        expected = torch.ops.aten.avg_pool2d(source, *lists[:3], ceil, counts, divisor or None)
        made = fresh(expected.detach().float())
        launch(AVERAGE, {"self": with_gaps(source.detach().float()), RESULT: made}, lists, counts, divisor)
        torch.testing.assert_close(made.double(), expected.detach(), rtol=2e-6, atol=2e-6)
        gradient = torch.randn(expected.shape, dtype=torch.float64)
        expected.backward(gradient)
        assert source.grad is not None
        grad_input = fresh(source.detach().float())
        tensors = {"self": source.detach().float(), "grad_output": with_gaps(gradient.float()), RESULT: grad_input}
        launch(replace(AVERAGE, gradient="grad_output"), tensors, lists, counts, divisor)
        torch.testing.assert_close(grad_input.double(), source.grad, rtol=2e-6, atol=2e-6)


def test_integers() -> None:
    lists = WINDOWS[2]
    source = torch.randint(-50, 50, (2, 3, 9, 7))
    expected = torch.ops.aten.avg_pool2d(source, *lists[:3])
    made = fresh(expected)
    launch(AVERAGE, {"self": with_gaps(source), RESULT: made}, lists, dtype=LONG)
    assert made.equal(expected)
    values, positions = torch.ops.aten.max_pool2d_with_indices(source, *lists)
    made, at = fresh(values), fresh(positions)
    launch(MAXIMUM, {"self": with_gaps(source), RESULT: made, "result1": at}, lists, dtype=LONG)
    assert made.equal(values) and at.equal(positions)


def test_the_types_of_a_kernel() -> None:
    assert UCHAR in replace(MAXIMUM, dtypes=(FLOAT, INT)).list_types(tuple, False)
    assert replace(AVERAGE, dtypes=(FLOAT, LONG)).list_types(tuple, False) == [FLOAT, LONG]
    adds = replace(MAXIMUM, gradient="grad_output", results=1, dtypes=(FLOAT, HALF))
    assert adds.list_types(lambda: ("half",), False) == [HALF]
