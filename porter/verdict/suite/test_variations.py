"""`TestVariationsMPS.test_<variation>_<op>_mps_<dtype>`: the samples of every variation in the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import chain

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.consistency import Refused, instantiate
from porter.verdict.suite.context import aten_names, get_context
from porter.verdict.suite.elementwise import Elementwise
from porter.verdict.suite.opinfos import is_pointwise, opinfos, parametrize_over
from porter.verdict.suite.overloads import Returned, call_overload
from porter.verdict.suite.sums import Sums
from porter.verdict.suite.variations import VARIATIONS
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select("mps_ops_modifier")
BACKWARD = OPINFOS.select("mps_ops_grad_modifier", OPINFOS.context.through_backward)
CALLING = [*FORWARD, *(op for op in BACKWARD if op.formatted_name not in {each.formatted_name for each in FORWARD})]
SLOPES = (Expectation.GRADIENTS, Expectation.SUMS)
# Samples whose first was made to see whether there are any: the test goes on with them.
_pending: dict[tuple[str, str, torch.dtype], Iterator[Varied]] = {}


class TestVariations(Elementwise, Sums, Returned):
    """Runs the samples of one variation on both devices."""

    opinfos = OPINFOS

    def run_variation(self, variation: Variation, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """Judges every sample of a variation. Where values count, some samples as OpInfo gives them come first."""
        found = _pending.pop((variation.name, op.formatted_name, dtype), None)
        varied = variation.list_samples(OPINFOS, op, dtype) if found is None else found
        counting = partial(self.count_calls, dtype, op, direct=variation.calls_overloads)
        if variation.calls_overloads:
            self.is_inner = aten_names(op).isdisjoint(OPINFOS.context.bases)
            op = copy(op)
            op.op = call_overload
        if variation.expectation is Expectation.REFUSAL:
            self.check_refusals(op, list(varied), device)
            self.raise_noted()
        elif variation.expectation is Expectation.ELEMENTS:
            with counting():
                for label, sample in varied:
                    with self.asking(), suppress(Refused):
                        self.edges(op, dtype, sample, device, f"{label}: ")
        elif variation.expectation in (Expectation.ROUNDED, Expectation.ROUNDED_ONCE):
            is_once = variation.expectation is Expectation.ROUNDED_ONCE
            with counting():
                for label, sample in varied:
                    with self.asking():
                        self.match_rounded(op, dtype, sample, device, f"{label}: ", is_once)
        elif variation.expectation in SLOPES:
            with counting(slopes=True):
                for sample in OPINFOS.pick_samples(op, dtype, requires_grad=True):
                    with self.asking():
                        self.reach(op, sample, device)
                for label, sample in varied:
                    with self.asking():
                        if variation.expectation is Expectation.SUMS:
                            self.match_sums(op, sample, device, f"{label}: ")
                        else:
                            self.match_slopes(op, dtype, sample, device, f"{label}: ")
        else:
            with counting():
                every = varied if variation.calls_overloads else OPINFOS.put_after_given(op, dtype, varied)
                same = self.same_where_returned if variation.calls_overloads else self.same_or_as_near
                if variation.expectation is Expectation.TRUNCATED:
                    same = self.same_truncated
                self.match_all(op, dtype, every, device, same)


def _applies(variation: Variation) -> Callable[[OpInfo, torch.dtype], bool]:
    def applies(op: OpInfo, dtype: torch.dtype) -> bool:
        kind = Operators.POINTWISE if is_pointwise(op) else Operators.STRUCTURED
        if variation.operators not in (Operators.ALL, kind):
            return False
        varied = iter(variation.list_samples(OPINFOS, op, dtype))
        for first in varied:
            _pending[variation.name, op.formatted_name, dtype] = chain([first], varied)
            return True
        return False

    return applies


def _make_test(variation: Variation) -> Callable[..., None]:
    def test(self: TestVariations, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        self.run_variation(variation, device, dtype, op)

    test.__name__ = f"test_{variation.name}"
    slopes = variation.expectation in SLOPES
    dtypes = variation.dtypes or (OPINFOS.grad_dtypes if slopes else OPINFOS.dtypes)
    supported = {"dtypes": OpDTypes.supported_backward} if slopes else {}
    ops = CALLING if variation.calls_overloads else BACKWARD if slopes else FORWARD
    decorate = parametrize_over(ops, applies=_applies(variation), allowed_dtypes=dtypes, **supported)
    return decorate(test)


for _variation in VARIATIONS:
    if OPINFOS.context.thorough or not _variation.thorough:
        setattr(TestVariations, f"test_{_variation.name}", _make_test(_variation))

instantiate(TestVariations, globals())
