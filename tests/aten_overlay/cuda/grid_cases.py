"""Cases of grids: ragged ones, long ones, and those of which a thread may have several positions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from tests.aten_overlay.cuda.case import Array, Case


def grid_cases() -> Iterator[Case]:
    shapes = [
        ((37, 5, 3), (8, 4, 2)),
        ((100, 1, 1), (32, 1, 1)),
        ((1000, 1, 1), (256, 1, 1)),
        ((7, 9, 1), (16, 16, 1)),
        ((5, 6, 70), (1, 3, 64)),
    ]
    for grid, group in shapes:
        expected = _places(grid, group)
        yield Case(f"places {grid}", "grids.metal", "places", (np.zeros_like(expected),), {0: expected}, grid, group)
    counts = np.full((10, 50), 32, np.uint32)  # threadgroups of (16, 4), ragged to (2, 4), (16, 2) and (2, 2)
    for y in range(10):
        for x in range(50):
            wide, high = (16 if x < 48 else 2), (4 if y < 8 else 2)
            index = x % 16 + y % 4 * wide
            counts[y, x] = min(32, wide * high - index // 32 * 32)
    yield Case("sums", "grids.metal", "sums", (np.zeros(500, np.uint32),), {0: counts.reshape(-1)}, (50, 10), (16, 4))
    for long in ((2, 70000, 2), (1, 3, 70000)):
        i = np.arange(long[0] * long[1] * long[2])
        values = (i % long[0] + i // long[0] % long[1] * 3 + i // long[0] // long[1] * 5).astype(np.uint8)
        yield Case(
            f"long way {long}", "grids.metal", "long_way", (np.zeros_like(values),), {0: values}, long, (1, 1, 1)
        )
    yield from _twice()


def _places(grid: tuple[int, int, int], group: tuple[int, int, int]) -> Array:
    rows = []
    groups = [-(-n // m) for n, m in zip(grid, group, strict=True)]
    for z, y, x in product(*(range(n) for n in reversed(grid))):
        at = (x, y, z)
        local = [p % m for p, m in zip(at, group, strict=True)]
        where = [p // m for p, m in zip(at, group, strict=True)]
        size = [min(m, n - w * m) for m, n, w in zip(group, grid, where, strict=True)]
        index = local[0] + size[0] * (local[1] + size[1] * local[2])
        count = size[0] * size[1] * size[2]
        rows.append([
            local[0] | local[1] << 8 | local[2] << 16, *where, (size[0] | size[1] << 8 | size[2] << 16) & 0xFFFFFFFF,
            (sum(groups) + (group[0] << 16)), index, index % 32 | index // 32 << 8 | -(-count // 32) << 16,
        ])  # fmt: skip
    return np.array(rows, np.uint32).reshape(-1)


def _twice() -> Iterator[Case]:
    generator = np.random.default_rng(5)
    kinds = {"uchar": np.uint8, "half": np.float16, "float": np.float32, "ulong": np.uint64, "float4": np.float32}
    for metal, n in product(kinds, (1, 1000, 4096)):
        wide = 4 if metal == "float4" else 1
        x = generator.integers(0, 100, n * wide).astype(kinds[metal])
        buffers = (np.zeros_like(x), x, np.array([n], np.uint32))
        yield Case(f"twice {metal}, {n}", "grids.metal", f"twice_{metal}", buffers, {0: x + x}, (n,), (256,))
