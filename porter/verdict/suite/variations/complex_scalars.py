"""Numbers of complex calls with an imaginary part: OpInfo's `alpha`, `value` and exponents are real ones.

With a real number a product's real and imaginary parts need one of its two terms alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.leaves import Place, list_passed, replace_argument
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.sized_arguments import list_number_places
from porter.verdict.suite.variations.variation import Operators, Variation

NUMBER = 0.75 - 1.5j


def list_complex_scalars(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample of each kind with each of its numbers, those that a call omits too, a complex one."""
    seen: set[str] = set()
    for sample in opinfos.pick_kinds(op, dtype):
        tensors = {place for place, value in list_passed(sample) if isinstance(value, torch.Tensor)}
        places = [place for place in list_number_places(op, sample) if place not in tensors]
        varied = [(f"with {place}={NUMBER}", replace_argument(sample, place, NUMBER)) for place in places]
        for label, computed in keep_computed(op, [each for each in varied if each[0] not in seen]):
            seen.add(label)
            yield label, computed


COMPLEX_SCALARS = Variation("complex_scalars", list_complex_scalars, operators=Operators.ALL, dtypes=(torch.complex64,))
