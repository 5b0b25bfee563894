"""A review of a checkout since a commit or a folder, and what verdicts add to it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import KERNELS
from porter.languages.source import parse_source
from porter.review.operators import Touch, list_used_names
from porter.review.rule import Severity
from porter.verdict.result import Failure, Verdict
from porter.workflows.review import find_in_verdict, find_paths, lint, review
from porter.workflows.verify import NotVerified

FILE = f"{KERNELS}/UnaryKernel.metal"
CHANGED = Place(FILE, 3)
ADDED = "\nconstant float planted = 0.5;\n"


def _git(folder: Path, *arguments: str) -> None:
    names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *names, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """The embedded fork in a repository, with a branch that adds a fault and a base that went on without it."""
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    _git(root, "init", "-q", "-b", "base")
    _git(root, "add", "-A")
    _git(root, "commit", "-qm", "fork")
    _git(root, "checkout", "-qb", "branch")
    (root / FILE).write_text((root / FILE).read_text() + ADDED)
    _git(root, "commit", "-qam", "planted")
    _git(root, "checkout", "-q", "base")
    (root / "version.txt").write_text("2.99.0\n")
    other = root / KERNELS / "BinaryKernel.metal"
    other.write_text(other.read_text().replace("REGISTER_FLOAT_BINARY_OP(copysign);\n", ""))
    _git(root, "commit", "-qam", "what others do")
    _git(root, "checkout", "-q", "branch")
    return root


def test_a_branch_is_read_since_it_left_its_base(fork: Path) -> None:
    reviewed = review(Checkout(fork, "test"), "base")
    assert reviewed.files == (FILE,)
    assert [finding.rule for finding in reviewed.findings] == ["double-literal"]
    assert review(Checkout(fork, "test"), None).files == ()


def test_the_last_commit_and_a_folder_are_bases_too(fork: Path) -> None:
    (fork / FILE).write_text((fork / FILE).read_text().replace("precise::cos", "fast::cos"))
    reviewed = review(Checkout(fork, "test"), None)
    assert [(finding.rule, finding.severity) for finding in reviewed.findings] == [("fast-math", Severity.WARNING)]
    assert [(operator.name, operator.touches) for operator in reviewed.operators] == [("exp", (Touch.KERNEL,))]
    since_fork = lint(Checkout(fork, "test"), str(EMBEDDED_FORK), ())
    assert [finding.rule for finding in since_fork.findings] == ["fast-math", "double-literal"]


def test_a_linter_reports_the_files_that_it_is_asked_about(fork: Path) -> None:
    checkout = Checkout(fork, "test")
    (fork / FILE).write_text((fork / FILE).read_text() + ADDED.replace("planted", "other"))
    assert lint(checkout, None, find_paths(checkout, [str(fork / FILE)])).findings
    assert not lint(checkout, None, find_paths(checkout, ["version.txt"])).findings
    listed = fork / "paths.txt"
    listed.write_text(f"version.txt\n{FILE}\n")
    assert lint(checkout, None, find_paths(checkout, [f"@{listed}"])).findings
    with pytest.raises(PorterError, match="cannot read this file"):
        find_paths(checkout, ["@nosuch"])
    with pytest.raises(PorterError, match="not a file of the checkout"):
        find_paths(checkout, [str(fork.parent / "elsewhere.metal")])


def test_a_base_that_git_does_not_know_is_refused(fork: Path) -> None:
    with pytest.raises(PorterError, match="git knows no commit 'nosuch'"):
        review(Checkout(fork, "test"), "nosuch")


def test_failures_of_a_verdict_are_findings_at_their_place() -> None:
    reason = "Tensor-likes are not close!\nmore"
    built = Failure("build", "no", place=f"{FILE}:12")
    match = [Failure(f"test_output_match_exp_mps_{dtype}", reason, dtype) for dtype in ("float16", "int8")]
    verdict = Verdict("exp", "host", "default", 1, 3, 0, 1, None, 1.0, failures=(built, *match))
    assert [(f.place, f.rule, f.is_error, f.what) for f in find_in_verdict(verdict, CHANGED)] == [
        (f"{FILE}:12", "verdict-failed", True, "exp: build: no"),
        (
            f"{FILE}:3",
            "verdict-failed",
            True,
            "exp: test_output_match_exp_mps (float16, int8): Tensor-likes are not close!",
        ),
    ]


@pytest.mark.parametrize(("code", "severity"), [("PTR019", Severity.ADVICE), ("PTR170", Severity.ERROR)])
def test_an_operator_without_a_verdict_is_a_finding(code: str, severity: Severity) -> None:
    (finding,) = find_in_verdict(NotVerified("exp", PorterError(code, "why")), CHANGED)
    assert (finding.rule, finding.severity) == ("no-verdict", severity)


@pytest.mark.parametrize(
    ("body", "is_used"),
    [
        ("float sum = 0; sum += x[i];", False),
        ("x[i] = sum(y);", True),
        ("return sum(y);", True),
        ("run<sum>(y);", True),
    ],
)
def test_a_variable_is_no_use_of_a_kernel_of_its_name(body: str, is_used: bool) -> None:
    source = parse_source("a.metal", f"float f(device float* x, uint i) {{ {body} }}\n")
    assert ("sum" in list_used_names(source, 0, len(source.text))) is is_used
