"""Headers that lie elsewhere in a project: the folder that a build would name is found, or named by the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.headers import find_include_folder, find_include_folders

SOURCE = """#include <metal_stdlib>
#include "beside.h"
#include <internal/arguments.h>
kernel void k(device float* out [[buffer(0)]]) { out[0] = FIRST + SECOND + THIRD; }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A source whose headers lie beside it, in a folder of headers, and, of those, at the root."""
    files = {
        "own/source/kernels/k.metal": SOURCE,
        "own/source/kernels/beside.h": "#define FIRST 1\n",
        "own/source/include/internal/arguments.h": '#import "own/shared.h"\n#define SECOND 2\n',
        "own/shared.h": "#define THIRD 3\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_folders_of_what_headers_include_too(project: Path) -> None:
    source = project / "own/source/kernels/k.metal"
    assert find_include_folders(source) == (project / "own/source/include", project)
    options = Options(include=(source.parent, *find_include_folders(source)))
    compile_kernels(source, host_names(source, options), options)


def test_without_them_the_error_names_the_first(project: Path) -> None:
    with pytest.raises(OverlayError) as caught:
        compile_kernels(project / "own/source/kernels/k.metal", ["k"])
    assert "'internal/arguments.h' file not found" in caught.value.what
    assert caught.value.hint.endswith(f"include folder: {project}/own/source/include")


@pytest.mark.parametrize("header", ["metal_stdlib", "internal/absent.h"])
def test_a_header_of_metal_s_or_of_nobody_s_has_no_folder(project: Path, header: str) -> None:
    assert find_include_folder(project / "own/source/kernels/k.metal", header) is None


def test_the_nearest_folder_is_taken(project: Path) -> None:
    nearer = project / "own/source/kernels/detail/internal/arguments.h"
    nearer.parent.mkdir(parents=True)
    nearer.write_text("")
    assert find_include_folder(project / "own/source/kernels/k.metal", "internal/arguments.h") == nearer.parents[1]
