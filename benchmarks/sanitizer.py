"""What each check of the sanitizer costs: CPU time of a launch on one thread, medians, as multiples of one without.

python benchmarks/sanitizer.py [--rounds N] [KERNEL ...]

Kernels are those of kernels.metal, with small arguments. `off` are milliseconds; the rows are the checks, each alone,
then `bounds only` (checks of bounds without the sanitizer, as `Options(checked=True)` compiles them), and all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kernels import SOURCE, compare

from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.sanitizer.checks import CHECKS, NAMES
from aten_overlay.toolchain import torch_root

ELEMENTS, ROWS, COLUMNS, GROUP, SIDE = 1 << 16, 64, 1024, 256, 64
ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """A kernel with its arguments, its grid and its threadgroups."""

    kernel: str
    buffers: tuple[Any, ...]
    grid: tuple[int, ...]
    group: tuple[int, ...]

    def runs(self, library: Library) -> Callable[[], None]:
        """The launch."""
        return lambda: library.run(self.kernel, self.buffers, self.grid, self.group, threads=1)


def make_cases() -> list[Case]:
    """An elementwise kernel, one with a barrier in each row, and a product of matrices."""
    random = np.random.default_rng(1)
    values = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    left, right = (random.normal(size=(SIDE, SIDE)).astype(np.float32) for _ in range(2))
    row = (values, np.zeros_like(values), np.array([COLUMNS], np.uint32), np.array([1e-5], np.float32))
    product = (left, right, np.zeros_like(left), np.array([SIDE], np.uint32))
    return [
        Case("k_tanh", (values, np.zeros_like(values)), (ELEMENTS,), (GROUP,)),
        Case("rms_norm", row, (ROWS * GROUP,), (GROUP,)),
        Case("matmul", product, (SIDE // 64 * 128, SIDE // 64), (128,)),
    ]


def make_variants() -> list[tuple[str, Options]]:
    """What is compared, by name: `off` first."""
    include = (torch_root() / "include",)
    watched = [(check.name, Options(include, sanitize=(check.name,))) for check in CHECKS]
    whole = [("bounds only", Options(include, checked=True)), ("all", Options(include, sanitize=NAMES))]
    return [("off", Options(include)), *watched, *whole]


def measure(case: Case, source: Path, rounds: int) -> list[float]:
    """The seconds of each variant."""
    libraries = [Library(compile_kernels(source, [case.kernel], options)) for _, options in make_variants()]
    return compare(*(case.runs(library) for library in libraries), rounds=rounds)


def table(cases: Sequence[Case], columns: Sequence[Sequence[float]]) -> str:
    """The table in Markdown: milliseconds without checks, then multiples of them."""
    names = [name for name, _ in make_variants()]
    lines = [f"| checks | {' | '.join(f'`{case.kernel}`' for case in cases)} |", f"| --- |{' --- |' * len(cases)}"]
    for number, name in enumerate(names):
        cells = [f"{c[0] * 1e3:.2f} ms" if number == 0 else f"{c[number] / c[0]:.1f}" for c in columns]
        lines.append(f"| {name if ' ' in name or name in ('off', 'all') else f'`{name}`'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", help="of kernels.metal; all of the above unless given")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    cases = [case for case in make_cases() if not options.kernels or case.kernel in options.kernels]
    print(table(cases, [measure(case, SOURCE, options.rounds) for case in cases]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
