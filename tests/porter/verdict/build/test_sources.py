"""Which host files an operator needs, told from their text."""

from __future__ import annotations

from pathlib import Path

from porter.core.layout import MPS, OPERATIONS
from porter.verdict.build.sources import add_called_files
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
