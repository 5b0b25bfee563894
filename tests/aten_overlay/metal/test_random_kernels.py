"""Random kernels, with simdgroup functions anywhere in nested branches, loops and switches: as one, one lane after the
other, and in two other orders of lanes they compute the same."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library

KERNELS = 3
ORDERS: tuple[dict[str, Any], ...] = ({"fibers": True}, {"shuffle": 1}, {"shuffle": 7})
ACROSS = (
    "simd_sum({} & 1023)", "simd_max({})", "simd_shuffle_xor({}, ushort(5))", "simd_prefix_inclusive_sum({} & 255)",
    "int(simd_any({} > 0))", "own[{} & 7]",
)  # fmt: skip
EXCHANGE = (
    "threadgroup_barrier(mem_flags::mem_threadgroup); shared[id] = a; "
    "threadgroup_barrier(mem_flags::mem_threadgroup); c ^= shared[(id * 7 + 3) % size];"
)


@dataclass
class Writer:
    """Writes one random kernel; `loops` counts its loops, to name their counters."""

    choice: random.Random
    loops: int = field(default=0)

    def kernel(self, name: str) -> str:
        parts = [self.block(0, False) + (EXCHANGE if self.choice.random() < 0.6 else "") for _ in range(3)]
        return (
            f"kernel void {name}(constant int* x [[buffer(0)]], device int* out [[buffer(1)]], "
            "uint i [[thread_position_in_grid]], uint id [[thread_index_in_threadgroup]], "
            "uint lane [[thread_index_in_simdgroup]], uint size [[threads_per_threadgroup]]) {\n"
            "threadgroup int shared[1024]; int own[8] = {0, 1, 2, 3, 4, 5, 6, 7}; int a = x[i], b = int(id), c = a & 7;\n"
            f"{' '.join(parts)}\nout[i] = a ^ (b * 3) ^ (c * 5) ^ own[c & 7];\n}}\n"
        )

    def block(self, depth: int, in_loop: bool) -> str:
        return " ".join(self.statement(depth, in_loop) for _ in range(self.choice.randrange(1, 4)))

    def statement(self, depth: int, in_loop: bool) -> str:
        kind = self.choice.randrange(12)
        if kind < 5 or depth > 3:
            return f"{self.choice.choice('abc')} = ({self.expression(0)}) & 0xffff;"
        if kind == 5:
            return f"own[{self.expression(1)} & 7] = ({self.expression(0)}) & 0xff;"
        if kind < 8:
            return f"if {self.condition()} {{ {self.block(depth + 1, in_loop)} }} else {{ {self.block(depth + 1, in_loop)} }}"
        if kind < 10:
            self.loops += 1
            k, rounds = f"k{self.loops}", f"(({self.choice.choice('abc')} + {self.choice.randrange(5)}) & 7)"
            return f"for (int {k} = 0; {k} < {rounds}; ++{k}) {{ {self.block(depth + 1, True)} }}"
        if kind == 10 and in_loop:
            return f"if {self.condition()} {self.choice.choice(['break', 'continue'])};"
        cases = [self.statement(depth + 1, False) for _ in range(4)]
        return (
            f"switch ({self.expression(1)} & 3) {{ case 0: {cases[0]} break; case 1: {cases[1]} default: {cases[2]} }}"
        )

    def condition(self) -> str:
        return f"({self.expression(1)} {self.choice.choice(['<', '>', '==', '!='])} {self.expression(1)})"

    def expression(self, depth: int) -> str:
        kind = self.choice.randrange(7)
        if kind < 3 or depth > 2:
            return self.choice.choice(["a", "b", "c", "int(lane)", "int(id)", str(self.choice.randrange(-9, 9))])
        inner = self.expression(depth + 1)
        if kind == 3:
            return f"({inner} + {self.expression(depth + 1)})"
        if kind == 4:
            return f"({inner} * {self.choice.randrange(1, 4)} ^ {self.expression(depth + 1)})"
        return self.choice.choice(ACROSS).format(inner)


@pytest.mark.parametrize("seed", [1, 2])
def test_random_kernels_do_not_depend_on_the_order_of_lanes(seed: int) -> None:
    choice = random.Random(seed)
    names = [f"random_{n}" for n in range(KERNELS)]
    text = "".join(Writer(choice).kernel(name) for name in names)
    library = Library(compile_kernels(f"#include <metal_stdlib>\nusing namespace metal;\n{text}", names))
    x = np.random.default_rng(seed).integers(0, 200, 512).astype(np.int32)
    for name in names:
        assert library.runs_in_lockstep(name)
        for threads, group in ((512, 256), (200, 96), (33, 33)):
            expected, out = np.zeros(512, np.int32), np.zeros(512, np.int32)
            library.run(name, [x, expected], [threads], [group])
            for order in ORDERS:
                library.run(name, [x, out], [threads], [group], **order)
                assert out.tolist() == expected.tolist()
