"""Finds whether an operator is layers of long short-term memory, or their gradients: what all recorded calls return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from porter.metal.forms.recurrent import GATES, Recurrent, RecurrentGradients
from porter.recording.forms.agreement import Results, find_only, is_near_in_scale, read_types, tell_form, widen
from porter.recording.runs import RecordedRun

_RESULTS = 6
_MOST_PARAMS = 100
_NOT_MADE = 5  # the inputs of layers but the first, where there is one


def find_recurrent(runs: Sequence[RecordedRun]) -> Recurrent | None:
    """The layers whose results all calls return."""
    form = Recurrent()
    names = (form.input, form.starts, form.params, *form.flags)
    if not tell_form(runs, (_RESULTS,)) or tuple(read_types(runs[0].call)) != names:
        return None
    return find_only((form,), runs, _is_recurrent)


def find_recurrent_gradients(runs: Sequence[RecordedRun]) -> RecurrentGradients | None:
    """The layers whose gradients all calls return."""
    form = RecurrentGradients()
    names = (*form.operands, form.starts, form.params, *form.flags)
    if not tell_form(runs, range(1, _MOST_PARAMS)) or tuple(read_types(runs[0].call)) != names:
        return None
    return find_only((form,), runs, _computes_gradients)


def _is_recurrent(form: Recurrent, run: RecordedRun, results: Results) -> bool:
    """Whether results are those of the layers; of one layer alone, nothing is in the last one."""
    try:
        computed = run_layers(form, run.given, run.call.arguments)
    except (RuntimeError, IndexError):  # sizes that do not go with each other
        return False
    count = _NOT_MADE if run.call.arguments[form.flags[1]] == 1 else _RESULTS
    return all(map(is_near_in_scale, computed[:count], results))


def _computes_gradients(form: RecurrentGradients, run: RecordedRun, results: Results) -> bool:
    try:
        computed = differentiate_layers(form, run.given, run.call.arguments)
    except (RuntimeError, IndexError):
        return False
    return len(computed) == len(results) and all(map(is_near_in_scale, computed, results))


def _list_tensors(name: str, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]) -> list[torch.Tensor]:
    return [widen(tensors[f"{name}[{i}]"]) for i in range(len(arguments[name]))]


def run_layers(
    form: Recurrent, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, ...]:
    """All results, in double precision. Raises RuntimeError or IndexError for sizes that do not go with each other."""
    starts, params = (_list_tensors(name, tensors, arguments) for name in (form.starts, form.params))
    return _run(widen(tensors[form.input]), starts, params, [arguments[each] for each in form.flags])


def _run(
    sequence: torch.Tensor, starts: Sequence[torch.Tensor], params: Sequence[torch.Tensor], flags: Sequence[Any]
) -> tuple[torch.Tensor, ...]:
    has_biases, layers, _, _, bidirectional, batch_first = flags
    directions, parts = 2 if bidirectional else 1, GATES if has_biases else 2
    sequence = sequence.transpose(0, 1) if batch_first else sequence
    last_states, last_cells, all_gates, all_cells, inputs = ([] for _ in range(5))
    for layer in range(layers):
        inputs.append(sequence)
        by_direction = []
        for place in range(layer * directions, (layer + 1) * directions):
            parameters, is_reversed = params[place * parts : (place + 1) * parts], place % 2 and bidirectional
            state, cell, steps = starts[0][place], starts[1][place], []
            for x in sequence.flip(0) if is_reversed else sequence:
                gates = x @ parameters[0].mT + state @ parameters[1].mT + sum(parameters[2:])
                entering, staying, new, leaving = gates.chunk(GATES, -1)
                cell = staying.sigmoid() * cell + entering.sigmoid() * new.tanh()
                state = leaving.sigmoid() * cell.tanh()
                steps.append((state, cell, gates))
            last_states.append(state)
            last_cells.append(cell)
            whole = (torch.stack(list(each)) for each in zip(*steps, strict=True))
            by_direction.append([each.flip(0) if is_reversed else each for each in whole])
        sequence, cells, gates = (torch.cat(list(each), -1) for each in zip(*by_direction, strict=True))
        all_gates.append(gates)
        all_cells.append(cells)
    kept = torch.stack(inputs[1:]) if layers > 1 else torch.empty(0)
    output = sequence.transpose(0, 1) if batch_first else sequence
    return output, *map(torch.stack, (last_states, last_cells, all_gates, all_cells)), kept


def differentiate_layers(
    form: RecurrentGradients, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, ...]:
    """All gradients, in double precision, of the input, the starts and each parameter."""
    starts, params = (_list_tensors(name, tensors, arguments) for name in (form.starts, form.params))
    leaves = [each.clone().requires_grad_() for each in (widen(tensors[form.input]), *starts, *params)]
    with torch.enable_grad():
        results = _run(leaves[0], leaves[1:3], leaves[3:], [arguments[each] for each in form.flags])
        asked = zip(results, (form.output, form.states, form.cells), strict=False)
        total = sum((result * widen(tensors[name])).sum() for result, name in asked if name in tensors)
    if not isinstance(total, torch.Tensor):  # a call that gives no gradient
        return tuple(map(torch.zeros_like, leaves))
    return torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
