"""Which host files an operator needs, told from their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.layout import MPS, OPERATIONS
from porter.languages.source import Source
from porter.verdict.build import sources
from porter.verdict.build.sources import add_called_files
from porter.verdict.build.tree import Tree

FILES = {
    f"{MPS}/OperationUtils.h": "void gather(const Tensor& t);\nTensor scatter(const Tensor& t);\n",
    f"{OPERATIONS}/View.mm": "void gather(const Tensor& t) {\n  scatter(t);\n}\n",
    f"{OPERATIONS}/Indexing.mm": "// scatter(t) {\nTensor scatter(\n    const Tensor& t) {\n  own(t);\n}\n",
    f"{OPERATIONS}/UnaryOps.mm": "static void own(int x) {\n  if (scatter(x)) {\n  }\n}\n",
    f"{OPERATIONS}/Alone.mm": "static void own(int x) {}\nvoid f() { own(1); }\n",
}


def write_tree(folder: Path) -> Tree:
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(FILES[name])
    return Tree(folder, folder, {})


def test_files_behind_header_declarations_are_built_transitively(tmp_path: Path) -> None:
    tree = write_tree(tmp_path)
    found = {name: [path.rsplit("/", 1)[1] for path in add_called_files(tree, [f"{OPERATIONS}/{name}"])] for name in
             ("View.mm", "UnaryOps.mm", "Alone.mm")}  # fmt: skip
    assert found == {
        "View.mm": ["View.mm", "Indexing.mm"],
        "UnaryOps.mm": ["UnaryOps.mm", "Indexing.mm"],
        "Alone.mm": ["Alone.mm"],
    }


def test_what_files_define_is_kept_by_their_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))
    tree, called = write_tree(tmp_path / "tree"), f"{OPERATIONS}/UnaryOps.mm"
    files = add_called_files(tree, [called])
    read: list[str] = []
    parse = sources._read

    def note(path: str, text: str) -> Source:
        read.append(path)
        return parse(path, text)

    monkeypatch.setattr(sources, "_read", note)
    assert add_called_files(tree, [called]) == files and not read
    moved = {f"{OPERATIONS}/Indexing.mm": "", f"{OPERATIONS}/Moved.mm": FILES[f"{OPERATIONS}/Indexing.mm"]}
    (tree.root / f"{OPERATIONS}/Moved.mm").touch()
    assert add_called_files(Tree(tree.root, tree.root, moved), [called]) == (called, f"{OPERATIONS}/Moved.mm")
    assert read
