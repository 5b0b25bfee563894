"""What a script does beside its kernels: rules that a kernel's author has no reason to break, and a cheat has.

All of these pass a comparison of values: a reference called in the place of the kernel, a result kept from an earlier
call, inputs that are written to, checks that are replaced, and work that no timer sees.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import yaml
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from aten_overlay.device.frameworks import count_launches
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.kernels.operator import is_registered
from porter.kernels.script import Case, Kind, Right, Script, Stage, Values, find_difference

_CHECKED = ("porter.", "aten_overlay.")
_TABLE = Path(__file__).with_name("moving.yaml")
_TORCH = (torch, Tensor, torch.testing, torch.mps)


@cache
def _moving() -> frozenset[str]:
    return frozenset(yaml.safe_load(read_regular(_TABLE)))


class _Operators(TorchDispatchMode):
    """Notes the operators that compute. The device runs them on the CPU, and a Mac with kernels of PyTorch's."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.computing: dict[str, None] = {}
        self.reads_back = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        schema = func._schema
        is_view = schema.returns and all(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        if not is_view and schema.name not in _moving() and not is_registered(func):
            self.computing[schema.name] = None
        results = func(*args, **(kwargs or {}))
        if not is_view and isinstance(results, Tensor) and results.device.type == "cpu":
            leaves = (leaf for leaf in tree_leaves(args) if isinstance(leaf, Tensor))
            self.reads_back |= any(leaf.device.type != "cpu" and leaf.numel() > 1 for leaf in leaves)
        return results


def check_conduct(script: Script, cases: Sequence[Case]) -> Iterator[PorterError]:
    """The rules that a script breaks, or its stages on these cases. Raises what the inputs or a stage raise."""
    loosened = [f"{name} tolerance" for name, value in asdict(script.tolerance).items() if value is not None]
    if loosened:
        hint = "Leave the tolerance to porter, which knows the type of a result."
        yield PorterError("PTR227", f"the script has its own {' and '.join(loosened)}", hint=hint)
    is_varied = False
    for case in cases:
        values, others = script.values(case), script.values(replace(case, salt=case.salt + 1))
        is_varied |= any(not _is_same(value, others[name]) for name, value in _tensors(values) if name in others)
        yield from _check_stages(script, case, values, others)
    if not is_varied:
        hint = "Make inputs with case.normal, case.uniform or case.integers: a result may be known otherwise."
        yield PorterError("PTR227", "the script's inputs are the same whatever the seed is", hint=hint)


def _check_stages(script: Script, case: Case, values: Values, others: Values) -> Iterator[PorterError]:
    for stage in script.stages:
        right = Right.of(stage, values, cancels=True)
        for tier, run in stage.tiers.items():
            name = f"stage {stage.name}{f' ({tier})' if tier else ''}"
            for what, hint in _find_breaches(script, stage, run, case, values, others, right):
                yield PorterError("PTR227", f"{name} {what}", hint=hint)
        values = {**values, **{key: value.to(case.device) for key, value in right.expected.items()}}
        others = {**others, **stage.results(stage.reference, others)}


def _tensors(values: Values) -> Iterator[tuple[str, Tensor]]:
    yield from ((name, value) for name, value in values.items() if isinstance(value, Tensor))


def _find_breaches(
    script: Script, stage: Stage, run: Callable[..., Any], case: Case, values: Values, others: Values, right: Right
) -> Iterator[tuple[str, str]]:
    """What one function of a stage does that it should not, and what to do about it."""
    before = {name: value.clone() for name, value in _tensors(values)}
    threads = threading.active_count()
    before_launches = count_launches()
    operators, is_model = _Operators(), script.kind is Kind.MODEL
    # A model computes with operators beside its kernels, and instead of them for what they do not take; torch.compile
    # takes nothing that a mode watches.
    with nullcontext() if is_model else operators:
        results = stage.results(run, values)
    if not is_model and count_launches() == before_launches and any(result.numel() for result in results.values()):
        yield "launches no kernel", "Compute its results in a kernel."
    if operators.computing:
        yield f"computes with {', '.join(operators.computing)}", "Compute in a kernel; the reference is for the check."
    if operators.reads_back:
        yield "reads its values back to the host", "Leave them on the device: a kernel computes with them there."
    if threading.active_count() > threads:
        yield "leaves a thread running", "Finish the work before returning: no timer sees it otherwise."
    changed = [name for name, value in before.items() if not _is_same(values[name], value)]
    if changed:
        yield f"writes to its input {changed[0]}", "Write results to tensors of their own."
        return
    if find_difference(stage, results, right, script.tolerance) is not None:
        return  # which is said of the case
    # Other values at the same addresses: a result that is kept by address, or by the object, is the old one.
    for name, value in before.items():
        other = others.get(name)
        if isinstance(other, Tensor) and other.shape == value.shape and values[name].dim() == other.dim():
            _refill(values[name], other)
    try:
        _, difference = script.judge(stage, run, case, values, Right.of(stage, values, cancels=True))
        if difference is not None:
            hint = "Compute from the values of each call; what is kept by address belongs to an earlier one."
            yield f"gives another result for new values at the same addresses: {difference}", hint
    finally:
        for name, value in before.items():
            _refill(values[name], value)


def _refill(tensor: Tensor, values: Tensor) -> None:
    """Copies values into a tensor, whose elements may share memory."""
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.shape[dimension] > 1:
            tensor, values = tensor.narrow(dimension, 0, 1), values.narrow(dimension, 0, 1)
    tensor.copy_(values)


def _is_same(one: Tensor, other: object) -> bool:
    if not isinstance(other, Tensor) or other.shape != one.shape:
        return False
    # NaN is the same as NaN. Memory of its own is dense even for one element, whose stride may be any.
    dense = [torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.flatten()) for tensor in (one, other)]
    return torch.equal(*(tensor.view(torch.uint8) for tensor in dense))


class Unchanged:
    """The functions that checks are made of, before a script is loaded. A script may not replace any of them."""

    def __init__(self) -> None:
        import torch._dynamo  # noqa: F401  which replaces functions of torch where something imports it later

        self._before = dict(_name_functions())

    def find_replaced(self) -> Iterator[PorterError]:
        """An error for each function that is another one now."""
        now = dict(_name_functions())
        for name, function in self._before.items():
            if now.get(name) is not function:
                hint = "Leave torch and porter as they are: a check that is replaced proves nothing."
                yield PorterError("PTR227", f"the script replaces {name}", hint=hint)


def _name_functions() -> Iterator[tuple[str, Any]]:
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(_CHECKED) and module]
    holders: list[ModuleType | type] = [*modules, *_TORCH]
    for holder in holders:
        for name, value in list(vars(holder).items()):
            if callable(value):
                yield f"{holder.__name__}.{name}", value
                # Methods of porter's own classes, such as the comparison of a script.
                if isinstance(value, type) and value.__module__.startswith(_CHECKED):
                    yield from ((f"{holder.__name__}.{name}.{key}", item) for key, item in _methods(value))


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    attributes: Mapping[str, Any] = vars(kind)
    yield from ((name, value) for name, value in attributes.items() if callable(value))
