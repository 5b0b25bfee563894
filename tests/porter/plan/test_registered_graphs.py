"""A graph that a stub registers in the file that its kernel goes to, as files of 2026 have both."""

import shutil
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import OPERATIONS
from porter.plan.planner import plan_operator

GRAPH = """static void ceil_kernel_mps(TensorIteratorBase& iter) {
  mps::unary_op(iter.input(0), iter.output(0), __func__, ^MPSGraphTensor*(MPSGraph* graph, MPSGraphTensor* tensor) {
    return [graph ceilWithTensor:tensor name:nil];
  });
}

REGISTER_DISPATCH(ceil_stub, ceil_kernel_mps)
"""


def test_the_kernel_is_registered_where_the_graph_of_its_name_was(tmp_path: Path) -> None:
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    kernels, graphs = root / OPERATIONS / "UnaryKernel.mm", root / OPERATIONS / "UnaryOps.mm"
    kernels.write_text(kernels.read_text().replace("REGISTER_DISPATCH", f"{GRAPH}REGISTER_DISPATCH", 1))
    graphs.write_text(graphs.read_text().replace("REGISTER_MPS_UNARY_STUB(ceil, ceil)\n", ""))
    plan = plan_operator(Checkout(root, "test"), "ceil")
    text = plan.changes.apply()[f"{OPERATIONS}/UnaryKernel.mm"]
    assert plan.complete and "ceilWithTensor" not in text
    assert text.count("REGISTER_DISPATCH(ceil_stub") == text.count('lib.exec_unary_kernel(iter, "ceil")') == 1
