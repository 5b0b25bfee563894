"""Sources not written for the host: PyTorch's headers as a wheel has them, the embedded fork, and others by name.

`PORTER_TEST_FORK` names a PyTorch checkout, `PORTER_TEST_HEADERS` a folder that holds `c10/metal`: tried as well.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.metal import compiler
from aten_overlay.metal.build import QUICK, Options, compile_kernels, host_names, preprocess
from aten_overlay.metal.launch import Library

HERE = Path(__file__).parent
EMBEDDED = Path(__file__).resolve().parents[3] / "aten_overlay" / "fork"
KERNELS = "aten/src/ATen/native/mps/kernels"


def _headers() -> list[Path]:
    spec = find_spec("torch")
    installed = [Path(spec.origin).parent / "include"] if spec and spec.origin else []
    return [*installed, *(Path(p) for p in [os.environ.get("PORTER_TEST_HEADERS", "")] if p)]


def _sources() -> list[tuple[Path, Path]]:
    roots = [EMBEDDED, *(Path(p) for p in [os.environ.get("PORTER_TEST_FORK", "")] if p)]
    return [(root, path) for root in roots for path in sorted((root / KERNELS).glob("*.metal"))]


@pytest.mark.parametrize(("root", "path"), _sources(), ids=lambda p: p.name)
def test_every_kernel_of_a_fork_compiles(root: Path, path: Path) -> None:
    options = Options(include=(root,))
    names = host_names(path, options)
    text = preprocess(path, options)
    registered = len(re.findall(r"host_name\s*\(", text))
    functions = re.finditer(r"(?:\[\[kernel\]\]|\bkernel)\s+void\s+\w+\s*\(", text)
    plain = [m for m in functions if not text[: m.start()].rstrip().endswith((">", "]]"))]
    assert len(names) == registered + len(plain)
    assert Library(compile_kernels(path, names, options)).names == names


@pytest.mark.parametrize("headers", _headers(), ids=lambda p: p.parent.name)
def test_every_registration_macro_compiles_and_runs(headers: Path) -> None:
    source, options = HERE / "registrations.metal", Options(include=(headers,), optimization=QUICK)
    names = host_names(source, options)
    defined = set(re.findall(r"#define (REGISTER_\w+[^_(])\(", (headers / "c10/metal/indexing.h").read_text()))
    assert defined <= set(re.findall(r"REGISTER_\w+", source.read_text()))
    assert len(names) == len(re.findall(r"host_name\s*\(", preprocess(source, options)))
    library = Library(compile_kernels(source, names, options))
    assert library.names == names
    x, y, out = np.array([1, -2, 3], np.float32), np.array([4, 5, -6], np.float32), np.zeros(3, np.float32)
    library.run("angle_dense_float_float", [out, x, y, np.array([3], np.uint32)], [3])
    assert np.abs(out - np.arctan2(x, y)).max() < 1e-6


def test_compiled_libraries_are_found_again() -> None:
    source = "#include <metal_stdlib>\nkernel void f(device float* x [[buffer(0)]]) { x[0] = 1; }"
    first = compile_kernels(source, ["f"])
    assert compile_kernels(source, ["f"]) == first
    assert compile_kernels(source.replace("1;", "2;"), ["f"]) != first
    assert compile_kernels(source, ["f"], Options(arithmetic="fused")) != first


def test_a_changed_header_is_noticed(tmp_path: Path) -> None:
    header = tmp_path / "value.h"
    source = (
        "#include <metal_stdlib>\n#include <value.h>\nkernel void f(device float* x [[buffer(0)]]) { x[0] = VALUE; }"
    )
    x = np.zeros(1, np.float32)
    for value in (1, 2):
        header.write_text(f"#define VALUE {value}\n")
        Library(compile_kernels(source, ["f"], Options(include=(tmp_path,)))).run("f", [x], [1])
        assert x[0] == value


def test_the_compiler_is_new_enough() -> None:
    assert "clang version" in compiler.version(compiler.find_clang())
