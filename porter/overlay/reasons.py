"""Why the old path and the CPU differ: its own limit, precision, or a fault of the stand-in. Found, never decreed.

A limit has evidence in the fork: a check in its source that says what the error says, a list of its own tests that
expects the failure, an error of Metal's validation, or a result that nothing wrote.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from porter.checkout import MPS, OPERATIONS, Checkout
from porter.overlay.old_path_lines import GRADIENT, PRECISION, REFUSED, UNWRITTEN

LIMIT, FAULT = "limit", "fault"
_SOURCES = (MPS, OPERATIONS, "aten/src/ATen/mps")
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.){12,})"')
_OWN_ERROR = re.compile(r"\bPTR\d{3}\b")
_WIDE = re.compile(r"the CPU gives (?:float64|complex128)\b")
_IMPOSSIBLE = re.compile(r"\bPTR127\b")  # what no graph can compute
_VALIDATION = re.compile(r"\bPTR12[456]\b")  # what Metal's API validation would say on a Mac


@dataclass(frozen=True)
class Reason:
    """The class of a difference, and the evidence for it."""

    kind: str
    evidence: str


@dataclass(frozen=True)
class Evidence:
    """What a fork says of itself: the texts of its checks by their place, and the tests that it expects to fail."""

    checks: tuple[tuple[str, str], ...]
    listed: frozenset[str]
    lists_file: str

    @staticmethod
    def read(checkout: Checkout, ops: Sequence[Any]) -> Evidence:
        from aten_overlay.test import proof
        from aten_overlay.test.context import Context
        from porter.overlay.tree import TEST_LISTS

        file = next((path for path in TEST_LISTS if checkout.exists(path)), "")
        named = Context(bases=tuple({name for op in ops for name in (op.name, op.aten_name)}))
        listed = frozenset(proof.listed(named, file, checkout.read(file))) if file else frozenset()
        return Evidence(tuple(_checks(checkout)), listed, file)

    def reason(self, op: str, kind: str, verdict: str, why: str) -> Reason:
        """Of one difference of a sample."""
        if verdict == PRECISION:
            return Reason(PRECISION, why)
        if why.startswith(UNWRITTEN):
            return Reason(LIMIT, "its host code leaves the result as the memory was")
        if _VALIDATION.search(why):
            return Reason(LIMIT, f"the Metal API's validation: {why}")
        if _IMPOSSIBLE.search(why):
            return Reason(LIMIT, f"its host code asks for what is not defined: {why}")
        if _WIDE.search(why):
            return Reason(LIMIT, "the device has no float64")
        if verdict == REFUSED and not _OWN_ERROR.search(why) and (place := self._check(why)):
            return Reason(LIMIT, place)
        if not _OWN_ERROR.search(why) and self._listed(op, kind):
            return Reason(LIMIT, f"{self.lists_file} expects it")
        return Reason(FAULT, why)

    def _check(self, why: str) -> str:
        """The place of the longest text of the source that is in the error."""
        found = [(len(text), place) for text, place in self.checks if text in why]
        return max(found)[1] if found else ""

    def _listed(self, op: str, kind: str) -> bool:
        test = "test_output_grad_match" if kind.endswith(GRADIENT) else "test_output_match"
        return f"TestConsistencyMPS.{test}_{op}_mps_{kind.removesuffix(GRADIENT)}" in self.listed


def _checks(checkout: Checkout) -> Iterable[tuple[str, str]]:
    for folder in _SOURCES:
        for path in checkout.list(folder, ".mm", ".cpp", ".h"):
            yield from _literals(path, checkout.read(path))


@lru_cache(maxsize=4096)
def _literals(path: str, text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for match in _LITERAL.finditer(text):
        literal = match[1].encode().decode("unicode_escape", "replace").strip()
        if " " in literal and len(literal) >= 12:
            found.append((literal, f"{path}:{text.count(chr(10), 0, match.start()) + 1}"))
    return tuple(found)
