"""Errors of torch's Python code, and those of operators that it calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from porter.verdict.suite.refusals import find_kind, is_raised_by_torch


def refuse() -> None:
    raise ValueError("not of torch")


@pytest.mark.parametrize(
    ("call", "by_torch"),
    [
        (lambda: torch.norm(torch.ones(2, 2).to_sparse(), p="other"), True),
        (lambda: torch.split(torch.ones(2), 0), False),
        (lambda: torch.ones(2) + torch.ones(3), False),
        (refuse, False),
    ],
)
def test_an_error_is_of_torch_where_its_python_code_raises_it(call: Callable[[], object], by_torch: bool) -> None:
    with pytest.raises((RuntimeError, ValueError)) as raised:
        call()
    assert is_raised_by_torch(raised.value) is by_torch


def test_what_is_not_implemented_may_be_refused_by_any_runtime_error() -> None:
    out = torch.empty(2, dtype=torch.bool)
    with pytest.raises(NotImplementedError) as raised:
        torch.cumsum(torch.ones(2), 0, out=out)
    assert find_kind(raised.value) is RuntimeError
    assert find_kind(IndexError()) is IndexError
