"""Random numbers: the kernels of the table of distributions, run on the host and compared with ATen's on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK
from porter.metal import launchers
from porter.metal.distributions import distributions
from porter.metal.families.random import write_functor, write_launcher
from porter.metal.helpers import read_helper
from porter.verdict.suite.distributions import find_difference, find_repetition

PHILOX = Path(__file__).parents[1] / "philox"  # the embedded fork has none
HEAD = "#include <metal_stdlib>\n#include <c10/metal/random.h>\n#include <c10/metal/utils.h>\nusing namespace metal;\n"
HEAD += "using namespace c10::metal;\n" + (launchers.FOLDER / "random.metal").read_text()
COUNT = 20000
# What ATen's CPU fills with the same parameters.
REFERENCES: dict[str, tuple[tuple[float, ...], Callable[[torch.Tensor], torch.Tensor]]] = {
    "uniform": ((-1.0, 3.0), lambda t: t.uniform_(-1, 3)),
    "normal": ((0.5, 2.0), lambda t: t.normal_(0.5, 2)),
    "log_normal": ((0.25, 0.5), lambda t: t.log_normal_(0.25, 0.5)),
    "exponential": ((0.75,), lambda t: t.exponential_(0.75)),
    "cauchy": ((0.5, 2.0), lambda t: t.cauchy_(0.5, 2)),
    "geometric": ((float(np.log1p(-0.3)),), lambda t: t.geometric_(0.3)),
    "bernoulli_scalar": ((0.3,), lambda t: t.bernoulli_(0.3)),
    "random": ((0.0,), lambda t: t.random_()),
    "random_from_to": ((97.0, -3.0), lambda t: t.random_(-3, 94)),
}
DTYPES = {"float": torch.float32, "half": torch.float16}


def compile_kernel(name: str, edit: Callable[[str], str] = str) -> Library:
    row = distributions()[f"{name}_stub"]
    text = HEAD + write_functor(name, row)
    text += "".join(f"REGISTER_RANDOM_OP({name}, {dtype}, {row.param});\n" for dtype in DTYPES)
    return Library(
        build.compile_kernels(
            edit(text),
            [f"{name}_fill_{each}_{each}" for each in DTYPES],
            build.Options(include=(PHILOX, EMBEDDED_FORK), optimization=build.QUICK),
        )
    )


def fill(library: Library, name: str, dtype: str, seed: int = 5, offset: int = 0) -> torch.Tensor:
    params, _ = REFERENCES[name]
    kind = np.int64 if distributions()[f"{name}_stub"].whole else np.float32
    out = np.zeros(COUNT, np.float16 if dtype == "half" else np.float32)
    library.run(
        f"{name}_fill_{dtype}_{dtype}", [out, np.array(params, kind), np.array((seed, offset), np.int64)], [COUNT]
    )
    return torch.from_numpy(out)


def expect(name: str, dtype: str) -> torch.Tensor:
    torch.manual_seed(3)
    return REFERENCES[name][1](torch.empty(COUNT, dtype=DTYPES[dtype]))


@pytest.mark.parametrize("name", REFERENCES)
def test_a_kernel_draws_what_the_cpu_draws(name: str) -> None:
    library = compile_kernel(name)
    for dtype in DTYPES:
        drawn = fill(library, name, dtype)
        assert find_difference(drawn, expect(name, dtype)) == ""
        assert torch.equal(drawn, fill(library, name, dtype))
        for other in (drawn, fill(library, name, dtype, seed=6), fill(library, name, dtype, offset=COUNT)):
            assert find_repetition(drawn, other) == ""
        assert "of the values follow" in find_repetition(drawn, fill(library, name, dtype, offset=7))


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("return params[0] +", "return 0.5f + 0 * params[0] +", "Kolmogorov-Smirnov"),
        ("* (params[1] - params[0])", "* 0.9f * (params[1] - params[0])", "Kolmogorov-Smirnov"),
        ("draw_uniform<T>(words.x)", "0.25f", "Kolmogorov-Smirnov"),
        ("state[1] + index", "state[1] + index / 2", "0.50 of the values follow from those 1 elements away"),
        ("state[1] + index", "state[1] + index % 256", "values follow from those 256 elements away"),
        ("* (params[1] - params[0])", "* NAN", "values are NaN"),
    ],
)
def test_a_fault_in_a_kernel_is_found(right: str, wrong: str, why: str) -> None:
    def plant(text: str) -> str:
        assert right in text
        return text.replace(right, wrong, 1)

    drawn = fill(compile_kernel("uniform", plant), "uniform", "float")
    assert why in (find_repetition(drawn, drawn) or find_difference(drawn, expect("uniform", "float")))


def test_a_fork_with_a_wrong_round_gets_its_own() -> None:
    line = "return uint4({0} ^ ctr.y ^ key.x, {1}, {2} ^ ctr.w ^ key.y, {3});\n"
    assert "draw_words" not in write_launcher(line.format("rc1.x", "rc1.y", "rc0.x", "rc0.y"))
    assert "philox4" not in write_launcher(line.format("rc1.y", "rc1.x", "rc0.y", "rc0.x"))


@pytest.mark.parametrize("draw", ["c10::metal::philox4::rand", "draw_words"])
def test_words_are_those_of_philox(draw: str) -> None:
    """The vectors of the authors' test suite for a counter and a key of zeros, and of ones."""
    text = (
        HEAD
        + read_helper("draw_words.metal")
        + (
            "kernel void words(device uint4* out [[buffer(0)]], constant long* at [[buffer(1)]], "
            f"uint i [[thread_position_in_grid]]) {{ out[i] = {draw}(at[0], at[1]); }}\n"
        )
    )
    out = np.zeros(4, np.uint32)
    library = Library(
        build.compile_kernels(text, ["words"], build.Options(include=(PHILOX, EMBEDDED_FORK), optimization=build.QUICK))
    )
    library.run("words", [out, np.zeros(2, np.int64)], [1])
    assert [hex(each) for each in out] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
