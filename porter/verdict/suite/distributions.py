"""What is known of random numbers without their distribution: how two samples differ, and what repeats in one.

They fill a tensor in place, are categories that are drawn by weights, or numbers in random order.
"""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

# How many standard deviations a right kernel stays below, over all that one run compares.
_DEVIATIONS = 6.5
_LARGEST, _SMALLEST = 100, 3
_QUARTER, _NEAR_ONE = 0.25, 1 - 2.0**-12
_BEYOND = 32
_WEIGHTS = (0.5, 0.0, 3.0, 1.0, 0.25, 2.0, 0.0, 4.0, 1.5, 0.0)


@dataclass(frozen=True)
class Case:
    """An in-place operator that draws numbers, with arguments. Tensors among them have the shape of what is filled."""

    overload: Any
    arguments: tuple[Any, ...]
    label: str

    def fill(self, target: torch.Tensor, generator: torch.Generator, alike: bool = False) -> torch.Tensor:
        """Fills a tensor; if `alike`, all elements have the same distribution."""
        given = (_make_probabilities(target, alike) if each is torch.Tensor else each for each in self.arguments)
        self.overload(target, *given, generator=generator)
        return target

    def find_wrong(self, drawn: torch.Tensor) -> str:
        """Describes what no sample may have, or returns ""."""
        return ""

    def measure(self, drawn: torch.Tensor) -> torch.Tensor:
        """The numbers of a sample whose distribution is to be the CPU's."""
        return drawn


@dataclass(frozen=True)
class DrawnCase(Case):
    """An operator that draws as many categories as it is asked for, by weights in the type of what is filled."""

    def fill(self, target: torch.Tensor, generator: torch.Generator, alike: bool = False) -> torch.Tensor:
        """Fills a tensor with what is drawn by one row of weights, or by two that are alike."""
        count = target.numel()
        if not count:
            return target
        rows = 2 if count % 2 == 0 else 1
        weights = torch.tensor(_WEIGHTS).to(target.device, target.dtype).expand(rows, -1)
        drawn = self.overload(weights, count // rows, *self.arguments, generator=generator)
        return target.copy_(drawn.reshape(target.shape))


@dataclass(frozen=True)
class OrderCase(Case):
    """An operator that writes the numbers below a count in random order, in the type of what is filled."""

    def fill(self, target: torch.Tensor, generator: torch.Generator, alike: bool = False) -> torch.Tensor:
        """Fills a tensor with several orders: that of one number, for which the operator has to resize its output, then
        longer ones.
        """
        first, *rest = self._split(target)
        resized = target.new_empty(0)
        first.copy_(self.overload(first.numel(), generator=generator, out=resized))
        for part in rest:
            self.overload(part.numel(), generator=generator, out=part)
        return target

    def find_wrong(self, drawn: torch.Tensor) -> str:
        for part in self._split(drawn):
            numbers = part.double().sort().values
            if not torch.equal(numbers, torch.arange(part.numel(), dtype=torch.float64)):
                missing = part.numel() - numbers.unique().numel()
                return f"{missing} of {part.numel()} numbers are drawn twice, or others than these are"
        return ""

    def measure(self, drawn: torch.Tensor) -> torch.Tensor:
        """How far each number is from its place, and from the one before it, as if the last came before the first."""
        parts = [part.double() for part in self._split(drawn)]
        moved = [(part - torch.arange(part.numel())) % part.numel() for part in parts]
        steps = [(part - part.roll(1)) % part.numel() + drawn.numel() for part in parts]
        return torch.cat((*moved, *steps))

    def _split(self, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The first element, and parts of a quarter of all, as far as all numbers below are exact in the type."""
        dtype, exact = target.dtype, 2
        if dtype.is_floating_point:
            exact = int(2 / torch.finfo(dtype).eps)
        elif dtype != torch.bool:
            exact = torch.iinfo(dtype).max + 1
        return target[:1], *target[1:].split(min(-(-target.numel() // 4), exact))


def find_cases(base: str) -> Iterator[Case]:
    """The cases of an operator's overloads that are tagged as random: of those in place, those that draw, and those
    that write an order.
    """
    plain = base.rstrip("_")
    for name, overload in _list_random(f"{plain}_"):
        taken = [each for each in overload._schema.arguments[1:] if not each.kwarg_only]
        for at, values in enumerate(_choose_values(taken)):
            yield Case(overload, tuple(values), f"{plain}_{name}{at or ''}")
    for name, overload in _list_random(plain):
        kinds = [str(each.type) for each in overload._schema.arguments if not each.kwarg_only]
        if kinds[:2] == ["Tensor", "int"] and set(kinds[2:]) == {"bool"} and not overload._schema.is_mutable:
            yield DrawnCase(overload, (True,) * len(kinds[2:]), f"{plain}_{name}")
        if kinds == ["int"] and [each.name for each in overload._schema.arguments][1:] == ["generator", "out"]:
            yield OrderCase(overload, (), f"{plain}_{name}")


def _list_random(base: str) -> Iterator[tuple[str, Any]]:
    packet = getattr(torch.ops.aten, base, None)
    overloads = ((name, getattr(packet, name)) for name in packet.overloads()) if packet else ()
    yield from (each for each in overloads if torch.Tag.nondeterministic_seeded in each[1].tags)


def _choose_values(taken: list[Any]) -> Iterator[list[Any]]:
    kinds = [str(each.type) for each in taken]
    floats = iter((_QUARTER, 1.75) if kinds.count("float") > 1 else (_QUARTER,))
    whole = iter((_SMALLEST, _LARGEST) if len(kinds) > 1 else (_LARGEST,))
    chosen = {"Tensor": lambda: torch.Tensor, "float": lambda: next(floats), "int": lambda: next(whole)}
    yield [chosen[kind.removeprefix("Optional[").removesuffix("]")]() for kind in kinds]
    if kinds and all(each.has_default_value() for each in taken):
        yield [each.default_value for each in taken]
    if kinds[-1:] == ["Optional[int]"]:
        yield [_SMALLEST, None]
        yield [torch.iinfo(torch.int64).min, None]


def _make_probabilities(target: torch.Tensor, alike: bool) -> torch.Tensor:
    if alike:
        return torch.full(target.shape, 0.3, device=target.device)
    count = max(target.numel(), 1)
    return torch.linspace(0.05, 0.95, count, device=target.device)[: target.numel()].reshape(target.shape)


def find_difference(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    """Describes how two samples differ, by the Kolmogorov-Smirnov statistic and by two moments, or returns ""."""
    one, other = (each.double().flatten().sort().values for each in (ours, theirs))
    if one.isnan().any():
        return f"{int(one.isnan().sum())} values are NaN"
    every = torch.cat((one, other))
    shares = (torch.searchsorted(each, every, right=True) / each.numel() for each in (one, other))
    statistic = float((next(shares) - next(shares)).abs().max())
    scale = math.sqrt(1 / one.numel() + 1 / other.numel())
    most = math.sqrt(_DEVIATIONS**2 / 4) * scale
    if statistic > most:
        return f"the distributions are {statistic:.3f} apart (Kolmogorov-Smirnov), of which {most:.3f} may be chance"
    low, high = (float(other[int(other.numel() * at)]) for at in (0.01, 0.99))
    for power, moment in ((1, "means"), (2, "mean squares")):
        mine, yours = (each.clamp(low, high) ** power for each in (one, other))
        allowed = _DEVIATIONS * float(yours.std()) * scale + 1e-12
        found, expected = float(mine.mean()), float(yours.mean())
        if abs(found - expected) > allowed:
            return f"the {moment} are {found:.6g} and {expected:.6g}, more than {allowed:.2g} apart"
    return ""


def make_extreme(case: Case) -> Case:
    """The case with its one number so near 1 that 16 bits have none between, of which few numbers drawn tell."""
    return replace(case, arguments=(_NEAR_ONE,)) if case.arguments == (_QUARTER,) else case


def find_excess(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    """Describes how many numbers of one sample are beyond all of another of its size, if that is no chance, or both
    ways; or returns "". Of two samples of one distribution, so many are one in four billion times.
    """
    for one, other, whose in ((ours, theirs, "of the CPU"), (theirs, ours, "drawn here")):
        for beyond, end in ((one > other.max(), "above"), (one < other.min(), "below")):
            if int(beyond.sum()) > _BEYOND:
                return f"{int(beyond.sum())} of {one.numel()} numbers, as {one[beyond][0]}, are {end} all {whose}"
    return ""


def find_repetition(one: torch.Tensor, other: torch.Tensor) -> str:
    """Describes a shift at which two samples of one size agree more than by chance, or returns "".

    A sample is compared with itself by all shifts but none.
    """
    a, b = (_normalize(each) for each in (one, other))
    count = a.numel()
    size = 2 * count
    products = torch.fft.irfft(torch.fft.rfft(a, size) * torch.fft.rfft(b, size).conj(), size)
    shifts = torch.cat((torch.arange(count), torch.arange(-count, 0)))
    pairs = (count - shifts.abs()).clamp(min=1)
    counted = pairs > count // 2
    if one is other:
        counted &= shifts != 0
    strength = torch.where(counted, products.abs() / pairs.sqrt(), 0.0)
    worst = int(strength.argmax())
    if float(strength[worst]) <= _DEVIATIONS:
        return ""
    share = float(products[worst]) / float(pairs[worst])
    return f"{share:.2f} of the values follow from those {abs(int(shifts[worst]))} elements away"


def _normalize(values: torch.Tensor) -> torch.Tensor:
    """Values by rank, with mean 0 and variance 1: no outlier counts more."""
    _, ranks = values.double().flatten().nan_to_num().unique(return_inverse=True)
    ranks = ranks.double()
    return (ranks - ranks.mean()) / ranks.std().clamp(min=1e-12)
