"""Random expressions in each language that functors are translated from, run on the host, against float64.

One library has the functors of every example: a CPU loop, a CUDA lambda, a jiterator string and an old graph of each
expression, and a body of several statements in C++.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from porter.aten.metal_functions import Library as Functions
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import FLOAT, HALF, LONG, Kind
from porter.core.layout import CPU_KERNELS
from porter.cpu.kernels import read_cpu_kernel
from porter.cuda.own import Form, OwnKernel, read_own_kernel
from porter.metal.candidates import translate_graph
from porter.metal.functor import Functor, Overload, functor_text
from porter.metal.own_functor import OwnFunctor, write_own_functor
from porter.metal.tidy import tidy_body
from porter.mpsgraph.graph import Case, Graph
from tests.porter.expressions import (
    WHOLE,
    WHOLE_LEAVES,
    Node,
    Steps,
    build_graph,
    evaluate,
    evaluate_steps,
    steps,
    trees,
    write,
    write_steps,
)
from tests.porter.functors import COUNT, Functors, compile_written
from tests.porter.metal.test_lambda_body import subject

Written = dict[str, tuple[OwnKernel, OwnFunctor]]
FORK = Checkout(EMBEDDED_FORK, "test")
VALUES = st.lists(st.floats(-4, 4, width=16), min_size=2 * COUNT, max_size=2 * COUNT)
NUMBERS = st.lists(st.integers(-40, 40), min_size=2 * COUNT, max_size=2 * COUNT)
# Examples take seconds each: that many expressions are one of them, and a smaller one is not looked for.
SEVERAL = settings(max_examples=2, deadline=None, phases=(Phase.explicit, Phase.generate))
BATCH = 6
SOME = "AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, "
ALL = "AT_DISPATCH_ALL_TYPES_AND2(kHalf, kBFloat16, "


def write_cpu(name: str, body: str, types: str = SOME) -> str:
    return (
        f'void {name}_kernel(TensorIteratorBase& iter) {{\n{types}iter.dtype(), "{name}", [&]() {{\n'
        f"cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t {{\n{body}\n}});\n}});\n}}\n"
        f"REGISTER_DISPATCH({name}_stub, &{name}_kernel)\n"
    )


def read_cpu(texts: dict[str, str]) -> Written:
    """The functors of CPU kernels."""
    fork = FORK.layer({f"{CPU_KERNELS}/Drawn.cpp": "".join(texts.values())})
    made: Written = {}
    for name in texts:
        kernel = read_cpu_kernel(fork, f"{name}_stub")
        assert not kernel.untranslated
        own = OwnKernel(name, Form.LOOP, (), kernel.lambdas[0].params, (), "", "", "", kernel)
        made[name] = own, write_own_functor(FORK, own)
    return made


def read_cuda(text: str, name: str) -> Written:
    own = read_own_kernel(FORK.layer({"drawn.cu": text}), "drawn.cu", name)
    return {name: (own, write_own_functor(FORK, own))}


def write_lambda(name: str, node: Node) -> str:
    return (
        f'void {name}(TensorIteratorBase& iter) {{\n{SOME}iter.dtype(), "{name}", [&]() {{\n'
        f"gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t {{ return {write(node, 'scalar_t')}; }});\n"
        "});\n}\n"
    )


def write_jiterator(name: str, body: Steps) -> str:
    return (
        f'constexpr char {name}_name[] = "{name}_of";\n'
        f"const auto {name}_string = jiterator_stringify(\n"
        f"template <typename T> T {name}_of(T a, T b) {{\n{write_steps(body, 'T')}\n}});\n"
        f'void {name}(TensorIteratorBase& iter) {{\n{SOME}iter.common_dtype(), "{name}", [&]() {{\n'
        f"jitted_gpu_kernel<{name}_name, scalar_t, scalar_t, 2>(iter, {name}_string);\n}});\n}}\n"
    )


def read_graph(name: str, node: Node) -> Written:
    """The functor of an old graph."""
    spec = replace(
        subject(),
        names=(name,),
        inputs=("a", "b"),
        graph=Graph(("a", "b"), (), (Case(FLOAT, (), build_graph(node)),)),
        library=Functions.read(FORK),
    )
    body = translate_graph(spec, FLOAT, "T")
    assert body is not None
    tidy = tidy_body(body, Kind.FLOATING, spec)
    functor = Functor(name, ("a", "b"), (), (Overload((Kind.FLOATING,), tidy),), ())
    own = OwnKernel(name, Form.LOOP, (), ("a", "b"), (), "", "", "", spec.cpu)
    types = ((FLOAT, FLOAT), (HALF, HALF))
    return {name: (own, OwnFunctor(name, functor_text(functor, spec.style), types, None, ()))}


def check(functors: Functors, name: str, drawn: Node | Steps, values: list[float]) -> None:
    """Compares a functor with float64 within what rounding in the element's type may change."""
    for dtype, kind in ((FLOAT, np.float32), (HALF, np.float16)):
        inputs = [np.array(values[at * COUNT :][:COUNT], kind) for at in range(2)]
        out = np.zeros(COUNT, kind)
        functors.library.run(f"{name}_of_{dtype.metal}", [out, np.zeros(1, np.float32), *inputs], [COUNT])
        elements = dict(zip("ab", (each.astype(np.float64) for each in inputs), strict=True))
        eps = 4 * float(np.finfo(kind).eps)
        if isinstance(drawn, Node):
            meant, error = evaluate(drawn, elements, eps)
        else:
            meant, error = evaluate_steps(drawn, elements, eps)
        fits = abs(meant) + error < float(np.finfo(kind).max) / 2
        wrong = fits & ~(abs(out.astype(np.float64) - meant) <= error + eps * abs(meant))
        text = functors.each[name][1].text
        assert not wrong.any(), f"{name} {dtype} of {elements}: {out} for {meant}\n{text}"


@SEVERAL
@given(st.lists(trees(), min_size=BATCH, max_size=BATCH), st.lists(steps(), min_size=BATCH, max_size=BATCH), VALUES)
def test_functors_of_random_expressions_are_right(drawn: list[Node], bodies: list[Steps], values: list[float]) -> None:
    made, meant = Written(), dict[str, Node | Steps]()
    cpu = {f"cpu{at}": write_cpu(f"cpu{at}", f"return {write(node, 'scalar_t')};") for at, node in enumerate(drawn)}
    cpu |= {f"steps{at}": write_cpu(f"steps{at}", write_steps(body, "scalar_t")) for at, body in enumerate(bodies)}
    made |= read_cpu(cpu)
    for at, (node, body) in enumerate(zip(drawn, bodies, strict=True)):
        made |= read_cuda(write_lambda(f"cuda{at}", node), f"cuda{at}")
        made |= read_cuda(write_jiterator(f"jit{at}", body), f"jit{at}")
        made |= read_graph(f"graph{at}", node)
        meant |= {f"cpu{at}": node, f"cuda{at}": node, f"graph{at}": node, f"steps{at}": body, f"jit{at}": body}
    functors = compile_written(made)
    for name, each in meant.items():
        check(functors, name, each, values)


@SEVERAL
@given(st.lists(steps(WHOLE, WHOLE_LEAVES), min_size=BATCH, max_size=BATCH), NUMBERS)
def test_functors_of_integers_are_exact(bodies: list[Steps], numbers: list[int]) -> None:
    functors = compile_written(
        read_cpu(
            {f"whole{at}": write_cpu(f"whole{at}", write_steps(b, "scalar_t"), ALL) for at, b in enumerate(bodies)}
        )
    )
    inputs = [np.array(numbers[at * COUNT :][:COUNT], np.int64) for at in range(2)]
    for at, body in enumerate(bodies):
        out = np.zeros(COUNT, np.int64)
        functors.library.run(f"whole{at}_of_{LONG.metal}", [out, np.zeros(1, np.float32), *inputs], [COUNT])
        meant, _ = evaluate_steps(body, dict(zip("ab", inputs, strict=True)), 0.0)
        assert np.array_equal(out, meant), functors.each[f"whole{at}"][1].text


def test_a_functor_of_another_expression_is_found() -> None:
    sine, cosine = (Node(op, (Node("leaf", (), "a"),)) for op in ("sine", "cosine"))
    functors = compile_written(read_graph("drawn", sine))
    values = [at / COUNT for at in range(2 * COUNT)]
    check(functors, "drawn", sine, values)
    with pytest.raises(AssertionError, match="drawn float"):
        check(functors, "drawn", cosine, values)


TWO = Node("leaf", (), 2)


@pytest.mark.parametrize("whole", [Node("leaf", (), 1), Node("negate", (TWO,)), Node("subtract", (TWO, TWO))])
def test_a_whole_number_of_a_graph_is_a_float_beside_floats(whole: Node) -> None:
    node = Node("larger", (whole, Node("sine", (Node("leaf", (), "a"),))))
    functors = compile_written(read_graph("drawn", node))
    check(functors, "drawn", node, [at / COUNT for at in range(2 * COUNT)])


def test_the_negative_of_a_negative_number_is_no_decrement() -> None:
    node = Node("negate", (Node("leaf", (), -0.75),))
    body = Steps(node, (node, Node("leaf", (), "a")), node, Node("leaf", (), "b"))
    written = {"cpu": write_cpu("cpu", write_steps(body, "scalar_t"))}
    functors = compile_written(read_cpu(written) | read_cuda(write_jiterator("jit", body), "jit"))
    for name in ("cpu", "jit"):
        check(functors, name, body, [at / COUNT for at in range(2 * COUNT)])
