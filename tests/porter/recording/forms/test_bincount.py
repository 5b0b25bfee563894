"""Sums by an index are found from what calls return, by results alone."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from porter.recording.forms.index_map import find_bincount
from tests.porter.recording.forms.test_index_map import Arguments, aten, run, run_call


def bins() -> Iterator[Arguments]:
    for count, least in ((5, 0), (9, 20), (2, 3), (12, 0), (7, 1), (4, 0)):
        weights = torch.rand(count) if count % 2 else None
        yield {"self": torch.randint(0, 8, (count,)), "weights": weights, "minlength": least}


def test_bins_have_the_types_that_sources_decide() -> None:
    runs = [run(aten.bincount.default, each) for each in bins()]
    found = find_bincount(runs, run_call)
    assert found is not None
    assert {str(each.torch) for each in found.dtypes} == {"int64", "float32"}
    assert {each.torch for each in found.index_dtypes} == {"int64", "int32", "int16", "int8", "uint8"}


def test_one_call_with_another_result_or_few_calls_leave_none() -> None:
    runs = [run(aten.bincount.default, each) for each in bins()]
    assert find_bincount(runs[:2], run_call) is None
    runs[-1].results[0][0] += 1
    assert find_bincount(runs, run_call) is None
