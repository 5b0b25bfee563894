"""Warnings about Metal that compiles: what its author did not mean, and what Apple's compiler is known to get wrong.

Rules read the tokens of preprocessed source. Each says only what the source decides, or the source and a launch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from aten_overlay.lint.finding import Finding
from aten_overlay.lint.miscompilations import find_miscompiled
from aten_overlay.lint.rules import find_early_returns, find_lost_totals, find_unordered
from aten_overlay.metal.source.declarations import Unit

__all__ = ["Finding", "MetalWarning", "lint", "listening", "warn", "warn_of_launch"]


class MetalWarning(UserWarning):
    """A finding of the lint, as Python's own warnings show and filter it."""


def lint(unit: Unit) -> tuple[Finding, ...]:
    """The findings in a source, in its order; some of them hold for launches in wide threadgroups alone."""
    rules = (find_lost_totals, find_unordered, find_early_returns, find_miscompiled)
    findings = {finding for rule in rules for finding in rule(unit)}
    return tuple(sorted(findings, key=lambda f: (f.place.file, f.place.line, f.code, f.kernel)))


# How many calls a program is away, through torch.mps.compile_shader and from a launch.
_COMPILING, _LAUNCHING = 6, 4


def warn(findings: Iterable[Finding], depth: int = _COMPILING) -> None:
    """Warns of what the source alone decides, where the program is that is `depth` calls away."""
    _tell((finding for finding in findings if finding.is_certain), depth)


def warn_of_launch(findings: Iterable[Finding], group: Sequence[int], depth: int = _LAUNCHING) -> None:
    """Warns of what a launch in threadgroups of `group` makes certain, `depth` calls away."""
    _tell((finding for finding in findings if not finding.is_certain and finding.holds_in(group)), depth)


_hears: ContextVar[list[Finding] | None] = ContextVar("hears", default=None)


@contextmanager
def listening() -> Iterator[list[Finding]]:
    """Collects the findings of a block in a list, in place of warnings."""
    heard: list[Finding] = []
    token = _hears.set(heard)
    try:
        yield heard
    finally:
        _hears.reset(token)


def _tell(findings: Iterable[Finding], depth: int) -> None:
    heard = _hears.get()
    for finding in findings:
        if heard is None:
            warnings.warn(str(finding), MetalWarning, stacklevel=depth)
        else:
            heard.append(finding)
