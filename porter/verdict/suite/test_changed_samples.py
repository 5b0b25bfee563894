"""`Test<Way>MPS.test_<way>_<op>_mps_<dtype>`: OpInfo samples changed in a way that OpInfo's own do not show.

- `cuts`: one tensor smaller in a dimension, where the CPU allows it: each operand is read by its own sizes.
- `empty_rows`: rows without elements, of which results have some. Host code that returns where an operand has no
  elements leaves what was in the results' memory.
- `ends`: elements at the ends of a type, or that are not finite. OpInfo's integers are below ten and its floats finite,
  where a comparison in another type or a maximum that starts from some small number computes the same. Elementwise
  operators have tests of edge values, and reductions of elements that are not finite.
- `long_rows`: rows that one threadgroup is too small for. OpInfo's rows have a few elements, which the largest of
  kernels compute like the smallest. Here a dimension of every sample is long, or columns are: kernels that choose their
  threads by size take other ways, and have the rest of their rows to combine.
- `picks`: several long rows of elements that all differ. A kernel that sorts, or looks for some elements of a row,
  joins what it found in parts of the row. What it joins of another row, or in another order, shows where elements
  differ in all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.cuts import cut_operands, list_expanded, stay_inside
from porter.verdict.suite.empty_rows import empty_dimensions, has_other_bools, list_empty_rows
from porter.verdict.suite.indices import list_picked, tell_apart
from porter.verdict.suite.long_rows import list_all_ends, list_ends, list_long
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")
FLOAT_AND_LONG = (torch.float32, torch.int64)


class ChangedSamples(Consistency):
    """What a sample in a changed form gives is what it gives on the CPU."""

    opinfos = OPINFOS

    def same_and_written(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, got: Any, want: Any, label: str = ""
    ) -> None:
        """As `same_or_as_near`, of memory that somebody wrote."""
        if has_other_bools(got):
            raise AssertionError(f"{label}results are neither true nor false: nobody wrote them")
        self.same_or_as_near(op, dtype, sample, got, want, label)


def _list_cuts(op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those with a tensor cut, or of one element in a dimension, that the CPU computes."""
    few = take_spread(OPINFOS.reaching_samples(op, dtype))
    yield from keep_computed(stay_inside(op), (each for sample in few for each in cut_operands(sample)))
    yield from (each for sample in few for each in list_expanded(op, sample))


def _list_picks(op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A few samples of different arguments, with long rows."""
    few = take_spread(tell_apart(OPINFOS.reaching_samples(op, dtype)))
    return chain.from_iterable(list_picked(op, sample) for sample in few)


@dataclass(frozen=True)
class Way:
    """How samples are changed: what is listed of an operator in a type, and what tells whether there is any.

    Results are compared by the method `same`.
    """

    name: str
    list_varied: Callable[[OpInfo, torch.dtype], Iterator[Varied]]
    list_any: Callable[[OpInfo, torch.dtype], Iterator[object]]
    dtypes: Sequence[torch.dtype]
    same: str = "same_or_as_near"


WAYS = (
    Way(
        "cuts",
        _list_cuts,
        lambda op, dtype: chain.from_iterable(map(cut_operands, OPINFOS.reaching_samples(op, dtype))),
        [torch.float32],
    ),
    Way(
        "empty_rows",
        lambda op, dtype: chain.from_iterable(
            list_empty_rows(op, sample) for sample in take_spread(OPINFOS.reaching_samples(op, dtype))
        ),
        lambda op, dtype: chain.from_iterable(map(empty_dimensions, OPINFOS.reaching_samples(op, dtype))),
        [dtype for dtype in (*FLOAT_AND_LONG, torch.bool) if dtype in OPINFOS.dtypes],
        "same_and_written",
    ),
    Way(
        "ends",
        lambda op, dtype: keep_computed(op, list_all_ends(op, OPINFOS.pick_samples(op, dtype), dtype)),
        lambda op, dtype: chain.from_iterable(list_ends(op, sample) for sample in OPINFOS.pick_samples(op, dtype)),
        OPINFOS.dtypes,
    ),
    Way(
        "long_rows",
        lambda op, dtype: list_long(OPINFOS, op, dtype),
        lambda op, dtype: list_long(OPINFOS, op, dtype),
        OPINFOS.dtypes,
        "same",
    ),
    Way("picks", _list_picks, _list_picks, FLOAT_AND_LONG, "same"),
)


def _make_tests(way: Way) -> type[ChangedSamples]:
    def test(self: ChangedSamples, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            varied = OPINFOS.put_after_given(op, dtype, way.list_varied(op, dtype))
            self.match_all(op, dtype, varied, device, getattr(self, way.same))

    test.__name__ = f"test_{way.name}"
    decorate = parametrize_over(FORWARD, applies=lambda op, dtype: _has_any(way, op, dtype), allowed_dtypes=way.dtypes)
    title = way.name.title().replace("_", "")
    return type(f"Test{title}", (ChangedSamples,), {test.__name__: decorate(test), "__module__": __name__})


def _has_any(way: Way, op: OpInfo, dtype: torch.dtype) -> bool:
    return any(True for _ in way.list_any(op, dtype))


for _way in WAYS:
    _tests = _make_tests(_way)
    globals()[_tests.__name__] = _tests  # from where it is moved
    instantiate(_tests, globals())
