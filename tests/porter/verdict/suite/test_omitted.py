"""Arguments that samples omit, alone and in pairs, and strings at each value."""

from __future__ import annotations

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.omitted import MOST, list_omitted, vary_omitted, vary_strings
from porter.verdict.suite.strings import list_strings

X = torch.ones(2, 3)


def _find(name: str) -> OpInfo:
    return next(op for op in op_db if op.name == name)


def test_numbers_that_are_none_by_default_are_given_alone_and_in_pairs() -> None:
    labels = [label for label, _ in vary_omitted(_find("nan_to_num"), SampleInput(X))]
    assert labels[:2] == ["with nan=1.25", "with nan=-2.5"]
    assert labels[6:9] == [
        "with nan=1.25, posinf=2.25",
        "with nan=1.25, neginf=3.25",
        "with posinf=2.25, neginf=3.25",
    ]
    assert len(labels) == 12 <= MOST


def test_what_a_sample_gives_is_not_omitted() -> None:
    omitted = list_omitted(_find("nan_to_num"), SampleInput(X, args=(0.5,), kwargs={"neginf": 1.0}))
    assert [argument.name for argument in omitted] == ["posinf"]


def test_arguments_of_another_overload_are_not_mixed_in() -> None:
    omitted = list_omitted(_find("std"), SampleInput(X, kwargs={"dim": (0,), "correction": 1}))
    assert [argument.name for argument in omitted] == ["keepdim"]


def test_an_operator_without_such_arguments_has_none() -> None:
    assert list(vary_omitted(_find("exp"), SampleInput(X))) == []


def test_strings_are_those_of_the_schema_and_of_the_documentation() -> None:
    assert list_strings(_find("nn.functional.gelu"))[:2] == ("none", "tanh")
    assert {"trunc", "floor"} <= set(list_strings(_find("div")))
    assert {"left", "right"} <= set(list_strings(_find("searchsorted")))
    assert list_strings(_find("exp")) == ()


def test_a_string_has_every_other_value() -> None:
    sample = SampleInput(X, kwargs={"approximate": "tanh"})
    assert "with approximate='none'" in [label for label, _ in vary_strings(_find("nn.functional.gelu"), sample)]
