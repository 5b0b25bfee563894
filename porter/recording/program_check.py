"""Runs a symbolic program at the sizes of a recorded call, in float64, and compares it with what the call made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from porter.core.dtypes import DType
from porter.loops.expressions import Buffer
from porter.loops.instances import instantiate
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Table
from porter.recording.call_programs import read_call_arguments
from porter.recording.loop_check import describe_difference, evaluate_nest

if TYPE_CHECKING:
    from porter.recording.record import RecordedRun

# Relative and absolute, by the digits of the element type, in which the old code rounds after every operation.
_TOLERANCE = {24: 1e-4, 11: 2e-2, 8: 1e-1}


def check_program(program: SymbolicProgram, ran: RecordedRun) -> str:
    """The first difference; empty if there is none. Raises PTR346 and PTR366 if the program cannot run at this call."""
    memory = {buffer: made for buffer, role in program.roles.items() if (made := _read(role, ran)) is not None}
    for nest in instantiate([each.nest for each in program.nests], read_call_arguments(ran.call, ran.results)):
        memory |= evaluate_nest(nest, memory)
    written = {store.buffer for each in program.nests for store in each.nest.stores}
    return next((found for buffer in written if (found := _compare(program, buffer, memory[buffer], ran))), "")


def _read(role: object, ran: RecordedRun) -> torch.Tensor | None:
    match role:
        case ArgumentBuffer(name):
            return _in_double(ran.given[name])
        case Table(elements, dtype):
            return _in_double(torch.tensor(elements, dtype=_type(dtype)))
    return None


def _compare(program: SymbolicProgram, buffer: Buffer, made: torch.Tensor, ran: RecordedRun) -> str:
    match program.roles[buffer]:
        case ArgumentBuffer(name):
            expected = ran.call.tensors()[name]
        case ResultBuffer(index):
            expected = ran.results[index]
        case _:
            return ""
    if made.numel() != expected.numel():
        return f"{made.numel()} elements for {expected.numel()}"
    digits = torch.finfo(expected.dtype).eps if expected.dtype.is_floating_point else 0
    tolerance = next((each for bits, each in _TOLERANCE.items() if digits and digits <= 2.0 ** (1 - bits)), 0.0)
    return describe_difference(made, _in_double(expected.detach().cpu()), tolerance)


def _in_double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _type(dtype: DType) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.torch)
    return found
