"""The build cache: never stale, never half made."""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aten_overlay import cache, toolchain
from aten_overlay.errors import OverlayError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(toolchain, "cache_root", lambda: tmp_path / "cache")
    (tmp_path / "answer.h").write_text("#define ANSWER 1\n")
    (tmp_path / "answer.cpp").write_text('#include "answer.h"\nextern "C" int answer() { return ANSWER; }\n')
    return tmp_path


def build(project: Path, **options: Any) -> Any:
    return toolchain.build("answer", [project / "answer.cpp"], ["-std=c++17"], **options)


def answer(path: Path) -> Any:
    return ctypes.CDLL(str(path)).answer()


def test_an_unchanged_source_is_found_again(project: Path) -> None:
    first = build(project)
    stamp = first.stat().st_mtime_ns
    assert build(project) == first and first.stat().st_mtime_ns == stamp and answer(first) == 1


def test_a_changed_header_is_seen(project: Path) -> None:
    first = build(project)
    (project / "answer.h").write_text("#define ANSWER 2\n")
    second = build(project)
    assert (answer(first), answer(second)) == (1, 2)


def test_going_back_finds_the_first_result(project: Path) -> None:
    first = build(project)
    text = (project / "answer.cpp").read_text()
    (project / "answer.cpp").write_text(text.replace("ANSWER;", "ANSWER + 5;"))
    assert answer(build(project)) == 6
    (project / "answer.cpp").write_text(text)
    assert build(project) == first


def test_flags_are_part_of_the_cache_key(project: Path) -> None:
    (project / "answer.cpp").write_text('extern "C" int answer() { return ANSWER; }\n')
    built = [toolchain.build("answer", [project / "answer.cpp"], [f"-DANSWER={n}"]) for n in (4, 5)]
    assert [answer(path) for path in built] == [4, 5]


def test_declared_dependencies_are_part_of_the_cache_key(project: Path) -> None:
    data = project / "data"
    data.mkdir()
    source = 'extern "C" int answer() {\n#if __has_include("data/more.h")\nreturn 2;\n#else\nreturn 1;\n#endif\n}\n'
    (project / "answer.cpp").write_text(source)
    assert answer(build(project, deps=[data])) == 1
    (data / "more.h").write_text("")
    assert answer(build(project, deps=[data])) == 2


def test_a_touched_header_is_the_same_header(project: Path) -> None:
    source = project / "answer.cpp"
    source.write_text('extern "C" int answer() { return ANSWER; }\n')
    assert answer(build(project, header=project / "answer.h")) == 1
    os.utime(project / "answer.h", (1, 1))
    source.write_text('extern "C" int answer() { return ANSWER + 1; }\n')
    assert answer(build(project, header=project / "answer.h")) == 2


def test_a_touched_header_that_is_read_again_is_read_once(project: Path) -> None:
    (project / "once.h").write_text("#pragma once\nstruct Once { int value; };\n")
    (project / "answer.h").write_text('#include "once.h"\n')
    source = project / "answer.cpp"
    for expected in (1, 2):
        source.write_text(f'#include "once.h"\nextern "C" int answer() {{ return Once{{{expected}}}.value; }}\n')
        assert answer(build(project, header=project / "answer.h")) == expected
        os.utime(project / "once.h", (expected, expected))


def test_a_failed_build_leaves_nothing(project: Path) -> None:
    build(project)
    (project / "answer.h").write_text("#define ANSWER nonsense\n")
    with pytest.raises(OverlayError) as error:
        build(project)
    assert error.value.code == "PTR143" and "nonsense" in error.value.what
    assert error.value.place is not None and error.value.place.line == 2
    with pytest.raises(OverlayError):
        build(project)
    (project / "answer.h").write_text("#define ANSWER 3\n")
    assert answer(build(project)) == 3


def test_a_missing_symbol_is_a_link_error(project: Path) -> None:
    (project / "answer.cpp").write_text('extern "C" int other(); extern "C" int answer() { return other(); }\n')
    with pytest.raises(OverlayError) as error:
        build(project)
    assert error.value.code == "PTR144" and "other" in error.value.what


def test_a_lost_object_is_rebuilt(project: Path) -> None:
    library = build(project)
    for path in (project / "cache").rglob("*.o"):
        path.unlink()
    library.unlink()
    assert answer(build(project)) == 1


def test_processes_that_build_the_same_agree(project: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from aten_overlay import toolchain\n"
        "print(toolchain.build('answer', [Path(sys.argv[1])], ['-std=c++17']))"
    )
    command = [sys.executable, "-c", code, str(project / "answer.cpp")]
    environ = {**os.environ, "PORTER_CACHE": str(project / "shared")}
    root = Path(__file__).resolve().parents[2]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ, cwd=root) for _ in range(3)]
    printed = {process.communicate()[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0, 0] and len(printed) == 1
    assert answer(Path(printed.pop())) == 1
    assert not list((project / "shared").rglob("*.new*"))


def write_rule(file: Path, target: str, names: Sequence[str]) -> Path:
    """What clang writes: each name in a line of its own."""

    def escape(name: str) -> str:
        return name.replace(" ", "\\ ").replace("#", "\\#").replace("$", "$$")

    file.write_bytes(
        os.fsencode(" \\\n  ".join((f"{escape(target)}: {escape(names[0])}", *map(escape, names[1:]))) + "\n")
    )
    return file


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("ab #$:\t'\u00e9\udcff", min_size=1).map(lambda name: f"/{name}.h"), min_size=1))
def test_the_names_in_a_rule_are_read_as_they_are(tmp_path: Path, names: list[str]) -> None:
    assert toolchain.read_rule(write_rule(tmp_path / "rule.d", "a: b.o", names), Path(names[-1])) == names


def test_a_rule_of_the_compiler_itself_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "a b#c$d: e"
    folder.mkdir()
    (folder / "own.h").touch()
    (folder / "x y.cpp").write_text('#include "own.h"\n')
    command = [toolchain.clang(), "-MM", "-MF", str(tmp_path / "rule.d"), str(folder / "x y.cpp")]
    subprocess.run(command, check=True)
    assert toolchain.read_rule(tmp_path / "rule.d", folder / "x y.cpp") == [
        str(folder / "x y.cpp"),
        str(folder / "own.h"),
    ]


def test_a_folder_whose_name_the_compiler_changes_is_an_error(project: Path) -> None:
    (project / "a\\b").mkdir()
    (project / "a\\b" / "answer.cpp").write_text("int answer;\n")
    with pytest.raises(OverlayError, match="does not say that it read") as refused:
        toolchain.build("answer", [project / "a\\b" / "answer.cpp"], ["-std=c++17"])
    assert refused.value.code == "PTR143"


@pytest.mark.parametrize("suffix", [".so", ".o", ".json", ".so.seal", ".o.seal", ".json.seal"])
@pytest.mark.parametrize("damage", [b"", b"\0", b"{"])
def test_what_was_damaged_is_built_again(project: Path, suffix: str, damage: bytes) -> None:
    before = build(project).read_bytes()
    [found] = [path for path in (project / "cache").rglob(f"*{suffix}") if path.is_file()]
    found.write_bytes(damage)
    cache._checked.clear()  # as another process sees it
    again = build(project)
    assert again.read_bytes() == before and answer(again) == 1


def test_a_lock_ends_though_a_process_that_was_forked_meanwhile_lives_on(tmp_path: Path) -> None:
    read, write = os.pipe()
    with toolchain.locked(tmp_path / "library.so"):
        child = os.fork()
        if child == 0:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
    handle = os.open(tmp_path / "library.lock", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
        os.close(write)
        os.close(read)
        os.waitpid(child, 0)


def test_functions_of_a_precompiled_header_are_in_its_library_alone(project: Path) -> None:
    header, source = project / "answer.h", project / "answer.cpp"
    header.write_text("inline int one() { return 1; }\n")
    source.write_text('extern "C" int answer() { return one(); }\n')
    flags = ["-O0", toolchain.SEPARATE]
    precompiled = toolchain.precompiled_header(header, flags)
    with pytest.raises(OverlayError, match=r"\bone\("):
        toolchain.build("answer", [source], flags, header=header)
    library = toolchain.build_precompiled("answers", precompiled, [])
    link = toolchain.link_with(library)
    assert answer(toolchain.build("answer", [source], flags, header=header, link=link)) == 1


def test_a_function_of_a_precompiled_header_that_calls_what_is_nowhere_throws(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, source = project / "answer.h", project / "answer.cpp"
    header.write_text("#include <stdexcept>\nint absent(), lost();\ninline int one() { return absent() + lost(); }\n")
    source.write_text(
        "#include <string>\n"
        'extern "C" int answer() { try { return one(); } catch (const std::logic_error& error) {\n'
        '  return std::string(error.what()).find("`_Z6absentv`") == std::string::npos ? 3 : 2; } }\n'
    )
    flags = ["-O0", toolchain.SEPARATE]
    precompiled = toolchain.precompiled_header(header, flags)
    library = toolchain.build_precompiled("throwing", precompiled, ["-lstdc++"])
    with monkeypatch.context() as patched:  # what it lacks is known now: no linker is asked again
        patched.setattr("subprocess.run", None)
        assert toolchain.build_precompiled("throwing", precompiled, ["-lstdc++"]) == library
    link = (*toolchain.link_with(library), "-lstdc++")
    assert answer(toolchain.build("answer", [source], flags, header=header, link=link)) == 2
    source.write_text('extern "C" int answer() { return absent(); }\n')
    with pytest.raises(OverlayError, match="absent"):
        toolchain.build("answer", [source], flags, header=header, link=link)


def test_a_process_builds_once_what_stays_intact(tmp_path: Path) -> None:
    builds = []

    @toolchain.once
    def build(name: str) -> Path:
        builds.append(name)
        return cache.seal(cache.write(tmp_path / name, b"built"))

    assert [build("one"), build("two"), build("one")] == [tmp_path / "one", tmp_path / "two", tmp_path / "one"]
    assert builds == ["one", "two"]
    (tmp_path / "one").write_bytes(b"damaged")
    (tmp_path / "two").unlink()
    assert build("one").read_bytes() == build("two").read_bytes() == b"built"
    assert builds == ["one", "two", "one", "two"]
