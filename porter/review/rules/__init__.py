"""The rules of a review, by subject: a file has the rules of one, each with changes that it reports and accepts."""

from __future__ import annotations

from porter.review.rule import Rule
from porter.review.rules import arithmetic, bindings, files, kernels, launches, leftovers, lists, registrations, tests

_SUBJECTS = (arithmetic, bindings, files, kernels, launches, leftovers, lists, registrations, tests)
_FOUND = (value for subject in _SUBJECTS for value in vars(subject).values() if isinstance(value, Rule))

# What cannot be read comes first: it says why the other rules find little.
RULES: tuple[Rule, ...] = (
    files.unreadable,
    *files.METAL_CODE,
    *sorted((rule for rule in _FOUND if rule is not files.unreadable), key=lambda rule: rule.name),
)
