"""Cases that the author of a script has not seen: other sizes, layouts and values, made of a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

import torch

from porter.core.errors import PorterError
from porter.kernels.call import DEVICE
from porter.kernels.checking import CaseResult, Part, try_swept
from porter.kernels.judging.conduct import check_conduct
from porter.kernels.script import Case, Script, WrongStage

COUNT = 16
_CONDUCT = 4  # hidden cases on which conduct is watched
_MOST = 1 << 18  # elements of a case, unless the script's own are larger
_SHARE = 0.6  # of the dimensions, whose lengths change
_NEAR = tuple(power + step for power in (2, 8, 16, 32, 64, 256, 1024) for step in (-1, 0, 1))


def check_hidden(script: Script, seed: int, device: str = DEVICE) -> Iterator[CaseResult]:
    """Cases made of `seed` that the script's author has not seen, then what its stages do beside their kernels.

    A case that the inputs, the reference or the kernel refuse is left out, and it is an error if that is every one.
    """
    cases: list[Case] = []
    passed: list[Case] = []
    for case in hidden_cases(script, seed, device):
        torch.compiler.reset()  # a model that is compiled has a limit of sizes
        result = try_swept(script, case, _find_difference)
        if result is not None:
            cases.append(case)
            passed += [case] if result.ok else []
            yield replace(result, case=f"hidden {case} (seed {seed})", part=Part.HIDDEN)
    if not cases:
        error = PorterError("PTR227", "the script takes none of its hidden sizes", hint="Take any size of this rank.")
        yield CaseResult(f"hidden sizes (seed {seed})", error=str(error), part=Part.HIDDEN)
        return
    try:
        breaches = dict.fromkeys(str(breach) for breach in check_conduct(script, passed[:_CONDUCT]))
    except (Exception, SystemExit) as error:  # the script is somebody else's
        breaches = {f"{type(error).__name__}: {error}": None}
    yield from (CaseResult("conduct", error=breach, part=Part.CONDUCT) for breach in breaches)
    if not breaches:
        yield CaseResult("conduct", part=Part.CONDUCT)


def _find_difference(script: Script, case: Case) -> WrongStage | None:
    """The first difference of a kernel. The author knows how far sums of the script's own sizes are off, and here
    results that are sums of larger terms may be off by as much as those.
    """
    judged = (
        script.judge_tiers(stage, case, values, right) for stage, values, right in script.walk(case, cancels=True)
    )
    return next((difference for difference in judged if difference is not None), None)


def hidden_cases(script: Script, seed: int, device: str) -> Iterator[Case]:
    """Cases of the ranks that the script's sizes have, each with values of its own. The same seed makes the same."""
    numbers = random.Random(seed)
    most = max(_MOST, *(math.prod(size) for size in script.sizes))
    for _ in range(COUNT):
        # A rank of few sizes may give one of the author's again: its values are others.
        size = _change(numbers, numbers.choice(script.sizes), most)
        dtype, layout = numbers.choice(script.dtypes), numbers.choice(script.layouts)
        yield Case(size, dtype, layout, device, salt=1 + numbers.randrange(1 << 30))


def _change(numbers: random.Random, size: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A size with some other lengths and no more than `most` elements."""
    changed, longest = list(size), max(2, *size)
    dimensions = [dimension for dimension in range(len(size)) if numbers.random() < _SHARE]
    for dimension in dimensions or [numbers.randrange(len(size))]:
        changed[dimension] = numbers.choice(
            (
                numbers.choice(_NEAR),
                numbers.choice(_NEAR),
                round(math.exp(numbers.uniform(0, math.log(longest)))),
                numbers.randint(longest, 4 * longest),
            )
        )
    while math.prod(changed) > most:
        widest = changed.index(max(changed))
        changed[widest] = max(1, changed[widest] // 2)
    return tuple(changed)
