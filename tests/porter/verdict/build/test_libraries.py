from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from aten_overlay import cache as overlay_cache
from aten_overlay.metal.compiler import find_clang
from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build import libraries as build
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import Kernel, Registration
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.result import VerifyTarget

# torchgen's template of a registration includes this row's header.
OF_THE_TEMPLATE = """
- func: as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)
  dispatch:
    MPS: as_strided_tensorimpl_mps
"""
NAME = f"{OPERATIONS}/Twice.mm"


@pytest.fixture
def recipe() -> Recipe:
    return Recipe(Path(find_clang()), ("-fPIC", "-O1"), (), "test", {})


def source(root: Path, text: str) -> Path:
    path = root / "tree" / NAME.replace(".mm", ".cpp")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def roots(path: Path) -> dict[str, Path]:
    return {"include": path / "include", "tree": path / "tree"}


def test_an_object_serves_every_tree_with_the_same_headers(tmp_path: Path, recipe: Recipe) -> None:
    made = []
    for tree, value in (("one", 1), ("two", 1), ("three", 2)):
        path = source(tmp_path / tree, '#include "value.h"\nextern "C" int value() { return VALUE; }\n')
        (tmp_path / tree / "tree" / "value.h").write_text(f"#define VALUE {value}\n")
        found = replace(recipe, flags=(*recipe.flags, "-I", str(tmp_path / tree / "tree")))
        made.append(build._object(path, NAME, roots(tmp_path / tree), found, tmp_path))
    assert made[1] == (made[0][0], False)
    assert made[2][1] and made[2][0] != made[0][0]
    assert build._object(path, NAME, roots(tmp_path / "one"), found, tmp_path) == (made[0][0], False)


def test_an_object_is_compiled_once_and_again_when_its_text_changes(tmp_path: Path, recipe: Recipe) -> None:
    path = source(tmp_path, 'extern "C" int twice(int x) { return x + x; }\n')
    first, fresh = build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
    assert fresh
    assert build._object(path, NAME, roots(tmp_path), recipe, tmp_path) == (first, False)
    assert build._object(path, NAME, roots(tmp_path), replace(recipe, digest="other headers"), tmp_path)[1]
    path.write_text('extern "C" int twice(int x) { return 2 * x; }\n')
    second, fresh = build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
    assert fresh and second != first
    library = build._library([second], recipe, tmp_path)
    assert ctypes.CDLL(str(library)).twice(21) == 42


def test_sources_outside_the_tree_that_include_the_same_make_libraries_of_their_own(
    tmp_path: Path, recipe: Recipe
) -> None:
    values = []
    for value in (1, 2):  # as registrations are, which list the rows that are served
        path = tmp_path / str(value) / "generated.cpp"
        path.parent.mkdir()
        path.write_text(f'extern "C" int value() {{ return {value}; }}\n')
        made, _ = build._object(path, path.name, roots(tmp_path), recipe, tmp_path)
        values.append(ctypes.CDLL(str(build._library([made], recipe, tmp_path))).value())
    assert values == [1, 2]


def test_an_error_points_to_the_fork_and_leaves_no_object(tmp_path: Path, recipe: Recipe) -> None:
    path = source(tmp_path, "int x = 1;\nint y = z;\nint v = w;\n")
    with pytest.raises(PorterError) as refused:
        build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
    assert refused.value.code == "PTR166"
    assert refused.value.place == Place(NAME.replace(".mm", ".cpp"), 2)
    first, second, log = refused.value.what.splitlines()
    assert first.endswith("undeclared identifier 'z' (and 1 more error)")
    assert second == f"{NAME.replace('.mm', '.cpp')}:3: use of undeclared identifier 'w'"
    assert "int v = w;" in Path(log.removeprefix("the whole log: ")).read_text()
    left = {p.suffix for p in (tmp_path / "objects").rglob("*") if p.is_file()}
    assert left == {".lock", ".failed", ".json"}


def test_all_errors_are_counted_and_three_are_shown(tmp_path: Path, recipe: Recipe) -> None:
    path = source(tmp_path, "".join(f"int x{n} = y{n};\n" for n in range(40)))
    with pytest.raises(PorterError) as refused:
        build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
    assert "'y0' (and 39 more errors)" in refused.value.what
    assert [n for n in range(40) if f"'y{n}'" in refused.value.what] == [0, 1, 2]


def test_files_that_fail_too_are_named(tmp_path: Path, recipe: Recipe) -> None:
    files = [f"{OPERATIONS}/{name}.cpp" for name in ("Right", "One", "Two")]
    for path in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("int x = 1;\n" if "Right" in path else "int x = 1;\nint y = z;\n")
    tree, nothing = Tree(tmp_path, tmp_path, {}), Registration((), tmp_path / "include", (), ())
    made, errors = build._objects(tree, files, nothing, recipe, tmp_path)
    assert [*made] == files[:1] and [*errors] == files[1:]
    joined = build.join_errors([*errors.values()])
    assert joined.place == Place(files[1], 2)
    assert joined.what.endswith(f"identifier 'z'\nother files fail too: {files[2]}:2")


def test_what_does_not_compile_is_compiled_again_only_when_what_it_read_changes(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source(tmp_path, '#include "value.h"\nextern "C" int value() { return VALUE; }\n')
    header = path.with_name("value.h")
    header.write_text("#define VALUE missing\n")
    runs: list[object] = []
    run = subprocess.run

    def count(command: Sequence[str], **given: Any) -> subprocess.CompletedProcess[str]:
        runs.append(command)
        return run(command, **given)

    monkeypatch.setattr(subprocess, "run", count)

    def fail() -> str:
        with pytest.raises(PorterError) as caught:
            build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
        return caught.value.what

    said = fail()
    assert "use of undeclared identifier 'missing'" in said
    assert (fail(), len(runs)) == (said, 1)
    header.write_text("#define VALUE 1\n")
    assert build._object(path, NAME, roots(tmp_path), recipe, tmp_path)[1]
    header.write_text("#define VALUE missing\n")
    assert (fail(), len(runs)) == (said, 2)


def test_a_compiler_that_finds_no_error_in_what_it_reads_runs_again(tmp_path: Path, recipe: Recipe) -> None:
    path = source(tmp_path, '#include "later.h"\nextern "C" int value() { return VALUE; }\n')
    with pytest.raises(PorterError, match=r"'later\.h' file not found"):
        build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
    refused = replace(recipe, flags=(*recipe.flags, "-fno-such-flag"))
    with pytest.raises(PorterError, match="no-such-flag"):
        build._object(path, NAME, roots(tmp_path), refused, tmp_path)
    path.with_name("later.h").write_text("#define VALUE 1\n")
    assert build._object(path, NAME, roots(tmp_path), recipe, tmp_path)[1]


def test_concurrent_requests_compile_once(tmp_path: Path, recipe: Recipe) -> None:
    path = source(tmp_path, "int once() { return 1; }\n")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(build._object, path, NAME, roots(tmp_path), recipe, tmp_path) for _ in range(4)]
    made = [each.result() for each in asked]
    assert len({found for found, _ in made}) == 1
    assert sorted(fresh for _, fresh in made) == [False, False, False, True]


def test_a_missing_kernel_is_reported_at_its_row(tmp_path: Path, recipe: Recipe) -> None:
    path = source(tmp_path, "namespace at { void gone_out_mps(int); }\nvoid f() { at::gone_out_mps(1); }\n")
    made, _ = build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
    row = Kernel("gone.out", "gone_out_mps", Place("native_functions.yaml", 7))
    for _ in range(2):
        with pytest.raises(build.Undefined) as missing:
            build._library([made], recipe, tmp_path)
    told = build._link_error(missing.value, [row])
    assert (told.code, told.place) == ("PTR167", row.place)
    assert "at::gone_out_mps(int)" in told.what
    assert list((tmp_path / "libraries").glob("*.so")) == []


def test_every_header_is_written_before_the_first_file_is_compiled(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: set[str] = set()

    def compiling(_tree: object, _files: object, found: Registration, *_: object) -> tuple[dict[str, object], object]:
        written.update(path.name for path in (found.include / "ATen" / "ops").iterdir())
        return {}, {}

    monkeypatch.setattr(build, "_objects", compiling)
    monkeypatch.setattr(build, "_library", lambda *_: tmp_path / "library.so")
    text = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text() + OF_THE_TEMPLATE
    tree = materialise(EMBEDDED_FORK, {NATIVE_FUNCTIONS: text}, tmp_path)
    build.build(tree, [VerifyTarget("copysign", stubs=("copysign_stub",))], recipe, tmp_path)
    assert {"copysign_native.h", "as_strided_native.h"} <= written


def test_files_compile_side_by_side_with_the_headers_of_all(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, both = ("one.mm", "two.mm", "odd.mm", "wrong.mm"), Barrier(2)
    steps: list[str] = []

    def write_headers(_tree: object, paths: Sequence[str], _found: object) -> None:
        if "odd.mm" in paths:
            raise PorterError("PTR160", "it includes the header of an unknown operator")
        steps.append(f"headers of {', '.join(paths)}")

    def compile_object(_path: object, name: str, *_: object) -> tuple[Path, bool]:
        steps.append("compilation")
        if name == "wrong.mm":
            raise PorterError("PTR166", "it does not compile")
        both.wait(20)
        return Path(name).with_suffix(".o"), True

    monkeypatch.setattr(build, "_write_headers", write_headers)
    monkeypatch.setattr(build, "_object", compile_object)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    nothing = Registration((), tmp_path, (), ())
    made, broken = build._compile_each(Tree(tmp_path, tmp_path, {}), files, nothing, recipe, tmp_path)
    assert [*made] == ["one.mm", "two.mm"] and [*broken] == ["odd.mm", "wrong.mm"]
    assert steps == [*(f"headers of {path}" for path in ("one.mm", "two.mm", "wrong.mm", "")), *["compilation"] * 3]


def test_a_full_disk_is_no_fault_of_a_file(tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_object(*_: object) -> None:
        raise PorterError("PTR182", "the system refused")

    monkeypatch.setattr(build, "_object", compile_object)
    with pytest.raises(PorterError, match="PTR182"):
        build._objects(Tree(tmp_path, tmp_path, {}), ["one.mm"], Registration((), tmp_path, (), ()), recipe, tmp_path)


@pytest.mark.parametrize("kind", ["objects/*/*.o", "objects/*/*.json", "libraries/*.so"])
@pytest.mark.parametrize("damage", [b"", b"{"])
def test_what_was_damaged_is_built_again(tmp_path: Path, recipe: Recipe, kind: str, damage: bytes) -> None:
    path = source(tmp_path, 'extern "C" int twice(int x) { return x + x; }\n')

    def made() -> Path:
        found, _ = build._object(path, NAME, roots(tmp_path), recipe, tmp_path)
        return build._library([found], recipe, tmp_path)

    before = made().read_bytes()
    [found] = tmp_path.glob(kind)
    found.write_bytes(damage)
    overlay_cache._checked.clear()  # as another process sees it
    assert made().read_bytes() == before


MISSING = """
namespace at { int gone_out_mps(int); extern int gone; }
extern "C" int works() { return 42; }
extern "C" int breaks() { try { return at::gone_out_mps(1); } catch (const std::exception& e) { return e.what()[0]; } }
"""


def link(tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, text: str, missing_ok: bool) -> Path:
    made, _ = build._object(source(tmp_path, text), NAME, roots(tmp_path), recipe, tmp_path)
    monkeypatch.setattr(build, "_objects", lambda *_: ({NAME: (made, True)}, {}))
    tree = materialise(EMBEDDED_FORK, {}, tmp_path)
    return build._link_library(
        tree, (), Registration((), tmp_path / "headers", (), ()), recipe, tmp_path, missing_ok
    ).library


def test_old_code_runs_up_to_a_function_that_nothing_defines(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "#include <exception>\n" + MISSING
    linked = replace(recipe, link=("-lstdc++",))
    with pytest.raises(PorterError, match="nothing defines at::gone_out_mps\\(int\\)"):
        link(tmp_path, linked, monkeypatch, text, missing_ok=False)
    library = ctypes.CDLL(str(link(tmp_path, linked, monkeypatch, text, missing_ok=True)))
    assert library.works() == 42
    assert library.breaks() == ord("P")  # of PTR167


def test_a_variable_that_nothing_defines_is_an_error(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = 'namespace at { extern int gone; }\nextern "C" int reads() { return at::gone; }\n'
    with pytest.raises(PorterError, match="nothing defines at::gone"):
        link(tmp_path, recipe, monkeypatch, text, missing_ok=True)
