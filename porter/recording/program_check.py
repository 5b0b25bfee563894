"""Runs a symbolic program at the sizes of a recorded call, in float64, and compares it with what the call made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from porter.core.dtypes import DType
from porter.loops.expressions import Buffer, Op
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Arguments, round_number
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Table, instantiate
from porter.recording.call_programs import read_call_arguments
from porter.recording.concrete import evaluate_nodes, fit_value
from porter.recording.loop_check import describe_difference, evaluate_nest

if TYPE_CHECKING:
    from porter.recording.record import RecordedRun

_TOLERANCE = 1e-4  # relative, and absolute: images are resized in float32, and what one graph wrote is rounded


def check_program(program: SymbolicProgram, ran: RecordedRun) -> str:
    """The first difference; empty if there is none. Raises PTR346 and PTR366 if the program cannot run at this call.

    Host code may have fed numbers in single precision, or scalars in the type of elements.
    """
    arguments = read_call_arguments(ran.call, ran.made)
    converted = _convert_scalars(arguments, ran, arguments.tensors[program.key].dtype)
    nests = [each.nest for each in program.nests]
    tried: list[tuple[LoopNest, ...]] = []
    first = ""
    for call, in_single in ((arguments, False), (arguments, True), (converted, False)):
        made = instantiate(nests, call, in_single)
        if made in tried:
            continue
        found = _check(program, ran, made)
        if not found:
            return ""
        tried.append(made)
        first = first or found
    return first


def _check(program: SymbolicProgram, ran: RecordedRun, nests: Sequence[LoopNest]) -> str:
    memory = {buffer: made for buffer, role in program.roles.items() if (made := _read(role, ran)) is not None}
    written: set[Buffer] = set()
    for nest in nests:
        memory |= evaluate_nest(nest, memory)
        written |= {store.buffer for store in nest.stores}
    return next((found for buffer in written if (found := _compare(program, buffer, memory[buffer], ran))), "")


def _convert_scalars(arguments: Arguments, ran: RecordedRun, dtype: DType) -> Arguments:
    scalars = {each.name for each in ran.call.overload._schema.arguments if str(each.type) == "number"}
    numbers = {name: value for name, value in arguments.others.items() if name in scalars}
    converted = {name: round_number(value, dtype) for name, value in numbers.items() if isinstance(value, (int, float))}
    return replace(arguments, others={**arguments.others, **converted})


def _read(role: object, ran: RecordedRun) -> torch.Tensor | None:
    match role:
        case ArgumentBuffer(name):
            return _in_double(ran.given[name]) if name in ran.given else None
        case Table(elements, dtype):
            return _in_double(torch.tensor(elements, dtype=_type(dtype)))
    return None


def _compare(program: SymbolicProgram, buffer: Buffer, made: torch.Tensor, ran: RecordedRun) -> str:
    match program.roles[buffer]:
        case ArgumentBuffer(name):
            given = ran.call.tensors()[name]
        case ResultBuffer(index):
            given = ran.made[index]
        case _:
            return ""
    expected = _compute_exactly(ran, given)
    if made.numel() != expected.numel():
        return f"{made.numel()} elements for {expected.numel()}"
    if _is_number(program, buffer):  # host code may have fed it from memory of the result's type
        made = made.to(given.dtype).to(expected.dtype)
    return describe_difference(made, expected, _TOLERANCE if given.is_floating_point() else 0.0)


def _is_number(program: SymbolicProgram, buffer: Buffer) -> bool:
    """Whether all that is written is a number of the call."""
    stores = [store for each in program.nests for store in each.nest.stores if store.buffer == buffer]
    return all(store.value.op is Op.NUMBER for store in stores)


def _compute_exactly(ran: RecordedRun, given: torch.Tensor) -> torch.Tensor:
    """What the last graph that wrote a tensor computed, in float64; of one that other kernels wrote, what it holds."""
    for run in reversed(ran.runs):
        for ref, address in run.results.items():
            if address == given.data_ptr():
                return fit_value(evaluate_nodes(run, in_double=True)[ref], tuple(given.shape))
    return _in_double(given.detach().cpu())


def _in_double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _type(dtype: DType) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.torch)
    return found
