"""Every meaning that the table of operations writes out, compiled for the host: at the edges as ATen has it on the CPU,
elsewhere against float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK
from porter.core.dtypes import Kind
from porter.metal.candidates import form_body
from porter.mpsgraph.operations import operations
from porter.verdict.suite import bounds, compare
from porter.verdict.suite.samples import edge_values, list_neighbors

OPTIONS = build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK)
HEAD = """#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;
"""
KERNEL = """{helpers}
template <typename T>
inline auto form_{name}({parameters}) {{
  {statements}
}}
kernel void run_{name}(device {out}* out, {inputs}, uint at [[thread_position_in_grid]]) {{
  out[at] = form_{name}({elements});
}}
"""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exponent": torch.exp,
    "exponentBase2": torch.exp2,
    "logarithm": torch.log,
    "logarithmBase2": torch.log2,
    "logarithmBase10": torch.log10,
    "squareRoot": torch.sqrt,
    "reciprocalSquareRoot": torch.rsqrt,
    "absolute": torch.abs,
    "division": torch.div,
    "power": torch.pow,
    "silu": torch.nn.functional.silu,
}
# How many units of float32's relative spacing a value may be off by where the CPU's own is not further off.
LIMIT = 8.0
COMBINATIONS = 2**13

KINDS = (Kind.COMPLEX, Kind.FLOATING)

Tensor = Any


def reference(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = FUNCTIONS.get(name) or getattr(torch, name)
    return found


def rows(kind: Kind) -> list[tuple[str, int]]:
    """The operations whose meaning is written out for a kind of element, and how many arguments each takes."""
    return [(op, len(row.written[kind].arguments)) for op, row in operations().items() if kind in row.written]


def kernel(kind: Kind, name: str, arity: int, done: set[str]) -> str:
    """The form as a kernel; helpers that stand before it already are left out."""
    names, type_ = ("a", "b", "c")[:arity], "float2" if kind is Kind.COMPLEX else "float"
    body = form_body(kind, name, names, "float" if returns_real(name) else "T")
    assert body is not None
    helpers = [each for each in body.helpers if each not in done]
    done.update(helpers)
    return KERNEL.format(
        helpers="\n".join(helpers),
        name=name,
        parameters=", ".join(f"const T {n}" for n in names),
        statements="\n  ".join(body.statements),
        out="float" if returns_real(name) else type_,
        inputs=", ".join(f"constant {type_}* {n}" for n in names),
        elements=", ".join(f"{n}[at]" for n in names),
    )


def returns_real(name: str) -> bool:
    return name == "absolute"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Library]:
    """All forms for a kind of element in one file."""
    made: dict[Kind, Library] = {}
    for kind in KINDS:
        path: Path = tmp_path_factory.mktemp("forms") / "forms.metal"
        done: set[str] = set()
        path.write_text(HEAD + "".join(kernel(kind, name, arity, done) for name, arity in rows(kind)))
        made[kind] = Library(build.compile_kernels(path, build.host_names(path, OPTIONS), OPTIONS))
    return made


def run(library: Library, name: str, *inputs: Tensor) -> Tensor:
    like = inputs[0].real if returns_real(name) else inputs[0]
    out = torch.empty_like(like, memory_format=torch.contiguous_format)
    library.run(f"run_{name}", [out, *inputs], [out.numel()])
    return out


def spread(count: int, generator: Any) -> Tensor:
    """Complex numbers of many magnitudes and all angles, half of them near 1."""
    size = torch.exp2(torch.empty(count).uniform_(-70, 70, generator=generator))
    turn = torch.empty(count).uniform_(-3.2, 3.2, generator=generator)
    near = torch.complex(*torch.empty(2, count).uniform_(-3, 3, generator=generator))
    return torch.cat([torch.polar(size, turn), near])


@pytest.mark.parametrize(("kind", "name", "arity"), [(kind, *row) for kind in KINDS for row in rows(kind)])
def test_a_metal_form_computes_its_function(library: dict[Kind, Library], kind: Kind, name: str, arity: int) -> None:
    dtype = torch.complex64 if kind is Kind.COMPLEX else torch.float32
    edges = edge_values(dtype)
    grid = combine(edges, arity)
    got, want = run(library[kind], name, *(g.contiguous() for g in grid)), reference(name)(*grid)
    find = partial(compare.find_disagreement, got, want, reference(name)(*map(compare.widen, grid)), grid)
    why = find()
    if why and kind is Kind.COMPLEX:
        sample = SampleInput(grid[0], args=tuple(grid[1:]))
        calls = [(each.input, *each.args) for each in (sample, *list_neighbors(sample))]
        pairs = [(reference(name)(*each), reference(name)(*map(compare.widen, each))) for each in calls]
        why = find(excused=bounds.find_as_near(got, pairs))
    assert why == ""

    generator = torch.Generator().manual_seed(0)
    inputs = [spread(20_000, generator) for _ in range(arity)]
    inputs = inputs if kind is Kind.COMPLEX else [each.real.contiguous() for each in inputs]
    exact = reference(name)(*map(compare.widen, inputs))
    mine, theirs = (off(each, exact) for each in (run(library[kind], name, *inputs), reference(name)(*inputs)))
    assert float(mine.max()) < max(LIMIT, 2 * float(theirs.nan_to_num(0.0).max()))


def combine(values: Tensor, count: int) -> list[Tensor]:
    """A column for each operand: every combination of values, or of three as many as a verdict's samples have."""
    if count < 3:
        return [each.flatten() for each in torch.meshgrid(*[values] * count, indexing="ij")]
    generator = torch.Generator().manual_seed(0)
    return [values[torch.randint(len(values), (COMBINATIONS,), generator=generator)] for _ in range(count)]


def off(found: Tensor, exact: Tensor) -> Tensor:
    """The relative errors of a result, in units of float32's spacing, where it neither over- nor underflows."""
    size = exact.abs()
    usual = (size < 1e30) & (size > 1e-30)
    return (found.to(exact.dtype) - exact).abs()[usual] / size[usual] / torch.finfo(torch.float32).eps
