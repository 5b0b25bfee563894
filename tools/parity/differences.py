"""Classifies why the old path and the CPU differ: a limit of the old path, precision, or a fault of the stand-in.

A limit needs evidence: a check in the fork's source with the same message, an error of Metal's validation, a result
that nothing wrote, or one of another dtype. An expected failure in the fork's tests does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from parity.outcomes import LATE, NAN_LOST, OTHER_TYPE, PRECISION, REFUSED, UNWRITTEN
from porter.core.checkout import Checkout
from porter.core.layout import DEVICE, MPS, OPERATIONS
from porter.verdict.errors import Refusal, refusal_in

LIMIT, FAULT = "limit", "fault"
_SOURCES = (MPS, OPERATIONS, DEVICE)
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.){12,})"')
# Checks whose message is not in the source: a type dispatch shows its name, an assertion its condition.
_DISPATCH = re.compile(r'\bAT_DISPATCH_\w+\((?:[^"();]|\([^()]*\))*("\w+")')
_ASSERTION = re.compile(r"\bTORCH_(?:INTERNAL_ASSERT|CHECK)\(([^\";]{12,}?)\);")


@dataclass(frozen=True)
class Reason:
    """The class of a difference, and the evidence for it."""

    kind: str
    evidence: str


@dataclass(frozen=True)
class Evidence:
    """The messages of a fork's own checks, with their places."""

    checks: tuple[tuple[str, str], ...]

    @staticmethod
    def read(checkout: Checkout) -> Evidence:
        return Evidence(tuple(_checks(checkout)))

    def classify(self, verdict: str, why: str) -> Reason:
        """Classifies one difference."""
        if verdict == PRECISION:
            return Reason(PRECISION, why)
        if why.startswith(UNWRITTEN):
            return Reason(LIMIT, "its host code leaves the result uninitialized")
        refusal = refusal_in(why)
        if refusal is Refusal.VALIDATION:
            return Reason(LIMIT, f"the Metal API's validation: {why}")
        if refusal is Refusal.UNDEFINED:
            return Reason(LIMIT, f"its host code relies on undefined behavior: {why}")
        if why.startswith(NAN_LOST):
            return Reason(LIMIT, "its graph uses operations that drop NaN")
        if why.startswith(LATE):
            return Reason(LIMIT, f"its host code computes in floats, the CPU in the result's dtype: {why}")
        if why.startswith(OTHER_TYPE):
            return Reason(LIMIT, f"the host code chooses the dtype: {why}")
        if verdict == REFUSED and refusal is None and (place := self._check(why)):
            return Reason(LIMIT, place)
        return Reason(FAULT, why)

    def _check(self, why: str) -> str:
        """The place of the longest check message contained in the error."""
        found = [(len(text), place) for text, place in self.checks if text in why]
        return max(found)[1] if found else ""


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
            found.append((literal, _place(path, text, match)))
    for match in _DISPATCH.finditer(text):
        found.append((f"{match[1]} not implemented for", _place(path, text, match)))
    for match in _ASSERTION.finditer(text):
        found.append((f"Expected {' '.join(match[1].split())} to be true", _place(path, text, match)))
    return tuple(found)


def _place(path: str, text: str, match: re.Match[str]) -> str:
    return f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
