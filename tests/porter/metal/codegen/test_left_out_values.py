"""A kernel with and without the tensors that may be left out, against float64."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from aten_overlay.metal.launch import Library
from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.kernel import KernelStyle, write_kernel
from tests.porter.metal.codegen.test_kernel_values import INCLUDES
from tests.porter.metal.compiled import compile_soon
from tests.porter.plan.recorded import fork, left_out


@pytest.fixture(scope="module")
def library() -> Library:
    program = prepare(left_out.centered()).cases[0]
    kernel = write_kernel(program, program.nests[0], "tested", {0: "output", 1: "sums"}, KernelStyle(True, False))
    names = [fork.OUTPUT, left_out.SUMS, left_out.TOTAL, fork.INPUT, left_out.WEIGHT]
    assert list(kernel.buffers) == names
    assert [each.name for each in kernel.numbers] == ["width", "has_weight", "has_output1", "has_total"]
    return compile_soon(INCLUDES + kernel.source, "tested_float_int")


@pytest.mark.parametrize("given", list(product((True, False), repeat=3)))
def test_every_choice_of_tensors(library: Library, given: tuple[bool, ...]) -> None:
    source, weight = torch.randn(6, 70), torch.randn(6)
    output, sums, total = torch.full((6, 70), 7.0), torch.full((6,), 7.0), torch.full((6,), 3.0)
    flags = [torch.tensor([each]) for each in given]
    numbers = [torch.tensor([70], dtype=torch.int32), *flags]
    library.run("tested_float_int", [output, sums, total, source, weight, *numbers], (6 * 64,), (64,))
    exact = source.double()
    centered = exact - exact.mean(-1, keepdim=True)
    expected = centered * weight.double()[:, None] if given[0] else centered
    torch.testing.assert_close(output.double(), expected, rtol=1e-5, atol=1e-5)
    row = exact.sum(-1)
    torch.testing.assert_close(sums.double(), row if given[1] else torch.full_like(row, 7), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(total.double(), row + 3 if given[2] else torch.full_like(row, 3), rtol=1e-5, atol=1e-5)
