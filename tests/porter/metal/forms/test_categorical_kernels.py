"""Draws by weights: sums of any rows, the category of each random number, and faults that are planted."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root
from porter.core.dtypes import FLOAT
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.categorical import Categorical
from porter.metal.helpers import read_helper
from tests.porter.metal.forms.launching import with_gaps

FAULTS = {
    "sums of a share alone": ("row_sums[i] += before;", ""),
    "the share of the next thread": ("i < tid; i++", "i <= tid; i++"),
    "weights without gaps": ("row[i * index_t(strides[1])]", "row[i]"),
    "weights of the first row": ("index_t(group) * index_t(strides[0])", "0"),
    "draws by the first row": ("ulong(tid) / sizes[1] * n", "0"),
    "the same number for all": ("state[1] + tid", "state[1]"),
    "numbers up to the half": ("1.0f / (1 << 24)", "1.0f / (1 << 25)"),
    "the category before": ("output[tid] = first;", "output[tid] = first > 0 ? first - 1 : 0;"),
    "the end of a category": ("row[middle] > point", "row[middle] + total / 8 > point"),
}
SIZES = st.sampled_from((1, 2, 5, 31, 255, 256, 257, 1000))


@cache
def build(fault: str = "") -> Library:
    kernels = Categorical("self", "generator").write_kernels("tested", (FLOAT,), KernelStyle(True, False)).source
    words = f"{read_helper('draw_words.metal')}{kernels.replace('c10::metal::philox4::rand(', 'draw_words(')}"
    source = f"#include <c10/metal/utils.h>\nusing namespace metal;\n{words}"
    before, after = FAULTS[fault] if fault else ("", "")
    assert source.count(before) == 1 or not fault
    options = Options(include=(torch_root() / "include",), optimization=QUICK)
    names = ["tested_sums_float_int", "tested_draw"]
    return Library(compile_kernels(source.replace(before, after), names, options))


def add_up(library: Library, weights: torch.Tensor) -> torch.Tensor:
    sums = torch.full(weights.shape, -1.0)
    numbers = torch.tensor([weights.shape[1]]), torch.tensor(weights.stride())
    library.run("tested_sums_float_int", [sums, weights, *numbers], (len(weights) * 256,), (256,))
    return sums


def draw(library: Library, sums: torch.Tensor, count: int, seed: int = 5) -> torch.Tensor:
    drawn = torch.full((len(sums), count), -1)
    numbers = torch.tensor([sums.shape[1], count]), torch.tensor([seed, 3])
    library.run("tested_draw", [drawn, sums, *numbers], (drawn.numel(),))
    return drawn


def is_right(library: Library, rows: int, size: int) -> bool:
    """Whether sums never get less and are as in float64, and shares of draws are those of weights."""
    weights = with_gaps(torch.rand(rows, size, generator=torch.Generator().manual_seed(0)).relu_().mul(4).floor())
    weights[:, 0] += 1
    sums = add_up(library, weights)
    exact = weights.double().cumsum(-1)
    is_summed = torch.allclose(sums.double(), exact, rtol=1e-6) and bool((sums.diff(dim=-1) >= 0).all())
    drawn = draw(library, sums, count := 4000)
    shares = torch.stack([row.bincount(minlength=size)[:size] for row in drawn.clamp(min=0)]) / count
    expected = weights / weights.sum(-1, keepdim=True)
    allowed = 6 * (expected * (1 - expected) / count).sqrt()
    is_weighted = bool(((shares - expected).abs() <= allowed).all()) and bool((drawn >= 0).all())
    return is_summed and is_weighted and len(drawn.unique(dim=0)) == rows


@settings(max_examples=12, deadline=None)
@given(rows=st.integers(1, 3), size=SIZES)
def test_any_rows(rows: int, size: int) -> None:
    assert size == 1 or is_right(build(), rows, size)


def test_a_category_without_a_weight_is_never_drawn() -> None:
    """Of a total that random numbers are rounded to, at the end of a row too."""
    sums = add_up(build(), torch.tensor([[0.0, 1 + 2.0**-23, 0.0]]))
    assert draw(build(), sums, 1 << 20).unique().tolist() == [1]
    assert draw(build(), torch.zeros(1, 4), 8).unique().tolist() == [0]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    assert not is_right(build(fault), 2, 9) or not is_right(build(fault), 2, 300)
