"""Index tensors in other types: which are tried, and that a kernel which is not registered for one is missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.variations.more_indices import (
    SLOPES_BY_INDEX_TYPES,
    cast_places,
    list_cast,
    list_places,
)
from tests.porter.verdict.suite.variations.planted import find_op, list_different


@pytest.mark.parametrize(
    ("base", "at", "dtype"),
    [
        ("index_add", 2, torch.bool),
        ("index_select", 2, torch.float16),
        ("scatter_add", 2, torch.complex64),
    ],
)
def test_a_kernel_that_is_not_registered_for_32_bits_is_missed(base: str, at: int, dtype: torch.dtype) -> None:
    opinfos, op = find_op(base)

    def lookup(*args: Any, **kwargs: Any) -> Any:
        values = next(each for each in args if isinstance(each, torch.Tensor) and each is not args[at])
        if (values.dtype, args[at].dtype) == (dtype, torch.int32):
            raise KeyError(f"{base}_{dtype}_int")
        return op(*args, **kwargs)

    assert not list_different(lookup, op, (("as it is", each) for each in opinfos.samples(op, dtype)))
    assert list_different(lookup, op, list_cast(opinfos, op, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("base", ["gather", "index_select", "embedding"])
def test_gradients_have_indices_of_32_bits(base: str, dtype: torch.dtype) -> None:
    opinfos, op = find_op(base)
    assert dtype in (SLOPES_BY_INDEX_TYPES.dtypes or opinfos.grad_dtypes)
    labels = [label for label, _ in SLOPES_BY_INDEX_TYPES.list_samples(opinfos, op, dtype)]
    assert labels and all(label.endswith("in int32") for label in labels)


def test_what_the_cpu_refuses_or_reads_as_something_else_is_no_sample() -> None:
    opinfos, op = find_op("take")
    assert not list(list_cast(opinfos, op, torch.float32))


def make_sample(call: Callable[..., Any]) -> SampleInput:
    indices = [torch.tensor([0, 300]), torch.tensor([0, -1])]
    return SampleInput(torch.ones(2), args=(indices, 1), kwargs={"counts": torch.tensor([2, 1]), "mask": call(2)})


def test_integers_of_a_list_and_by_name_are_cast_together_and_alone() -> None:
    sample = make_sample(torch.zeros)
    places = list_places([sample, SampleInput(torch.ones(2), args=(1,))])
    assert places == [0, "counts"]
    found = dict(cast_places(sample, places))
    assert list(found) == [
        *("0 and counts in int32", "0 in int32", "counts in int32"),
        *("0 and counts in int16", "0 in int16", "counts in int16"),
        *("counts in uint8", "counts in int8"),
    ]
    both = found["0 and counts in int16"]
    assert [each.dtype for each in (*both.args[0], both.kwargs["counts"])] == [torch.int16] * 3
    assert both.kwargs["mask"] is sample.kwargs["mask"] and both.args[1] == 1
