"""A graph that a stub registers in the file that its kernel goes to, as files of 2026 have both."""

import shutil
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, OPERATIONS
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


@pytest.mark.parametrize(
    "kernel", ["DEFINE_UNARY_FLOATING_FUNCTOR(ceil);\n", "struct ceil_functor {\n  int only;\n};\n"]
)
def test_a_kernel_that_is_there_and_that_nothing_launches_is_told(kernel: str, tmp_path: Path) -> None:
    """A kernel file of a later release than the host files has kernels of what they still build graphs for."""
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    kernels = root / KERNELS / "UnaryKernel.metal"
    lines = kernels.read_text().count("\n")
    kernels.write_text(f"{kernels.read_text()}{kernel}")
    with pytest.raises(PorterError, match="PTR096 the fork has kernels of ceil already") as raised:
        plan_operator(Checkout(root, "test"), "ceil")
    assert raised.value.place and raised.value.place.line == lines + 1
    assert plan_operator(Checkout(root, "test"), "erf").complete
