"""Random numbers on both sides: what the device drew, drawn again on the CPU.

The device seeds a CPU generator from its own stream for each random operator. The first run notes these seeds, the
second gives them to the CPU's generator, operator by operator: where both sides run the same random operators in the
same order, they draw the same numbers.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_SEEDED = torch.Tag.nondeterministic_seeded
# Where the first two numbers of a step of the device's stream stand in its state; they are the seed.
_NUMBERS = slice(4, 12)


class NotingSeeds(TorchDispatchMode):
    """Runs code on the device; `seeds` are those of its random operators, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the operator, and notes the seed if it took one."""
        if _SEEDED not in func.tags:
            return func(*args, **(kwargs or {}))
        before = torch.mps.get_rng_state()
        result = func(*args, **(kwargs or {}))
        after = torch.mps.get_rng_state()
        if not torch.equal(before, after):
            first, second = (int(n) & 0xFFFFFFFF for n in after[_NUMBERS].clone().view(torch.int32).tolist())
            self.seeds.append(first << 32 | second)
        return result


class ReplayingSeeds(TorchDispatchMode):
    """Runs code on the CPU, each random operator with the seed that its like on the device took."""

    def __init__(self, seeds: Sequence[int]) -> None:
        super().__init__()
        self._left = list(seeds)
        self.unmatched = 0

    @property
    def matched(self) -> bool:
        """Whether every random operator had a seed, and every seed an operator."""
        return not self._left and not self.unmatched

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls the operator with the next seed if it is a random one."""
        if _SEEDED not in func.tags:
            return func(*args, **(kwargs or {}))
        if self._left:
            torch.default_generator.manual_seed(self._left[0])
        before = torch.get_rng_state()
        result = func(*args, **(kwargs or {}))
        if not torch.equal(before, torch.get_rng_state()):
            self._take()
        return result

    def _take(self) -> None:
        if self._left:
            self._left.pop(0)
        else:
            self.unmatched += 1
