"""How a fork's own `test_output_match` draws its samples: each from a seed of its own, or all from the test's."""

from __future__ import annotations

import re

_TEST = re.compile(r"^    def test_output_match\(.*?(?=^    (?:def|@)|^\S|\Z)", re.M | re.S)
_UNSEEDED = re.compile(r"\bset_seed\s*=\s*False\b")


def seeds_each_sample(text: str) -> bool:
    """Whether each sample has a seed of its own, as in torch.testing unless asked otherwise.

    `text` is a fork's `test/test_mps.py`.
    """
    found = _TEST.search(text)
    return not (found and _UNSEEDED.search(found[0]))
