"""Rows of an operator that share a graph: one without code to join keeps the others with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.aten.operator import Blocked, Operator, find_migrations
from porter.core.checkout import Checkout
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS

ROWS = """\
- func: doubled_(Tensor(a!) self) -> Tensor(a!)
  dispatch:
    CPU, CUDA: doubled_
    MPS: doubled_mps_
- func: doubled.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA: doubled_out
    MPS: doubled_out_mps
- func: add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU, CUDA, MPS: add_out
"""
SHARED = """\
Tensor& doubled_out(const Tensor& self, Tensor& out) {
  return at::add_out(out, self, self);
}
Tensor& doubled_(Tensor& self) {
  return %s;
}
"""
OWN = """\
namespace at::native {
Tensor& doubled_out_mps(const Tensor& self, Tensor& out) {
  runMPSGraph(stream, cachedGraph->graph(), feeds, out);
  return out;
}
Tensor& doubled_mps_(Tensor& self) {
  return doubled_out_mps(self, self);
}
}
"""


@pytest.mark.parametrize(
    ("call", "blocked"),
    [("native::doubled_out(self, self)", ["doubled_", "doubled.out"]), ("at::add_out(self, self, self)", [])],
)
def test_rows_that_share_a_graph_stay_together(tmp_path: Path, call: str, blocked: list[str]) -> None:
    files = {NATIVE_FUNCTIONS: ROWS, f"{NATIVE}/Doubled.cpp": SHARED % call, f"{OPERATIONS}/Doubled.mm": OWN}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    fork = Checkout(tmp_path, "test")
    rows = find_migrations(fork, Operator.read(fork, "doubled"))
    assert len(rows) == 2
    assert [row.served.function.name for row in rows if isinstance(row, Blocked)] == blocked
    assert all(row.error.code == "PTR072" for row in rows if isinstance(row, Blocked))
