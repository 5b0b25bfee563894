import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from porter.core import formatting
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError

UGLY = 'static void f_kernel( TensorIteratorBase &iter ) {\n      lib.exec_binary_kernel( iter,"f" );  }\n\n'
NICE = 'static void f_kernel(TensorIteratorBase& iter) {\n  lib.exec_binary_kernel(iter, "f");\n}\n\n'


@pytest.fixture
def fork() -> Checkout:
    return Checkout(EMBEDDED_FORK, "embedded")


def test_a_block_gets_the_forks_style_and_keeps_its_end(fork: Checkout) -> None:
    for file in ("operations/X.mm", "kernels/X.metal"):
        assert formatting.format_block(fork, file, UGLY) == NICE
    assert formatting.format_block(fork, "X.mm", UGLY.rstrip()) == NICE.rstrip()
    assert formatting.format_block(fork, "X.mm", "\n") == "\n"


def test_a_blocks_objective_c_is_read_as_such(fork: Checkout) -> None:
    block = "void f() {\n  @autoreleasepool { [g  add : x]; }\n}\n"
    expected = "void f() {\n  @autoreleasepool {\n    [g add:x];\n  }\n}\n"
    assert formatting.format_block(fork, "X.mm", block) == expected


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is run; in this process nothing is known yet."""
    found: list[object] = []
    run = subprocess.run

    def count(command: Sequence[str], **given: Any) -> subprocess.CompletedProcess[bytes]:
        found.append(command)
        return run(command, **given)

    monkeypatch.setattr(subprocess, "run", count)
    formatting._format.cache_clear()
    return found


def test_a_block_is_formatted_once_for_a_style(
    fork: Checkout, tmp_path: Path, runs: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    for _ in range(2):
        formatting._format.cache_clear()  # as in another process
        assert formatting.format_block(fork, "X.mm", UGLY) == NICE
    assert len(runs) == 1
    (tmp_path / ".clang-format").write_text("IndentWidth: 8\n")
    other = formatting.format_block(Checkout(tmp_path, "a test"), "X.mm", UGLY)
    assert (other, len(runs)) == (NICE.replace("  lib", "        lib").replace("Base& ", "Base &"), 2)


def test_a_block_is_formatted_where_nothing_can_be_cached(
    fork: Checkout, tmp_path: Path, runs: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "file" / "cache"))
    assert formatting.format_block(fork, "X.mm", UGLY) == NICE
    assert len(runs) == 1


def test_a_fork_without_a_style_keeps_blocks_as_they_are(tmp_path: Path) -> None:
    assert formatting.format_block(Checkout(tmp_path, "a test"), "X.mm", UGLY) == UGLY


def test_an_invalid_style_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".clang-format").write_text("NoSuchOption: 1\n")
    with pytest.raises(PorterError) as caught:
        formatting.format_block(Checkout(tmp_path, "a test"), "X.mm", UGLY)
    assert caught.value.code == "PTR065"


def test_a_missing_program_says_what_to_install(fork: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "clang_format", None)
    monkeypatch.setenv("PATH", "")
    formatting._find_clang_format.cache_clear()
    try:
        with pytest.raises(PorterError) as caught:
            formatting.format_block(fork, "X.mm", UGLY + " ")
        assert (caught.value.code, caught.value.hint) == ("PTR064", "pip install clang-format")
    finally:
        formatting._find_clang_format.cache_clear()


def format_by(style: str, folder: Path) -> str:
    """Formats a block by a style, in a folder below one that has another style."""
    (folder / "fork").mkdir(exist_ok=True)
    (folder / ".clang-format").write_text("BasedOnStyle: Google\nIndentWidth: 13\n")
    (folder / "fork" / ".clang-format").write_text(style)
    return formatting.format_block(Checkout(folder / "fork", "a test"), "X.mm", UGLY)


@pytest.mark.parametrize(
    "style",
    [
        "BasedOnStyle: InheritParentConfig\n",
        "BasedOnStyle: inheritparentconfig\n",
        "BasedOnStyle: INHERITParentConfig=..\n",
        "BasedOnStyle: InheritParentConfig=/\n",
        'BasedOnStyle: "inherit\\x50arentconfig"\n',
        'BasedOnStyle: "inherit\\\n  parentconfig"\n',
        "? BasedOnStyle\n: !!str inheritparentconfig\n",
        "{BasedOnStyle: 'inheritparentconfig'}\n",
        "BasedOnStyle: >-\n  inheritparentconfig\n",
        "IndentWidth: 2\n---\nLanguage: ObjC\nBasedOnStyle: inheritparentconfig\n",
    ],
)
def test_a_style_that_inherits_is_refused_however_it_is_spelled(style: str, tmp_path: Path) -> None:
    with pytest.raises(PorterError) as caught:
        format_by(style, tmp_path)
    assert caught.value.code == "PTR066"


@pytest.mark.parametrize("style", ["BasedOnStyle: inheritparentconfig\n", "BasedOnStyle: InheritParentConfig\n"])
def test_a_style_that_inherits_unnoticed_still_reads_nothing_of_the_folders_above(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formatting, "_refuse_inheritance", lambda _: None)
    assert " " * 13 not in format_by(style, tmp_path)


LAUGHS = "\n".join([f"a0: &a0 [{'x, ' * 10}]", *(f"a{i}: &a{i} [{f'*a{i - 1}, ' * 10}]" for i in range(1, 10))])


@pytest.mark.parametrize("style", [LAUGHS, "[" * 50_000, "# " + "x" * 70_000, "a: [b", "\x07", "a: &b 1\nc: *b\n"])
def test_a_style_of_any_size_or_depth_is_refused_before_it_is_expanded(style: str, tmp_path: Path) -> None:
    with pytest.raises(PorterError) as caught:
        format_by(style, tmp_path)
    assert caught.value.code == "PTR065"


def test_a_program_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "_find_clang_format", lambda: "/bin/sleep")
    monkeypatch.setattr(
        subprocess, "run", lambda command, **given: (_ for _ in ()).throw(subprocess.TimeoutExpired(command, 1))
    )
    with pytest.raises(PorterError) as caught:
        format_by("IndentWidth: 3\n", tmp_path)
    assert (caught.value.code, caught.value.what) == ("PTR065", "clang-format: no answer after 60 seconds")
