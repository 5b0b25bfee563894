"""Evaluates loop form in torch: all turns of all loops at once, each operation as MPSGraph means it, in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from operator import and_

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph import semantics
from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Expr, Loop, Op, ReductionKind, walk
from porter.mpsgraph.operations import by_op

MAX_TURNS = 1 << 22  # of nested loops


class TooManyTurns(PorterError):
    """A loop form that would take too long."""


def evaluate_expression(root: Expr, buffers: Mapping[Buffer, Tensor], loops: Sequence[Loop]) -> Tensor:
    """The values of an expression in all turns of `loops`, which are its free ones: a dimension each.

    Raises PTR346 if there are more than MAX_TURNS turns, or an element is read from outside of its buffer.
    """
    values: dict[Expr, Tensor] = {}
    for each in walk(root):
        order = _order(each)
        if prod(loop.size for loop in order) > MAX_TURNS:
            error = _failed(f"over {MAX_TURNS} turns of loops")
            raise TooManyTurns(error.code, error.what, hint=error.hint)
        values[each] = _evaluate(each, [values[arg] for arg in each.args], buffers)
    return _spread(values[root], _order(root), loops).expand([loop.size for loop in loops])


def _failed(why: str) -> PorterError:
    return PorterError("PTR346", f"cannot evaluate the loop form: {why}", hint="See docs/errors/PTR346.md.")


def _order(expr: Expr) -> list[Loop]:
    """The loops of an expression's dimensions."""
    return sorted(expr.loops, key=lambda loop: (loop.name, loop.size))


def _spread(value: Tensor, own: Sequence[Loop], loops: Sequence[Loop]) -> Tensor:
    """A value with a dimension for each of `loops`, those of `own` among them; the others have size 1."""
    order = [own.index(loop) for loop in loops if loop in own]
    return value.permute(order).reshape([loop.size if loop in own else 1 for loop in loops])


def _evaluate(expr: Expr, given: Sequence[Tensor], buffers: Mapping[Buffer, Tensor]) -> Tensor:
    if expr.op is Op.REDUCE:
        return _reduce(expr, given)
    order = _order(expr)
    shape = [loop.size for loop in order]
    args = [_spread(value, _order(arg), order).expand(shape) for value, arg in zip(given, expr.args, strict=True)]
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
    found: torch.dtype = torch.float64 if dtype.kind is Kind.FLOATING else getattr(torch, dtype.torch)
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
    outer, loops = _order(expr), expr.reduction.loops
    order = [*outer, *loops]
    shape = [loop.size for loop in order]
    each = [
        _spread(value, _order(arg), order).expand(shape).flatten(len(outer))
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
