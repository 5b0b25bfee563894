"""Inverses against float64: of any sizes and strides, with pivots of every place, and with faults that are planted."""

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
from porter.metal.forms.contraction import Inverse

HEADS = "#include <c10/metal/utils.h>\nusing namespace metal;\n"
SIZES = st.sampled_from((1, 2, 3, 5, 8, 17, 31, 32, 33, 40, 70))
FAULTS = {
    "the pivot that is on the diagonal": ("if (value > greatest)", "if (false)"),
    "the greatest pivot of a lane": ("simd_max(greatest)", "greatest"),
    "a pivot of one simdgroup": ("uint i = 1; i < simdgroups", "uint i = 1; i < 1"),
    "a column that stays": ("i == index_t(place) ? row[k] :", "false ? row[k] :"),
    "rows that stay": ("other[j] = row[j];", ""),
    "an order that stays": ("rows[place] = before;", ""),
    "factors as they are": ("const T scale = pivot == 0 ? 1 : 1 / pivot", "const T scale = 1"),
    "factors of no pivot": ("pivot == 0 ? 1 : 1 / pivot", "1 / pivot"),
    "one row too few": ("k + 1 + simdgroup", "k + 2 + simdgroup"),
    "the column's factors lost": ("j == k ? factor :", "j == k ? 0 :"),
    "no rows before": ("k < i; k++", "k + 1 < i; k++"),
    "no rows behind": ("k > i; k--", "k > i + 1; k--"),
    "one matrix for all": ("work + index_t(group) * n * n", "work"),
    "columns by the steps of rows": ("j * index_t(strides[2])", "j * index_t(strides[1])"),
    "the last pivot that is 0": ("pivot == 0 && singular == 0", "pivot == 0"),
    "pivots from 0 on": ("singular = k + 1", "singular = k"),
}  # fmt: skip


@cache
def build(fault: str = "") -> Library:
    source = Inverse("A").write_kernels("tested", (FLOAT,), KernelStyle(True, False)).source
    before, after = FAULTS[fault] if fault else ("", "")
    assert source.count(before) == 1 or not fault
    options = Options(include=(torch_root() / "include",), optimization=QUICK)
    return Library(compile_kernels(HEADS + source.replace(before, after), ["tested_float_int"], options))


def invert(library: Library, matrices: torch.Tensor, threads: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
    """The inverses, in columns, and the first pivots that are 0."""
    count, size, _ = matrices.shape
    inverses, info = torch.full_like(matrices, 7).mT, torch.full((count,), 7, dtype=torch.int32)
    scratch = torch.empty(count, size), torch.empty(count, size, dtype=torch.int32)
    numbers = torch.tensor([size]), torch.tensor(inverses.stride())
    arguments = [info, inverses, matrices.clone().contiguous(), *scratch, *numbers]
    library.run("tested_float_int", arguments, (count * threads, 1, 1), (threads, 1, 1))
    return inverses, info


def draw(count: int, size: int, seed: int = 0) -> torch.Tensor:
    """Well-conditioned matrices whose rows are in any order."""
    generator = torch.Generator().manual_seed(seed)
    matrices: torch.Tensor = torch.eye(size) * 3 + torch.randn(count, size, size, generator=generator) / size**0.5 / 2
    matrices = matrices[:, torch.randperm(size, generator=generator)]
    return matrices


def is_right(library: Library, matrices: torch.Tensor) -> bool:
    inverses, info = invert(library, matrices)
    return torch.allclose(inverses.double(), matrices.double().inverse(), rtol=1e-5, atol=1e-6) and not info.any()


@settings(max_examples=20, deadline=None)
@given(size=SIZES, count=st.integers(1, 3), seed=st.integers(0, 99))
def test_any_sizes(size: int, count: int, seed: int) -> None:
    assert is_right(build(), draw(count, size, seed))


def test_few_threads_are_as_right() -> None:
    inverses, _ = invert(build(), draw(2, 5), 32)
    torch.testing.assert_close(inverses, draw(2, 5).inverse())


def make_singular() -> torch.Tensor:
    """Matrices without an inverse, of small whole numbers, and one that exchanges rows."""
    whole = torch.randint(-1, 2, (30, 4, 4), generator=torch.Generator().manual_seed(0)).float()
    return torch.cat(
        (torch.eye(4).flip(0)[None], torch.zeros(1, 4, 4), torch.diag(torch.tensor([1.0, 0, 0, 2]))[None], whole)
    )


def is_as_the_cpu(library: Library) -> bool:
    """Whether singular matrices have the same elements as on the CPU, and pivots."""
    inverses, info = invert(library, make_singular())
    expected = torch.linalg.inv_ex(make_singular())
    return torch.equal(info, expected.info) and torch.allclose(inverses, expected.inverse, atol=1e-6, equal_nan=True)


def test_a_singular_matrix_is_told_by_its_first_pivot() -> None:
    assert is_as_the_cpu(build()) and invert(build(), make_singular())[1].count_nonzero() > 5


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    library = build(fault)
    assert not (is_as_the_cpu(library) and is_right(library, draw(2, 40)))
