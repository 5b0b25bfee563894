"""What the sanitizer found in a run over many operators: each finding once, with the kernels that have it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# A finding's text, as the runtime writes it for every check.
_FINDING = re.compile(
    r"(?P<code>PTR\d{3}): kernel `(?P<kernel>\w+)` (?P<what>[^\n]*?), at (?P<place>\S+:\d+), in thread \("
)


@dataclass(frozen=True)
class Finding:
    """A code at a line of a `.metal` file; `what` says what was found first."""

    code: str
    place: str
    what: str
    kernels: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.code}\t{self.place}\t{', '.join(self.kernels)}\t{self.what}"


def collect(reasons: Iterable[str]) -> list[Finding]:
    """The findings in the reasons of failed tests, by their codes and places."""
    found: dict[tuple[str, str], tuple[str, set[str]]] = {}
    for match in (each for reason in reasons for each in _FINDING.finditer(reason)):
        _, kernels = found.setdefault((match["code"], match["place"]), (match["what"], set()))
        kernels.add(match["kernel"])
    return [
        Finding(code, place, what, tuple(sorted(kernels))) for (code, place), (what, kernels) in sorted(found.items())
    ]
