"""The names of a file's kernels are cached by all that they are read from."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from aten_overlay.apple import compiler
from aten_overlay.metal.build import Options

KERNEL = "#include <metal_stdlib>\nkernel void {name}(device float* out) {{ out[0] = 1; }}\n"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was read anew: names of files."""
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    found: list[str] = []

    def host_names(source: Path, _options: Options) -> tuple[str, ...]:
        found.append(source.name)
        return (source.read_text().split("void ")[1].split("(")[0],)

    monkeypatch.setattr(compiler, "host_names", host_names)
    return found


def test_names_are_read_once_for_the_same_text_and_headers(read: list[str], tmp_path: Path) -> None:
    source = tmp_path / "a.metal"
    source.write_text(KERNEL.format(name="one"))
    assert [compiler.find_names(source, Options(), "h") for _ in range(2)] == [("one",)] * 2
    assert read == ["a.metal"]


def test_another_text_other_headers_and_other_definitions_are_read_anew(read: list[str], tmp_path: Path) -> None:
    source = tmp_path / "a.metal"
    source.write_text(KERNEL.format(name="one"))
    compiler.find_names(source, Options(), "h")
    compiler.find_names(source, Options(), "i")
    compiler.find_names(source, Options(defines=("A",)), "h")
    source.write_text(KERNEL.format(name="two"))
    assert compiler.find_names(source, Options(), "h") == ("two",)
    assert len(read) == 4


@pytest.mark.parametrize(("headers", "text"), [("", ""), ("h", '#include "b.metal"\n')])
def test_without_a_digest_of_all_that_is_included_nothing_is_cached(
    read: list[str], tmp_path: Path, headers: str, text: str
) -> None:
    source = tmp_path / "a.metal"
    source.write_text(text + KERNEL.format(name="one"))
    for _ in range(2):
        compiler.find_names(source, Options(), headers)
    assert len(read) == 2


def test_two_that_ask_at_once_read_them_once(read: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "a.metal"
    source.write_text(KERNEL.format(name="one"))
    both = Barrier(2)

    def host_names(path: Path, _options: Options) -> tuple[str, ...]:
        with suppress(BrokenBarrierError):
            both.wait(0.2)  # the other one gets here only if nothing keeps it out
        read.append(path.name)
        return ("one",)

    monkeypatch.setattr(compiler, "host_names", host_names)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: compiler.find_names(source, Options(), "h"), range(2)))
    assert found == [("one",)] * 2
    assert read == ["a.metal"]
