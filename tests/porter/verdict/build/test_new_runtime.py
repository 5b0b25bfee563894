"""Functions that headers of the MPS runtime declare and nothing defines are named once, with their headers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import OPERATIONS
from porter.verdict.build.missing import MissingSymbol, find_new_runtime
from porter.verdict.build.objects import Recipe
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.native import native_target
from porter.verdict.verify import verify

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


def test_a_verdict_names_it_once_instead_of_an_error_of_the_linker() -> None:
    header, host = "aten/src/ATen/native/mps/Fences.h", f"{OPERATIONS}/BinaryKernel.mm"
    text = (EMBEDDED_FORK / host).read_text()
    called = text.replace(
        "  lib.exec_binary_kernel(iter, ", "  mps::raise_fence(2);\n  lib.exec_binary_kernel(iter, ", 1
    )
    texts = {
        header: "#pragma once\nnamespace at::native::mps {\nvoid raise_fence(int value);\n}\n",
        host: called.replace("#include", "#include <ATen/native/mps/Fences.h>\n#include", 1),
    }
    verdict = verify(EMBEDDED_FORK, texts, native_target(Checkout(EMBEDDED_FORK, "test"), "copysign"), "float32")
    [failure] = verdict.failures
    what = "the MPS headers declare what neither the fork nor porter's device defines"
    assert failure.reason == f"PTR168 {what}: at::native::mps::raise_fence(int) ({header}:3)"
    assert not any("PTR168" in note for note in verdict.notes)
