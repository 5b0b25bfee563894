"""Every command takes the options of every command, before its own or after them, and tells usage errors by code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from expecttest import assert_expected_inline

from porter.cli import main, options
from porter.cli.app import app
from porter.cli.kernel_export import read_values
from porter.cli.output import Output, Settings
from porter.core.checkout import EMBEDDED_FORK
from porter.report.upkeep import Compiler, Overlay
from porter.workflows import setup


def find_commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command by its words, those of groups too."""
    for name, found in sorted(group.commands.items()):
        if isinstance(found, click.Group):
            yield from find_commands(found, (*path, name))
        else:
            yield (*path, name), found


COMMANDS = dict(find_commands(app))
each_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
GIVEN = {
    ("--no-color",): Settings(no_color=True),
    ("--json",): Settings(json=True),
    ("--checkout", "fork"): Settings(Path("fork")),
}


class Reached(Exception):
    """A command was about to run."""


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """The settings that a command would run with."""

    def stop(settings: Settings) -> Output:
        raise Reached(settings)

    def run(*arguments: str) -> Settings:
        with pytest.raises(Reached) as caught:
            main(arguments)
        settings: Settings = caught.value.args[0]
        return settings

    monkeypatch.setattr(options, "Output", stop)
    return run


def own_arguments(command: tuple[str, ...]) -> tuple[str, ...]:
    required = [param for param in COMMANDS[command].params if param.required]
    options = [param for param in required if isinstance(param, click.Option)]
    given = [word for option in options for word in (option.opts[0], "mlx")]
    return (*given, "atan2") if len(required) > len(options) else tuple(given)


@each_command
@pytest.mark.parametrize("given", GIVEN)
def test_every_command_takes_the_shared_options_anywhere(
    command: tuple[str, ...], given: tuple[str, ...], reached: Callable[..., Settings]
) -> None:
    own = own_arguments(command)
    places = [(*command[:n], *given, *command[n:], *own) for n in range(len(command) + 1)]
    if command != ("run",):  # which hands on what follows a program, and whose own --json takes a file
        places.append((*command, *own, *given))
    elif "--json" in given:
        places = places[:1]
    for arguments in places:
        assert reached(*arguments) == GIVEN[given], arguments


def test_options_before_and_after_a_command_add_up(reached: Callable[..., Settings]) -> None:
    found = reached("--json", "--checkout", "one", "status", "--checkout", "two", "--no-color")
    assert found == Settings(Path("two"), json=True, no_color=True)


@each_command
def test_every_command_has_help_with_an_example(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("-h", "--help"):
        assert main([*command, flag]) == 0
        told = capsys.readouterr().out
        assert told.startswith(f"Usage: porter {' '.join(command)} ")
        assert f"\nExamples:\n  porter {' '.join(command)}" in told


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    return re.sub(r"checkout: .*\n", "", told.err)


def test_a_misspelled_command_is_told_its_neighbor(capsys: pytest.CaptureFixture[str]) -> None:
    assert_expected_inline(
        refused(capsys, "migrat", "atan2"),
        """\
porter: PTR006 there is no command named migrat
  Did you mean migrate?
""",
    )


def test_a_command_like_no_other_is_told_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "qqq").endswith(
        "there is no command named qqq\n  Run `porter --help` for a list of commands.\n"
    )


def test_a_misspelled_operator_is_told_its_neighbors_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_expected_inline(
        refused(capsys, "migrate", "atn2", "--no-verify"),
        """\
porter: aten/src/ATen/native/native_functions.yaml: PTR012 there is no operator named atn2
  Did you mean atan2, arctan2?
""",
    )


@pytest.mark.parametrize(
    "arguments",
    [("status", "--no-colr"), ("verify",), ("--completion", "tcsh"), ("undo", "sum", "twice"), ("verify", "-k")],
)
def test_a_usage_error_has_a_code_and_names_the_help(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, *arguments)
    command = f" {arguments[0]}" if arguments[0] in app.commands else ""
    assert told.startswith("porter: PTR006 ")
    assert told.endswith(f"\n  Run `porter{command} --help` for usage.\n")


@pytest.mark.parametrize("option", ["--backend", "--arithmetic"])
def test_a_misspelled_way_to_verify_is_refused_before_the_plan(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "migrate", "atan2", option, "flsh").startswith(f"porter: PTR171 unknown {option[2:]} flsh\n")


@pytest.mark.parametrize("command", ["migrate", "verify"])
def test_a_misspelled_operator_is_refused_before_the_verdicts_on_others(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "PTR012 there is no operator named atn2" in refused(capsys, command, "exp", "atn2")


@pytest.mark.parametrize("command", ["migrate", "verify"])
def test_an_operator_beside_all_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be combined with operators (got atan2)" in refused(capsys, command, "--all", "atan2")


def test_the_exit_code_counts_what_could_not_be_planned(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = fork / "aten/src/ATen/native/mps/kernels"
    arguments = ["migrate", "--all", "--no-verify", "--checkout", str(fork)]
    (kernels / "BinaryKernel.metal").unlink()
    assert main(arguments) == 1
    (kernels / "UnaryKernel.metal").unlink()
    assert main(arguments) == 2
    assert main([*arguments, "--shard", "1/2"]) == 1
    assert capsys.readouterr().err.count("PTR093") > 10


def test_no_command_at_all_is_answered_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys).startswith("Usage: porter ")


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from porter import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"porter {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_porter(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", shell]) == 0
    assert f"_PORTER_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("porter mig", ["migrate"]),
        ("porter migrate ata", ["atan2"]),
        ("porter verify exp atan", ["atan2"]),
        ("porter verify --backend h", ["host"]),
        ("porter verify --arithmetic fl", ["flush"]),
        ("porter migrate --checkout /nowhere ata", []),
    ],
)
def test_a_shell_completes(
    words: str, found: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("_PORTER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit):
        main([])
    assert [line.partition(",")[2] for line in capsys.readouterr().out.split()] == found


def test_an_interrupt_ends_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_settings: Settings) -> Output:
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "Output", interrupted)
    assert main(["status"]) == 130


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    return tmp_path / "fork"


def test_a_plan_is_written_and_taken_back(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--checkout", str(fork))
    assert main([*where, "migrate", "atan2", "--no-verify", "--unverified", "--write", "--json"]) == 0
    written = capsys.readouterr()
    assert "`porter undo` reverts them" in written.err
    touched = {line[6:] for line in json.loads(written.out)["diff"].splitlines() if line.startswith("+++ b/")}
    assert main([*where, "undo", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["files"]) == touched
    assert main([*where, "undo"]) == 2


def test_an_explanation_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "atan2", "--no-record", "--json", "--checkout", str(EMBEDDED_FORK)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["op"] == "atan2"
    assert [stage["stage"] for stage in found["stages"]][:3] == [
        "entries", "implementation", "graph, read from the source"
    ]  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_a_setup_tells_what_it_found(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setup, "set_up", lambda: Compiler("/bin/clang++", "clang version 19"))
    monkeypatch.setattr(setup, "prepare", lambda checkout, progress: Overlay("2.13.0", "host", True))
    assert main(["setup", *(["--json"] if as_json else [])]) == 0
    told = capsys.readouterr().out
    if as_json:
        assert json.loads(told)["overlay"] == {"torch": "2.13.0", "backend": "host", "built": True}
    else:
        assert told == "compiler: /bin/clang++ (clang version 19)\noverlay: built for torch 2.13.0\n"


def test_watch_names_the_checkout_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from porter.core.checkout import Checkout
    from porter.workflows import verify as workflow

    judged: list[Checkout] = []

    def watched(files: Callable[[], tuple[Path, ...]], act: Callable[[], None]) -> None:
        for _ in range(2):
            assert EMBEDDED_FORK / "aten/src/ATen/native/native_functions.yaml" in files()
            act()

    monkeypatch.setattr(workflow, "watch", watched)
    monkeypatch.setattr("porter.cli.verify.judge", lambda output, checkout, *_: judged.append(checkout))
    assert main(["watch", "exp", "--checkout", str(EMBEDDED_FORK)]) == 0
    notes = capsys.readouterr().err
    assert notes.count("checkout:") == 1
    rest = notes.partition("waiting for a change of ")[2]
    assert rest.count("a file changed: verifying again\nwaiting for a change of ") == 1
    assert len(judged) == 2 and judged[0] is not judged[1]


@pytest.mark.parametrize("given", ["D=\u00b2", "D=" + "9" * 5000, "D=", "D=1,,2", "1=2"])
def test_values_of_a_template_parameter_are_numbers_of_a_size(given: str) -> None:
    with pytest.raises(click.BadParameter):
        read_values((given,))


@pytest.mark.parametrize("arguments", [("migrate", "atan2", "--no-verify", "--write"), ("undo",)])
def test_the_embedded_fork_is_written_to_only_where_it_is_named(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PORTER_CHECKOUT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert refused(capsys, *arguments).startswith(f"porter: PTR008 {tmp_path} is in no PyTorch checkout")
    assert main(["status", "atan2", "--checkout", "embedded"]) == 0
    assert f"checkout: {EMBEDDED_FORK.resolve()} (the embedded miniature fork)" in capsys.readouterr().err


def test_an_option_that_changes_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--checkout", str(EMBEDDED_FORK))
    assert "PTR434 " in refused(capsys, "migrate", "atan2", "--no-verify", "--scaffold", *where)


def test_an_error_code_is_explained_by_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "PTR012"]) == 0
    assert capsys.readouterr().out.startswith("# PTR012: unknown operator\n\n")
    assert refused(capsys, "explain", "PTR999").startswith(
        "porter: PTR009 there is no error code PTR999\n  Did you mean "
    )


def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "undo"]) == main(["undo", "--help"]) == 0
    first, second = capsys.readouterr().out.split("Usage: ")[1:]
    assert first == second


def test_a_pattern_names_every_operator_that_matches(capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--no-verify", "--json", "--checkout", str(EMBEDDED_FORK))
    assert main(["migrate", "atan*", "atan2", *where]) == 0
    planned = [json.loads(line)["op"] for line in capsys.readouterr().out.splitlines()]
    assert "atan2" in planned and len(planned) == len(set(planned))
    assert "PTR012 no operator matches zz*" in refused(capsys, "migrate", "zz*", *where)


def test_writes_are_listed_and_reverted_by_operator(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where, write = ("--checkout", str(fork)), ("--no-verify", "--unverified", "--write")
    before = {path: path.read_bytes() for path in fork.rglob("*") if path.is_file()}
    assert main([*where, "migrate", "atan2", *write]) == 0
    capsys.readouterr()
    assert main([*where, "undo", "--list"]) == 0
    listed = capsys.readouterr().out
    assert listed.startswith("1: atan2\n  aten/")
    assert "about exp" in refused(capsys, *where, "undo", "exp")
    assert main([*where, "undo", "atan2"]) == 0
    assert capsys.readouterr().out == listed.replace("1: atan2", f"reverted atan2: {listed.count('  ')} files")
    assert {path: path.read_bytes() for path in fork.rglob("*") if path.is_file()} == before


def test_a_file_with_uncommitted_changes_is_found_before_the_verdict(
    fork: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a verdict was asked for")

    monkeypatch.setattr("porter.workflows.migrate.prove_candidates", fail)
    for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(fork), *command], check=True)
    kernels = fork / "aten/src/ATen/native/mps/kernels/BinaryKernel.metal"
    kernels.write_text(kernels.read_text() + "\n// mine\n")
    assert "PTR055 this file has uncommitted changes" in refused(
        capsys, "migrate", "atan2", "--write", "--checkout", str(fork)
    )
