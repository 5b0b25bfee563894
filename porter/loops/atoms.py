"""The simplest values that host code has of a call: what numbers of kernels are expressed in, the simplest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from porter.loops.host_values import (
    Arguments,
    ArgumentValue,
    Binary,
    Constant,
    Element,
    EndDim,
    HostValue,
    Length,
    Operator,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    WrappedDim,
    evaluate,
    list_names,
)  # fmt: skip

_ONE = Constant(1)
_DEFAULTS = (0, 1, 2)  # of scalars that may be left out


def list_atoms(calls: Sequence[Arguments]) -> list[HostValue]:
    """The values that all calls have: of arguments before results, sizes before products, the front before the back.

    What an argument says (a dimension, how many are normalized) comes before the same by a constant.
    """
    first = calls[0]
    names = [name for name in first.tensors if all(name in call.tensors for call in calls)]
    candidates = [
        *(atom for name in names for atom in _sizes(name, first)),
        *_scalar_atoms(first),
        *_default_atoms(calls),
        *(atom for name in names for atom in _products(name, first)),
        *(atom for name in names for atom in _products_over(name, first)),
    ]
    found = [each for each in dict.fromkeys(candidates) if all(evaluate(each, call) is not None for call in calls)]
    return sorted(found, key=lambda each: (is_of_result(each), _rank_cost(each)))


def is_of_result(value: HostValue) -> bool:
    """Whether a value needs the shape of a result."""
    return any(name.startswith("result") for name in list_names(value))


def _rank_cost(value: HostValue) -> int:
    match value:
        case Size(_, WrappedDim() | EndDim()):
            return 0
        case SizeProduct(_, begin, end) if (begin or end) and not any(
            isinstance(each, Constant) for each in (begin, end)
        ):
            return 1
        case SizesOver():
            return 2
        case Scalar() | Element() | Size() | SizeProduct(_, None, None):
            return 3
    return 4


def _scalar_atoms(call: Arguments) -> Iterator[HostValue]:
    for name, value in call.others.items():
        if _is_number(value):
            yield Scalar(name)
        elif isinstance(value, tuple):
            yield from (Element(name, i) for i, each in enumerate(value) if _is_number(each))
            yield from (Element(name, i - len(value)) for i, each in enumerate(value) if _is_number(each))
            yield Length(name)
    yield from (Length(name.removesuffix("[0]")) for name in call.tensors if name.endswith("[0]"))


def _default_atoms(calls: Sequence[Arguments]) -> Iterator[HostValue]:
    """The scalars that some calls leave out, with each default that they may have."""
    for name in calls[0].others:
        given = [call.others.get(name) for call in calls]
        if None in given and any(map(_is_number, given)) and all(each is None or _is_number(each) for each in given):
            yield from (Scalar(name, default) for default in _DEFAULTS)


def _is_number(value: ArgumentValue) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _sizes(name: str, call: Arguments) -> Iterator[HostValue]:
    rank = len(call.tensors[name].shape)
    yield from (Size(name, Constant(i)) for i in range(rank))
    yield from (Size(name, Constant(-1 - i)) for i in range(rank))
    yield from (Size(name, dim) for dim in _dims(name, call))
    yield Rank(name)


def _products(name: str, call: Arguments) -> Iterator[HostValue]:
    rank = len(call.tensors[name].shape)
    yield SizeProduct(name)
    for dim in _dims(name, call):
        yield SizeProduct(name, None, dim)
        yield SizeProduct(name, Binary(Operator.ADD, dim, _ONE))
        yield SizeProduct(name, dim)
    for cut in range(1, rank):
        yield SizeProduct(name, None, Constant(cut))
        yield SizeProduct(name, Constant(-cut))
        yield SizeProduct(name, Constant(cut))
        yield SizeProduct(name, None, Constant(-cut))
    for length in _lengths(name, call):
        cut_at = Binary(Operator.SUBTRACT, Rank(name), length)
        yield SizeProduct(name, None, cut_at)
        yield SizeProduct(name, cut_at)
    for begin in range(rank):
        yield from (SizeProduct(name, Constant(begin), Constant(end)) for end in range(begin + 2, rank))


def _products_over(name: str, call: Arguments) -> Iterator[HostValue]:
    for dims in _dim_arguments(call):
        yield SizesOver(name, dims)
        yield SizesOver(name, dims, others=True)


def _dim_arguments(call: Arguments) -> list[str]:
    """The arguments that name dimensions, as ATen's schemas call them."""
    return [name for name in call.others if "dim" in name and name != "keepdim"]


def _dims(tensor: str, call: Arguments) -> Iterator[WrappedDim | EndDim]:
    for name in _dim_arguments(call):
        value = call.others[name]
        if isinstance(value, int) and not isinstance(value, bool):
            yield WrappedDim(Scalar(name), tensor)
        elif isinstance(value, tuple) or value is None:
            yield from (EndDim(name, tensor, is_last) for is_last in (False, True))


def _lengths(tensor: str, call: Arguments) -> Iterator[Length]:
    """The lengths of the lists that have the sizes of a tensor's last dimensions."""
    shape = call.tensors[tensor].shape
    for name, value in call.others.items():
        if isinstance(value, tuple) and value and value == shape[-len(value) :]:
            yield Length(name)
