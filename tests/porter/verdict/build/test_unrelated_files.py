"""Files of a fork that do not compile: those that nothing needs stop no build, unless a plan touches them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from aten_overlay.metal.compiler import find_clang
from porter.core.errors import Place, PorterError
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.backends.host import find_kernel_faults
from porter.verdict.build import libraries
from porter.verdict.build.kernel_files import defines_kernel, find_faults
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import Registration
from porter.verdict.build.sources import find_mentioning, find_registering
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.result import ForkFinding

RECIPE = Recipe(Path(find_clang()), ("-fPIC",), (), "test", {})
USED, BESIDE, OLD = (f"{OPERATIONS}/{name}.cpp" for name in ("Used", "Beside", "Old"))
GOOD, BROKEN = "int used() {\n  return 1;\n}\n", "int beside() {\n  return unheard_of;\n}\n"


def make_tree(folder: Path, before: Mapping[str, str], edits: Mapping[str, str] | None = None) -> Tree:
    checkout = folder / "fork"
    for path, text in {NATIVE_FUNCTIONS: "", **before}.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    return materialise(checkout, edits or {}, folder / "cache")


def link(tree: Tree, folder: Path, *required: str, missing_ok: bool = False) -> libraries._LinkedLibrary:
    nothing = Registration((), folder / "include", (), ())
    return libraries._link_library(
        tree, (USED, BESIDE), nothing, RECIPE, folder / "cache", missing_ok, required=required
    )


def check(tree: Tree, folder: Path) -> Mapping[str, PorterError]:
    nothing = Registration((), folder / "include", (), ())
    linked = libraries._link_library(tree, (USED,), nothing, RECIPE, folder / "cache")
    return libraries._check_bystanders(tree, linked, nothing, RECIPE, folder / "cache")


def test_what_nothing_needs_is_left_out(tmp_path: Path) -> None:
    linked = link(make_tree(tmp_path, {USED: GOOD, BESIDE: BROKEN}), tmp_path)
    assert linked.files == (USED,) and [*linked.broken] == [BESIDE]
    assert linked.broken[BESIDE].place == Place(BESIDE, 2)


@pytest.mark.parametrize("missing_ok", [False, True])
def test_what_defines_a_function_that_is_called_has_to_compile(tmp_path: Path, missing_ok: bool) -> None:
    calling = "int beside();\nint used() {\n  return beside();\n}\n"
    with pytest.raises(PorterError, match="'unheard_of'"):
        link(make_tree(tmp_path, {USED: calling, BESIDE: BROKEN}), tmp_path, missing_ok=missing_ok)


def test_what_is_required_or_edited_has_to_compile(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match=r"PTR169 .*`unheard_of`"):
        link(make_tree(tmp_path / "required", {USED: GOOD, BESIDE: BROKEN}), tmp_path, BESIDE)
    edited = make_tree(tmp_path / "edited", {USED: GOOD, BESIDE: BROKEN}, {BESIDE: f"{BROKEN}\n"})
    with pytest.raises(PorterError, match=r"PTR169 (?s:.)*\n  The port edits this file\."):
        link(edited, tmp_path)


def test_what_is_required_has_to_compile_though_others_do_without_it(tmp_path: Path) -> None:
    """The files that every operator needs are linked first, and leave out one that an operator registers a stub in."""
    broken = {BESIDE: PorterError("PTR169", "it does not fit the headers", Place(BESIDE, 2))}
    tree, nothing = make_tree(tmp_path, {USED: GOOD, BESIDE: BROKEN}), Registration((), tmp_path / "include", (), ())
    linked = partial(libraries._link_library, tree, (USED, BESIDE), nothing, RECIPE, tmp_path / "cache")
    assert linked(known_broken=broken).files == (USED,)
    with pytest.raises(PorterError, match="PTR169"):
        linked(required=(BESIDE,), known_broken=broken)


def test_a_file_that_a_plan_edits_fails_it_whether_or_not_it_compiled_before(tmp_path: Path) -> None:
    broken_before = make_tree(tmp_path / "one", {USED: GOOD, BESIDE: BROKEN}, {BESIDE: f"{BROKEN}\n"})
    with pytest.raises(PorterError, match=r"PTR169 (?s:.)*\n  The port edits this file\."):
        check(broken_before, tmp_path / "one")
    right_before = make_tree(tmp_path / "two", {USED: GOOD, BESIDE: GOOD.replace("used", "beside")}, {BESIDE: BROKEN})
    with pytest.raises(PorterError, match="PTR426 the port breaks other host code: the host code does not compile"):
        check(right_before, tmp_path / "two")


def test_a_file_that_a_plan_does_not_edit_fails_it_only_if_it_compiled_before(tmp_path: Path) -> None:
    """Both name a function that the plan removes, and only one called it."""
    before = {USED: f"{GOOD}int old() {{\n  return 2;\n}}\n", BESIDE: "// as old is\n" + BROKEN}
    assert [*check(make_tree(tmp_path / "one", before, {USED: GOOD}), tmp_path / "one")] == [BESIDE]
    header = f"{OPERATIONS}/Old.h"
    before |= {header: "int old();\n", OLD: '#include "Old.h"\nint twice() {\n  return 2 * old();\n}\n'}
    tree = make_tree(tmp_path / "two", before, {USED: GOOD, header: "\n"})
    with pytest.raises(PorterError, match=r"PTR426 .*use of undeclared identifier 'old'"):
        check(tree, tmp_path / "two")


def test_what_registers_a_stub_is_told_from_what_names_it(tmp_path: Path) -> None:
    texts = {
        USED: "REGISTER_DISPATCH(exp_stub, &exp_kernel)\n",
        BESIDE: "// exp_stub\nvoid f() {\n  exp_stub(1);\n}\n",
        OLD: "REGISTER_UNARY_TI_DISPATCH(exp);\n",
    }
    assert find_registering(make_tree(tmp_path, texts), ["exp_stub"]) == (OLD, USED)
    assert find_registering(make_tree(tmp_path, texts), []) == ()


def test_files_are_found_by_the_symbols_that_a_linker_misses(tmp_path: Path) -> None:
    texts = {
        USED: "void f() {\n  ceil_out_mps(1);\n}\n",
        BESIDE: "TORCH_IMPL_FUNC(ceil_out_mps)(int self) {\n}\n",
    }
    tree, symbols = make_tree(tmp_path, texts), ["at::native::structured_ceil_out_mps::impl(int)"]
    assert find_mentioning(tree, texts, symbols, defined=False) == (USED, BESIDE)
    assert find_mentioning(tree, texts, symbols, defined=True) == (BESIDE,)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("REGISTER_UNARY_OP(exp, float, float);", "exp"),
        ('instantiate_kernel("exp", float)', "exp"),
        ('template [[host_name("exp_" #T)]] kernel void run<T>(device T*);', "exp"),
        ('template [[host_name("exp_dense_float_half")]] kernel void run<float>(device T*);', "exp"),
        ("kernel void exp(device float* out) {}", "exp"),
    ],
)
def test_a_kernel_is_found_by_the_text_of_its_file(text: str, kernel: str) -> None:
    assert defines_kernel(f"#include <metal_stdlib>\n  {text}\n", ["sin", kernel])
    assert not defines_kernel(text, ["sin"])


@pytest.mark.parametrize(
    "text", ['[[host_name("max_pool_" #T)]] kernel void pool(', "  x = max(x, y);", "REGISTER_UNARY_OP(maximum, float)"]
)
def test_a_kernel_of_another_name_is_another(text: str) -> None:
    assert not defines_kernel(text, ["max"])


def test_kernel_files_are_findings_unless_a_plan_writes_or_breaks_them(tmp_path: Path) -> None:
    path, header, error = f"{KERNELS}/Pool.metal", f"{KERNELS}/Pool.h", PorterError("PTR101", "no type", Place("a", 3))
    before = {path: "int x;\n", header: "\n"}
    for at, (edits, fails_before, code) in enumerate((
        ({}, False, ""), ({USED: GOOD}, False, ""), ({header: "int y;"}, True, ""),
        ({header: "int y;"}, False, "PTR426"), ({path: "int z;"}, True, "PTR101"),
    )):  # fmt: skip
        tree = make_tree(tmp_path / str(at), before, edits)
        broken = {tree.root / path: error}

        def find(tree: Tree = tree, broken: Mapping[Path, PorterError] = broken, answer: bool = fails_before) -> object:
            return list(find_faults(tree, broken, lambda asked: answer and asked == path))

        if code:
            with pytest.raises(PorterError, match=code):
                find()
        else:
            assert find() == [ForkFinding("PTR101 no type", "a:3")]


_NAMESAKES = """#include <metal_stdlib>
namespace there {
template <typename T> kernel void dense(device T* x, uint i [[thread_position_in_grid]]) { x[i] = 2; }
}
template <typename T> kernel void dense(device T* x, device %s* y, uint i [[thread_position_in_grid]]) { x[i] = y[i]; }
template [[host_name("sin_float")]] kernel void ::there::dense<float>(device float*, uint);
template [[host_name("cos_float")]] kernel void dense<float>(device float*, device float*, uint);
"""


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [("T", "T", ""), ("Lost", "Lost", "finding"), ("Lost", "T", ""), ("T", "Lost", "PTR426")],
)
def test_a_namesake_of_a_kernel_under_test_is_a_finding_unless_the_plan_breaks_it(
    before: str, after: str, code: str, tmp_path: Path
) -> None:
    path = f"{KERNELS}/Pool.metal"
    tree = make_tree(tmp_path, {path: _NAMESAKES % before}, {path: f"{_NAMESAKES % after}\n"})
    find = partial(find_kernel_faults, tree, {}, ["sin_"], "default")
    if code == "PTR426":
        with pytest.raises(PorterError, match=r"PTR426 the port breaks a kernel file: .*'Lost'"):
            find()
        return
    findings = find()
    assert [finding.place for finding in findings] == ([f"{path}:5"] if code else [])
    assert all("unknown type name 'Lost'" in finding.what for finding in findings)
