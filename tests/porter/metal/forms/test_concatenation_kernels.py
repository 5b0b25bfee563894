"""The kernel of concatenations against torch, over tensors of several ranks whose strides have gaps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from aten_overlay.metal.launch import Library
from porter.core.dtypes import FLOAT
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.concatenation import Concatenation
from tests.porter.metal.compiled import compile_soon
from tests.porter.metal.forms.launching import with_gaps

HEADS = "#include <c10/metal/utils.h>\nusing namespace metal;\n"
JOINED = Concatenation("tensors", "dim")


def compile_one() -> Library:
    kernel = JOINED.write_kernels("tested", (FLOAT,), KernelStyle(True, False))
    return compile_soon(HEADS + kernel.source, "tested_float_int")


def numbers(values: Sequence[int]) -> torch.Tensor:
    return torch.tensor(list(values), dtype=torch.int64)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 5, 3), (2, 3, 4, 3)])
def test_each_tensor_goes_to_its_part(shape: tuple[int, ...]) -> None:
    library = compile_one()
    for dim in range(len(shape)):
        tensors = [
            with_gaps(torch.randn([size * n if d == dim else size for d, size in enumerate(shape)])) for n in (1, 3, 2)
        ]
        expected = torch.cat(tensors, dim)
        result = with_gaps(torch.full(expected.shape, -1.0))
        start = 0
        for tensor in tensors:
            part = result.narrow(dim, start, tensor.shape[dim])
            start += tensor.shape[dim]
            sizes = (tensor.shape, part.stride(), tensor.stride(), (tensor.ndim,), (tensor.numel(),))
            values = [part, tensor, *map(numbers, sizes)]
            library.run("tested_float_int", values, (-(-tensor.numel() // 4),), (32,))
        assert result.equal(expected)


def test_elements_of_all_types_are_moved() -> None:
    assert {each.metal for each in JOINED.list_types(tuple, False)} >= {"float", "half", "bool", "long", "float2"}
    assert "float2" not in {each.metal for each in JOINED.list_types(tuple, True)}
