"""Results of the compiler that are found again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aten_overlay import cache
from aten_overlay.metal import compiler
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.source import swizzles

KERNEL = "#include <metal_stdlib>\nkernel void {0}(device float* x [[buffer(0)]]) {{ x[0] = 1; }}\n"


def test_a_touched_header_with_the_same_text_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    include = shutil.copytree(INCLUDE, tmp_path / "include")
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    for module in (compiler, swizzles):
        monkeypatch.setattr(module, "INCLUDE", include)
    assert compile_kernels(KERNEL.format("one"), ["one"]).is_file()
    for header in include.rglob("*.h"):
        os.utime(header, (0, 0))
    assert compile_kernels(KERNEL.format("other"), ["other"]).is_file()


@pytest.mark.parametrize("suffix", [".so", ".pch", ".ll", ".cpp"])
def test_an_emptied_result_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    before = compile_kernels(KERNEL.format("one"), ["one"]).read_bytes()
    for path in (tmp_path / "cache").rglob(f"*{suffix}"):
        path.write_bytes(b"")
    cache._checked.clear()  # as another process sees it
    assert compile_kernels(KERNEL.format("one"), ["one"]).read_bytes() == before


def test_a_kernel_is_linked_by_the_first_command_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user notices when the first command fails: the next one makes the same library, more slowly."""
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    compile_kernels(KERNEL.format("one"), ["one"])  # what other kernels share is there now
    fastest, _ = compiler._linkers()
    assert "--as-needed" in fastest and not any("libstdc++" in word or word == "-lgcc" for word in fastest)
    commands, start = list[list[str]](), subprocess.run

    def link(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        done = start(command, **options)
        if "--as-needed" in command:
            commands.append(command)
            assert not done.returncode, done.stderr
        return done

    monkeypatch.setattr(subprocess, "run", link)
    assert compile_kernels(KERNEL.format("other"), ["other"]).is_file()
    assert [len(command) for command in commands] == [len(fastest) + 1]  # an object and a library for one word
