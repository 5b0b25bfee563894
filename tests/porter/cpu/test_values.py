"""The Metal functor of every construct of ATen's CPU kernels that is read, run on the host, against float64."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import CPU_KERNELS, METAL_HEADERS
from porter.cpu.kernels import read_cpu_kernel, read_result_kernels, same_type
from porter.cuda.own import Form, OwnKernel
from porter.languages import cpp
from porter.verdict.own.check import HEAD
from tests.porter.functors import COUNT, Functors, Reference, compile_functors, find_difference

# What each computes of its elements, then its numbers.
REFERENCES: dict[str, Reference] = {
    "lambda": lambda a, b: a * b + a,
    "vector": lambda a, slope: np.where(a > 0, a, slope * np.tanh(a)),
    "branch": lambda x, eps: np.maximum(x, eps) if eps < 1 else np.minimum(x, 2 - eps),
    "unused": lambda a, b, beta: beta * a + b if beta <= 1 else b + b,
    "helper": lambda a, b: np.where(a < 0, -a, np.sqrt(abs(a))) + b,
    "opmath": lambda a, b: 3 * a * b / (abs(a) + 1),
    "product": lambda a, b: np.log(0.5 * (a * a + b * b + 1)),
    "pair 0": lambda a, b: np.where(a > b, a + b, a - b),
    "pair 1": lambda a, b: np.where(a > b, a, (a + b) ** 2),
}
TERMS: dict[str, Reference] = {
    "lambda": lambda a, b: abs(a * b) + abs(a),
    "unused": lambda a, b, beta: abs(beta * a) + 2 * abs(b),
    "helper": lambda a, b: abs(a) + np.sqrt(abs(a)) + abs(b),
    "product": lambda a, b: abs(np.log(0.5 * (a * a + b * b + 1))) + 1,
    "pair 0": lambda a, b: abs(a) + abs(b),
    "pair 1": lambda a, b: abs(a) + (abs(a) + abs(b)) ** 2,
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
    stub, _, result = name.partition(" ")
    if result:
        kernel = read_result_kernels(fork, f"{stub}_stub", 2, same_type)[int(result)][1]
    else:
        kernel = read_cpu_kernel(fork, f"{stub}_stub")
    assert not kernel.untranslated
    scalars = tuple(cpp.Parameter("const Scalar&", each) for each in kernel.parameters)
    return OwnKernel(name.replace(" ", ""), Form.LOOP, (), kernel.lambdas[0].params, scalars, "", "", "", kernel)


@pytest.mark.parametrize("name", REFERENCES)
@settings(max_examples=40, deadline=None)
@given(values=VALUES)
def test_a_functor_computes_what_its_kernel_means(functors: Functors, name: str, values: list[float]) -> None:
    reference = REFERENCES[name]
    assert find_difference(functors, name, values, reference, TERMS.get(name, reference)) == ""


def test_the_logarithm_of_a_product_that_vanishes_in_float_is_finite(functors: Functors) -> None:
    text = functors.each["product"][1].text
    assert "real_log_product(0.5f, " in " ".join(text.split())
    text = (
        f"{HEAD}{text}\nkernel void small(device float* x [[buffer(0)]]) {{ x[0] = real_log_product(0.5f, x[0]); }}\n"
    )
    library = Library(
        build.compile_kernels(text, ["small"], build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK))
    )
    value = np.array([2.0**-149], np.float32)
    library.run("small", [value], [1])
    assert abs(float(value[0]) + 150 * np.log(2)) < 1e-5
