"""Commands for macOS's compiler as Linux runs them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from aten_overlay import toolchain
from aten_overlay.apple import commands, driver, offline
from aten_overlay.metal import compiler
from aten_overlay.metal.build import host_names

SETTINGS = {"plain": ["c++"], "objective": ["clang++", "-fblocks"]}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("-O2 -c a.cpp -o a.o", "c++ -include stdint.h -O2 -c a.cpp -o a.o"),
        ("-O2 -c a.c -o a.o", "c++ -O2 -c a.c -o a.o"),
        ("-fobjc-arc -Xclang -fobjc-arc -mcpu=apple-m1 -flto=thin -c a.c", "c++ -c a.c"),
        ("-fobjc-arc -mcpu=apple-m1 -flto=thin -fmodules -c a.mm", "clang++ -fblocks -fobjc-arc -c a.mm"),
        ("-Wl,-dead_strip -Wl,-install_name,@rpath/a.so -target arm64-apple-macos14 a.o", "c++ a.o"),
        ("-c a.mm -o a.o", "clang++ -fblocks -c a.mm -o a.o"),
        ("-x objective-c++ -c a.txt", "clang++ -fblocks -x objective-c++ -c a.txt"),
        ("-c a.mm -framework Metal -arch arm64 -ObjC++ -O3", "clang++ -fblocks -c a.mm -O3"),
        ("-bundle -undefined dynamic_lookup a.o -framework Metal -o a.so", "c++ -shared a.o -o a.so"),
        ("-mmacosx-version-min=12.0 -stdlib=libc++ a.o -Wl,-rpath,@loader_path -lobjc", "c++ a.o"),
        ("-Ifolder.mm -c a.cpp", "c++ -include stdint.h -Ifolder.mm -c a.cpp"),
        ("-framework", "c++"),
    ],
)
def test_apples_options_are_translated(given: str, made: str) -> None:
    assert " ".join(driver.make_command(SETTINGS, given.split())) == made


def test_the_compilers_that_were_named_are_kept_for_plain_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    made = commands.make_environment({"CXX": "ccache g++", "PATH": "/bin", "PYTHONPATH": "mine"})
    assert json.loads(Path(made["CXX"]).with_name(commands.SETTINGS).read_text())["plain"] == ["ccache", "g++"]
    programs, compilers, *rest = made["PATH"].split(":")
    assert (programs, rest) == (str(commands.PROGRAMS), ["/bin"])
    assert {path.name for path in Path(compilers).iterdir()} >= {"clang", "clang++", "metal", "metallib"}
    assert made["PYTHONPATH"].split(":") == [str(commands.CHILDREN), "mine"]
    assert commands.make_environment(made) == made


def test_a_command_whose_settings_are_gone_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    settings = Path(commands.make_environment({"CXX": "g++"})["CXX"]).with_name(commands.SETTINGS)
    text = settings.read_text()
    settings.unlink()
    commands.make_environment({"CXX": "g++"})
    assert settings.read_text() == text


def test_objective_c_plus_plus_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = tmp_path / "a.mm"
    source.write_text(
        "#import <Metal/Metal.h>\n#include <algorithm>\n"
        "NSUInteger length(id<MTLBuffer> b) { return std::min(long(b.length), 4LL); }\n"
    )
    made = commands.make_environment({})["CXX"]
    command = [made, "-c", str(source), "-o", str(tmp_path / "a.o"), "-framework", "Metal"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("written", "compiled"),
    [
        (
            "@try { f(); } @catch (NSException *error) { g(error); }",
            "try { f(); } catch (...) { NSException* error = porter::caught_exception(); g(error); }",
        ),
        ("@try { f(); } @catch (id e) { @throw; }", "try { f(); } catch (...) { NSException* e = porter::caught_exception(); throw; }"),
        ("@try{ f(); }\n@catch(...){ }", "try{ f(); }\ncatch (...) { }"),
        ("@throw [NSException exceptionWithName:a reason:b userInfo:nil];", "porter::throw_exception( [NSException exceptionWithName:a reason:b userInfo:nil]);"),
        ("// at a try", "// at a try"),
    ],
)  # fmt: skip
def test_exceptions_are_those_of_cpp(written: str, compiled: str) -> None:
    assert driver.write_in_cpp(written) == compiled


def test_an_object_has_the_name_of_its_source_where_no_other_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "caught.mm").write_text("#import <Foundation/Foundation.h>\nvoid f() { @try {} @catch (id e) {} }\n")
    command = [commands.make_environment({})["CXX"], "-c", "caught.mm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, (tmp_path / "caught.o").is_file()) == (0, "", True)


def test_the_compiler_that_porter_uses_is_none_of_these_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    wanted = toolchain.clang()
    monkeypatch.setenv("PATH", f"{commands.make_environment({})['PATH']}:{Path(wanted).parent}")
    assert Path(compiler.find_clang.__wrapped__()).samefile(wanted)
    done = subprocess.run(
        ["xcrun", "-sdk", "macosx", "clang++", "--version"], capture_output=True, text=True, check=True
    )
    assert "clang version" in done.stdout
    refused = subprocess.run(["xcrun", "actool"], capture_output=True, text=True, check=False)
    assert refused.returncode == 72 and 'unable to find utility "actool"' in refused.stderr


def test_a_metal_library_is_its_source_with_the_headers_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "twice.h").write_text("#pragma once\ninline float twice(float x) { return x * BY; }\n")
    for name in ("one", "two"):
        (tmp_path / f"{name}.metal").write_text(
            f"#include <metal_stdlib>\n#include <twice.h>\nkernel void {name}(device float* x) {{ *x = twice(*x); }}\n"
        )
        arguments = ["-O2", "-c", str(tmp_path / f"{name}.metal"), "-o", str(tmp_path / f"{name}.air"), "-DBY=2"]
        assert offline.main("metal", [*arguments, "-I", str(tmp_path / "include"), "-std=metal3.1"]) == 0
    library = tmp_path / "all.metallib"
    assert offline.main("metallib", [str(tmp_path / "one.air"), str(tmp_path / "two.air"), "-o", str(library)]) == 0
    text = library.read_text()
    assert text.startswith(offline.MARK) and text.count("inline float twice") == 2 and "#pragma once" not in text
    assert text.count("#include <metal_stdlib>") == 2 and "twice.h" not in text
    assert host_names(library) == ("one", "two")


def test_a_metal_tool_says_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.air").write_bytes(b"BC")
    calls = [("metal", []), ("metal", [str(tmp_path / "no.metal")]), ("metallib", [str(tmp_path / "a.air")])]
    assert [offline.main(tool, words) for tool, words in calls] == [1, 1, 1]
    assert [
        "no input files" in line or "No such file" in line or "neither Metal" in line
        for line in capsys.readouterr().err.splitlines()
    ] == [True] * 3
