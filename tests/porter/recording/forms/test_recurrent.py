"""Whether an operator is layers of long short-term memory, or their gradients, is found from what its calls return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.recurrent import Recurrent, RecurrentGradients
from porter.recording.calls import OpCall
from porter.recording.forms.algebra import (
    differentiate_layers,
    find_recurrent,
    find_recurrent_gradients,
    run_layers,
)
from porter.recording.runs import RecordedRun
from porter.verdict.suite.made_opinfos import make_recurrent_opinfo

LAYERS, GRADIENTS = torch.ops.aten._lstm_mps.default, torch.ops.aten.lstm_mps_backward.default
FORM, BACKWARD = Recurrent(dtypes=(FLOAT,)), RecurrentGradients(dtypes=(FLOAT,))
Change = Callable[[list[torch.Tensor]], list[torch.Tensor]]


def list_calls() -> Iterator[OpCall]:
    op: Any = make_recurrent_opinfo("_lstm_mps")
    names = [each.name for each in LAYERS._schema.arguments]
    for sample in op.sample_inputs("cpu", torch.float32):
        yield OpCall(LAYERS, dict(zip(names, (sample.input, *sample.args), strict=True)))


def keep(results: list[torch.Tensor]) -> list[torch.Tensor]:
    return results


def record(call: OpCall, results: Any, change: Change = keep) -> RecordedRun:
    kept = tuple(change([each.float() for each in results]))
    return RecordedRun(call, dict(call.tensors()), (), kept, False)


def list_gradient_calls(change: Change = keep) -> Iterator[RecordedRun]:
    """Calls with all gradients, with those of outputs or of the last cells alone, and without any."""
    for at, call in enumerate(list_calls()):
        output, states, cells, gates, kept_cells, inputs = run_layers(FORM, call.tensors(), call.arguments)
        slopes = {
            "grad_y": torch.rand_like(output).float() if at % 4 < 2 else None,
            "grad_hy": torch.rand_like(states).float() if at % 4 == 0 else None,
            "grad_cy": torch.rand_like(cells).float() if at % 4 in (0, 2) else None,
        }
        kept = {"z_state": gates.float(), "cell_state_fwd": kept_cells.float(), "layersOutputs": inputs.float()}
        call_of_gradients = OpCall(GRADIENTS, slopes | kept | dict(call.arguments))
        yield record(
            call_of_gradients,
            differentiate_layers(BACKWARD, call_of_gradients.tensors(), call_of_gradients.arguments),
            change,
        )


def test_layers_are_those_of_torch() -> None:
    """The CPU's results in double precision, with its gradients."""
    for call in list_calls():
        leaves = {name: tensor.double().requires_grad_() for name, tensor in call.tensors().items()}
        lists = {name: [leaves[f"{name}[{i}]"] for i in range(len(call.arguments[name]))] for name in ("hx", "params")}
        arguments = {**call.arguments, **lists, "input": leaves["input"]}
        expected = torch.ops.aten.lstm.input(*arguments.values())
        results = run_layers(FORM, leaves, arguments)
        slopes = [torch.rand_like(each) for each in expected]
        by_name = dict(zip(("grad_y", "grad_hy", "grad_cy"), slopes, strict=True))
        ours = differentiate_layers(BACKWARD, {**{k: v.detach() for k, v in leaves.items()}, **by_name}, arguments)
        ordered = [leaves["input"], *lists["hx"], *lists["params"]]
        theirs = torch.autograd.grad(expected, ordered, slopes)
        torch.testing.assert_close(results[:3], tuple(expected))
        torch.testing.assert_close(tuple(ours), theirs)


def test_layers_are_found() -> None:
    runs = [record(call, run_layers(FORM, call.tensors(), call.arguments)) for call in list_calls()]
    assert find_recurrent(runs) == FORM and find_recurrent_gradients(runs) is None
    assert find_recurrent_gradients(list(list_gradient_calls())) == BACKWARD


@pytest.mark.parametrize("place", range(5))
def test_each_result_tells(place: int) -> None:
    def change(results: list[torch.Tensor]) -> list[torch.Tensor]:
        return [each * 1.01 if at == place else each for at, each in enumerate(results)]

    runs = [record(call, run_layers(FORM, call.tensors(), call.arguments), change) for call in list_calls()]
    assert find_recurrent(runs) is None
    assert find_recurrent_gradients(list(list_gradient_calls(change))) is None


def test_what_is_printed() -> None:
    assert next(iter(FORM.describe())).startswith("gates[t] = input[t] x params[0] + state[t - 1] x params[1]")
    assert list(BACKWARD.describe())[-1] == "results = of input, of hx, of each of params"
