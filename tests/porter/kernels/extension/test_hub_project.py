"""kernel-builder projects without Nix: what build.toml says, and the setup.py that stands for it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from porter.core.errors import PorterError
from porter.kernels.extension.hub_project import HubProject, read_project, write_loader, write_setup

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python reads no TOML before")
BUILD = """\
[general]
name = "two-ops"
version = 2
backends = ["metal", "cuda"]
[torch]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]
[kernel.one]
backend = "metal"
depends = ["torch"]
include = ["metal"]
src = ["metal/one.mm", "metal/one.metal", "metal/two.metal", "metal/both.h"]
[kernel.gpu]
backend = "cuda"
depends = ["torch", "cutlass"]
src = ["gpu/one.cu"]
"""
FILES = {
    "build.toml": BUILD,
    "torch-ext/two_ops/__init__.py": "from ._ops import ops\n",
    "metal/one.metal": '#include <metal_stdlib>\n#include "both.h"\n#include "deep/both.h"\nkernel void one() {}\n',
    "metal/two.metal": '#include "both.h"\n#include "not_here.h"\nkernel void two() {}\n',
    "metal/both.h": "#pragma once\nint both();\n",
    "metal/deep/both.h": '#pragma once\n#include "both.h"\n#include "../both.h"\nint deep();\n',
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_it_says_of_metal_is_read(tmp_path: Path) -> None:
    assert read_project(write(tmp_path, FILES)) == HubProject(
        "two_ops", "2", ("torch-ext/torch_binding.cpp", "metal/one.mm"), ("metal/one.metal", "metal/two.metal"),
        ("metal",), (),
    )  # fmt: skip


def test_a_setup_script_stands_for_it(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILES, "torch-ext/registration.h": "// its own\n"})
    write_setup(read_project(root), root)
    setup = (root / "setup.py").read_text()
    ast.parse(setup)
    assert '"two_ops._two_ops_ops"' in setup and "two_ops_library.mm" in setup
    assert "torch.ops._two_ops_ops" in (root / "torch-ext/two_ops/_ops.py").read_text()
    assert (root / "torch-ext/registration.h").read_text() == "// its own\n"


def test_its_tests_load_it_and_nothing_that_was_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two_ops.py").write_text("told = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    exec(write_loader(read_project(write(tmp_path / "project", FILES))), names)
    assert names["get_kernel"]("somebody/two-ops", version=1).told == 1
    with pytest.raises(ModuleNotFoundError, match="is not the project"):
        names["get_kernel"]("somebody/relu")
    del sys.modules["two_ops"]


def test_headers_of_metal_sources_are_put_in_once(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    write_setup(read_project(root), root)
    first, second = (root / "torch-ext/two_ops_library.mm").read_text().split("porter_text(")[1:]
    assert [first.count(text) for text in ("int both();", "int deep();", "pragma once", "<metal_stdlib>")] == [
        1,
        1,
        0,
        1,
    ]
    assert second.count("int both();") == 1 and '#include "not_here.h"' in second


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('name = "two-ops"', "", "names no package"),
        ('"metal"\ndepends', '"rocm"\ndepends', "no Metal kernel"),
        ('depends = ["torch"]', 'depends = ["torch", "metal-cpp"]', "depend on metal-cpp"),
        ("two-ops", "others", "there is no package torch-ext/others"),
        ("[torch]", "[torch", "this is no TOML"),
    ],
)
def test_what_cannot_be_built_is_refused(tmp_path: Path, old: str, new: str, what: str) -> None:
    write(tmp_path, {**FILES, "build.toml": BUILD.replace(old, new)})
    with pytest.raises(PorterError, match=what) as refused:
        read_project(tmp_path)
    assert refused.value.code == "PTR259"


def test_a_header_that_includes_itself_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path, {**FILES, "metal/both.h": '#include "both.h"\n'})
    with pytest.raises(PorterError, match="includes itself"):
        write_setup(read_project(root), root)
