"""Every module of `torch.nn` with inputs: those of PyTorch's own module database, and a table for the rest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_leaves, tree_map

from training.case import ModuleCase
from training.others import OTHERS, Inputs

# What has no forward of its own to train.
ABSTRACT: Mapping[str, str] = {
    "Module": "the base of all modules",
    "Container": "a deprecated base without a forward",
    "RNNBase": "the base of RNN, LSTM and GRU",
    "RNNCellBase": "the base of the RNN cells",
}


def names() -> list[str]:
    """Every module that `torch.nn` exports."""
    classes = ((name, getattr(nn, name)) for name in dir(nn))
    return [name for name, each in classes if inspect.isclass(each) and issubclass(each, nn.Module)]


def cases(dtype: torch.dtype, most: int) -> Iterator[ModuleCase]:
    """At most `most` cases of each module and mode, in float32 also one with `channels_last` where inputs have it."""
    known = {info.module_cls: info for info in module_db}
    for name in names():
        info = known.get(getattr(nn, name))
        made = _from_database(name, info, dtype, most) if info else _from_table(name, dtype)
        yield from _with_channels_last(made) if dtype is torch.float32 else made


def _from_database(name: str, info: Any, dtype: torch.dtype, most: int) -> Iterator[ModuleCase]:
    for training in (True, False) if info.train_and_eval_differ else (True,):
        count = len(_inputs(info, dtype, training))
        for index in range(min(count, most)):
            yield _case(name, info, dtype, training, index)


def _inputs(info: Any, dtype: torch.dtype, training: bool) -> Sequence[Any]:
    torch.manual_seed(7)
    found = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    return [each for each in found if each.forward_input is not None]


def _case(name: str, info: Any, dtype: torch.dtype, training: bool, index: int) -> ModuleCase:
    def make() -> nn.Module:
        given = _inputs(info, dtype, training)[index].constructor_input
        torch.manual_seed(11)
        made: nn.Module = info.module_cls(*given.args, **given.kwargs)
        return made.to(dtype)

    def inputs() -> Inputs:
        given = _inputs(info, dtype, training)[index].forward_input
        return given.args, given.kwargs

    mode = "" if training else ", eval"
    return ModuleCase(name, f"input {index}{mode}", dtype, training, make, inputs)


def _from_table(name: str, dtype: torch.dtype) -> Iterator[ModuleCase]:
    for index, other in enumerate(OTHERS.get(name, ())):
        yield ModuleCase(name, f"input {index}", dtype, True, _maker(other.make, dtype), _giver(other.inputs, dtype))


def _maker(make: Callable[[], nn.Module], dtype: torch.dtype) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        torch.manual_seed(11)
        return make().to(dtype)

    return made


def _giver(inputs: Callable[[torch.dtype], tuple[Any, ...]], dtype: torch.dtype) -> Callable[[], Inputs]:
    def given() -> Inputs:
        torch.manual_seed(7)
        return inputs(dtype), {}

    return given


def _with_channels_last(made: Iterator[ModuleCase]) -> Iterator[ModuleCase]:
    """Each case, and the first one of a mode again with its inputs in another memory format."""
    done = set()
    for case in made:
        yield case
        if case.training not in done and any(_format(value) for value in tree_leaves(case.inputs())):
            done.add(case.training)
            yield _reformatted(case)


def _reformatted(case: ModuleCase) -> ModuleCase:
    def inputs() -> Inputs:
        args, kwargs = tree_map(_reformat, case.inputs())
        return args, kwargs

    return ModuleCase(case.name, f"{case.variant}, channels last", case.dtype, case.training, case.make, inputs)


def _format(value: Any) -> torch.memory_format | None:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return formats.get(value.dim()) if isinstance(value, torch.Tensor) else None


def _reformat(value: Any) -> Any:
    wanted = _format(value)
    if wanted is None:
        return value
    return value.detach().contiguous(memory_format=wanted).requires_grad_(value.requires_grad)
