"""Cases of atomic functions, barriers, threadgroup memory and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tests.aten_overlay.cuda.case import Case
from tests.aten_overlay.cuda.lane_cases import TYPES


def memory_cases() -> Iterator[Case]:
    generator = np.random.default_rng(2)
    combine: dict[str, tuple[Any, int]] = {
        "add": (np.add, 5), "sub": (np.subtract, 5), "least": (np.minimum, 5), "greatest": (np.maximum, 5),
        "any_bit": (np.bitwise_or, 5), "every_bit": (np.bitwise_and, 2**20 - 1), "odd_bits": (np.bitwise_xor, 5),
    }  # fmt: skip
    kinds = {**TYPES, "ulong": np.uint64}
    names = [
        *product(("add", "sub", "least", "greatest"), ("int", "uint", "float")),
        *product(("least", "greatest"), ("ulong",)),
    ]
    for name, metal in [*names, ("any_bit", "int"), ("every_bit", "uint"), ("odd_bits", "uint")]:
        low = -50 if metal in ("int", "float") else 0
        x = generator.integers(low, 1000, 500).astype(kinds[metal])
        x = x << np.uint64(40) if metal == "ulong" else x
        f, start = combine[name]
        slots = np.full(3, start, kinds[metal])
        expected = slots.copy()
        for i, v in enumerate(x):
            with np.errstate(over="ignore"):
                expected[i % 3] = f(expected[i % 3], v)
        yield Case(
            f"atomic {name} of {metal}", "memory.metal", f"{name}_{metal}", (x, slots), {1: expected}, (500,), (128,)
        )
    x = generator.integers(-9, 9, 500).astype(np.int32)
    # What was exchanged out, with what is left in the slot, is all that was put in.
    ones = np.full(500, 7, np.int32)
    yield Case(
        "exchanged",
        "memory.metal",
        "exchanged",
        (ones, np.array([3], np.int32), np.zeros(1, np.int32)),
        {1: np.array([7], np.int32), 2: np.array([3 + 7 * 499], np.int32)},
        (500,),
        (64,),
    )
    yield Case(
        "compared",
        "memory.metal",
        "compared",
        (x.astype(np.float32), np.zeros(1, np.float32)),
        {1: x.sum(keepdims=True).astype(np.float32)},
        (500,),
        (100,),
    )
    flags = np.array([0, 1, 3, 6] * 10, np.uint32)
    yield Case(
        "flags",
        "memory.metal",
        "flags",
        (flags, np.zeros(8, np.uint8)),
        {1: np.array([0, 1, 0, 1, 0, 0, 1, 0], np.uint8)},
        (40,),
        (40,),
    )
    data = generator.integers(0, 256, 5000).astype(np.uint8)
    bins = np.bincount(data, minlength=256).astype(np.uint32)
    yield Case(
        "counted",
        "memory.metal",
        "counted",
        (data, np.zeros(256, np.uint32), np.array([5000], np.uint32)),
        {1: bins},
        (5000,),
        (256,),
    )
    x = generator.integers(-99, 99, 1024).astype(np.int32)
    yield Case(
        "tree",
        "memory.metal",
        "tree",
        (x, np.zeros(4, np.int32)),
        {1: x.reshape(4, 256).sum(1).astype(np.int32)},
        (1024,),
        (256,),
        threadgroup_bytes={0: 1024, 1: 2048},
    )
    at = np.arange(512, dtype=np.int32)
    yield Case(
        "passed on",
        "memory.metal",
        "passed_on",
        (np.zeros(512, np.int32), np.zeros(512, np.int32)),
        {0: at * 3, 1: ((at & ~127) + (at + 1) % 128) * 3},
        (512,),
        (128,),
    )
    scale = np.zeros(32, np.uint8)
    scale[0:4].view(np.float32)[:] = 1.5
    scale[4:6].view(np.int16)[:] = -7
    scale[16:28].view(np.int32)[:] = (1, 2, 30)
    sizes = np.array([4, 3, 2, 1], np.uint32)
    expected_sums = (2 * 1.5 * sizes[np.arange(100) % 4] - 7 + 30 + 5).astype(np.float32)
    yield Case(
        "passed",
        "memory.metal",
        "passed",
        (np.zeros(100, np.float32), scale, sizes),
        {0: expected_sums},
        (100,),
        (32,),
        values=((0, True), (1, 5)),
    )
