"""Which host files an operator needs, told from their text."""

from __future__ import annotations

from pathlib import Path

from porter.core.layout import KERNELS, MPS, OPERATIONS
from porter.verdict.build.sources import add_called_files, literals
from porter.verdict.build.tree import Tree

FILES = {
    f"{MPS}/OperationUtils.h": "void gather(const Tensor& t);\nTensor scatter(const Tensor& t);\n",
    f"{OPERATIONS}/View.mm": "void gather(const Tensor& t) {\n  scatter(t);\n}\n",
    f"{OPERATIONS}/Indexing.mm": "// scatter(t) {\nTensor scatter(\n    const Tensor& t) {\n  own(t);\n}\n",
    f"{OPERATIONS}/UnaryOps.mm": "static void own(int x) {\n  if (scatter(x)) {\n  }\n}\n",
    f"{OPERATIONS}/Alone.mm": "static void own(int x) {}\nvoid f() { own(1); }\n",
}


def test_files_behind_header_declarations_are_built_transitively(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FILES[name])
    tree = Tree(tmp_path, tmp_path, {})
    found = {name: [path.rsplit("/", 1)[1] for path in add_called_files(tree, [f"{OPERATIONS}/{name}"])] for name in
             ("View.mm", "UnaryOps.mm", "Alone.mm")}  # fmt: skip
    assert found == {
        "View.mm": ["View.mm", "Indexing.mm"],
        "UnaryOps.mm": ["UnaryOps.mm", "Indexing.mm"],
        "Alone.mm": ["Alone.mm"],
    }


def test_the_numbers_of_a_functor_are_found(tmp_path: Path) -> None:
    functor = "struct a_functor {\n  x < 0.5f ? 2 : float2(1.5, -3e-4f) + 0 * T4 + 1.f + 0x1p3f;\n};\n"
    (tmp_path / KERNELS).mkdir(parents=True)
    (tmp_path / KERNELS / "A.metal").write_text(functor + "struct b_functor {\n  9;\n};\n")
    tree = Tree(tmp_path, tmp_path, {})
    assert literals(tree, ["a"]) == (0.5, 2.0, 1.5, 3e-4)
