"""A kernel that serves any number of dimensions is written once for the operators of each."""

from pathlib import Path

import pytest

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.index_map import AccessMode, IndexMap, IndexRule
from porter.plan.plan import Draft
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROW = """
- func: {name}(Tensor self, SymInt[{sides}] padding) -> Tensor
  dispatch:
    CPU: {name}_cpu
    MPS: {name}_mps
"""
FUNCTION = """
Tensor {name}_mps(const Tensor& self, IntArrayRef padding) {{
  using namespace mps;
  Tensor result = at::empty(grow(self.sizes(), padding), self.options());
  runMPSGraph(getCurrentMPSStream(), makeGraph(padding), feeds, result);
  return result;
}}
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {{
{functions}
}} // namespace at::native
"""
EDGE = IndexMap(IndexRule.CLAMPED, AccessMode.READ, "padding", source="self", dtypes=(FLOAT, HALF))
MIRROR = IndexMap(IndexRule.REFLECTED, AccessMode.READ, "padding", source="self", dtypes=(FLOAT, HALF))
NAMES = {"edge_pad1d": 2, "edge_pad2d": 4}
KERNEL_FILE = f"{KERNELS}/Edges.metal"


def copy_fork(folder: Path) -> Checkout:
    copy = fork.copy_fork(folder)
    functions = "".join(FUNCTION.format(name=name) for name in NAMES)
    (copy.root / OPERATIONS / "Edges.mm").write_text(HOST.format(functions=functions))
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + "".join(ROW.format(name=name, sides=sides) for name, sides in NAMES.items()))
    return Checkout(copy.root, "named")


def port(draft: Draft, name: str, found: IndexMap) -> Draft:
    plan = plan_operator(draft.fork, name, programs=lambda row: FormProgram(name, found))
    return draft.follow(plan.changes)


@pytest.mark.parametrize("names", [tuple(NAMES), tuple(reversed(NAMES))])
def test_the_second_operator_uses_the_kernel_of_the_first(tmp_path: Path, names: tuple[str, str]) -> None:
    first = port(Draft(copy_fork(tmp_path)), names[0], EDGE)
    both = port(first, names[1], EDGE)
    kernels = both.fork.read(KERNEL_FILE)
    assert kernels == first.fork.read(KERNEL_FILE) and kernels.count("kernel void edge_pad(") == 1
    host = both.fork.read(f"{OPERATIONS}/Edges.mm")
    assert host.count('"edge_pad_" +') == 1  # in the function that both call
    assert host.count("return edge_pad_mps_impl(self, padding);") == 2


def test_another_kernel_of_the_name_is_not_used(tmp_path: Path) -> None:
    first = port(Draft(copy_fork(tmp_path)), "edge_pad1d", MIRROR)
    kernels = port(first, "edge_pad2d", EDGE).fork.read(KERNEL_FILE)
    assert "kernel void edge_pad(" in kernels and "kernel void edge_pad2d(" in kernels
