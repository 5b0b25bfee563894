"""PTX that one machine compiles and another finds: by what it was made of, whole, and with no compiler asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aten_overlay import cache
from aten_overlay.cuda import compile as compiling
from aten_overlay.cuda import store
from aten_overlay.errors import OverlayError
from aten_overlay.metal import compiler
from aten_overlay.metal.build import Options
from aten_overlay.metal.cuda.module import PtxModule

from .recording import make_buffer, make_constant, make_entry

SOURCE = '#include "mine.h"\nkernel void scale(device float* x [[buffer(0)]], constant float& k [[buffer(1)]]) {}\n'
MODULE = PtxModule(".version 8.0\n", {"scale": make_entry("scale", make_buffer("x", 0), make_constant("k", 1))})


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The names of each compilation."""
    calls: list[Sequence[str]] = []

    def compile_ptx(source: Any, names: Sequence[str], *_rest: Any) -> PtxModule:
        calls.append(tuple(names))
        return MODULE

    monkeypatch.setattr(compiling, "compile_ptx", compile_ptx)
    monkeypatch.setattr(compiling, "host_names", lambda *_: ("scale", "scale_half", "other"))
    return calls


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise OverlayError("PTR100", "no clang++ 17 or newer was found")

    monkeypatch.setattr(compiler, "find_clang", refuse)


def test_what_is_kept_is_found_as_it_was() -> None:
    store.keep("key", MODULE)
    assert store.find("key") == MODULE
    assert store.find("other") is None


def test_ptx_that_was_changed_is_not_found() -> None:
    store.keep("key", MODULE)
    (store.folder() / "key.ptx").write_text(".version 8.1\n")
    assert store.find("key") is None


def test_a_source_is_compiled_once(compiled: list[Sequence[str]]) -> None:
    for _ in range(2):
        assert compiling.compile_kernels(SOURCE) == MODULE
    assert compiled == [("scale", "scale_half", "other")]


def test_names_prefixes_and_options_are_entries_of_their_own(compiled: list[Sequence[str]]) -> None:
    compiling.compile_kernels(SOURCE, ["other"])
    compiling.compile_family(SOURCE, "scale")
    compiling.compile_kernels(SOURCE, ["other"], cuda=replace(compiling.PLAIN, fast=True))
    assert compiled == [("other",), ("scale", "scale_half"), ("other",)]
    assert compiling.compile_family(SOURCE, "none").entries == {}


def test_a_header_is_part_of_the_key_and_its_place_is_not(tmp_path: Path) -> None:
    keys = []
    for folder, text in (("a", "// one\n"), ("b", "// one\n"), ("c", "// two\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.h").write_text('#include "deeper.h"\n')
        (tmp_path / folder / "deeper.h").write_text(text)
        keys.append(store.find_key(SOURCE, [tmp_path / folder]))
    assert keys[0] == keys[1] != keys[2]


def test_a_machine_without_a_compiler_finds_what_another_kept(
    compiled: list[Sequence[str]], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    compiling.compile_kernels(SOURCE, options=Options(include=(Path("here"),)))
    request.getfixturevalue("no_compiler")
    assert compiling.compile_kernels(SOURCE, options=Options(include=(Path("elsewhere"),))) == MODULE
    with pytest.raises(OverlayError, match="is not in the store of PTX") as error:
        compiling.compile_kernels(SOURCE + "\n")
    assert error.value.code == "PTR391"


def test_a_cache_that_others_may_write_to_is_not_read(tmp_path: Path) -> None:
    store.keep("key", MODULE)
    cache.root().chmod(0o777)
    with pytest.raises(OverlayError) as error:
        store.find("key")
    assert error.value.code == "PTR180"
