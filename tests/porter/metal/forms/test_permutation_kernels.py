"""Random orders: words of 64 bits, which blocks and merges sort, places in any type, and faults that are planted."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root
from porter.core.dtypes import BFLOAT, INT, LONG
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.sort import HELPERS, Permutation
from porter.metal.helpers import read_helper

FAULTS = {
    "the same word for all": ("state[1] + tid", "state[1]"),
    "words of few bits": ("static_cast<ulong>(drawn.x) << 32 | drawn.y", "drawn.x & 3"),
    "the words of another seed": ("draw_words(state[0], ", "draw_words(1, "),
    "places of a block": ("start + shared_indices[i];", "shared_indices[i];"),
    "results without gaps": ("index_t(tid) * index_t(stride)", "tid"),
    "blocks that are not merged": ("run_indices[from];", "run_indices[row_start + to];"),
    "the order of the left run alone": ("right++ : left++);", "left++ : left++);"),
}
TYPES = {torch.int64: "long", torch.int32: "int", torch.bfloat16: "bfloat"}
WIDTH = 128


@cache
def build(fault: str = "") -> Library:
    kernels = Permutation("generator").write_kernels("tested", (LONG, INT, BFLOAT), KernelStyle(True, False)).source
    words = f"{read_helper('draw_words.metal')}{kernels.replace('c10::metal::philox4::rand(', 'draw_words(')}"
    source = f"#include <c10/metal/utils.h>\nusing namespace metal;\n{HELPERS}{words}"
    before, after = FAULTS[fault] if fault else ("", "")
    assert before in source
    names = ["tested_draw", "tested_blocks_long_int", "tested_merge_long_int"]
    names += [f"tested_{each}_int" for each in TYPES.values()]
    options = Options(include=(torch_root() / "include",), optimization=QUICK)
    return Library(compile_kernels(source.replace(before, after), names, options))


def longs(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def order(library: Library, size: int, seed: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """What host code does, with blocks of the least width; into memory with gaps."""
    words, places = torch.full((2, size), -1), torch.full((2, size), -1)
    library.run("tested_draw", [words[1], longs(seed, 3)], (size,))
    row = [longs(size), longs(1), longs(1)]
    rest = [longs(1), longs(size), torch.tensor([False])]
    blocks = [words[0], places[0], words[1], *row, longs(1), *rest]
    library.run("tested_blocks_long_int", blocks, (-(-size // WIDTH) * WIDTH // 4,), (WIDTH // 4,))
    width, runs = WIDTH, 0
    while width < size:
        merged = [words[1 - runs], places[1 - runs], words[runs], places[runs], *row, *rest, longs(width)]
        library.run("tested_merge_long_int", merged, (-(-size // 4),), (32,))
        width, runs = 2 * width, 1 - runs
    result = torch.full((size, 2), -1, dtype=dtype)
    library.run(f"tested_{TYPES[dtype]}_int", [result[:, 0], places[runs], longs(2)], (size,))
    return result


def is_right(library: Library) -> bool:
    """Whether all orders of four numbers are as probable, and larger ones have each number once, far from its place."""
    orders = [order(library, 4, seed)[:, 0] for seed in range(600)]
    counts = torch.stack(orders).unique(dim=0, return_counts=True)[1]
    if len(counts) != 24 or float(((counts - 25) ** 2 / 25).sum()) > 60:  # of 23 degrees of freedom
        return False
    return all(_is_mixed(order(library, size, size)) for size in (128, 129, 257, 1000))


def _is_mixed(memory: torch.Tensor) -> bool:
    """Whether an order has each number once, steps up as often as down, and moves numbers by a third of its size."""
    numbers, gaps = memory.unbind(1)
    size = len(numbers)
    ups = float((numbers.diff() > 0).double().mean())
    moved = float((numbers - torch.arange(size)).abs().double().mean())
    is_whole = torch.equal(numbers.sort().values, torch.arange(size)) and bool((gaps == -1).all())
    return is_whole and abs(ups - 0.5) < 6 * (1 / (12 * size)) ** 0.5 and abs(moved / size - 1 / 3) < 1 / 12


def test_orders_are_as_probable_and_whole() -> None:
    assert is_right(build())


@pytest.mark.parametrize("dtype", TYPES)
def test_any_type(dtype: torch.dtype) -> None:
    for size in (1, 2, 200):
        assert torch.equal(order(build(), size, 7, dtype), order(build(), size, 7).to(dtype))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    assert not is_right(build(fault))
