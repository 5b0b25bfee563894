"""Projects as values: their names, their files, what they refuse."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, TorchMetalKernel, export
from porter.kernels.extension import project
from porter.kernels.extension.from_kernels import cpp_source, project_of_file, project_of_kernels, write_reference
from tests.conftest import ROOT

LIMIT = 3.0


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def limited(x: torch.Tensor) -> torch.Tensor:
    return x * LIMIT


SCALED = MetalKernel("scaled", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = T(x[i] * x_shape[0]);")
PLACED = TorchMetalKernel("placed", ["A"], ["B"], "B[0, 0] = TYPE(A[1, 0]);", scaled, template_dtypes={"A": "TYPE"})


def files(kind: str) -> Mapping[str, str]:
    if kind == "example":
        return project.example("my_ops").files
    return project_of_kernels("my_ops", [(SCALED.kernel, scaled), (PLACED.kernel, None)]).files


def code_of(function: Callable[[], object]) -> str:
    with pytest.raises(PorterError) as caught:
        function()
    return caught.value.code


@pytest.mark.parametrize(
    "name",
    [
        "my-ops",
        "1st",
        "",
        "class",
        "_ops",
        "größe",
        "torch",
        "a.b",
        "../a",
        "numpy",
        "json",
        "sitecustomize",
        "conftest",
        "setup",
        "template",
        "std",
        "n" * 300,
    ],
)
def test_a_name_that_cannot_be_a_package_is_refused(name: str) -> None:
    assert code_of(lambda: project.example(name)) == "PTR251"


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert code_of(lambda: project.write(project.example("my_ops"), tmp_path)) == "PTR252"
    assert code_of(lambda: project.write(project.example("my_ops"), tmp_path / "mine")) == "PTR252"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert code_of(lambda: project.write(project.example("my_ops"), tmp_path / "mine" / "deeper")) == "PTR353"


def test_every_file_is_written(tmp_path: Path) -> None:
    written = project.write(project.example("my_ops"), tmp_path / "new")
    assert_expected_inline(
        "\n".join(sorted(path.relative_to(tmp_path).as_posix() for path in written)),
        """\
new/csrc/kernels.h
new/csrc/launch.h
new/csrc/ops.cpp
new/csrc/ops_mps.mm
new/my_ops/__init__.py
new/my_ops/ops.py
new/pyproject.toml
new/setup.py
new/tests/conftest.py
new/tests/test_ops.py""",
    )


def test_an_installed_porter_has_every_file() -> None:
    patterns = re.findall(r'= \["(templates/extension/[^"]*)"\]', (ROOT / "pyproject.toml").read_text())
    installed = {path for pattern in patterns for path in ROOT.glob(pattern)}
    found = {path for path in (ROOT / "templates" / "extension").rglob("*") if path.is_file()}
    assert {path for path in found if "__pycache__" not in path.parts} <= installed


@pytest.mark.parametrize("kind", ["example", "kernels"])
def test_nothing_is_left_to_fill_in(kind: str) -> None:
    for path, text in files(kind).items():
        assert "$" not in text, path
        if path.endswith(".py"):
            ast.parse(text)


@pytest.mark.parametrize("kind", ["example", "kernels"])
def test_host_code_uses_what_belongs_to_pytorch(kind: str) -> None:
    host = "".join(text for path, text in files(kind).items() if path.startswith("csrc/"))
    assert {"get_command_buffer", "get_dispatch_queue", "commit"} <= set(re.findall(r"torch::mps::(\w+)", host))
    assert "storage_offset() * tensor.element_size()" in host
    for own in ("newCommandQueue", "dispatch_queue_create", "computeCommandEncoder]", "MTLCreateSystemDefaultDevice"):
        assert own not in host


def test_the_row_of_a_kernel_leaves_types_to_the_call() -> None:
    assert_expected_inline(
        re.sub(r"_[0-9a-f]{8}", "_HASH", cpp_source(SCALED.kernel)),
        """\
      {"scaled", "scaled_HASH", {"x", "out"},
       {{0, Content::kData}, {0, Content::kShape}, {1, Content::kData}},
       true, R"METAL(#include <metal_stdlib>
using namespace metal;

[[kernel]] void scaled_HASH(
    device const type_of_x pointer_to_x x [[buffer(0)]],
    constant const int* x_shape [[buffer(1)]],
    device type_of_out* out [[buffer(2)]],
    uint3 thread_position_in_grid [[thread_position_in_grid]]) {
#line 1 "scaled body"
uint i = thread_position_in_grid.x; out[i] = T(x[i] * x_shape[0]);
}
)METAL"},""",
    )


def test_a_reference_is_taken_along() -> None:
    assert files("kernels")["my_ops/references.py"].endswith(
        "def scaled(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
    )
    assert write_reference("k", torch.nn.functional.silu).text == "k_reference = torch.nn.functional.silu\n"


@pytest.mark.parametrize("reference", [limited, lambda x: x])
def test_a_reference_that_needs_its_file_is_refused(reference: Callable[..., torch.Tensor]) -> None:
    assert code_of(lambda: project_of_kernels("my_ops", [(SCALED.kernel, reference)])) == "PTR254"


def test_kernels_of_one_name_are_refused() -> None:
    assert code_of(lambda: project_of_kernels("my_ops", [(SCALED.kernel, None)] * 2)) == "PTR255"


def test_a_kernel_without_names_is_refused() -> None:
    assert code_of(lambda: project_of_kernels("my_ops", [(MetalKernel("k", source="").kernel, None)])) == "PTR255"


@pytest.mark.parametrize(
    ("text", "code"), [(None, "PTR253"), ("x = 1\n", "PTR253"), ("raise ValueError('no')\n", "PTR238")]
)
def test_a_file_without_kernels_is_refused(text: str | None, code: str, tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    if text is not None:
        path.write_text(text)
    assert code_of(lambda: project_of_file("my_ops", path)) == code


def test_a_gradient_of_its_own_has_to_be_left_out_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        "from porter.kernels import MetalKernel\n"
        'K = MetalKernel("k", ["x"], ["y"], "y[0] = x[0];", vjp=lambda primals, cotangent, outputs: cotangent)\n'
    )
    assert code_of(lambda: project_of_file("my_ops", path)) == "PTR256"
    assert project_of_file("my_ops", path, without_vjp=True).name == "my_ops"


def test_a_metallib_is_compiled_by_xcrun_and_written_into_a_header(tmp_path: Path) -> None:
    project.write(project.example("my_ops", metallib=True), tmp_path / "my_ops")
    xcrun = tmp_path / "bin" / "xcrun"
    xcrun.parent.mkdir()
    xcrun.write_text('#!/bin/sh\necho "$@" >> "$XCRUN_LOG"\nfor last; do :; done\nprintf AB > "$last"\n')
    xcrun.chmod(0o700)
    path = f"{xcrun.parent}{os.pathsep}{os.environ['PATH']}"
    log = tmp_path / "log"
    environment = {**os.environ, "PATH": path, "XCRUN_LOG": str(log)}
    command = [sys.executable, "setup.py", "-q", "--version"]
    done = subprocess.run(
        command, cwd=tmp_path / "my_ops", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    header = (tmp_path / "my_ops" / "csrc" / "metallib.h").read_text()
    assert "kMetallib[] = {65, 66};" in header
    assert "host_name" in (tmp_path / "my_ops" / "build" / "kernels.metal").read_text()
    assert [line.split()[2] for line in log.read_text().splitlines()] == ["metal", "metallib"]


def test_only_setup_differs_with_a_metallib() -> None:
    plain, embedded = project.example("my_ops").files, project.example("my_ops", metallib=True).files
    assert {path for path in embedded if embedded[path] != plain.get(path)} == {"setup.py"}


def test_the_exports_have_the_form() -> None:
    assert "extension" in export.forms()
    made = export.export(PLACED, "extension")
    assert made["placed_extension/references.py"].endswith("return x * 2\n")
    assert '{"placed", ' in made["csrc/kernels.h"]
