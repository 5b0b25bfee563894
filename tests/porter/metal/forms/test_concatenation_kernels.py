"""The kernel of concatenations against torch, over tensors of several ranks: dense ones, and such with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
import torch

from aten_overlay.metal.launch import Library
from porter.core.dtypes import FLOAT
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.schedule import ALONE, NEIGHBORS, PLACES
from porter.metal.forms.concatenation import Concatenation
from porter.metal.helpers import read_helper
from tests.porter.metal.compiled import compile_soon
from tests.porter.metal.forms.launching import with_gaps

HEADS = f"#include <c10/metal/utils.h>\nusing namespace metal;\n{read_helper('neighbors.metal')}"
JOINED = Concatenation("tensors", "dim")
TAIL = "if (i < columns)"


@cache
def compile_one(count: int, test: str = TAIL) -> Library:
    source = JOINED.write_kernels("tested", (FLOAT,), KernelStyle(True, False)).source
    assert TAIL in source
    return compile_soon(HEADS + source.replace(TAIL, test), f"tested_float_int_{count}")


def move(tensor: torch.Tensor, part: torch.Tensor, count: int, test: str = TAIL) -> None:
    """Launches the kernel as host code does for dimensions that an iterator has not joined: the last is its first."""

    def strides(of: torch.Tensor) -> list[int]:
        return [step * of.element_size() for step in reversed(of.stride())]

    rows = tensor.shape[::-1], strides(part), strides(tensor), (tensor.ndim,)
    numbers = (torch.tensor(list(values), dtype=torch.int64) for values in rows)
    columns = tensor.shape[-1]
    threads = tensor.numel() // columns * -(-columns // (PLACES * count))
    compile_one(count, test).run(f"tested_float_int_{count}", [part, tensor, *numbers], (threads,), (32,))


def join(tensors: Sequence[torch.Tensor], dim: int, result: torch.Tensor, count: int, test: str = TAIL) -> None:
    start = 0
    for tensor in tensors:
        move(tensor, result.narrow(dim, start, tensor.shape[dim]), count, test)
        start += tensor.shape[dim]


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 5, 3), (2, 3, 4, 3)])
def test_each_tensor_goes_to_its_part(shape: tuple[int, ...]) -> None:
    for dim in range(len(shape)):
        tensors = [
            with_gaps(torch.randn([size * n if d == dim else size for d, size in enumerate(shape)])) for n in (1, 3, 2)
        ]
        expected = torch.cat(tensors, dim)
        result = with_gaps(torch.full(expected.shape, -1.0))
        join(tensors, dim, result, ALONE)
        assert result.equal(expected)


@pytest.mark.parametrize("columns", [4, 12, 16, 20, 52])
def test_neighbors_are_moved_at_once(columns: int) -> None:
    tensors = [torch.randn(3, columns), torch.randn(3, 3 * columns)]
    result = torch.full((3, 4 * columns), -1.0)
    join(tensors, 1, result, NEIGHBORS)
    assert result.equal(torch.cat(tensors, 1))


@pytest.mark.parametrize("count", [ALONE, NEIGHBORS])
def test_a_tail_without_its_test_writes_into_the_next_row(count: int) -> None:
    """A planted fault: the last places of a thread may be beyond the end of its row."""
    columns = 5 * count
    tensors = [torch.randn(3, columns), torch.randn(3, columns)]
    result, right = torch.full((4, 2 * columns), -1.0), torch.full((4, 2 * columns), -1.0)
    join(tensors, 1, result[:3], count, "if (true)")
    join(tensors, 1, right[:3], count)
    assert right[3].eq(-1).all() and right[:3].equal(torch.cat(tensors, 1))
    assert not result.equal(right)


def test_neighbors_of_a_row_that_is_no_multiple_of_them_write_into_the_next() -> None:
    """A planted fault: why host code compares sizes, strides and offsets with the number of neighbors."""
    tensor, result = torch.randn(3, NEIGHBORS + 2), torch.full((4, NEIGHBORS + 2), -1.0)
    join([tensor], 1, result[:3], NEIGHBORS)
    assert not result[3].eq(-1).all()


def test_elements_of_all_types_are_moved() -> None:
    assert {each.metal for each in JOINED.list_types(tuple, False)} >= {"float", "half", "bool", "long", "float2"}
    assert "float2" not in {each.metal for each in JOINED.list_types(tuple, True)}
