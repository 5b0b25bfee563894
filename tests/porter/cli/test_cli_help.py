"""The help as it is read."""

from __future__ import annotations

import pytest
from expecttest import assert_expected_inline

from porter.cli import main


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments, "--help"]) == 0
    return capsys.readouterr().out


def test_help_groups_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        told(capsys),
        """\
Usage: porter [OPTIONS] COMMAND ...

  Moves PyTorch operators from MPSGraph to native Metal, and proves each port.

Port an operator:
  migrate  Plan, show and verify the complete port of operators.
  undo     Take the last written change set back, byte for byte.

Look at the fork:
  status   List the operators with an MPS dispatch.
  explain  Show each stage for one operator, and how each was found.

Prove:
  verify  Lint, compile and test operators: as they stand, or their ports.
  watch   Verify operators again whenever a file of them changes.

Start:
  setup  Find a compiler, or install one; build what verdicts share.
  cache  Show how large the cache is; remove what was not used for long.

Options:
  --version                     Show the version and exit.
  --completion [bash|zsh|fish]  Print the completion script of a shell: eval
                                "$(porter --completion bash)".

Options of every command:
  --checkout DIR  The PyTorch fork to work on.
  --json          Print JSON: one object a line.
  --no-color      No colors, as with $NO_COLOR.
  -h, --help      Show this message and exit.

Examples:
  porter setup                  get a compiler, build what verdicts share
  porter status --portable      what can be ported
  porter migrate atan2          plan a port, show the diff, verify it
  porter migrate atan2 --write  the same, then write it
""",
    )


def test_help_of_migrate(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        told(capsys, "migrate"),
        """\
Usage: porter migrate [OPTIONS] [OP...]

  Plan, show and verify the complete port of operators.

  OP is a base name or an overload of native_functions.yaml: atan2, atan2.out.
  Nothing is written without --write.

Options:
  --all              Every operator that porter can port.
  --write            Write the change set to the checkout.
  --force            Write even where a touched file has uncommitted changes.
  --no-verify        Plan only.
  --pull-request     Print the text of the pull request, not the diff.
  -k EXPR            Only tests whose name matches, as in pytest.
  --backend NAME     Where the tests run: host, kernels or mps. The fullest
                     that this machine has, if not given.
  --arithmetic NAME  What a GPU may do besides: fused, flush, reorder, or all.

Options of every command:
  --checkout DIR  The PyTorch fork to work on.
  --json          Print JSON: one object a line.
  --no-color      No colors, as with $NO_COLOR.
  -h, --help      Show this message and exit.

Examples:
  porter migrate atan2                           show the port and its verdict
  porter migrate atan2 --no-verify > atan2.diff  the diff alone, as git apply
                                                 takes it
  porter migrate erf log1p --write               port two operators and write
                                                 both
  porter migrate --all --no-verify --json        every plan, for a script
""",
    )


def test_help_of_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        told(capsys, "status"),
        """\
Usage: porter status [OPTIONS] [PATTERN...]

  List the operators with an MPS dispatch.

  One line each: what its code is written in, which readings there are of an
  implementation on MPSGraph, and whether porter can port it, else a code
  (docs/errors) and why not. PATTERN is one of a shell: 'log*'.

Options:
  --portable  Only operators with a row that porter can port.
  --blocked   Only operators with a row on MPSGraph that cannot be ported.

Options of every command:
  --checkout DIR  The PyTorch fork to work on.
  --json          Print JSON: one object a line.
  --no-color      No colors, as with $NO_COLOR.
  -h, --help      Show this message and exit.

Examples:
  porter status --portable           what can be ported
  porter status 'log*' --blocked     which logarithms cannot, and why
  porter status --json | jq .counts  for a script
""",
    )
