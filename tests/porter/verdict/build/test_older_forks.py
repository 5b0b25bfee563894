"""Host code of older forks compiles against a newer wheel: what it names that is gone, and types as on macOS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.verdict.backends import host
from porter.verdict.build import objects

TYPES = """\
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty.h>
at::Tensor sized(const at::Tensor& like) {
  std::vector<long long> dims = {};
  dims.push_back(like.size(0));
  std::vector<long long> copy(like.sizes().begin(), like.sizes().end());
  return at::empty(at::IntArrayRef(dims), like.options());
}
"""
NAMES = """\
#include <ATen/core/Tensor.h>
#include <ATen/NamedTensorUtils.h>
bool same(const at::Tensor& a, const at::Tensor& b) {
  at::NoNamesGuard guard;
  return at::namedinference::are_names_equal(a.unsafeGetTensorImpl(), b.unsafeGetTensorImpl());
}
"""


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[str, str], Path]:
    def run(name: str, text: str) -> Path:
        source = tmp_path / name
        source.write_text(text)
        return objects.compile_object(source, name, (), {"tree": tmp_path}, host.recipe(EMBEDDED_FORK), tmp_path)[0]

    return run


def test_a_vector_of_long_long_is_one_of_sizes(compiled: Callable[[str, str], Path]) -> None:
    assert compiled("Types.mm", TYPES).is_file()


def test_names_of_dimensions_are_gone_and_compare_equal(compiled: Callable[[str, str], Path]) -> None:
    assert compiled("Names.cpp", NAMES).is_file()
