"""A script that holds kernels: what they compute, on which inputs they are checked, and at which sizes they are timed.

A script has a module-level value `SCRIPT`. A pipeline has several stages, each with a reference of its own.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

import torch
from torch import Tensor

from porter.core.errors import PorterError
from porter.core.python import own_module
from porter.kernels.check import FLOATING, lay_channels_last, lay_expanded, lay_sliced
from porter.kernels.compare import BY_TYPE, Difference, Tolerance, compare, largest_of

FLOATS = FLOATING
Values = Mapping[str, Any]
Function = Callable[..., Any]


class Kind(Enum):
    """What a kernel's threads share, which bounds its time on the host."""

    ELEMENTWISE = "elementwise"
    ROW_WISE = "row-wise"
    MATRIX = "matrix"
    ATOMIC = "atomic"
    PIPELINE = "pipeline"
    MODEL = "model"

    @property
    def target(self) -> float | None:
        """The most times the torch operator that the kernel may take on the host; None if that says little."""
        return {Kind.ELEMENTWISE: 1.2, Kind.ROW_WISE: 8.0}.get(self)


class Layout(Enum):
    """How the inputs of a case lie in memory."""

    DENSE = "dense"
    STRIDED = "strided"
    TRANSPOSED = "transposed"
    CHANNELS_LAST = "channels_last"
    EXPANDED = "expanded"
    SLICE = "slice"


# These are tried in one element type.
_LAYERS = {Layout.CHANNELS_LAST: lay_channels_last, Layout.EXPANDED: lay_expanded, Layout.SLICE: lay_sliced}


@dataclass(frozen=True)
class Case:
    """One set of inputs: its size, element type and layout. The same case always has the same values, and another
    `salt` other ones.
    """

    size: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    layout: Layout = Layout.DENSE
    device: str = "mps"
    salt: int = 0

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.size))}-{str(self.dtype).removeprefix('torch.')}-{self.layout.value}"

    def normal(self, *shape: int, seed: int = 0) -> Tensor:
        """Normally distributed numbers. `seed` tells tensors of one shape apart."""
        values = torch.randn(shape, generator=self._generator(shape, seed))
        return self.place(values.to(self.dtype))

    def uniform(self, *shape: int, low: float, high: float, seed: int = 0) -> Tensor:
        """Numbers between two bounds."""
        values = torch.rand(shape, generator=self._generator(shape, seed)) * (high - low) + low
        return self.place(values.to(self.dtype))

    def integers(self, *shape: int, below: int, dtype: torch.dtype = torch.int32, seed: int = 0) -> Tensor:
        """Integers from 0 up."""
        return self.place(torch.randint(below, shape, generator=self._generator(shape, seed)).to(dtype))

    def place(self, values: Tensor) -> Tensor:
        """The same values on the device, in this case's layout."""
        values = values.to(self.device)
        if self.layout is Layout.STRIDED and values.dim():
            *outer, last = values.shape
            wide = torch.zeros((*outer, 2 * last + 1), dtype=values.dtype, device=values.device)
            wide[..., 1::2] = values
            return wide[..., 1::2]
        if self.layout is Layout.TRANSPOSED and values.dim() > 1:
            return values.transpose(-1, -2).contiguous().transpose(-1, -2)
        return _LAYERS[self.layout](values) if self.layout in _LAYERS else values

    def _generator(self, shape: tuple[int, ...], seed: int) -> torch.Generator:
        named = (self.size, shape, seed, self.salt) if self.salt else (self.size, shape, seed)
        return torch.Generator().manual_seed(zlib.crc32(repr(named).encode()))


def to_answer(*_: object) -> Tensor:
    """What launches a stage of a problem: an answer gives a function of the stage's name. Raises PTR440."""
    raise PorterError(
        "PTR440", "this script is a problem, whose stages have no kernels",
        hint="Check an answer to it: porter kernel check ANSWER --problem FILE.",
    )  # fmt: skip


_GROUP_PARAMETERS = ("group", "group_size", "threadgroup", "threads_per_threadgroup")


@dataclass(frozen=True)
class Stage:
    """One step: a function that calls a kernel, and the torch code that says what it computes.

    Both take the values named `takes` and return those named `gives`. `simple` is the same step written plainly,
    `operators` the same in several operators of torch, which `porter kernel bench` compares the fused kernel with. A
    further parameter of `run` named `group` or `group_size` says how many threads a threadgroup has: any number.
    """

    name: str
    run: Function
    reference: Function
    takes: tuple[str, ...]
    gives: tuple[str, ...] = ("out",)
    simple: Function | None = None
    operators: Function | None = None

    def __post_init__(self) -> None:
        what = f"stage {self.name}"
        for name in ("run", "reference", "simple", "operators"):
            given = getattr(self, name)
            left_out = given is None and name in ("simple", "operators")
            _require(callable(given) or left_out, what, name, given, "Give a function.")
        for name in ("takes", "gives"):
            given = getattr(self, name)
            _require(_holds(given, str), what, name, given, 'Give a tuple of names: ("x",).')

    @property
    def group(self) -> str:
        """The parameter of `run` beyond what it takes that sizes the threadgroup; "" without one."""
        beyond = list(signature(self.run).parameters)[len(self.takes) :]
        return next((name for name in beyond if name in _GROUP_PARAMETERS), "")

    def in_groups(self, size: int) -> Stage:
        """The stage with threadgroups of `size` where `run` takes such a number."""
        return replace(self, run=partial(self.run, **{self.group: size})) if self.group else self

    @property
    def tiers(self) -> dict[str, Function]:
        """What launches kernels, by the name of the tier: "" for the one to ship."""
        return {"": self.run, **({"simple": self.simple} if self.simple else {})}

    def require(self, values: Values) -> None:
        """Raises PTR287 if a value that the stage takes is missing."""
        missing = [name for name in self.takes if name not in values]
        if missing:
            raise PorterError(
                "PTR287", f"stage {self.name} takes `{missing[0]}`, which neither the inputs nor an earlier stage give",
                hint=f"There are {', '.join(values)}.",
            )  # fmt: skip

    def results(self, function: Function, values: Values) -> dict[str, Any]:
        """What one of the stage's functions returns, by name. Raises PTR287."""
        self.require(values)
        found = function(*(values[name] for name in self.takes))
        found = found if isinstance(found, (tuple, list)) else (found,)
        if len(found) != len(self.gives) or not all(isinstance(each, Tensor) for each in found):
            kinds = ", ".join(type(each).__name__ for each in found)
            raise PorterError(
                "PTR287", f"a function of stage {self.name} returns {kinds or 'nothing'}",
                hint=f"Return a tensor for each of {', '.join(self.gives)}.",
            )  # fmt: skip
        return dict(zip(self.gives, found, strict=True))


@dataclass(frozen=True)
class Refusal:
    """A wrong call: it has to raise ValueError or TypeError with `argument` in the message."""

    argument: str
    call: Callable[[], object]

    def __post_init__(self) -> None:
        _require(callable(self.call), "a Refusal", "call", self.call, "Give a function that makes the wrong call.")


@dataclass(frozen=True)
class WrongStage:
    """The first stage that is not as its reference, in which function, "" for the kernel to ship, and where."""

    stage: str
    difference: Difference
    tier: str = ""

    def __str__(self) -> str:
        return f"stage {self.stage}{f' ({self.tier})' if self.tier else ''}: {self.difference}"


@dataclass(frozen=True)
class Right:
    """What the reference of a stage gives on the CPU: in the types of its inputs, and in double precision.

    `summed` are the largest results for the inputs' magnitudes, where it is asked for: how large the terms of sums are
    that cancel.
    """

    expected: Values
    precise: Values
    summed: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, stage: Stage, values: Values, cancels: bool = False) -> Right:
        expected, wide = stage.results(stage.reference, on_cpu(values)), widened(values)
        summed = {}
        if cancels:
            sizes = {n: v.abs() if isinstance(v, Tensor) and v.is_floating_point() else v for n, v in wide.items()}
            summed = {name: largest_of(value) for name, value in stage.results(stage.reference, sizes).items()}
        return cls(expected, stage.results(stage.reference, wide), summed)


@dataclass(frozen=True)
class Script:
    """What a script holds. `benchmark` are the sizes that are timed."""

    summary: str
    kind: Kind
    stages: tuple[Stage, ...]
    inputs: Callable[[Case], Values]
    sizes: tuple[tuple[int, ...], ...]
    benchmark: tuple[tuple[int, ...], ...]
    dtypes: tuple[torch.dtype, ...] = FLOATS
    layouts: tuple[Layout, ...] = tuple(Layout)
    refusals: tuple[Refusal, ...] = ()
    tolerance: Tolerance = BY_TYPE

    def __post_init__(self) -> None:
        what = "SCRIPT"
        for name, kind, fewest in _LISTS:
            given = getattr(self, name)
            enough = _holds(given, kind) and len(given) >= fewest
            _require(enough, what, name, given, f"Give a tuple of {kind.__name__}.")
        for name in ("sizes", "benchmark"):
            given = getattr(self, name)
            fits = isinstance(given, (tuple, list)) and all(_holds(each, int) for each in given)
            _require(fits and (name != "sizes" or given), what, name, given, "Give a tuple of sizes: ((1,), (64, 3)).")
        _require(callable(self.inputs), what, "inputs", self.inputs, "Give a function from a Case to values by name.")
        _require(isinstance(self.kind, Kind), what, "kind", self.kind, "Give a porter.kernels.script.Kind.")
        _require(isinstance(self.tolerance, Tolerance), what, "tolerance", self.tolerance, "Give a Tolerance.")

    def values(self, case: Case) -> dict[str, Any]:
        """The inputs of a case by name. Raises PTR287."""
        found = self.inputs(case)
        _require(isinstance(found, Mapping), "SCRIPT", "inputs", found, 'Return values by name: {"x": ...}.')
        return dict(found)

    def cases(self, device: str = "mps") -> Iterator[Case]:
        """The largest size in every element type and layout, and the other sizes in the first of both.

        Layouts that differ from these in strides alone are tried in the first type.
        """
        largest = max(self.sizes, key=math.prod)
        for size in self.sizes:
            if size != largest:
                yield Case(size, self.dtypes[0], self.layouts[0], device)
        for dtype, layout in product(self.dtypes, self.layouts):
            if dtype is self.dtypes[0] or layout not in _LAYERS:
                yield Case(largest, dtype, layout, device)

    def find_difference(self, case: Case) -> WrongStage | None:
        """The first difference of any stage, in either tier. Each stage gets what the reference of those before it
        gave, so that one wrong stage makes no other one wrong.
        """
        for stage, values, right in self.walk(case):
            difference = self.judge_tiers(stage, case, values, right)
            if difference is None and stage.operators is not None:
                _, difference = self.judge(stage, stage.operators, case, on_cpu(values), right)
                difference = difference and replace(difference, tier="operators")
            if difference is not None:
                return difference
        return None

    def walk(self, case: Case, cancels: bool = False) -> Iterator[tuple[Stage, dict[str, Any], Right]]:
        """Each stage with its values, which are what the references of those before it gave, and with what is right."""
        values = self.values(case)
        for stage in self.stages:
            right = Right.of(stage, values, cancels)
            yield stage, values, right
            values |= moved(right.expected, case.device)

    def judge_tiers(self, stage: Stage, case: Case, values: Values, right: Right) -> WrongStage | None:
        """The first difference of a stage's kernels, and the tier of it."""
        for tier, function in stage.tiers.items():
            _, difference = self.judge(stage, function, case, values, right)
            if difference is not None:
                return replace(difference, tier=tier)
        return None

    def judge(
        self, stage: Stage, function: Function, case: Case, values: Values, right: Right
    ) -> tuple[dict[str, Any], WrongStage | None]:
        """What a function of a stage gives, and how that differs from what is right."""
        got, precise = stage.results(function, values), right.precise
        if case.layout is Layout.EXPANDED:
            # Sums of equal rows may cancel as none of the author's do: what counts is that the stride changes nothing.
            dense = {name: v.contiguous() if isinstance(v, Tensor) else v for name, v in values.items()}
            precise = on_cpu(stage.results(function, dense))
        return got, find_difference(stage, got, replace(right, precise=precise), self.tolerance)

    def check(self, case: Case) -> None:
        """Raises AssertionError with the first difference."""
        found = self.find_difference(case)
        assert found is None, f"{case}: {found}"

    def check_refusals(self) -> None:
        """Raises AssertionError if a wrong call is not refused with the argument's name."""
        for refusal in self.refusals:
            try:
                refusal.call()
            except (TypeError, ValueError) as error:
                assert refusal.argument in str(error), f"`{refusal.argument}` is not named: {error}"
            else:
                raise AssertionError(f"a wrong `{refusal.argument}` is not refused")


_LISTS = (("stages", Stage, 1), ("dtypes", torch.dtype, 1), ("layouts", Layout, 1), ("refusals", Refusal, 0))


def _holds(given: object, kind: type) -> bool:
    return isinstance(given, (tuple, list)) and all(isinstance(each, kind) for each in given)


def _require(holds: object, what: str, name: str, given: object, hint: str) -> None:
    if not holds:
        raise PorterError("PTR287", f"`{name}` of {what} is {str(given)[:80]}", hint=hint)


def on_cpu(values: Values) -> dict[str, Any]:
    """The same values on the CPU."""
    return moved(values, "cpu")


def moved(values: Values, device: str) -> dict[str, Any]:
    """The same values on a device."""
    return {name: v.detach().to(device) if isinstance(v, Tensor) else v for name, v in values.items()}


def widened(values: Values) -> dict[str, Any]:
    """The same values on the CPU, floating-point ones in float64."""
    return {name: _widen(value) for name, value in values.items()}


def _widen(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    value = value.detach().cpu()
    return value.double() if value.is_floating_point() else value


def find_difference(stage: Stage, got: Values, right: Right, tolerance: Tolerance) -> WrongStage | None:
    """The first result that differs from what is right in shape, type or values."""
    for name in stage.gives:
        found, wanted = (f"{tuple(values[name].shape)} {values[name].dtype}" for values in (got, right.expected))
        if found != wanted:
            return WrongStage(stage.name, Difference(name, (), wanted, found, 1, 1))
        summed = right.summed.get(name, 0.0)
        _, difference = compare(name, got[name].detach().cpu(), right.precise[name], tolerance, summed)
        if difference is not None:
            return WrongStage(stage.name, difference)
    return None


def expect(holds: bool, what: str, *shown: object) -> None:
    """Raises ValueError with `what`, which names the argument, unless the condition holds.

    Each `{}` in it stands for one of `shown`, of which no text is made in vain: that takes as long as a small launch.
    """
    if not holds:
        raise ValueError(what.format(*shown) if shown else what)


def run_script(file: str) -> None:
    """Runs `porter kernel check` on a script, in place of this process: the device has to come up before torch."""
    program = own_module("porter.__main__", "kernel", "check", file)
    os.execve(program.command[0], program.command, dict(program.environment))
