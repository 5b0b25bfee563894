"""Evaluates loop nests in torch, all turns of all loops at once, in float64; compares programs with recorded calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from operator import and_
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph import semantics
from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError, explained
from porter.loops.expressions import Buffer, Expr, Loop, Op, ReductionKind, order_loops, walk
from porter.loops.fusion import LoopNest
from porter.loops.host_values import Arguments, round_number
from porter.loops.program import ArgumentBuffer, ResultBuffer, SymbolicProgram, Table, instantiate
from porter.mpsgraph.operations import by_op
from porter.recording.call_programs import read_call_arguments
from porter.recording.concrete import evaluate_nodes, fit_value

if TYPE_CHECKING:
    from porter.recording.runs import RecordedRun

MAX_TURNS = 1 << 22  # of nested loops
_DOUBLE = {Kind.FLOATING: torch.float64, Kind.COMPLEX: torch.complex128}
_TOLERANCE = 1e-4  # relative, and absolute: images are resized in float32, and what one graph wrote is rounded


class TooManyTurns(PorterError):
    """A loop form that would take too long."""


def evaluate_expression(root: Expr, buffers: Mapping[Buffer, Tensor], loops: Sequence[Loop]) -> Tensor:
    """The values of an expression in all turns of `loops`, which are its free ones: a dimension each.

    Raises PTR346 if there are more than MAX_TURNS turns, or an element is read from outside of its buffer.
    """
    values: dict[Expr, Tensor] = {}
    for each in walk(root):
        order = order_loops(each.loops)
        if prod(loop.size for loop in order) > MAX_TURNS:
            error = _failed(f"over {MAX_TURNS} turns of loops")
            raise TooManyTurns(error.code, error.what, hint=error.hint)
        values[each] = _evaluate(each, [values[arg] for arg in each.args], buffers)
    return _spread(values[root], order_loops(root.loops), loops).expand([loop.size for loop in loops])


def _failed(why: str) -> PorterError:
    return explained("PTR346", f"cannot evaluate the loop form: {why}")


def _spread(value: Tensor, own: Sequence[Loop], loops: Sequence[Loop]) -> Tensor:
    """A value with a dimension for each of `loops`, those of `own` among them; the others have size 1."""
    order = [own.index(loop) for loop in loops if loop in own]
    return value.permute(order).reshape([loop.size if loop in own else 1 for loop in loops])


def _evaluate(expr: Expr, given: Sequence[Tensor], buffers: Mapping[Buffer, Tensor]) -> Tensor:
    if expr.op is Op.REDUCE:
        return _reduce(expr, given)
    order = order_loops(expr.loops)
    shape = [loop.size for loop in order]
    args = [
        _spread(value, order_loops(arg.loops), order).expand(shape) for value, arg in zip(given, expr.args, strict=True)
    ]
    match expr.op:
        case Op.LOAD:
            assert isinstance(expr.attribute, Buffer)
            flat = buffers[expr.attribute].flatten()
            if bool(((args[0] < 0) | (args[0] >= flat.numel())).any()):
                raise _failed(f"reads outside of {expr.attribute}")
            return flat[args[0]].to(_type(expr.dtype))
        case Op.CALL:
            return torch_operation(str(expr.attribute), args)
        case Op.CAST | Op.INDEX_VALUE:
            return args[0].to(_type(expr.dtype))
        case Op.NUMBER:
            return torch.tensor(expr.attribute, dtype=_type(expr.dtype))
        case Op.SELECT:
            return torch.where(args[0], args[1], args[2])
    return _evaluate_index(expr, args)


def torch_operation(operation: str, args: Sequence[Tensor]) -> Tensor:
    """An operation of the table as MPSGraph computes it."""
    row = by_op().get(operation)
    arity = "WithTensor" if len(args) == 1 else "WithPrimaryTensor:secondaryTensor"
    found: Tensor = semantics.find(row.selector if row and row.selector else f"{operation}{arity}")(*args)
    return found


def _type(dtype: DType | None) -> torch.dtype:
    assert dtype is not None
    found: torch.dtype = _DOUBLE.get(dtype.kind) or getattr(torch, dtype.torch)
    return found


def _evaluate_index(expr: Expr, args: Sequence[Tensor]) -> Tensor:
    if isinstance(expr.attribute, Loop):
        return torch.arange(expr.attribute.size)
    match expr.op:
        case Op.INTEGER:
            return torch.tensor(expr.integer)
        case Op.SUM:
            return reduce(torch.add, args)
        case Op.PRODUCT:
            return args[0] * args[1]
        case Op.QUOTIENT:
            return torch.div(args[0], args[1], rounding_mode="floor")
        case Op.REMAINDER:
            return torch.remainder(args[0], args[1])
        case Op.LEAST:
            return torch.minimum(*args)
        case Op.GREATEST:
            return torch.maximum(*args)
        case Op.DISTANCE:
            return args[0].abs()
        case Op.READ_INDEX:
            return args[0].to(torch.int64)
        case Op.LESS:
            return args[0] < args[1]
        case Op.EQUAL:
            return args[0] == args[1]
        case Op.BOTH:
            return reduce(and_, args)
    raise AssertionError(expr.op)


def _reduce(expr: Expr, given: Sequence[Tensor]) -> Tensor:
    """Reduces the dimensions of its loops, which are put last and joined."""
    outer, loops = order_loops(expr.loops), expr.reduction.loops
    order = [*outer, *loops]
    shape = [loop.size for loop in order]
    each = [
        _spread(value, order_loops(arg.loops), order).expand(shape).flatten(len(outer))
        for value, arg in zip(given, expr.args, strict=True)
    ]
    return combine(expr.reduction.kind, each).to(_type(expr.dtype))


def combine(kind: ReductionKind, operands: Sequence[Tensor]) -> Tensor:
    """Reduces the last dimension of the operands."""
    first = operands[0]
    match kind:
        case ReductionKind.SUM:
            return first.sum(-1)
        case ReductionKind.PRODUCT:
            return first.prod(-1)
        case ReductionKind.MAX_NAN:
            return first.amax(-1)
        case ReductionKind.MIN_NAN:
            return first.amin(-1)
        case ReductionKind.MAX | ReductionKind.MIN:
            sign = "Maximum" if kind is ReductionKind.MAX else "Minimum"
            found: Tensor = semantics.find(f"reduction{sign}WithTensor:axis")(first, -1)
            return found.squeeze(-1)
        case ReductionKind.ANY:
            return first.any(-1)
        case ReductionKind.ALL:
            return first.all(-1)
        case ReductionKind.ARG_MAX | ReductionKind.ARG_MIN:
            at = first.argmax(-1, True) if kind is ReductionKind.ARG_MAX else first.argmin(-1, True)
            return operands[1].gather(-1, at).squeeze(-1)
    hit, value, otherwise = operands
    turns = torch.where(hit, torch.arange(hit.shape[-1]), -1).amax(-1, True)
    last = value.gather(-1, turns.clamp(min=0))
    return torch.where(turns < 0, otherwise.gather(-1, turns.clamp(min=0)), last).squeeze(-1)


def evaluate_nest(nest: LoopNest, buffers: Mapping[Buffer, Tensor]) -> dict[Buffer, Tensor]:
    """What a kernel stores."""
    made = {}
    for store in nest.stores:
        place, value = (evaluate_expression(each, buffers, store.loops) for each in (store.place, store.value))
        if sorted(place.flatten().tolist()) != list(range(store.size)):
            raise PorterError("PTR346", "a loop form does not store every element once", hint="Report it.")
        made[store.buffer] = torch.empty(store.size, dtype=value.dtype).scatter_(0, place.flatten(), value.flatten())
    return made


def describe_difference(found: Tensor, expected: Tensor, tolerance: float) -> str:
    """The first element that differs beyond rounding; empty if none does."""
    found = found.reshape(expected.shape)
    same = torch.isclose(found.to(expected.dtype), expected, tolerance, tolerance, equal_nan=True)
    if bool(same.all()):
        return ""
    at = tuple(torch.nonzero(~same)[0].tolist())
    return f"{int((~same).sum())} of {same.numel()} differ; at {at}: {found[at].item()} for {expected[at].item()}"


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
    memory = _run(program, nests, ran.given)
    written = {store.buffer for nest in nests for store in nest.stores}
    return next((found for buffer in written if (found := _compare(program, buffer, memory[buffer], ran))), "")


def compute_results(program: SymbolicProgram, ran: RecordedRun, elements: Mapping[str, Tensor]) -> dict[int, Tensor]:
    """The results of a program for other elements of a call's tensors, by their places. Raises as `check_program`."""
    nests = instantiate([each.nest for each in program.nests], read_call_arguments(ran.call, ran.made), False)
    memory = _run(program, nests, elements)
    results = {role.index: buffer for buffer, role in program.roles.items() if isinstance(role, ResultBuffer)}
    return {at: memory[buffer] for at, buffer in results.items()}


def _run(program: SymbolicProgram, nests: Sequence[LoopNest], elements: Mapping[str, Tensor]) -> dict[Buffer, Tensor]:
    """The memory that kernels leave."""
    memory = {buffer: tensor for buffer, role in program.roles.items() if (tensor := _read(role, elements)) is not None}
    for nest in nests:
        memory |= evaluate_nest(nest, memory)
    return memory


def _convert_scalars(arguments: Arguments, ran: RecordedRun, dtype: DType) -> Arguments:
    scalars = {each.name for each in ran.call.overload._schema.arguments if str(each.type) == "number"}
    numbers = {name: value for name, value in arguments.others.items() if name in scalars}
    converted = {name: round_number(value, dtype) for name, value in numbers.items() if isinstance(value, (int, float))}
    return replace(arguments, others={**arguments.others, **converted})


def _read(role: object, tensors: Mapping[str, Tensor]) -> Tensor | None:
    match role:
        case ArgumentBuffer(name):
            return _in_double(tensors[name]) if name in tensors else None
        case Table(elements, dtype):
            return _in_double(torch.tensor(elements, dtype=getattr(torch, dtype.torch)))
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
    stores = [store for each in program.nests for store in each.nest.stores if store.buffer == buffer]
    if all(store.value.op is Op.NUMBER for store in stores):  # may be fed from memory of the result's type
        made = made.to(given.dtype).to(expected.dtype)
    return describe_difference(made, expected, _TOLERANCE if _rounds(given) else 0.0)


def _compute_exactly(ran: RecordedRun, given: torch.Tensor) -> torch.Tensor:
    """What the last graph that wrote a tensor computed, in float64; of one that other kernels wrote, what it holds."""
    for run in reversed(ran.runs):
        for ref, address in run.results.items():
            if address == given.data_ptr():
                return fit_value(evaluate_nodes(run, in_double=True)[ref], tuple(given.shape))
    return _in_double(given.detach().cpu())


def _rounds(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _in_double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(_DOUBLE[Kind.COMPLEX if tensor.is_complex() else Kind.FLOATING]) if _rounds(tensor) else tensor
