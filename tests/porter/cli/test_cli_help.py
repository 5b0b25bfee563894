"""The help as it is read."""

from __future__ import annotations

import pytest
from expecttest import assert_expected_inline

from porter.cli import main


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def read_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments, "--help"]) == 0
    return capsys.readouterr().out


def test_help_groups_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        read_help(capsys),
        """\
Usage: porter [OPTIONS] COMMAND ...

  Port PyTorch operators from MPSGraph to native Metal, and verify each port.

Port:
  migrate  Plan, show and verify the port of one or more operators.
  add      Add operators that MPS lacks, or one that is new to PyTorch.
  undo     Revert the last write, byte for byte.

Inspect:
  status   List the operators with an MPS implementation.
  explain  Show each stage of the port of one operator, and its source.
  report   Merge files of results and report on the fork.

Verify:
  verify  Lint, compile and test operators or their ports.
  watch   Verify operators again whenever their files change.
  bench   Time a fork's kernels on an NVIDIA GPU, beside a person's and
          torch's.

Run:
  run  Run a Python program with an mps device, and report its Metal.

Review:
  review  Review a change to the MPS backend, whoever wrote it.
  lint    Check the lines that a change adds, in the files named or in all.

Write:
  kernel     Start, check, time, trace, export and promote Metal kernels of
             your own.
  extension  Start C++ extensions of PyTorch with Metal kernels, and check
             other people's.

Witness:
  mac  Record kernels for a Mac to replay, and compare its log with others.

Set up:
  setup     Find or install a compiler, and build what all verdicts share.
  doctor    Say what of porter is installed, what is missing, and which
            versions were tried.
  cache     Show the cache's size, and remove what has not been used for long.
  mcp       Serve status, explain, migrate, verify, review and kernel checks
            to a program, as MCP tools.
  toolbelt  Call porter from the tools of a fork: spin, lintrunner, pre-commit
            and GitHub.

Options:
  --version                     Show the version and exit.
  --completion [bash|zsh|fish]  Print a shell completion script: eval
                                "$(porter --completion bash)".
  -h, --help                    Show this message and exit.

Global options:
  --checkout DIR  The PyTorch fork to work on, or embedded: the miniature one
                  in porter.
  --json          Print JSON, one object per line.
  --no-color      Disable color, as $NO_COLOR does.

Examples:
  porter setup                  install a compiler and build what verdicts
                                share
  porter status --portable      list what can be ported
  porter migrate atan2          plan a port, show the diff and verify it
  porter migrate atan2 --write  the same, then write it
""",
    )


def test_help_of_migrate(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        read_help(capsys, "migrate"),
        """\
Usage: porter migrate [OPTIONS] [OP...]

  Plan, show and verify the port of one or more operators.

  OP is a base name or an overload in native_functions.yaml, or a shell
  pattern: atan2, atan2.out, 'log*'. Nothing is written without --write. The
  port of a single operator that is written has a thorough verdict, unless
  --no-thorough is given. One of several that has no plan is left out, and the
  last lines say what became of each.

Options:
  --all                       Port every operator that porter can port.
  --write                     Write the change set to the checkout.
  --force                     Write even if a touched file has uncommitted
                              changes.
  --no-verify                 Only plan, with what the last verdict chose, if
                              any; do not verify.
  --unverified                With --write, also write what no verdict of all
                              tests has passed.
  --from SOURCE               cuda: ATen's CUDA kernel. FILE.cu: a kernel of
                              your own.
  --function NAME             The kernel in FILE.cu.
  --scaffold                  Write the frame of what cannot be ported, to be
                              completed by hand.
  --with-helpers              Add functions that MetalShaderLibrary lacks, as
                              their own change.
  --keep-dtypes               Also register dtypes that the old code took and
                              the CPU does not: computed in float.
  --pull-request              Print the text of a pull request instead of the
                              diff.
  --ghstack                   With --write, commit each group with its text,
                              for ghstack.
  --group [family|operator]   What one pull request holds. Default: family.
  --max-lines N               How many lines a group may change. Default: 600.
                              [x>=1]
  -i                          Ask about each candidate with its verdict, then
                              each hunk.
  --explain-diff              Say behind the @@ of each hunk why it is there.
  --jobs N                    Verdicts at a time. Default: as many as there
                              are cores.  [x>=1]
  --shard I/N                 Only the I-th of N shares of --all.
  --insecure                  With --scheduler, also connect to another
                              machine without TLS.
  --scheduler ADDRESS         Run --all on the workers of a dask.distributed
                              scheduler.
  --results FILE              Write results as JSON.
  --recorded                  With --all, also port from recorded runs what no
                              dispatch stub serves.
  -k EXPR                     Only run tests whose name matches, as in pytest.
  --backend NAME              Where the tests run: host, kernels, mps or cuda.
                              Default: the most complete one available.
  --arithmetic NAME           Arithmetic a GPU may use: default, fused, flush,
                              reorder, fast, or all.
  --macos RELEASE             Compile for the newest Metal that a release of
                              macOS has, such as 15 or 26.2.
  --metal VERSION             The version of Metal to compile for, as
                              $PORTER_METAL: 3.1, 3.2 or 4.0.
  --family NAME               The GPU family to compile for, as
                              $PORTER_FAMILY: apple7 to apple10, or
                              paravirtual.
  --shuffle SEED              On an NVIDIA GPU, run threadgroups in orders
                              made of SEED, as $PORTER_SHUFFLE.  [x>=0]
  --sanitize CHECKS           Checks to run, as $PORTER_SANITIZE: races,
                              bounds, all or none.
  --large                     Also test offsets beyond 32 bits, on sparse
                              memory.
  --strict                    Also fail for faults of the fork that the port
                              does not touch.
  --thorough / --no-thorough  Also run the variations of samples that take
                              longer. Default: only where one operator is
                              written.
  -h, --help                  Show this message and exit.

Global options:
  --checkout DIR  The PyTorch fork to work on, or embedded: the miniature one
                  in porter.
  --json          Print JSON, one object per line.
  --no-color      Disable color, as $NO_COLOR does.

Examples:
  porter migrate atan2                           show the port and verify it
  porter migrate atan2 --no-verify > atan2.diff  only the diff, for git apply,
                                                 as the last verdict chose it
  porter migrate erf log1p --write               port two operators and write
                                                 both
  porter migrate --all --no-verify --json        all plans as JSON
  porter migrate --all --shard 2/8               one of eight shares, for CI
  porter migrate hypot -i --write                choose the candidate, and the
                                                 hunks that are written
  porter migrate 'log*' --write --ghstack        a commit for each family,
                                                 with its text
  porter migrate xlogy --from cuda               the functor is that of ATen's
                                                 CUDA kernel
  porter migrate --from my.cu --function NAME    the functor of a CUDA kernel
                                                 of your own
""",
    )


def test_help_of_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        read_help(capsys, "status"),
        """\
Usage: porter status [OPTIONS] [PATTERN...]

  List the operators with an MPS implementation.

  Shows, for each operator, what its code is written in, how an MPSGraph
  implementation can be read, and how porter would port it (a shared row, an
  own row, an own row from runs) or why not: a library computes it, or an
  error code (`porter explain CODE` says more) and the reason. Runs no code of
  the checkout. PATTERN is a shell pattern: 'log*'.

Options:
  --portable          Only operators with a row on MPSGraph that porter would
                      port.
  --blocked           Only operators with a row on MPSGraph that stays.
  --missing           List the operators that MPS lacks instead, and the work
                      each needs.
  --since COMMIT|DIR  List the rows that are others than in a commit or a
                      checkout.
  --coverage          Print the elementwise rows and what came of them, in
                      Markdown.
  --results FILE      Results for --coverage.
  -h, --help          Show this message and exit.

Global options:
  --checkout DIR  The PyTorch fork to work on, or embedded: the miniature one
                  in porter.
  --json          Print JSON, one object per line.
  --no-color      Disable color, as $NO_COLOR does.

Examples:
  porter status --portable           what can be ported
  porter status 'log*' --blocked     logarithms that stay on MPSGraph, and why
  porter status --missing            what MPS lacks, and what each would take
  porter status --since main         what became native, went back, appeared
                                     or changed
  porter status --json | jq .counts  as JSON
""",
    )
