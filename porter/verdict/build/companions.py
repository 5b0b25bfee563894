"""The operators that only run together with another one: the CPU has no kernel to fall back to.

A gradient is then the MPS rows' alone: `linear` with a kernel for MPS calls `linear_backward`, which the CPU lacks.
"""

from __future__ import annotations

import re

from porter.verdict.build.registration import rows
from porter.verdict.derivatives import list_called, list_derived_with

_MPS = re.compile(r"^ +(?:\w+, *)*MPS\b", re.M)
_ELSEWHERE = re.compile(r"^ +(?:\w+, *)*(?:CPU|Composite\w+)\b|^  structured_delegate:", re.M)


def list_companions(yaml_text: str, base: str) -> tuple[str, ...]:
    """What the gradient of an operator calls and the CPU lacks; of such an operator, what it is the gradient of."""
    called = {each for each in list_called(base) - {base} if _is_for_mps_only(yaml_text, each)}
    if _is_for_mps_only(yaml_text, base):
        called |= {each for each in list_derived_with(base) - {base} if _serves_mps(yaml_text, each)}
    return tuple(sorted(called))


def _serves_mps(yaml_text: str, base: str) -> bool:
    return any(_MPS.search(row.text) for row in rows(yaml_text, [base]))


def _is_for_mps_only(yaml_text: str, base: str) -> bool:
    found = rows(yaml_text, [base])
    return _serves_mps(yaml_text, base) and not any(_ELSEWHERE.search(row.text) for row in found)
