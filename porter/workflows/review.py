"""`porter review` and `porter lint`: what a change does to the MPS backend, and what reviewers would ask about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError, coded
from porter.core.files import LARGEST, read_regular
from porter.core.git import find_merge_base
from porter.core.layout import NATIVE_FUNCTIONS
from porter.core.progress import Progress, Steps, ignore
from porter.review.change import Change
from porter.review.operators import find_touched
from porter.review.review import Review
from porter.review.rule import run_rules
from porter.review.rules import RULES
from porter.verdict.result import Proof, Verdict
from porter.workflows.written import Baseline, read_named

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
    from porter.workflows.review_verdicts import find_in_verdict, verify_touched

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
