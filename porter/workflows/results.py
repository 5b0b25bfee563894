"""Results of a run, or of one of several shares of it: where they come from, and their files."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from porter import __version__
from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.files import read_named, write_whole
from porter.core.layout import KERNELS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.report.results import (
    FAIL,
    LARGEST,
    LEFT_OUT,
    NO_VERDICT,
    NOT_PLANNED,
    PASS,
    VERSION,
    OperatorResult,
    Provenance,
    Results,
    Shard,
    UnportedRow,
    merge,
    read_json,
    write_json,
)
from porter.verdict.result import Verdict
from porter.workflows.migrate import NotPlanned, PortedOperator
from porter.workflows.stacking import count_lines, find_family

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 30
# The commit alone, whatever tags there are; `-dirty` follows it if files of it were changed.
_DESCRIBE = ("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


@functools.cache
def read_provenance() -> Provenance:
    """What results of this process come from. Without a repository, git or torch their parts are empty."""
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = ""
    return Provenance(__version__, _read_commit(), torch)


def _read_commit() -> str:
    """The commit that porter runs from; empty for a porter that is installed, in whatever repository that is."""
    if not (_ROOT / ".git").exists():
        return ""
    command = ["git", "-C", str(_ROOT), *_DESCRIBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def collect(checkout: Checkout, found: Iterable[PortedOperator | NotPlanned], shard: Shard | None) -> Results:
    """The results of a run on a fork, without those of ports that others only needed."""
    own = (each for each in found if not (isinstance(each, PortedOperator) and each.needed))
    operators = tuple(_describe(checkout, each) for each in own)
    name, digest = checkout.root.resolve().name, digest_fork(checkout)
    return Results(
        VERSION, read_provenance(), name, digest, str(shard or ""), operators, datetime.now(UTC).date().isoformat()
    )


def no_results(checkout: Checkout) -> Results:
    """Results of a fork of which nothing was verified."""
    return collect(checkout, (), None)


def digest_fork(checkout: Checkout) -> str:
    """A digest of what plans are made of: rows, host code and kernels."""
    folders = [checkout.folder(folder, ".h", ".mm", ".metal") for folder in (MPS, OPERATIONS, KERNELS)]
    return cache.digest(
        checkout.read(NATIVE_FUNCTIONS), *(part for each in folders for file in each.files for part in file)
    )


def write_results(path: Path, results: Results) -> None:
    """Writes a file of results. Raises as `write_file` does."""
    write_file(path, write_json(results))


def write_file(path: Path, text: str) -> None:
    """Writes a file of results or a report. Raises PTR329 if it cannot be written."""
    try:
        write_whole(path, text)
    except OSError as error:
        what = f"cannot write results: {error.strerror}"
        raise PorterError("PTR329", what, Place(str(path)), "Check the path.") from error


def read_results(paths: Sequence[Path]) -> Results:
    """Merges files of results. Raises PTR327 to PTR329."""
    parts = []
    for path in paths:
        parts.append(read_json(read_named(path, "PTR329", most=LARGEST), str(path)))
    return merge(parts)


def describe_outcome(found: PortedOperator | NotPlanned) -> str:
    """One line on what became of an operator of a run, without its name."""
    if isinstance(found, NotPlanned):
        return f"{NOT_PLANNED}: {found.error.code} {_say(found.error)}"
    stays = f", {len(found.plan.unported)} rows stay as they are" if found.plan.unported else ""
    if found.verdict is None and found.no_verdict is None:
        return f"planned{stays}"
    outcome, code, reason = _judge(found)
    return f"{outcome}{stays}" if outcome == PASS else f"{outcome}: {code} {reason}{stays}"


def _describe(checkout: Checkout, found: PortedOperator | NotPlanned) -> OperatorResult:
    if isinstance(found, NotPlanned):
        error = found.error
        return OperatorResult(found.op, find_family(checkout, found.op), NOT_PLANNED, error.code, _say(error))
    plan, verdict = found.plan, found.verdict
    outcome, code, reason = _judge(found)
    return OperatorResult(
        plan.op,
        find_family(checkout, plan.op),
        outcome,
        code,
        reason,
        tuple(entry.name for entry in plan.entries if entry.before != entry.after),
        tuple(UnportedRow(each.reason.split(" ")[0], each.code, each.reason) for each in plan.unported),
        count_lines(plan),
        verdict,
    )


def _judge(found: PortedOperator) -> tuple[str, str, str]:
    if found.no_verdict:
        return NO_VERDICT, found.no_verdict.code, _say(found.no_verdict)
    if found.broken:
        return LEFT_OUT, "PTR325", found.broken
    if found.verdict is None:
        error = PorterError("PTR330", "it was only planned, not verified")
        return NO_VERDICT, error.code, error.what
    if found.verdict.ok:
        return PASS, "", _describe_older(found.verdict)
    codes = {each.code for each in found.verdict.failures}
    code = codes.pop() if len(codes) == 1 else ""  # of the fork's own fault, which explains all of them
    return FAIL, code or "PTR331", _describe_failures(found.verdict)


def _describe_failures(verdict: Verdict) -> str:
    if not verdict.failures:
        return f"none of {verdict.skipped} tests passed: all are skipped, or listed as expected failures"
    first, *others = verdict.failures
    count = f"{verdict.failed} tests fail, the first " if others else ""
    return f"{count}{first.test}: {first.reason.splitlines()[0]}"


def _describe_older(verdict: Verdict) -> str:
    """What the fork failed before a port and fails still; empty if nothing."""
    if not verdict.failed_before:
        return ""
    first = verdict.failed_before[0]
    count = len(verdict.failed_before)
    return f"{count} failed before the port and after, the first {first.test}: {first.reason.strip().splitlines()[0]}"


def _say(error: PorterError) -> str:
    return f"{error.place}: {error.what}" if error.place else error.what
