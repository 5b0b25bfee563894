"""`porter review` and `porter lint`: what a change does to the MPS backend, and what reviewers would ask about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError, coded
from porter.core.files import LARGEST, read_regular
from porter.core.git import find_merge_base
from porter.core.layout import NATIVE_FUNCTIONS
from porter.core.progress import Progress, Steps, ignore, number_progress
from porter.review.change import Change
from porter.review.operators import Touch, TouchedOperator, find_touched
from porter.review.rule import Finding, Review, Severity, run_rules
from porter.review.rules import RULES
from porter.verdict.native import native_target
from porter.verdict.result import Failure, Proof, Verdict
from porter.verdict.verify import ask_verdict, make_request
from porter.workflows.verify import Baseline, NotVerified, read_named, request_written

LAST_COMMIT = "HEAD"


def read_change(checkout: Checkout, base: str | None) -> tuple[Change, Baseline]:
    """The change of a checkout since `base`: a folder, or a revision, of which the commit shared with HEAD counts.

    None is the last commit. Raises PTR063 for neither, and as `Checkout.read` does.
    """
    if base is None:
        named = LAST_COMMIT
    elif (checkout.root / base / NATIVE_FUNCTIONS).is_file():
        named = str(checkout.root / base)
    else:
        named = find_merge_base(checkout.root, base)
    baseline = read_named(checkout, named)
    return Change.between(baseline.fork, checkout, baseline.texts), baseline


def review(checkout: Checkout, base: str | None, progress: Progress = ignore) -> Review:
    """Reads a change and runs every static rule on it. Raises as `read_change` does."""
    progress("reading the change")
    change, baseline = read_change(checkout, base)
    return review_change(change, baseline.origin, progress)


def review_change(change: Change, origin: str, progress: Progress = ignore) -> Review:
    """What the rules find in a change, and the operators that it touches."""
    progress("finding operators")
    operators = find_touched(change)
    progress("checking")
    findings = run_rules(RULES, change)
    return Review(origin, tuple(file.path for file in change.files), operators, findings, texts=_list_texts(change))


def _list_texts(change: Change) -> dict[str, str]:
    return {file.path: file.after for file in change.files}


def verify_review(
    checkout: Checkout, base: str | None, reviewed: Review, proof: Proof, progress: Steps = ignore
) -> Review:
    """The review with what verdicts on the operators of the change say, as findings. Raises as `read_change` does."""
    from porter.workflows.review import find_in_verdict, verify_touched

    change, baseline = read_change(checkout, base)
    judged = tuple(verify_touched(checkout, baseline, reviewed.operators, proof, progress))
    findings = (finding for verdict in judged for finding in find_in_verdict(verdict, _find_start(change)))
    tested = tuple(verdict.op for verdict in judged if isinstance(verdict, Verdict) and verdict.ok)
    return replace(reviewed, findings=(*reviewed.findings, *findings), passed=tested)


def _find_start(change: Change) -> Place:
    """Where the code of a change begins: its first new line of a kernel, or of host code, or of anything."""
    files = (*change.metal, *change.host, *change.files)
    return next(
        (Place(file.path, min(file.added)) for file in files if file.added), Place(files[0].path if files else "")
    )


def lint(checkout: Checkout, base: str | None, paths: Collection[str], progress: Progress = ignore) -> Review:
    """The same without operators, and with findings in these files alone; in all where none is named."""
    progress("reading the change")
    change, baseline = read_change(checkout, base)
    progress("checking")
    findings = run_rules(RULES, change)
    chosen = tuple(finding for finding in findings if not paths or finding.path in paths)
    return Review(baseline.origin, tuple(file.path for file in change.files), (), chosen, texts=_list_texts(change))


LIST_MARK = "@"


def _read_list(file: Path) -> list[str]:
    try:
        return read_regular(file, LARGEST).decode("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        what = f"cannot read this file: {error.strerror}"
        hint = "Check that the file exists and is readable."
        raise coded(error) or PorterError("PTR003", what, Place(str(file)), hint) from error


def find_paths(checkout: Checkout, named: Iterable[str]) -> frozenset[str]:
    """The paths of files below the checkout, named from the current folder, absolutely or from the checkout's root.

    `@FILE` stands for the lines of a file, as lintrunner's `@{{PATHSFILE}}` does. Raises PTR182, or PTR003 for a file
    that is elsewhere.
    """
    root = checkout.root.resolve()
    paths = set[str]()
    lists = [_read_list(Path(name[1:])) if name.startswith(LIST_MARK) else [name] for name in named]
    for name in chain.from_iterable(lists):
        resolved = Path(name).resolve()
        if not resolved.is_relative_to(root) and not (root / name).exists():
            hint = "`porter lint` reads what changed in a fork; `porter kernel check` checks a script of your own."
            raise PorterError("PTR003", f"not a file of the checkout {root}", Place(name), hint)
        paths.add(resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else name)
        paths.add(name)
    return frozenset(paths)


# The verified part of a review: the operators of a change, built and tested before and after it.


FAILED, LOST, UNPROVEN = "verdict-failed", "verdict-lost", "no-verdict"


def verify_touched(
    checkout: Checkout, before: Baseline, operators: Iterable[TouchedOperator], proof: Proof, progress: Steps = ignore
) -> Iterator[Verdict | NotVerified]:
    """Yields the verdict on each operator whose code the change touches, against the fork before the change.

    A list entry alone is no code. What keeps one from a verdict does not end the others.
    """
    chosen = [operator for operator in operators if operator.touches != (Touch.LIST,)]
    for at, operator in enumerate(chosen):
        report = number_progress(progress, operator.name, at, len(chosen))
        try:
            if operator.moved:
                request = request_written(checkout, before, operator.name, proof, report)
            else:
                target = native_target(checkout, operator.name, beside_graphs=True)
                request = make_request(checkout.root, before.texts, target, proof, proof.expr, before.fork.earlier)
            yield replace(ask_verdict(request, report), op=operator.name)
        except PorterError as error:
            yield NotVerified(operator.name, error)


def find_in_verdict(judged: Verdict | NotVerified, changed: Place) -> Iterator[Finding]:
    """What a verdict says as findings: each failure that the fork did not have, and what the old code did that is lost.

    A test that fails for several dtypes is one finding, at its own place or else at `changed`, where the change begins.
    One without a verdict is an error of its own: nothing is proven of it. An operator on MPSGraph has none to ask for.
    """
    if isinstance(judged, NotVerified):
        severity = Severity.ADVICE if judged.error.code in ("PTR018", "PTR019") else Severity.ERROR
        place = judged.error.place or changed
        what = f"no verdict on {judged.op}: {judged.error.code} {judged.error.what}"
        yield _make(place.file, place.line, UNPROVEN, severity, what, judged.error.hint)
        return
    by_test: dict[str, list[Failure]] = {}
    for failure in judged.failures:
        by_test.setdefault(failure.test.removesuffix(f"_{failure.dtype}"), []).append(failure)
    for test, failures in by_test.items():
        first = failures[0]
        path, line = _read_place(first) if first.place else (changed.file, changed.line)
        reason = first.reason.strip().splitlines()[0] if first.reason.strip() else "failed"
        dtypes = ", ".join(failure.dtype for failure in failures if failure.dtype)
        about = f" ({dtypes})" if dtypes else ""
        yield _make(path, line, FAILED, Severity.ERROR, f"{judged.op}: {test}{about}: {reason}")
    for lost in judged.old_path.lost if judged.old_path else ():
        hint = "Keep it, or say in the text that it goes."
        yield _make(changed.file, changed.line, LOST, Severity.WARNING, f"{judged.op}: {lost}", hint)


def _make(path: str, line: int, rule: str, severity: Severity, what: str, hint: str = "") -> Finding:
    return Finding(path, line, 0, rule, severity, what, hint)


def _read_place(failure: Failure) -> tuple[str, int]:
    path, _, line = failure.place.rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (failure.place, 0)
