"""Names of the numbers that kernels take, from those of the arguments in the schema."""

from __future__ import annotations

import re
from collections.abc import Collection

from porter.loops.host_values import (
    Binary,
    Constant,
    Element,
    EndDim,
    Given,
    HostValue,
    Length,
    Operator,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    WrappedDim,
)  # fmt: skip

_FROM_BACK = {-1: "width", -2: "height", -3: "depth"}
_WORDS = {
    Operator.ADD: "plus", Operator.SUBTRACT: "minus", Operator.MULTIPLY: "times", Operator.FLOOR_DIVIDE: "by",
    Operator.DIVIDE: "over", Operator.LEAST: "or_less", Operator.GREATEST: "or_more",
}  # fmt: skip


def name_number(value: HostValue, used: Collection[str]) -> str:
    """A C identifier for a value, unlike those in use."""
    name = re.sub(r"\W+", "_", _name(value)).strip("_")
    name = f"number_{name}" if name[:1].isdigit() else name
    if name not in used:
        return name
    return next(made for i in range(2, len(used) + 3) if (made := f"{name}_{i}") not in used)


def name_tensor(name: str) -> str:
    """A tensor as kernels call it: `input` for `self`, `output` for the first result."""
    return {"self": "input", "result0": "output"}.get(name, re.sub(r"^result", "output", name))


def _name(value: HostValue) -> str:
    match value:
        case Constant(number):
            return f"minus_{-number}" if number < 0 else str(number)
        case Scalar(name):
            return name
        case Element(name, index):
            return f"{name}_{index}" if index >= 0 else f"{name}_last" if index == -1 else f"{name}_back_{-index}"
        case Length(name):
            return f"{name}_count"
        case Rank(tensor):
            return f"{name_tensor(tensor)}_rank"
        case Given(tensor):
            return f"has_{name_tensor(tensor)}"
        case WrappedDim(dim, _):
            return _name(dim)
        case EndDim(dims, _, is_last):
            return f"{'last' if is_last else 'first'}_{dims}"
        case Size(tensor, Constant(number)):
            at = _FROM_BACK.get(int(number), f"size_{number}" if number >= 0 else f"size_back_{-number}")
            return f"{name_tensor(tensor)}_{at}"
        case Size(tensor, dim):
            return f"{name_tensor(tensor)}_{_name(dim)}_size"
        case SizeProduct(tensor, None, None):
            return f"{name_tensor(tensor)}_numel"
        case SizeProduct(tensor, WrappedDim(), None):  # of contiguous tensors, the stride of the dimensions before it
            return f"{name_tensor(tensor)}_outer_stride"
        case SizeProduct(tensor, begin, end):
            return f"{name_tensor(tensor)}_{'outer' if begin is None else 'inner' if end is None else 'middle'}_size"
        case SizesOver(tensor, _, others):
            return f"{name_tensor(tensor)}_{'kept' if others else 'reduced'}_size"
        case Binary(
            Operator.DIVIDE, left, Binary(Operator.GREATEST, Binary(Operator.SUBTRACT, whole, _), Constant(0))
        ) if left == whole:
            return "bessel_correction"
        case Binary(Operator.LEAST | Operator.GREATEST as operator, Scalar(), Scalar()):
            return "lower" if operator is Operator.LEAST else "upper"
        case Binary(Operator.DIVIDE, Binary(Operator.SUBTRACT, Scalar(), Scalar()), _):
            return "step"
        case Binary(Operator.SUBTRACT, Constant(1), right):
            return f"one_minus_{_name(right)}"
        case Binary(Operator.DIVIDE, Constant(1), right):
            return f"inverse_{_name(right)}"
        case Binary(operator, left, right):
            return f"{_name(left)}_{_WORDS[operator]}_{_name(right)}"
