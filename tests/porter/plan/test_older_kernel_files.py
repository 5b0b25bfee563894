"""Ports to kernel files of a release before the header of macros that register kernels, beside that header."""

from pathlib import Path

import pytest

from porter.core.checkout import Checkout
from porter.core.layout import KERNELS, OPERATIONS
from porter.metal.kernel_files import create_pair, find_library
from porter.plan.planner import plan_operator
from tests.porter.plan.golden.forks import copy_embedded

INCLUDE = "#include <c10/metal/indexing.h>\n"
USING = "using namespace c10::metal;\n"
ALIAS = "template <typename T, typename F>\nusing result_of = decltype(::metal::declval<F>()(::metal::declval<T>()));\n"


@pytest.fixture
def older(tmp_path: Path) -> Checkout:
    fork = copy_embedded(tmp_path / "fork")
    for name in ("UnaryKernel", "BinaryKernel"):
        file = fork.root / KERNELS / f"{name}.metal"
        text = file.read_text()
        assert INCLUDE in text and USING in text
        file.write_text(text.replace(INCLUDE, "").replace(USING, ALIAS))
    return fork


def test_the_header_is_included_and_names_of_its_namespace_are_qualified(older: Checkout) -> None:
    plan = plan_operator(older, "log1p")
    [functor] = plan.functors
    assert f"+{INCLUDE}" in plan.changes.diff()
    assert "<c10::metal::is_complex_v<T>, T>" in functor.source
    assert functor.source.count("is_scalar_") == functor.source.count("c10::metal::is_scalar_") == 2


def test_the_header_of_another_header_is_included_with_it(older: Checkout) -> None:
    between = older.root / KERNELS / "Shared.h"
    between.write_text(f"#pragma once\n{INCLUDE}")
    file = older.root / KERNELS / "UnaryKernel.metal"
    file.write_text(f"#include <ATen/native/mps/kernels/Shared.h>\n{file.read_text()}")
    assert f"+{INCLUDE}" not in plan_operator(older, "log1p").changes.diff()


def test_a_new_kernel_file_has_namespaces_of_the_others_and_no_alias(older: Checkout) -> None:
    (_, metal), _ = create_pair(older, "TernaryKernel")
    assert metal == f"{INCLUDE}#include <metal_stdlib>\nusing namespace metal;\n"


def test_a_library_in_namespace_mps_is_named_from_outside_of_it(older: Checkout) -> None:
    host = older.root / OPERATIONS / "BinaryKernel.mm"
    library = find_library(older, f"{OPERATIONS}/BinaryKernel.mm")
    for after, launch in (("", "mps::lib."), ("using namespace mps;\n", "lib.")):
        inside = host.read_text().replace(library, f"namespace mps {{\n{library}}} // namespace mps\n{after}")
        fork = older.layer({f"{OPERATIONS}/BinaryKernel.mm": inside})
        assert f'+  {launch}exec_binary_kernel(iter, "atan2");' in plan_operator(fork, "atan2").changes.diff()
