"""Functions that are computed by rounding with a large number, under arithmetics that regroup sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library

X = np.random.default_rng(0).normal(size=64).astype(np.float32)
EXACT: Mapping[str, Callable[[Any], Any]] = {
    "exp2": np.exp2, "exp10": lambda x: 10.0**x, "exp": np.exp, "tanh": np.tanh, "log2": lambda x: np.log2(np.abs(x)),
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x), "pow": lambda x: np.abs(x) ** 1.75,
}  # fmt: skip
CALLS = {"log2": "log2(abs(x[i]))", "pow": "pow(abs(x[i]), 1.75f)"}
ARGUMENTS = "device float* o, constant float* x, uint i [[thread_position_in_grid]]"
SOURCE = "#include <metal_stdlib>\nusing namespace metal;\n" + "\n".join(
    f"kernel void k_{name}({ARGUMENTS}) {{ o[i] = {CALLS.get(name, f'{name}(x[i])')}; }}" for name in EXACT
)


@pytest.mark.parametrize("arithmetic", ["relaxed", "finite", "fast"])
def test_regrouped_sums_leave_functions_as_they_are(arithmetic: str) -> None:
    """What `newLibraryWithSource` compiles without options is `fast`: exp2 gave powers of whole numbers there."""
    names = [f"k_{name}" for name in EXACT]
    library = Library(compile_kernels(SOURCE, names, Options(arithmetic=arithmetic)))
    for name, exact in EXACT.items():
        result = np.zeros(64, np.float32)
        library.run(f"k_{name}", [result, X], [64], [64])
        np.testing.assert_allclose(result, exact(X.astype(np.float64)), rtol=1e-5, atol=1e-5, err_msg=name)
