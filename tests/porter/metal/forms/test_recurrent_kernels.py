"""Steps of long short-term memory and their gradients against float64: of any sizes, and with faults that are planted."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given as draws
from hypothesis import settings
from hypothesis import strategies as st

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root
from porter.core.dtypes import FLOAT
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.forms.recurrent import Recurrent
from porter.metal.helpers import read_helper

HEADS = "#include <c10/metal/utils.h>\nusing namespace metal;\n"
STEP = {
    "gates of the step before": ("sums[gate] += inner[gate * n];", ""),
    "gates that are not kept": ("inner[gate * n] = sums[gate];", ""),
    "a lane's products alone": ("sums[gate] = simd_sum(sums[gate]);", ""),
    "states of the step itself": ("step ? states + before :", "step ? states + at :"),
    "no first state": ("first_states + start;\n  const device T* weight", "first_states;\n  const device T* weight"),
    "weights of the other direction": (
        "(direction ? reverse_weights : weights) + column * n;",
        "weights + column * n;",
    ),
    "a gate of a neighbor": ("weight[gate * n * n + k]", "weight[gate * n + k]"),
    "staying and entering exchanged": ("logistic(sums[1]) * old_cell", "logistic(sums[0]) * old_cell"),
    "the first cell in every step": ("step ? cells[before + column]", "false ? cells[before + column]"),
    "a cell that is not squashed": ("logistic(sums[3]) * precise::tanh(cell)", "logistic(sums[3]) * cell"),
}
GRADIENTS = {
    "no products of what follows": ("if (done > 0 && column < n)", "if (false)"),
    "one simdgroup's products": ("uint i = 1; i < 8", "uint i = 1; i < 1"),
    "products of some gates": ("8 * 256, 4 * n)", "8 * 256, 3 * n)"),
    "gradients of the step itself": ("direction ? at - turn : at + turn) * 4", "at) * 4"),
    "the slope of another gate": ("entering * (1 - entering)", "entering * (1 - staying)"),
    "cells of the step itself": ("done + 1 < steps ? cells[before + column]", "done + 1 < steps ? cells[at + column]"),
    "no cell from what follows": ("cell_gradients[start] + state_gradient", "state_gradient"),
    "cells that all stay": ("cell_gradient * staying;\n}", "cell_gradient;\n}"),
    "no gradient of outputs": ("total + output_gradients[at + column]", "total"),
    "the last state's gradient in no step": ("total = state_gradients[start];", ""),
    "states that began with themselves": ("begun[at + tid.x] = logistic(gates[before", "begun[at + tid.x] = logistic(gates[at"),
    "no first states": ("begun[at + tid.x] = first_states[(direction * rows + row) * n + tid.x];", "begun[at + tid.x] = 0;"),
}  # fmt: skip
FAULTS = {**STEP, **GRADIENTS}
SIZES = st.sampled_from((1, 2, 3, 8, 31, 33, 40))


@cache
def write_source() -> str:
    source = Recurrent().write_kernels("tested", (FLOAT,), KernelStyle(True, False)).source
    begin = source.rindex("template <", 0, source.index("kernel void tested_step("))
    return f"{HEADS}{read_helper('logistic.metal')}{source[begin:]}"


@cache
def build(fault: str = "") -> Library:
    source = write_source()
    before, after = FAULTS[fault] if fault else ("", "")
    assert source.count(before) == 1 or not fault
    names = [f"tested_{each}_float_int" for each in ("step", "begun_states", "step_gradients")]
    options = Options(include=(torch_root() / "include",), optimization=QUICK)
    return Library(compile_kernels(source.replace(before, after), names, options))


def draw(*shape: int) -> torch.Tensor:
    return torch.rand(shape, dtype=torch.float64) * 2 - 1


def compute(
    from_input: torch.Tensor, states: torch.Tensor, cells: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """The states, cells and gates of all steps, by what the input gives to gates."""
    by_direction = []
    for direction in range(len(states)):
        state, cell, steps = states[direction], cells[direction], []
        of_direction = from_input[:, :, direction]
        for x in of_direction.flip(0) if direction else of_direction:
            gates = x + state @ weights[direction].mT
            entering, staying, new, leaving = gates.chunk(4, -1)
            cell = staying.sigmoid() * cell + entering.sigmoid() * new.tanh()
            state = leaving.sigmoid() * cell.tanh()
            steps.append((state, cell, gates))
        whole = (torch.stack(list(each)) for each in zip(*steps, strict=True))
        by_direction.append([each.flip(0) if direction else each for each in whole])
    return tuple(torch.stack(list(each), 2) for each in zip(*by_direction, strict=True))


def is_right(library: Library, steps: int, rows: int, states: int, directions: int) -> bool:
    """Whether all kernels compute what float64 does, of random elements."""
    torch.manual_seed(0)
    leaves = [
        draw(steps, rows, directions, 4 * states), draw(directions, rows, states), draw(directions, rows, states),
        draw(directions, 4 * states, states) / states**0.5,
    ]  # fmt: skip
    from_input, old_states, old_cells, weights = (each.requires_grad_() for each in leaves)
    exact = compute(from_input, old_states, old_cells, weights)
    ends = [torch.stack([each[-1, :, 0], *(each[0, :, i] for i in range(1, directions))]) for each in exact[:2]]
    slopes = draw(*exact[0].shape), draw(*old_states.shape), draw(*old_cells.shape)
    exact_slopes = torch.autograd.grad((exact[0], *ends), leaves[:3], slopes)
    sizes = torch.tensor([steps, rows, states, directions])
    plain = [each.detach().float() for each in leaves]
    outputs, cells, gates = torch.full(exact[0].shape, 7.0), torch.full(exact[1].shape, 7.0), plain[0].clone()
    both = plain[3][0].contiguous(), plain[3][-1].contiguous()
    for step in range(steps):
        arguments = [outputs, cells, gates, plain[1], plain[2], *both, sizes, torch.tensor([step])]
        library.run("tested_step_float_int", arguments, (32, rows * states, directions), (32, 8, 1))
    begun = torch.full(exact[0].shape, 7.0)
    arguments = [begun, cells, gates, plain[1], sizes]
    library.run("tested_begun_states_float_int", arguments, (states, steps * rows, directions), (32, 8, 1))
    by_gates, by_states, by_cells = torch.full(gates.shape, 7.0), slopes[1].float(), slopes[2].float()
    for done in range(steps + 1):
        arguments = [by_gates, by_states, by_cells, slopes[0].float(), cells, gates, plain[2], *both, sizes]
        groups = (-(-states // 32) * 256, rows, directions)
        library.run("tested_step_gradients_float_int", [*arguments, torch.tensor([done])], groups, (256, 1, 1))
    expected_begun = [torch.cat((old_states[0][None], exact[0][:-1, :, 0]))]
    expected_begun += [torch.cat((exact[0][1:, :, i], old_states[i][None])) for i in range(1, directions)]
    pairs = [*zip((outputs, cells, gates), exact, strict=True), (begun, torch.stack(expected_begun, 2))]
    pairs += zip((by_gates, by_states, by_cells), exact_slopes, strict=True)
    return all(torch.allclose(one.double(), other.detach(), rtol=1e-5, atol=1e-5) for one, other in pairs)


@settings(max_examples=20, deadline=None)
@draws(steps=st.integers(1, 5), rows=st.integers(1, 4), states=SIZES, directions=st.integers(1, 2))
def test_any_sizes(steps: int, rows: int, states: int, directions: int) -> None:
    assert is_right(build(), steps, rows, states, directions)


def test_sums_of_many_states() -> None:
    assert is_right(build(), 2, 1, 600, 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault: str) -> None:
    assert not is_right(build(fault), 3, 2, 40, 2)
