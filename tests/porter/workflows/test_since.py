"""What became of rows since an earlier fork: each fate, in both directions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS
from porter.plan.planner import plan_operator
from porter.report.status import since_lines
from porter.workflows.since import find_since


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fork with a port, without a row on MPS, and with another line in the kernel of exp."""
    root = shutil.copytree(EMBEDDED_FORK, tmp_path_factory.mktemp("since") / "later")
    for path, text in plan_operator(Checkout(EMBEDDED_FORK, ""), "ceil").changes.apply().items():
        (root / path).write_text(text)
    for path, before, after in (
        (NATIVE_FUNCTIONS, "CPU, CUDA, MPS: copysign_out", "CPU, CUDA: copysign_out"),
        (f"{KERNELS}/UnaryKernel.metal", "precise::exp(static_cast<float>(x))", "precise::exp(float(x))"),
    ):
        text = (root / path).read_text()
        assert before in text
        (root / path).write_text(text.replace(before, after, 1))
    return root


def tell(checkout: Path, since: Path, *patterns: str) -> str:
    return "\n".join(since_lines(find_since(Checkout(checkout, ""), str(since), patterns))).replace(str(since), "DIR")


def test_each_row_has_a_fate(later: Path) -> None:
    assert_expected_inline(
        tell(later, EMBEDDED_FORK),
        """\
became native:
  ceil.out      MPSGraph -> native through a stub
gone:
  copysign.out  native through a stub
changed:
  exp.out       native through a stub: kernel
since DIR: 1 became native, 0 went back to MPSGraph, 0 appeared, 1 gone, 1 changed""",
    )


def test_the_other_way_round_each_has_the_opposite(later: Path) -> None:
    assert_expected_inline(
        tell(EMBEDDED_FORK, later),
        """\
went back to MPSGraph:
  ceil.out      native through a stub -> MPSGraph
appeared:
  copysign.out  native through a stub
changed:
  exp.out       native through a stub: kernel
since DIR: 0 became native, 1 went back to MPSGraph, 1 appeared, 0 gone, 1 changed""",
    )


def test_nothing_became_of_the_same_fork() -> None:
    assert find_since(Checkout(EMBEDDED_FORK, ""), str(EMBEDDED_FORK)).rows == ()


def test_patterns_choose_operators(later: Path) -> None:
    assert [row.name for row in find_since(Checkout(later, ""), str(EMBEDDED_FORK), ("e*", "ceil")).rows] == [
        "ceil.out", "exp.out",
    ]  # fmt: skip
    with pytest.raises(PorterError) as error:
        tell(later, EMBEDDED_FORK, "nosuch")
    assert error.value.code == "PTR012"


def test_the_command_prints_it_and_takes_no_other_list(later: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--checkout", str(later), "status", "--since", str(EMBEDDED_FORK)]
    assert main([*words, "--json", "ceil"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["fate"], row["before"], row["now"]) == ("became native", "MPSGraph", "native through a stub")
    assert main([*words, "--blocked"]) == 2
    assert "--since cannot be combined with --blocked" in capsys.readouterr().err
