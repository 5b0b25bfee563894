"""Helpers of host files that ports share, where an earlier port put them."""

from pathlib import Path

import pytest

from porter.core.checkout import Checkout
from porter.core.layout import KERNELS, OPERATIONS
from porter.metal.codegen.host_code import Launch, call_helper
from porter.metal.codegen.host_values import NON_EMPTY
from porter.metal.codegen.launch import REDUCE_UTILS
from porter.metal.codegen.slice_launch import write_helper
from porter.plan.plan import Draft
from porter.plan.recorded.files import edit_host_file, find_kernel_file
from tests.porter.plan.recorded import fork

FILE, HELPER = f"{OPERATIONS}/Rows.mm", write_helper(threadgroup_reductions=True)
SHARES = Launch((call_helper("threads", "share_rows", "1", "2"),))
LIBRARY = "static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();\n"
USE = """
static void use() {
  lib.getPipelineStateForFunc("use");
  share_rows(1, 2);
}
"""


@pytest.mark.parametrize("between", ["", "\nstatic int count = 0;\n"])
@pytest.mark.parametrize("is_early", [False, True])
def test_a_helper_that_stands_after_its_first_use_moves_up(tmp_path: Path, between: str, is_early: bool) -> None:
    checkout = fork.copy_fork(tmp_path)
    library = (LIBRARY, "") if is_early else ("", LIBRARY)
    text = f"namespace at::native {{\n{library[0]}{USE}\n{library[1]}{between}{HELPER}\nstatic int last;\n}}\n"
    (checkout.root / FILE).write_text(text)
    draft = Draft(Checkout(checkout.root, "test"))
    made = draft.apply(edit_host_file(draft.fork, FILE, f"{KERNELS}/Rows.metal", SHARES)).fork.read(FILE)
    assert made.count("RowThreads share_rows(") == made.count("auto& lib") == 1
    assert made.index("auto& lib") < made.index("RowThreads share_rows(") < made.index("static void use")
    assert made.count("static int last;") == 1


def test_a_helper_stands_behind_all_libraries_that_a_condition_chooses(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    libraries = (
        f"#ifndef PYTORCH_JIT_COMPILE_SHADERS\n{LIBRARY}static auto& other_lib = mps::MetalShaderLibrary::getBundledLibrary();\n"
        "#else\nnamespace rows {\n#include <ATen/native/mps/Rows_metallib.h>\n}\nstatic auto& lib = rows::lib;\n#endif\n"
    )
    (checkout.root / FILE).write_text(f"namespace at::native {{\n{libraries}{USE}}}\n")
    draft = Draft(Checkout(checkout.root, "test"))
    written = draft.apply(edit_host_file(draft.fork, FILE, f"{KERNELS}/Rows.metal", SHARES)).fork.read(FILE)
    assert libraries in written and written.index("#endif") < written.index("struct RowThreads")


def test_a_library_of_another_kernel_file_is_not_that_of_the_file(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    guarded = f"#ifndef PYTORCH_JIT_COMPILE_SHADERS\n{LIBRARY}#else\n#include <ATen/native/mps/BinaryKernel_metallib.h>\n#endif\n"
    scope = f"namespace binary_kernel_metal {{\n{guarded}}} // namespace binary_kernel_metal\n"
    (checkout.root / FILE).write_text(f"namespace at::native {{\n\n{scope}\n{LIBRARY}{USE}}}\n")
    draft = Draft(Checkout(checkout.root, "test"))
    written = draft.apply(edit_host_file(draft.fork, FILE, f"{KERNELS}/Rows.metal", SHARES)).fork.read(FILE)
    assert scope in written and written.index("} // namespace binary") < written.index("struct RowThreads")
    assert find_kernel_file(draft.fork, FILE) == f"{KERNELS}/Rows.metal"


def test_a_helper_before_its_first_use_stays(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    (checkout.root / FILE).write_text(f"namespace at::native {{\n{LIBRARY}{HELPER}{USE}}}\n")
    draft = Draft(Checkout(checkout.root, "test"))
    assert not list(edit_host_file(draft.fork, FILE, f"{KERNELS}/Rows.metal", SHARES))


@pytest.mark.parametrize("last", [REDUCE_UTILS, NON_EMPTY])
@pytest.mark.parametrize("other", [None, "ATen/native/ScatterGatherChecks.h", "ATen/native/Resize.h"])
def test_ports_of_a_file_include_no_header_twice_that_cannot_be(tmp_path: Path, last: str, other: str | None) -> None:
    checkout = fork.copy_fork(tmp_path)
    (checkout.root / FILE).write_text(
        f"#include <ATen/core/Tensor.h>\n{f'#include <{other}>' if other else ''}\nnamespace at::native {{\n{LIBRARY}}}\n"
    )
    draft = Draft(Checkout(checkout.root, "test"))
    for header in (NON_EMPTY if last == REDUCE_UTILS else REDUCE_UTILS, last):
        draft = draft.apply(
            edit_host_file(draft.fork, FILE, f"{KERNELS}/Rows.metal", Launch(headers=frozenset((header,))))
        )
    written = draft.fork.read(FILE)
    assert f"#include <{REDUCE_UTILS}>\n" in written and NON_EMPTY not in written
    assert written.count("#include") == 2 + (other is not None)
