"""What tools/modernize.py refuses, before it copies anything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNEL_LIBRARY, METAL_HEADERS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import modernize


def make_tree(folder: Path, *without: str) -> Path:
    for name in modernize.FOLDERS:
        (folder / name).mkdir(parents=True)
    for path in {KERNEL_LIBRARY, *modernize.DIALECT} - {*without}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    return folder


@pytest.mark.parametrize("missing", [KERNEL_LIBRARY, *modernize.DIALECT])
def test_a_tree_that_is_too_old_is_refused_before_anything_is_copied(missing: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"it lacks {missing}; merge a newer upstream first"):
        modernize.modernize(make_tree(tmp_path / "old", missing), EMBEDDED_FORK, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_without_metal_headers_is_refused_before_anything_is_copied(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"no torch/include of a macOS wheel: it lacks {METAL_HEADERS}"):
        modernize.modernize(make_tree(tmp_path / "old"), tmp_path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
