"""Structured kernels of host files that no row names: the rest of such a file compiles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from expecttest import assert_expected_inline

from aten_overlay.metal.compiler import find_clang
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build import libraries
from porter.verdict.build.missing import find_dead_kernels, list_unnamed, write_declarations
from porter.verdict.build.objects import Recipe
from porter.verdict.build.registration import MetaClass, Registration, find_meta_class
from porter.verdict.build.tree import Tree, materialise

ROWS = """\
- func: bend(Tensor self, Scalar by=1) -> Tensor
  structured_delegate: bend.out

- func: bend.out(Tensor self, Scalar by=1, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU, CUDA, MPS: bend_out

- func: fold.dim_IntList(Tensor self, int[1] dim) -> Tensor
  structured_delegate: fold.IntList_out

- func: fold.IntList_out(Tensor self, int[1] dim, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: fold_out
    MPS: fold_out_mps

- func: plain(Tensor self) -> Tensor
  dispatch:
    CPU: plain_cpu
"""
HOST = f"{OPERATIONS}/Bend.cpp"
TEXT = """\
#define TORCH_IMPL_FUNC(name) void structured_##name::impl
namespace at::native {
struct structured_fold_out_mps {
  void impl(int size);
};

TORCH_IMPL_FUNC(bend_out_mps)
(const Tensor& self, const Scalar& by, const Tensor& out) {}

TORCH_IMPL_FUNC(fold_out_mps)(int size) {}
} // namespace at::native
"""


def make_tree(folder: Path, text: str = TEXT, rows: str = ROWS, edited: Mapping[str, str] | None = None) -> Tree:
    for path, content in {NATIVE_FUNCTIONS: rows, HOST: text}.items():
        (folder / "fork" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fork" / path).write_text(content)
    return materialise(folder / "fork", edited or {}, folder / "cache")


def test_the_class_of_a_kernel_is_of_the_row_whose_other_keys_have_it_without_mps() -> None:
    assert find_meta_class(ROWS, "bend_out_mps") == MetaClass("bend", "structured_bend")
    assert find_meta_class(ROWS, "fold_mps_out") == MetaClass("fold", "structured_fold_dim_IntList")
    assert find_meta_class(ROWS, "plain_cpu_mps") is None  # not structured
    assert find_meta_class(ROWS, "unheard_of_out_mps") is None


def test_a_kernel_without_a_row_is_declared_as_it_is_written(tmp_path: Path) -> None:
    assert_expected_inline(
        write_declarations(list_unnamed(make_tree(tmp_path), HOST)),
        """\
#pragma once
#include <ATen/ops/bend_meta.h>
namespace at::native {
struct structured_bend_out_mps : public at::meta::structured_bend {
  void impl(const Tensor& self, const Scalar& by, const Tensor& out);
};
} // namespace at::native
""",
    )


def test_a_file_with_such_a_kernel_compiles_and_is_a_finding(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    meta = tmp_path / "include/ATen/ops/bend_meta.h"
    meta.parent.mkdir(parents=True)
    types = "struct Tensor {};\nstruct Scalar {};\n"
    meta.write_text(f"#pragma once\nnamespace at {{\n{types}namespace meta {{ struct structured_bend {{}}; }}\n}}\n")
    recipe = Recipe(Path(find_clang()), ("-fPIC",), (), "test", {})
    nothing = Registration((), tmp_path / "include", (), ())
    linked = libraries._link_library(tree, (HOST,), nothing, recipe, tmp_path / "cache", required=(HOST,))
    assert linked.files == (HOST,) and not linked.broken
    assert [(each.what, each.place) for each in find_dead_kernels(tree, linked.files)] == [
        ("no row dispatches MPS to bend_out_mps", f"{HOST}:7")
    ]


def test_a_file_whose_kernels_all_have_rows_needs_no_header(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, TEXT.replace("bend_out_mps", "fold_out_mps"))
    assert list_unnamed(tree, HOST) == () and find_dead_kernels(tree, [HOST]) == ()


def test_a_kernel_whose_row_a_plan_moves_is_not_declared(tmp_path: Path) -> None:
    """The plan has to remove it."""
    before = ROWS.replace("    CPU, CUDA, MPS: bend_out\n", "    CPU, CUDA: bend_out\n    MPS: bend_out_mps\n")
    assert list_unnamed(make_tree(tmp_path, rows=before, edited={NATIVE_FUNCTIONS: ROWS}), HOST) == ()


def test_a_kernel_of_the_cpu_alone_has_a_row_too(tmp_path: Path) -> None:
    text = "TORCH_IMPL_FUNC(fold_out)(const Tensor& self, IntArrayRef dim, const Tensor& out) {}\n"
    assert not list_unnamed(make_tree(tmp_path, text), HOST)
