"""Weights of scores, and products of few elements, against float64: of any sizes and masks, and with planted faults."""

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
from porter.metal.forms.contraction import Attention
from porter.metal.helpers import read_helper

HEADS = "#include <c10/metal/utils.h>\n#include <metal_simdgroup_matrix>\nusing namespace metal;\n"
FORM = Attention("query", "key", "value", "mask", "causal", "scale")
SIZES = st.sampled_from((1, 2, 7, 31, 32, 33, 40, 65, 130))
FAULTS = {
    "the key behind the own place": ("query + 1 : keys", "query + 2 : keys"),
    "the own place left out": ("query + 1 : keys", "query : keys"),
    "places of all heads": ("tid.y % queries, head", "tid.y, head"),
    "weights of what no key is seen by": ("has_weights = !simd_all(is_hidden)", "has_weights = true"),
    "what is hidden for one lane alone": ("!simd_all(is_hidden)", "!is_hidden"),
    "scores as they are": ("precise::exp(scores[i] - greatest)", "precise::exp(scores[i])"),
    "the greatest of a lane": ("greatest = simd_max(greatest);", ""),
    "the sum of a lane": ("1 / simd_sum(sum)", "1 / sum"),
    "no mask in the tail": ("if (sizes[4])", "if (sizes[4] && i < keys / 32 * 32)"),
    "the mask of another head": ("head * index_t(strides[1])", "(head + 1) % heads * index_t(strides[1])"),
    "the mask of another batch": ("first = batch * index_t(strides[0])", "first = 0"),
    "the mask of another query": ("query * index_t(strides[2])", "0"),
    "a mask whose keys are neighbors": ("i * index_t(strides[3])", "i"),
    "rows by the steps of columns": ("row * index_t(strides[4])", "row * index_t(strides[5])"),
    "an element too few": ("k < inner", "k + 1 < inner"),
    "scores of infinity that are hidden": ("scores[i] - INFINITY", "-INFINITY"),
}  # fmt: skip


@cache
def write_source() -> str:
    source = FORM.write_kernels("tested", (FLOAT,), KernelStyle(True, False)).source
    begin = source.rindex("template <", 0, source.index("kernel void tested_direct("))
    return f"{HEADS}{read_helper('ProductTile.metal')}{source[begin:]}"


@cache
def build(fault: str = "") -> Library:
    source = write_source()
    before, after = FAULTS[fault] if fault else ("", "")
    assert source.count(before) == 1 or not fault
    options = Options(include=(torch_root() / "include",), optimization=QUICK)
    names = ["tested_softmax_float_int", "tested_direct_float_int"]
    return Library(compile_kernels(source.replace(before, after), names, options))


def multiplies(library: Library, batches: int, rows: int, inner: int, columns: int) -> bool:
    """Whether the half of a product is right, of operands with heads between rows and elements, and transposed."""
    first, second = torch.randn(rows, batches, inner).transpose(0, 1), torch.randn(batches, columns, inner).mT
    product = torch.full((batches, rows, columns), 7.0)
    strides = torch.tensor([*product.stride(), *first.stride(), *second.stride(), 0, 0, 0])
    numbers = torch.tensor([rows, columns, inner, 1]), strides, torch.tensor([0.5, 0, 0, 0]), torch.tensor([1, 1])
    library.run(
        "tested_direct_float_int", [product, first, second, product, *numbers], (columns, rows, batches), (2, 3, 4)
    )
    return torch.allclose(product.double(), first.double() @ second.double() / 2, rtol=1e-5, atol=1e-5)


def weigh(library: Library, scores: torch.Tensor, mask: torch.Tensor | None, is_causal: bool) -> torch.Tensor:
    """Weights of scores of batches, heads, queries and keys."""
    weights = scores.clone()
    _, heads, queries, keys = scores.shape
    added = scores if mask is None else mask.expand_as(scores)
    sizes = torch.tensor([keys, queries, heads, is_causal, mask is not None])
    arguments = [weights, added, sizes, torch.tensor(added.stride())]
    library.run("tested_softmax_float_int", arguments, (32, scores.numel() // keys, 1), (32, 8, 1))
    return weights


def expect(scores: torch.Tensor, mask: torch.Tensor | None, is_causal: bool) -> torch.Tensor:
    wide = scores.double() if mask is None else scores.double() + mask
    if is_causal:
        wide = wide + torch.full(wide.shape[-2:], -torch.inf).triu(1)
    return wide.softmax(-1).masked_fill((wide == -torch.inf).all(-1, keepdim=True), 0)


def draw(batches: int, heads: int, queries: int, keys: int, seed: int = 0) -> torch.Tensor:
    """Scores of many magnitudes, of which some are hidden, and all of some rows."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(batches, heads, queries, keys, generator=generator) * 20
    scores[torch.rand(scores.shape, generator=generator) < 0.2] = -torch.inf
    scores[:, :, ::3] = -torch.inf
    return scores


def draw_masks() -> list[torch.Tensor | None]:
    """Masks that are broadcast over all dimensions, with keys that are no neighbors."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((2, 1, 40, 70), (1, 3, 1, 70), (40, 70), (40, 1))
    masks = (torch.randn((*shape, 2), generator=generator)[..., 1] for shape in shapes)
    return [None, *masks]


def hide_all_but_nan() -> torch.Tensor:
    scores = torch.full((1, 1, 3, 40), -torch.inf)
    scores[0, 0, 1, 35] = torch.nan
    return scores


def is_right(library: Library, scores: torch.Tensor, mask: torch.Tensor | None, is_causal: bool) -> bool:
    weights, expected = weigh(library, scores, mask, is_causal).double(), expect(scores, mask, is_causal)
    return torch.allclose(weights, expected, rtol=1e-5, atol=1e-30, equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(queries=SIZES, keys=SIZES, heads=st.integers(1, 3), is_causal=st.booleans(), seed=st.integers(0, 99))
def test_any_sizes(queries: int, keys: int, heads: int, is_causal: bool, seed: int) -> None:
    scores = draw(1, heads, queries, keys, seed)
    mask = torch.randn(queries, 1) if seed % 2 else None
    assert is_right(build(), scores, mask, is_causal)


@settings(max_examples=20, deadline=None)
@given(batches=st.integers(1, 4), rows=st.integers(1, 9), inner=st.integers(0, 40), columns=st.integers(1, 9))
def test_products_of_any_strides(batches: int, rows: int, inner: int, columns: int) -> None:
    assert multiplies(build(), batches, rows, inner, columns)


def test_masks_of_any_strides() -> None:
    assert all(is_right(build(), draw(2, 3, 40, 70), mask, False) for mask in draw_masks())


def test_a_score_that_is_no_number_reaches_its_row_alone() -> None:
    weights = weigh(build(), hide_all_but_nan(), None, False)
    assert weights[0, 0, 1].isnan().all() and not weights[0, 0, ::2].any()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    library, drawn, large = build(fault), draw(2, 3, 40, 70), torch.full((1, 1, 3, 3), 200.0)
    infinite = torch.full((1, 1, 4, 4), torch.inf).triu(1)  # in hidden places alone
    others = ((drawn, True), (large, False), (hide_all_but_nan(), False), (infinite, True))
    cases = [*((drawn, mask, False) for mask in draw_masks()), *((scores, None, causal) for scores, causal in others)]
    assert not (multiplies(library, 3, 4, 5, 6) and all(is_right(library, *case) for case in cases))
