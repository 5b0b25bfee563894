"""Objects of host code: never of other contents than those in their record."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aten_overlay import toolchain
from porter.verdict.build.objects import CompileError, Recipe, compile_object

SOURCE = '#include "inner/answer.h"\nextern "C" int answer() { return ANSWER; }\n'
ONE, TWO = "#define ANSWER 1\n", "#define ANSWER 2\n"
# Puts another text into a file while the compiler runs, the number of times that stands in a file beside it.
EDITED_MEANWHILE = """#!/bin/sh
left=$(cat "{count}")
if [ "$left" -gt 0 ]; then
    echo $((left - 1)) > "{count}"
    cp "{file}" "{file}.kept"
    printf '%s' '{text}' > "{file}"
    "{clang}" "$@"
    code=$?
    cp "{file}.kept" "{file}"
    exit $code
fi
exec "{clang}" "$@"
"""


class Project:
    """A source with one header, in a folder of a given name, with a cache of that name."""

    def __init__(self, folder: Path) -> None:
        (folder / "tree" / "inner").mkdir(parents=True)
        self.folder, self.tree, self.compiler = folder, folder / "tree", Path(toolchain.clang())
        self.source, self.header = self.tree / "answer.cpp", self.tree / "inner" / "answer.h"
        self.source.write_text(SOURCE)
        self.header.write_text(ONE)

    def compile(self) -> tuple[Path, bool]:
        recipe = Recipe(self.compiler, (), (), "a digest", {})
        include = ("-I", str(self.tree))
        return compile_object(self.source, "answer.cpp", include, {"tree": self.tree}, recipe, self.folder / "cache")

    def edit_meanwhile(self, file: Path, text: str, times: int) -> None:
        self.compiler, count = self.folder / "edits", self.folder / "count"
        count.write_text(str(times))
        script = EDITED_MEANWHILE.format(file=file, text=text, count=count, clang=toolchain.clang())
        self.compiler.write_text(script)
        self.compiler.chmod(0o700)


def constant(built: Path) -> bytes:
    """The machine code, which holds the answer."""
    return built.read_bytes()


@pytest.mark.parametrize("name", ["plain", "a blank", "a#b", "a$b", "a: b"])
def test_an_object_is_compiled_anew_once_a_header_changed(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path / name)
    first, fresh = project.compile()
    assert fresh and project.compile() == (first, False)
    project.header.write_text(TWO)
    second, fresh = project.compile()
    assert fresh and constant(second) != constant(first)
    project.header.write_text(ONE)
    assert project.compile() == (first, False)
    project.header.write_text("#error changed\n")
    with pytest.raises(CompileError, match="changed"):
        project.compile()


def test_a_path_that_the_compiler_changes_is_an_error(tmp_path: Path) -> None:
    project = Project(tmp_path / "a\\b")
    with pytest.raises(CompileError, match="does not say that it read"):
        project.compile()
    assert not list((project.folder / "cache").rglob("*.o"))


def test_an_error_is_kept_where_the_path_has_a_blank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path / "a blank")
    project.header.write_text("#error wrong\n")
    with pytest.raises(CompileError, match="wrong"):
        project.compile()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("compiled again"))
    with pytest.raises(CompileError, match="wrong"):
        project.compile()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("inner/answer.h", TWO),
        ("answer.cpp", SOURCE.replace("ANSWER;", "2;")),
        ("inner/answer.h", "#error edited\n"),
    ],
    ids=["header", "source", "error"],
)
def test_what_was_edited_and_edited_back_meanwhile_is_not_stored(tmp_path: Path, file: str, text: str) -> None:
    right, _ = Project(tmp_path / "right").compile()
    project = Project(tmp_path / "edited")
    project.edit_meanwhile(project.tree / file, text, times=2)
    built, _ = project.compile()
    assert constant(built) == constant(right)
    assert len(list((project.folder / "cache").rglob("*.o"))) == 1
    assert not list((project.folder / "cache").rglob("*.failed"))


def test_a_file_that_changes_again_and_again_is_an_error(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.edit_meanwhile(project.header, TWO, times=9)
    with pytest.raises(CompileError, match=r"answer\.cpp, or a file that it includes, changes while it is compiled"):
        project.compile()
    assert not list((tmp_path / "cache").rglob("*.o")) and not list((tmp_path / "cache").rglob("*.part"))


def test_a_header_found_through_the_folder_above_is_watched(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.source.write_text(SOURCE.replace("inner/", "inner/../inner/"))
    first, fresh = project.compile()
    assert fresh
    project.header.write_text(TWO)
    assert constant(project.compile()[0]) != constant(first)
