"""The Metal functor of every construct of ATen's CPU kernels that is read, run on the host, against float64."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import CPU_KERNELS, METAL_HEADERS
from porter.cpu.kernels import read_cpu_kernel
from porter.cuda.own import Form, OwnKernel
from porter.languages import cpp
from tests.porter.functors import COUNT, Functors, Reference, compile_functors, find_difference

# What each computes of its elements, then its numbers.
REFERENCES: dict[str, Reference] = {
    "lambda": lambda a, b: a * b + a,
    "vector": lambda a, slope: np.where(a > 0, a, slope * np.tanh(a)),
    "branch": lambda x, eps: np.maximum(x, eps) if eps < 1 else np.minimum(x, 2 - eps),
    "helper": lambda a, b: np.where(a < 0, -a, np.sqrt(abs(a))) + b,
    "opmath": lambda a, b: 3 * a * b / (abs(a) + 1),
}
TERMS: dict[str, Reference] = {
    "lambda": lambda a, b: abs(a * b) + abs(a),
    "helper": lambda a, b: abs(a) + np.sqrt(abs(a)) + abs(b),
}
VALUES = st.lists(st.floats(-64, 64, width=16), min_size=2 * COUNT, max_size=2 * COUNT)


@pytest.fixture(scope="module")
def functors(tmp_path_factory: pytest.TempPathFactory) -> Functors:
    root = tmp_path_factory.mktemp("fork")
    shutil.copytree(EMBEDDED_FORK / METAL_HEADERS, root / METAL_HEADERS)
    (root / CPU_KERNELS).mkdir(parents=True)
    shutil.copy(Path(__file__).parent / "constructs.cpp", root / CPU_KERNELS)
    return compile_functors({name: read(Checkout(root, "test"), name) for name in REFERENCES})


def read(fork: Checkout, name: str) -> OwnKernel:
    kernel = read_cpu_kernel(fork, f"{name}_stub")
    assert not kernel.untranslated
    scalars = tuple(cpp.Parameter("const Scalar&", each) for each in kernel.parameters)
    return OwnKernel(name, Form.LOOP, (), kernel.lambdas[0].params, scalars, "", "", "", kernel)


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=40, deadline=None)
@given(values=VALUES)
def test_a_functor_computes_what_its_kernel_means(functors: Functors, name: str, values: list[float]) -> None:
    reference = REFERENCES[name]
    assert find_difference(functors, name, values, reference, TERMS.get(name, reference)) == ""
