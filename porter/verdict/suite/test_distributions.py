"""`TestDistributionsMPS.test_*_<op>_<overload>_mps_<dtype>`: random numbers, by distribution and by seed.

What is filled on the device is compared with what ATen's CPU draws with the same arguments: no value is the same, but
the distributions are. Seeds are fixed, so a test always has the same outcome.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import torch
from torch.testing._internal.common_device_type import dtypes
from torch.testing._internal.common_utils import parametrize

from porter.core.dtypes import TESTED, name_torch
from porter.verdict.suite import counters, execution, results
from porter.verdict.suite.consistency import Accepted, Consistency, describe_unreached, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.distributions import (
    Case,
    find_cases,
    find_difference,
    find_excess,
    find_repetition,
    make_extreme,
)
from porter.verdict.suite.opinfos import opinfos

OPINFOS = opinfos(get_context())
CASES = [case for base in OPINFOS.context.bases for case in find_cases(base)] if not execution.is_redirected() else []
# Of recorded ports, no types are planned: the CPU says which there are.
PLANNED = [each for each in OPINFOS.dtypes if OPINFOS.plans(each) or not OPINFOS.context.dtypes]
DTYPES = [each for each in PLANNED if not each.is_complex]
EVERY = [getattr(torch, each.torch) for each in TESTED]
BEYOND = [each for each in EVERY if each not in DTYPES and DTYPES and not each.is_complex]
COUNT, MANY = 20000, 1 << 18
over_cases = parametrize("case", CASES, name_fn=lambda case: case.label)


class TestDistributions(Consistency):
    """Fills tensors with random numbers."""

    opinfos = OPINFOS

    @contextmanager
    def count_fills(self, dtype: torch.dtype) -> Iterator[None]:
        context, before = self.opinfos.context, counters.read()
        record = results.get_record(self._testMethodName)
        yield
        seen = counters.since(before)
        record.calls, record.kernels, record.fallbacks = (
            context.count_ported(seen.kernels), seen.kernels, seen.fallbacks,
        )  # fmt: skip
        self.raise_noted()
        if not record.calls and context.demands(name_torch(dtype)):
            self.fail(describe_unreached(record, context.kernels))

    def draw(
        self, case: Case, dtype: torch.dtype, generator: torch.Generator, count: int = COUNT, alike: bool = False
    ) -> torch.Tensor:
        """Fills a tensor on the generator's device, and copies it."""
        return case.fill(torch.zeros(count, dtype=dtype, device=generator.device), generator, alike).cpu()

    def draw_on_cpu(self, case: Case, dtype: torch.dtype, device: str) -> torch.Tensor | None:
        """Fills a tensor on the CPU. Returns None for what the CPU refuses, and asserts that the device does too."""
        try:
            return self.draw(case, dtype, torch.Generator("cpu").manual_seed(7))
        except RuntimeError as error:
            with self.noting():
                if not self.refuse(case, dtype, device):
                    raise Accepted(f"mps accepts it, but the CPU raises: {error}") from None
            self.raise_noted()
            return None

    @over_cases
    @dtypes(*DTYPES)
    def test_distribution(self, device: str, dtype: torch.dtype, case: Case) -> None:
        theirs = self.draw_on_cpu(case, dtype, device)
        if theirs is None:
            return
        with self.count_fills(dtype), self.asking():
            ours = self.draw(case, dtype, torch.Generator(device).manual_seed(1))
            if why := case.find_wrong(ours) or find_difference(case.measure(ours), case.measure(theirs)):
                self.fail(why)

    @over_cases
    @dtypes(*DTYPES)
    def test_extremes(self, device: str, dtype: torch.dtype, case: Case) -> None:
        """No more than by chance are beyond all that the CPU draws: a number in [0, 1) is not rounded to 1."""
        if self.draw_on_cpu(case, dtype, device) is None:
            return
        extreme = make_extreme(case)
        with self.count_fills(dtype), self.asking():
            ours, theirs = (
                self.draw(extreme, dtype, torch.Generator(where).manual_seed(5), MANY) for where in (device, "cpu")
            )
            if why := find_excess(ours.double(), theirs.double()):
                self.fail(why)

    @over_cases
    @dtypes(*DTYPES)
    def test_seeds(self, device: str, dtype: torch.dtype, case: Case) -> None:
        """A seed or a state gives the same numbers again; other seeds and later calls give others."""
        if self.draw_on_cpu(case, dtype, device) is None:
            return
        with self.count_fills(dtype), self.asking():
            generator = torch.Generator(device).manual_seed(1)
            draw = partial(self.draw, case, dtype, generator, alike=True)
            first = draw()
            state = generator.get_state()
            second = draw()
            generator.set_state(state)
            self.assertEqual(draw(), second, msg="a restored state gives other numbers")
            generator.manual_seed(1)
            self.assertEqual(draw(), first, msg="a seed gives other numbers the second time")
            generator.manual_seed(2)
            other = draw()
            for name, sample in (("a later call", second), ("another seed", other), ("the same call", first)):
                if why := find_repetition(first, sample):
                    self.fail(f"{name}: {why}")

    @over_cases
    @dtypes(*DTYPES)
    def test_layouts_of_fills(self, device: str, dtype: torch.dtype, case: Case) -> None:
        """A view has the numbers of a dense tensor, and elements beside it stay as they were."""
        if self.draw_on_cpu(case, dtype, device) is None:
            return
        with self.count_fills(dtype), self.asking():
            generator = torch.Generator(device).manual_seed(3)
            dense = self.draw(case, dtype, generator, 600)
            whole = torch.zeros(1203, dtype=dtype, device=device)
            case.fill(whole[3::2], generator.manual_seed(3))
            self.assertEqual(whole.cpu()[3::2], dense, msg="a view gets other numbers")
            self.assertFalse(bool(whole.cpu()[2::2].any()), "elements beside the view are written")
            case.fill(torch.zeros(0, dtype=dtype, device=device), generator)

    @over_cases
    def test_refused_types(self, device: str, case: Case) -> None:
        """Every other type is refused as a type, not for want of a kernel, or in the CPU's words, unless the old code
        still fills it.
        """
        for dtype in BEYOND:
            refusal = self.refuse(case, dtype, "cpu")
            with suppress(TypeError, NotImplementedError):
                try:
                    self.draw(case, dtype, torch.Generator(device).manual_seed(1))
                except RuntimeError as error:
                    if not refusal or str(error) != refusal:
                        raise

    def refuse(self, case: Case, dtype: torch.dtype, device: str) -> str:
        """What a device says that refuses a type, or "" if it fills it."""
        try:
            self.draw(case, dtype, torch.Generator(device).manual_seed(1))
        except (RuntimeError, TypeError) as error:
            return str(error)
        return ""


if CASES:
    instantiate(TestDistributions, globals())
else:
    del TestDistributions
