"""Kernels that compute of scalars alone, in the types of their results, against float64 and whole numbers."""

from __future__ import annotations

import pytest
import torch

from porter.metal.codegen.kernel import KernelStyle
from tests.porter.metal.codegen.test_kernel_values import compile_one
from tests.porter.plan.recorded import scalars

STYLE = KernelStyle(True, False)
FLOATING = {"float": (torch.float32, 2e-7), "half": (torch.float16, 5e-4), "bfloat": (torch.bfloat16, 4e-3)}
WHOLE = {"long": torch.int64, "int": torch.int32, "short": torch.int16, "uchar": torch.uint8, "char": torch.int8}


def number(name: str, start: torch.Tensor, step: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The first 1000 numbers."""
    suffix = f"{name}_int"
    kernel, library = compile_one(scalars.numbered(), STYLE, suffix)
    assert [each.name for each in kernel.numbers] == ["start", "step"]
    output = torch.full((1000,), 7).to(dtype)
    library.run(f"tested_{suffix}", [output, start, step], (1000,), (32,))
    return output


@pytest.mark.parametrize("name", FLOATING)
def test_reduced_types_round_once(name: str) -> None:
    dtype, tolerance = FLOATING[name]
    start, step = torch.tensor([0.3]), torch.tensor([0.1])
    exact = start.double() + torch.arange(1000).double() * step.double()
    torch.testing.assert_close(number(name, start, step, dtype).double(), exact, rtol=tolerance, atol=0)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_exact(name: str) -> None:
    dtype = WHOLE[name]
    first = 2**60 + 1 if dtype is torch.int64 else 5
    start, step = torch.tensor([first]), torch.tensor([3])
    exact = (first + 3 * torch.arange(1000)).to(dtype)  # narrow types wrap, as on the CPU
    assert number(name, start, step, dtype).equal(exact)


def test_a_scalar_is_stored_in_any_type() -> None:
    values = {"float": torch.tensor([0.1]), "long": torch.tensor([2**62 + 1]), "bool": torch.tensor([True]),
              "half": torch.tensor([0.1]).half(), "float2": torch.tensor([0.5 - 2j])}  # fmt: skip
    for name, value in values.items():
        suffix = f"{name}_int"
        _, library = compile_one(scalars.set_all(), STYLE, suffix)
        output = torch.zeros(77, dtype=value.dtype)
        library.run(f"tested_{suffix}", [output, *dims((77,), (1,)), value], (77,), (32,))
        assert output.equal(value.expand(77))


def test_a_scalar_is_stored_where_the_result_is() -> None:
    _, library = compile_one(scalars.set_all(), STYLE, "float_int")
    storage = torch.zeros(4, 5, 6)
    view = storage[:, 1:4, ::2]
    library.run("tested_float_int", [storage.flatten()[6:], *dims((3, 3, 4), (2, 6, 30)), torch.ones(1)], (36,), (32,))
    assert view.eq(1).all() and storage.sum() == view.numel()


@pytest.mark.parametrize("name", ["float", "half", "long", "int", "float2"])
def test_one_kernel_computes_in_float_for_all_types(name: str) -> None:
    kernel, library = compile_one(scalars.spread(), STYLE, f"{name}_int")
    assert "constant float& start" in kernel.source and "acc_t" not in kernel.source
    dtype = {**WHOLE, "float": torch.float32, "half": torch.float16, "float2": torch.complex64}[name]
    output = torch.zeros(100, dtype=dtype)
    library.run(f"tested_{name}_int", [output, torch.tensor([-7.25]), torch.tensor([0.5])], (100,), (32,))
    assert output.equal((torch.arange(100).double() * 0.5 - 7.25).to(dtype))


def dims(sizes: tuple[int, ...], strides: tuple[int, ...]) -> list[torch.Tensor]:
    """The dimensions of a result, the innermost first, as a kernel takes them."""
    return [torch.tensor(sizes), torch.tensor(strides), torch.tensor([len(sizes)], dtype=torch.int32)]
