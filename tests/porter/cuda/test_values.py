"""The Metal functor of every construct of CUDA that is read, run on the host, against float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.cuda.own import read_own_kernel
from tests.porter.functors import COUNT, Functors, Reference, compile_functors, find_difference

FILE = Path(__file__).parent / "constructs.cu"
FORK = Checkout(EMBEDDED_FORK, "test").layer({FILE.name: FILE.read_text()})
# What each computes of its elements, then its numbers. In float64, but for what its own type rounds.
REFERENCES: dict[str, Reference] = {
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
TERMS: dict[str, Reference] = {
    "jiterator_kernel": lambda a, b, scale: (abs(scale * a) + abs(b)) / (abs(a) + 1),
    "accumulate_kernel": lambda a, b, c, value: abs(a) + abs(value * b * c),
    "functor_kernel": lambda a, b: abs(a) + abs(2 * b),
    "opmath_kernel": lambda a, b: abs(a * b) + abs(a),
    "helper_kernel": lambda a, b: abs(a) + np.sqrt(abs(a)) + abs(b),
    "in_place_kernel": lambda x, y, rate: abs(x) + abs(rate),
}
VALUES = st.lists(st.floats(-64, 64, width=16), min_size=3 * COUNT, max_size=3 * COUNT)


@pytest.fixture(scope="module")
def functors() -> Functors:
    return compile_functors({name: read_own_kernel(FORK, FILE.name, name) for name in REFERENCES})


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=40, deadline=None)
@given(values=VALUES)
def test_a_functor_computes_what_its_kernel_means(functors: Functors, name: str, values: list[float]) -> None:
    reference = REFERENCES[name]
    assert find_difference(functors, name, values, reference, TERMS.get(name, reference)) == ""


def test_a_functor_that_computes_something_else_is_found(functors: Functors) -> None:
    values = [float(at) for at in range(3 * COUNT)]
    other = REFERENCES["opmath_kernel"]
    assert "float" in find_difference(functors, "functor_kernel", values, other, other)
