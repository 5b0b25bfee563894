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
