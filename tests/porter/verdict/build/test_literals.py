"""The numbers at which a kernel may branch."""

from __future__ import annotations

from pathlib import Path

from porter.core.layout import CPU_KERNELS, KERNELS, METAL_HEADERS
from porter.verdict.build.kernel_files import literals
from porter.verdict.build.tree import Tree
from porter.verdict.result import VerifyTarget

TARGET = VerifyTarget("a", kernels=("a",), stubs=("a_stub",))
FILES = {
    f"{KERNELS}/A.metal": (
        "struct a_functor {\n  // 77\n  x < 0.5f ? 2 : float2(1.5, -3e-4f) + 0 * T4 + 1.f + 0x1p3f + bend(x);\n};\n"
        "struct b_functor {\n  9;\n};\n"
    ),
    f"{METAL_HEADERS}/math.h": (
        "inline float bend(float x) {\n  if (x >= 4.5f) {\n    return 3.25f * x;\n  }\n  return deeper(x);\n}\n"
        "inline float deeper(float x) {\n  const float knee = 6.5f;\n  return clamp(x, knee, 8.5f) * 0.125f;\n}\n"
        "inline float other(float x) {\n  return x > 11 ? 1 : x;\n}\n"
    ),
    f"{CPU_KERNELS}/AKernel.cpp": (
        "static void a_kernel(TensorIteratorBase& iter) {\n"
        "  cpu_kernel(iter, [](scalar_t x) { return x > scalar_t(20) ? x * 13 : std::log(x); });\n}\n"
        "REGISTER_DISPATCH(a_stub, &a_kernel)\n"
    ),
}


def test_those_compared_with_come_first_and_are_the_only_ones_of_what_is_called(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    tree = Tree(tmp_path, tmp_path, {})
    assert literals(tree, TARGET) == (0.5, 20.0, 4.5, 6.5, 8.5, 2.0, 1.5, 3e-4)


def test_an_operator_without_a_cpu_kernel_has_its_functors_numbers(tmp_path: Path) -> None:
    (tmp_path / KERNELS).mkdir(parents=True)
    (tmp_path / KERNELS / "A.metal").write_text(FILES[f"{KERNELS}/A.metal"])
    assert literals(Tree(tmp_path, tmp_path, {}), TARGET) == (0.5, 2.0, 1.5, 3e-4)
