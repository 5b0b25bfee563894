"""What each test of a run recorded, besides unittest's result: kernel calls and accuracy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from porter.verdict.result import Finding, ForkFinding


class Noted(AssertionError):
    """The first thing that a test noted of its samples, for which it fails when all of them are judged."""


@dataclass
class Record:
    """One test: its calls of the kernels under test, everything that ran, its accuracy if it measured any, and what it
    found wrong if it tells that apart. `notes` are no failures, nor are `fork_findings`, nor `remarks`: one for each
    sample that they hold for.
    """

    calls: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    max_ulp: float | None = None
    cpu_ulp: float | None = None
    worst: str = ""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fork_findings: list[ForkFinding] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


_TREE = re.compile(r"/[^\s\"']*/trees/[0-9a-f]+/")  # a file's path in the tree that it was compiled in


records: dict[str, Record] = {}
_left_out: list[str] = []


def get_record(test: str) -> Record:
    """The record of a test, by its method name."""
    return records.setdefault(test, Record())


def leave_out(why: str) -> None:
    """Tells the next outcome that a sample is left out, and why: samples are made before the test that takes them."""
    _left_out.append(f"left out, as {why}")


def take_remarks(test: str) -> Iterator[str]:
    """What is remarked of a test, by its method name, and of samples that were left out since the one before it."""
    yield from get_record(test).remarks
    while _left_out:
        yield _left_out.pop()


def find_cause(error: BaseException) -> BaseException:
    """The error that was raised first, of which others were made."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def describe_error(error: BaseException) -> str:
    """The message of an exception, without torch's advice on how to run the test again."""
    error = find_cause(error)
    text = str(error).split("\nTo execute this test")[0].split("\nException raised from")[0].strip()
    text = _TREE.sub("", text)
    return text if isinstance(error, AssertionError) and text else f"{type(error).__name__}: {text}"
