"""The verdict on a port: whether the fork's native code for an operator is right, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from porter.core.errors import Place, PorterError
from porter.verdict.behavior import Behaviour

AUTO = "auto"
HOST = "host"
KERNELS = "kernels"
MPS = "mps"
BACKENDS = (HOST, KERNELS, MPS)
DEFAULT = "default"
ALL = "all"
FLUSH = "flush"
ARITHMETICS = (DEFAULT, "fused", FLUSH, "reorder")
BUILD = "build"
NO_TEST = "selection"
# What says nothing about the port: the machine or the backend is at fault.
NO_VERDICT = ("PTR100", "PTR170", "PTR171", "PTR172")


@dataclass(frozen=True)
class ListEntry:
    """An entry of a test list: the OpInfo key it names, and its dtypes as torch names (None: all of them)."""

    file: str
    list: str
    entry: str
    dtypes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class VerifyTarget:
    """What is to be verified: an operator, its functors, its stubs, and the dtype pairs (Metal names) they serve.

    `pairs` are (input, output) types; without any, every dtype the tests use has to reach a kernel. `removed` and
    `kept` are the entries of test lists whose going or staying the verdict proves. Host code that is judged `as_is`
    may answer some samples without a kernel.
    """

    base: str
    rows: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    stubs: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    removed: tuple[ListEntry, ...] = ()
    kept: tuple[ListEntry, ...] = ()
    as_is: bool = False


@dataclass(frozen=True)
class Failure:
    """One thing that is wrong: a test or a step (`lint`, `build`), the dtype if it has one, why, and where if known.

    `kernel_calls` are those of the test: without any, what the kernels compute is not what is wrong.
    """

    test: str
    reason: str
    dtype: str = ""
    place: str = ""
    kernel_calls: int = 0


@dataclass(frozen=True)
class DTypeVerdict:
    """The counts of one dtype (torch name). `max_ulp` is the kernel's, `cpu_ulp` that of ATen's CPU kernel."""

    dtype: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    kernel_calls: int = 0
    max_ulp: float | None = None
    cpu_ulp: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What the tests found. `skipped` counts skips and expected failures; `notes` are worth knowing, not failures.

    `old_path` says what the implementation that a port takes out does with the same samples.
    """

    op: str
    backend: str
    arithmetic: str
    passed: int
    failed: int
    skipped: int
    kernel_calls: int
    max_ulp: float | None
    seconds: float
    dtypes: tuple[DTypeVerdict, ...] = ()
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()
    old_path: Behaviour | None = None

    @property
    def ok(self) -> bool:
        """Whether something passed and nothing failed."""
        return self.failed == 0 and self.passed > 0

    @property
    def where(self) -> str:
        """The backend, and what has to be known of it."""
        return f"{self.backend} (not yet run on Apple hardware)" if self.backend == MPS else self.backend

    def to_json(self) -> dict[str, Any]:
        """Plain values, `dtypes` keyed by torch name."""
        values = {**asdict(self), "where": self.where}
        values["dtypes"] = {d.dtype: {k: v for k, v in asdict(d).items() if k != "dtype"} for d in self.dtypes}
        return {"ok": self.ok, **values}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Verdict:
        """The inverse of `to_json`."""
        plain = {k: v for k, v in values.items() if k not in ("ok", "where")}
        plain["dtypes"] = tuple(DTypeVerdict(dtype, **counts) for dtype, counts in values["dtypes"].items())
        plain["failures"] = tuple(Failure(**f) for f in values["failures"])
        plain["notes"] = tuple(values["notes"])
        plain["old_path"] = values["old_path"] and Behaviour.from_json(values["old_path"])
        return Verdict(**plain)


def verify(
    checkout_root: Path,
    texts: Mapping[str, str],
    op: VerifyTarget,
    expr: str | None = None,
    backend: str = AUTO,
    arithmetic: str = DEFAULT,
) -> Verdict:
    """Builds the checkout with the plan's `texts` (relative file -> new text) in a private tree, and tests `op` there.

    `expr` selects tests as pytest's -k does. Whatever is wrong with the port is a failure in the verdict; PorterError
    is raised only where no verdict can be had: PTR100 (no compiler), PTR170 (no torch, or no process that answers),
    PTR171 (no such backend or arithmetic) or PTR172 (an operator that the backend cannot call). `backend` is one of
    BACKENDS, or `auto`: the fullest one that this machine has.
    """
    from porter.verdict import client as server
    from porter.verdict.backends import backends as rooms

    if arithmetic not in (*ARITHMETICS, ALL):
        named = ", ".join((*ARITHMETICS, ALL))
        raise PorterError("PTR171", f"unknown arithmetic {arithmetic}", hint=f"Choose one of {named}.")
    where = rooms.chosen(backend)
    if where == MPS and arithmetic != DEFAULT:
        raise PorterError("PTR171", "the mps backend uses the arithmetic of its GPU", hint="Omit --arithmetic.")
    return server.request(checkout_root, texts, op, expr, where, arithmetic)


def refused(op: str, error: PorterError, seconds: float, backend: str = HOST, arithmetic: str = DEFAULT) -> Verdict:
    """The verdict on a port that did not get as far as its tests."""
    return not_run(
        op, [Failure(BUILD, f"{error.code} {error.what}", place=_at(error.place))], seconds, backend, arithmetic
    )


def not_run(
    op: str, failures: Sequence[Failure], seconds: float, backend: str = HOST, arithmetic: str = DEFAULT
) -> Verdict:
    """A verdict without tests: what a lint or a build found."""
    return Verdict(op, backend, arithmetic, 0, len(failures), 0, 0, None, round(seconds, 3), failures=tuple(failures))


def judge(op: str, outcomes: Iterable[Any], seconds: float, backend: str = HOST, arithmetic: str = DEFAULT) -> Verdict:
    """The verdict on test outcomes (`porter.verdict.suite.runner.Outcome`). Without a single test nothing is proven."""
    outcomes = list(outcomes)
    rows = tuple(_of_dtype(dtype, [o for o in outcomes if o.dtype == dtype]) for dtype in _dtypes(outcomes))
    failures = [Failure(o.test, o.reason, o.dtype, kernel_calls=o.calls) for o in outcomes if o.status == "failed"]
    if not outcomes:
        failures.append(Failure(NO_TEST, "no test was selected: nothing is proven"))
    ulps = [o.max_ulp for o in outcomes if o.max_ulp is not None]
    return Verdict(
        op=op,
        backend=backend,
        arithmetic=arithmetic,
        passed=sum(o.status in ("passed", "xpassed") for o in outcomes),
        failed=len(failures),
        skipped=sum(o.status in ("skipped", "xfailed") for o in outcomes),
        kernel_calls=sum(o.calls for o in outcomes),
        max_ulp=max(ulps, default=None),
        seconds=round(seconds, 3),
        dtypes=rows,
        failures=tuple(failures),
        notes=tuple(f"{o.test}: {o.reason}" for o in outcomes if o.status == "xpassed"),
    )


def reaching(target: VerifyTarget, found: Verdict) -> Verdict:
    """The verdict; a failed one where host code judged as it is passes its tests without one call of its kernels."""
    if not target.as_is or found.kernel_calls or not found.passed:
        return found
    never = Failure(NO_TEST, f"no test reached a kernel of it ({', '.join(target.kernels)})")
    return replace(found, failed=found.failed + 1, failures=(*found.failures, never))


def with_notes(found: Verdict, notes: Iterable[str], seconds: float) -> Verdict:
    """The verdict with more notes, and the time it took in all."""
    return replace(found, notes=(*found.notes, *notes), seconds=round(seconds, 3))


def list_notes(target: VerifyTarget, freed: Sequence[str], stale: Sequence[str], outcomes: Iterable[Any]) -> list[str]:
    """What the proof of the test lists says: tests taken off them (`freed`), and listed ones that pass (`stale`)."""
    status = {o.test: o.status for o in outcomes}
    notes = [f"taken off the test lists: {t} {_word(status.get(t, ''))}" for t in freed]
    notes += [f"left on the test lists, but passes: {t}" for t in stale if status.get(t) != "xpassed"]
    if target.removed and not freed:
        gone = ", ".join(f"{e.list}[{e.entry}]" for e in target.removed)
        notes.append(f"no test that ran depends on the removed entries {gone}")
    return notes


def _word(status: str) -> str:
    return "passes now" if status == "passed" else "still fails"


def bounded(found: Verdict, checked: Sequence[Verdict]) -> Verdict:
    """The verdict with what a run with bounds checked found besides, told first: it says which kernel it was."""
    mine = {(f.test, f.reason) for f in found.failures}
    new = [f for other in checked for f in other.failures if (f.test, f.reason) not in mine and f.test != NO_TEST]
    failures = (*(replace(f, reason=f"with bounds checked: {f.reason}") for f in new), *found.failures)
    return replace(found, failures=failures, failed=len(failures))


def joined(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict over several arithmetics: the first's counts, every failure, and a note on what depends on one."""
    first, *others = verdicts
    failures, notes = list(first.failures), list(first.notes)
    for other in others:
        mine = {(f.test, f.dtype) for f in first.failures}
        new = [f for f in other.failures if (f.test, f.dtype) not in mine]
        failures += [replace(f, reason=f"under {other.arithmetic} arithmetic: {f.reason}") for f in new]
        if new:
            notes.append(f"the verdict depends on the arithmetic: {len(new)} tests fail under {other.arithmetic} alone")
    return replace(
        first,
        arithmetic="+".join(v.arithmetic for v in verdicts),
        failed=len(failures),
        failures=tuple(failures),
        notes=tuple(notes),
        seconds=max(v.seconds for v in verdicts),
        kernel_calls=sum(v.kernel_calls for v in verdicts),
    )


def _dtypes(outcomes: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(o.dtype for o in outcomes if o.dtype))


def _of_dtype(dtype: str, outcomes: Sequence[Any]) -> DTypeVerdict:
    ulps = [(o.max_ulp, o.cpu_ulp) for o in outcomes if o.max_ulp is not None]
    mine, theirs = max(ulps, default=(None, None))
    return DTypeVerdict(
        dtype,
        passed=sum(o.status in ("passed", "xpassed") for o in outcomes),
        failed=sum(o.status == "failed" for o in outcomes),
        skipped=sum(o.status in ("skipped", "xfailed") for o in outcomes),
        kernel_calls=sum(o.calls for o in outcomes),
        max_ulp=mine,
        cpu_ulp=theirs,
        seconds=round(sum(o.seconds for o in outcomes), 3),
    )


def _at(place: Place | None) -> str:
    return str(place) if place else ""
