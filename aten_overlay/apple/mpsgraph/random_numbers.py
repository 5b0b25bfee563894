"""Random numbers. Source: Apple's documentation of MPSGraph (random operations).

The distributions are those of the documentation; the numbers are torch's, not those of Apple's Philox generator.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import implements, unsupported
from aten_overlay.apple.mpsgraph.types import torch_type

_UNIFORM, _NORMAL, _TRUNCATED = 0, 1, 2  # MPSGraphRandomDistribution
_STATE = 7  # numbers of a Philox state
_calls = itertools.count()


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _drawn(shape: list[int], d: Any, generator: torch.Generator) -> Tensor:
    dtype = torch_type(d.dataType)
    if d.distribution == _UNIFORM:
        return _uniform(shape, d, dtype, generator)
    if d.distribution == _NORMAL:
        made = torch.randn(shape, generator=generator)
    elif d.distribution == _TRUNCATED:
        low, high = (torch.special.ndtr(torch.tensor((end - d.mean) / d.standardDeviation)) for end in (d.min, d.max))
        made = torch.special.ndtri(low + (high - low) * torch.rand(shape, generator=generator))
    else:
        raise unsupported(f"MPSGraphRandomDistribution {d.distribution}")
    return (made * d.standardDeviation + d.mean).to(dtype)


def _uniform(shape: list[int], d: Any, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """From the least on: floats below the greatest, integers up to it."""
    if not dtype.is_floating_point:
        end = min(d.maxInteger + 1, torch.iinfo(torch.int64).max)  # torch takes no later one
        return torch.randint(d.minInteger, end, shape, generator=generator).to(dtype)
    made = (torch.rand(shape, generator=generator) * (d.max - d.min) + d.min).to(dtype)
    if d.max <= d.min:
        return made
    return torch.where(made < d.max, made, torch.full_like(made, d.min))  # rounded up to the end


@implements("randomTensorWithShape:descriptor")
def drawn(shape: list[int], d: Any) -> Tensor:
    return _drawn(shape, d, _generator(next(_calls)))


@implements("randomTensorWithShape:descriptor:stateTensor")
def drawn_with_state(shape: list[int], d: Any, state: Tensor) -> list[Tensor]:
    """The same numbers for the same state, and the next state."""
    if state.device.type == "meta":
        return [torch.empty(shape, dtype=torch_type(d.dataType), device="meta"), torch.empty_like(state)]
    seed = 0
    for word in state.flatten().tolist():
        seed = (seed * 1_000_003 + word) % 2**63
    after = state.clone()
    after.view(-1)[0] += 1
    return [_drawn(shape, d, _generator(seed)), after]


@implements("randomPhiloxStateTensorWithSeed")
def state_of_seed(seed: int) -> Tensor:
    return _state(seed, 0)


@implements("randomPhiloxStateTensorWithCounterLow:counterHigh:key")
def state_of_counter(low: int, high: int, key: int) -> Tensor:
    return _state(low, high, key)


def _state(*words: int) -> Tensor:
    halves = [half for word in words for half in (word & 0x7FFFFFFF, word >> 32 & 0x7FFFFFFF)]
    return torch.tensor([*halves, *[0] * (_STATE - len(halves))], dtype=torch.int32)


@implements("dropoutTensor:rate")
def dropout(x: Tensor, rate: float) -> Tensor:
    """Each element is zero with the probability `rate`; the others grow, so that the mean stays."""
    if x.device.type == "meta":
        return torch.empty_like(x)
    result = torch.rand(x.shape, generator=_generator(next(_calls))) >= rate
    return torch.where(result, x / (1 - rate), torch.zeros_like(x)).to(x.dtype)
