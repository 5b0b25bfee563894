"""The clang of PyPI's `ziglang`: a script around it that is proven before it is used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal import compiler, zig

SOURCE = "#include <vector>\nint main() { return static_cast<int>(std::vector<int>(3).size()) - 3; }\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))


def package(folder: Path, script: str) -> Path:
    """A stand-in for the package: a `zig` that is a shell script."""
    (folder / "lib").mkdir(parents=True)
    (folder / "zig").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "zig").chmod(0o755)
    return folder


def test_zig_runs_as_a_bare_driver_with_its_own_headers_and_linker(tmp_path: Path) -> None:
    told = tmp_path / "told"
    made = zig.wrap(package(tmp_path / "a package", f'printf "%s\\n" "$@" > {told}'))
    subprocess.run([made, "-c", "two words.cpp"], check=True)
    words = told.read_text().splitlines()
    assert words[:2] == ["clang", "--driver-mode=g++"] and words[-2:] == ["-c", "two words.cpp"]
    assert words[words.index("-resource-dir") + 1] == str(tmp_path / "a package" / "lib")
    linker = next(word.partition("=")[2] for word in words if word.startswith("--ld-path="))
    subprocess.run([linker, "a.o"], check=True)
    assert told.read_text().splitlines() == ["ld.lld", "a.o"]


def test_a_broken_package_is_refused_with_its_message_every_time(tmp_path: Path) -> None:
    broken = package(tmp_path / "package", "echo \"'string' file not found\" >&2; exit 1")
    for _ in range(2):
        with pytest.raises(OverlayError) as refused:
            zig.wrap(broken)
        assert refused.value.code == "PTR142" and "'string' file not found" in refused.value.what


def test_another_package_is_probed_again(tmp_path: Path) -> None:
    assert zig.wrap(package(tmp_path / "one", "true")) != zig.wrap(package(tmp_path / "two", "true"))


def test_the_real_package_links_the_system_library(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    clang = zig.find_clang()
    assert clang is not None and compiler._major(clang) >= compiler._OLDEST
    program = tmp_path / "program"
    subprocess.run([clang, "-x", "c++", "-", "-o", program], input=SOURCE, text=True, check=True)
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" in libraries
    assert subprocess.run([program], check=False).returncode == 0
