"""The Metal functor of every construct of CUDA that is read, run on the host, against float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import FLOAT, HALF, DType
from porter.cuda.own import OwnKernel, read_own_kernel
from porter.metal.own_functor import OwnFunctor, write_own_functor
from porter.verdict.own.functor_library import HEAD, kernel_name, write_kernel

Floats = NDArray[np.float64]
FILE = Path(__file__).parent / "constructs.cu"
FORK = Checkout(EMBEDDED_FORK, "test").layer({FILE.name: FILE.read_text()})
# What each computes of its elements, then its numbers. In float64, but for what its own type rounds.
REFERENCES: dict[str, Callable[..., Floats]] = {
    "jiterator_kernel": lambda a, b, scale: (scale * a + np.where(b > 0, b, 0)) / (abs(a) + 1),
    "lambda_kernel": lambda a, beta: np.where(a > 0, a * beta, np.expm1(np.minimum(a, 0))),
    "accumulate_kernel": lambda a, b, c, value: a + value * b * c,
    "functor_kernel": lambda a, b: a - 2 * b,
    "opmath_kernel": lambda a, b: a * b + a,
    "helper_kernel": lambda a, b: np.where(a < 0, -a, np.sqrt(abs(a))) + np.maximum(a, b),
    "threads_kernel": lambda a, b, low, high: np.where(a < low, low * b, np.minimum(a, high)),
    "in_place_kernel": lambda x, y, rate: x - rate * np.tanh(y),
    "device_function": lambda x, y: np.maximum(x, y) * np.exp(-abs(x)),
}
# The sum of the sizes of what is added: the digits that a result may lose are of this size.
TERMS: dict[str, Callable[..., Floats]] = {
    "jiterator_kernel": lambda a, b, scale: (abs(scale * a) + abs(b)) / (abs(a) + 1),
    "accumulate_kernel": lambda a, b, c, value: abs(a) + abs(value * b * c),
    "functor_kernel": lambda a, b: abs(a) + abs(2 * b),
    "opmath_kernel": lambda a, b: abs(a * b) + abs(a),
    "helper_kernel": lambda a, b: abs(a) + np.sqrt(abs(a)) + abs(b),
    "in_place_kernel": lambda x, y, rate: abs(x) + abs(rate),
}
NUMBERS = (0.75, 1.25)
COUNT = 16
VALUES = st.lists(st.floats(-64, 64, width=16), min_size=3 * COUNT, max_size=3 * COUNT)


@pytest.fixture(scope="module")
def read() -> dict[str, tuple[OwnKernel, OwnFunctor]]:
    kernels = {name: read_own_kernel(FORK, FILE.name, name) for name in REFERENCES}
    return {name: (own, write_own_functor(FORK, own)) for name, own in kernels.items()}


@pytest.fixture(scope="module")
def library(read: dict[str, tuple[OwnKernel, OwnFunctor]]) -> Library:
    names, text = list[str](), HEAD
    for own, functor in read.values():
        text += functor.text + "".join(write_kernel(own, functor, *types) for types in functor.dtypes)
        names += [kernel_name(own, dtype) for dtype, _ in functor.dtypes]
    return Library(build.compile_kernels(text, names, build.Options(include=(EMBEDDED_FORK,))))


def run(
    library: Library, own: OwnKernel, dtype: DType, inputs: list[NDArray[Any]], numbers: tuple[float, ...]
) -> Floats:
    out = np.zeros(COUNT, inputs[0].dtype)
    library.run(kernel_name(own, dtype), [out, np.array(numbers or (0.0,), np.float32), *inputs], [COUNT])
    return out.astype(np.float64)


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=40, deadline=None)
@given(values=VALUES)
def test_a_functor_computes_what_its_kernel_means(
    read: dict[str, tuple[OwnKernel, OwnFunctor]], library: Library, name: str, values: list[float]
) -> None:
    own, functor = read[name]
    numbers = NUMBERS[: len(own.scalars)]
    for dtype, _ in functor.dtypes:
        if dtype not in (FLOAT, HALF):
            continue
        kind = np.dtype(np.float32 if dtype == FLOAT else np.float16)
        parts = np.array(values, kind).reshape(3, COUNT)[: len(own.elements)]
        inputs = [np.ascontiguousarray(each) for each in parts]
        wide = [each.astype(np.float64) for each in inputs]
        meant = REFERENCES[name](*wide, *numbers)
        size = TERMS.get(name, REFERENCES[name])(*wide, *numbers)
        allowed = (
            4 * np.finfo(np.float32).eps * abs(size)
            + np.finfo(kind).eps * abs(meant)
            + np.finfo(kind).smallest_subnormal
        )
        assert (abs(run(library, own, dtype, inputs, numbers) - meant) <= allowed).all()
