"""Rows that only YAML itself can read."""

import pytest

from porter.aten.declarations import parse_yaml
from porter.core.errors import PorterError


@pytest.mark.parametrize("text", ["- func: " + "[" * 200_000, "- " * 100_000], ids=["flow", "block"])
def test_no_nesting_ends_the_process(text: str) -> None:
    with pytest.raises(PorterError, match=r"PTR010 .*nested too deeply"):
        parse_yaml(text)
