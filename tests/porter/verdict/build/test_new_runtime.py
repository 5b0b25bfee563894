"""Functions that headers of the MPS runtime declare and nothing defines are named once, with their headers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.verdict.build.missing import MissingSymbol
from porter.verdict.build.new_runtime import find_new_runtime
from porter.verdict.build.objects import Recipe
from porter.verdict.build.tree import Tree, materialise

HEADER = "aten/src/ATen/mps/MPSDevice.h"
FLUSH = MissingSymbol("_ZN2at3mps9MPSStream8flushAllEv", "at::mps::MPSStream::flushAll()")
FENCE = MissingSymbol("_ZN2at3mps5fenceEi", "at::mps::fence(int)")
ROW = MissingSymbol("_ZN2at6native9gone_mpsEv", "at::native::gone_mps()")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """The embedded fork with a function that its own header declares."""
    text = "#pragma once\nnamespace at::mps {\nstruct MPSStream {\n  void flushAll();\n};\n}\n"
    return materialise(EMBEDDED_FORK, {HEADER: text}, tmp_path)


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """A recipe with a folder of installed headers, of which one declares another function."""
    installed = tmp_path / "include"
    (installed / "ATen" / "mps").mkdir(parents=True)
    (installed / "ATen" / "mps" / "MPSEvent.h").write_text("namespace at::mps {\nvoid fence(int value);\n}\n")
    (installed / "ATen" / "mps" / "MPSDevice.h").write_text("namespace at::native {\nvoid gone_mps();\n}\n")
    return Recipe(Path("clang++"), ("-O1", "-isystem", str(installed)), (), "digest", {})


def test_a_function_of_the_forks_header_is_named_with_its_line(tree: Tree, recipe: Recipe) -> None:
    error = find_new_runtime(tree, [FLUSH], recipe)
    assert error and (error.code, str(error.place)) == ("PTR168", f"{HEADER}:4")
    what = "the MPS headers declare what neither the fork nor porter's device defines"
    assert error.what == f"{what}: at::mps::MPSStream::flushAll() ({HEADER}:4)"


def test_a_header_that_the_fork_lacks_is_the_installed_one(tree: Tree, recipe: Recipe) -> None:
    error = find_new_runtime(tree, [FLUSH, FENCE], recipe)
    assert error and error.what.endswith("; at::mps::fence(int) (ATen/mps/MPSEvent.h:2)")
    assert find_new_runtime(tree, [FENCE], replace(recipe, flags=())) is None


def test_what_no_header_of_the_runtime_declares_is_no_matter_of_it(tree: Tree, recipe: Recipe) -> None:
    assert find_new_runtime(tree, [ROW], recipe) is None, (
        "the fork's own header stands in the place of the installed one"
    )
    assert find_new_runtime(tree, [FLUSH, ROW], recipe) is None
    assert find_new_runtime(tree, [MissingSymbol("flag", "flag")], recipe) is None
    assert find_new_runtime(tree, [], recipe) is None


def test_only_the_first_functions_are_named(tree: Tree, recipe: Recipe) -> None:
    error = find_new_runtime(tree, [replace(FLUSH, mangled=f"_Z{number}") for number in range(7)], recipe)
    assert error and error.what.count("flushAll()") == 5 and error.what.endswith("; and 2 more")
