"""The code of a row's kernel, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.aten.implementations import Language, find_called_stubs, find_implementation, find_language
from porter.core.checkout import Checkout
from porter.core.layout import OPERATIONS
from tests.porter.plan.recorded.fork import copy_fork

HOST = """namespace at::native {
static void middle_mps(const Tensor& self, const std::string& name) {
  helper(self, name);
}
Tensor& middle_mps(const Tensor& self, Tensor& out) {
  middle_mps(self, "middle");
  return out;
}
} // namespace at::native
"""


OWN = """namespace at::native {{
TORCH_IMPL_FUNC(own_out_mps)(const Tensor& self, const Tensor& out) {{
  {call}
}}
REGISTER_DISPATCH(elsewhere_stub, &elsewhere_kernel_mps)
}} // namespace at::native
"""


@pytest.mark.parametrize(
    ("call", "language", "stubs"),
    [
        ("exp_stub(device_type(), *this);", Language.METAL, ("exp_stub",)),
        ("exp_stub(kMPS, iter);", Language.METAL, ("exp_stub",)),
        ("unknown_stub(device_type(), *this);", Language.OTHER, ()),
        ("ceil_stub(device_type(), *this);", Language.OTHER, ()),
        ("at::exp_outf(self, out);", Language.OTHER, ()),
    ],
)
def test_a_function_that_leaves_all_to_a_stub_is_metal_if_its_kernel_is(
    call: str, language: Language, stubs: tuple[str, ...], tmp_path: Path
) -> None:
    copy = copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Own.mm").write_text(OWN.format(call=call))
    checkout = Checkout(copy.root, "named")
    found = find_implementation(checkout, "own_out_mps")
    assert (find_language(checkout, found), find_called_stubs(checkout, found)) == (language, stubs)


GRAPH, KERNEL = "MPSGraph* mpsGraph = make();", "lib.exec_unary_kernel(iter, name);"


@pytest.mark.parametrize(
    ("code", "language"),
    [
        (f"#if 1\n{KERNEL}\n#else\n{GRAPH}\n#endif", Language.METAL),
        (f"#if 0 // the old way\n{GRAPH}\n#else\n{KERNEL}\n#endif", Language.METAL),
        (f"#if 0\n{KERNEL}\n#endif\n{GRAPH}", Language.MPSGRAPH),
        (f"#if 0\n#ifdef OLD\n{KERNEL}\n#endif\n#elif NEW\n{GRAPH}\n#else\n{GRAPH}\n#endif", Language.MPSGRAPH),
        (f"#if 1\n{KERNEL}\n#elif NEW\n{GRAPH}\n#else\n{GRAPH}\n#endif", Language.METAL),
        (f"#if 0\n{GRAPH}\n#elif NEW\n{KERNEL}\n#else\n{GRAPH}\n#endif", Language.MIXED),
        (f"#if NEW\n{KERNEL}\n#elif 1\n{KERNEL}\n#else\n{GRAPH}\n#endif", Language.METAL),
        (f"#if NEW\n{KERNEL}\n# elif ( 0 )\n{GRAPH}\n#endif", Language.METAL),
        (f"#if (0)\n{GRAPH}\n#else\n{KERNEL}\n#endif", Language.METAL),
        (f"#if((1)) // the new way\n{KERNEL}\n#else\n{GRAPH}\n#endif", Language.METAL),
        (
            f"#if NEW\n#if (1)\n{KERNEL}\n#else\n{GRAPH}\n#endif\n#elif (1)\n{KERNEL}\n#else\n{GRAPH}\n#endif",
            Language.METAL,
        ),
        (f"#if (0)\n{GRAPH}\n#if 1\n{GRAPH}\n#endif\n#elif 1\n#if NEW\n{KERNEL}\n#endif\n#endif", Language.METAL),
        (f"#if NEW\n{KERNEL}\n#elif 0\n{KERNEL}\n#else\n{GRAPH}\n#endif", Language.MIXED),
        (f"#if NEW > 1\n{KERNEL}\n#elif (0) || OLD == 1\n{GRAPH}\n#endif", Language.MIXED),
        (f"#ifdef OLD\n{KERNEL}\n#else\n{GRAPH}\n#endif", Language.MIXED),
        (f"#if HAS_GRAPHS\n{GRAPH}\n#else\n{KERNEL}\n#endif", Language.MIXED),
    ],
)
def test_what_the_preprocessor_always_leaves_out_is_no_language_of_a_function(
    code: str, language: Language, tmp_path: Path
) -> None:
    copy = copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Own.mm").write_text(OWN.format(call=f"\n{code}\n"))
    checkout = Checkout(copy.root, "named")
    assert find_language(checkout, find_implementation(checkout, "own_out_mps")) is language


def test_a_static_helper_of_the_same_name_is_not_the_row_s(tmp_path: Path) -> None:
    copy = copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Middle.mm").write_text(HOST)
    found = find_implementation(Checkout(copy.root, "named"), "middle_mps").function
    assert found is not None and (found.static, found.params) == (False, "const Tensor& self, Tensor& out")
