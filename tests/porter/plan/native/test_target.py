"""What the arguments of a schema are called where a row's graph runs."""

from pathlib import Path

from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.native.target import find_target
from tests.porter.plan.native import fork

ROWS = """
- func: padded_backward(Tensor grad_output, Tensor self) -> Tensor
  dispatch:
    CPU: padded_backward_cpu
    MPS: padded_backward_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static Tensor& pad_template(Tensor& output, const Tensor& input, const std::optional<Tensor>& grad_output_opt) {
  const Tensor& grad_output = *(at::borrow_from_optional_tensor(grad_output_opt));
  runMPSGraph(getCurrentMPSStream(), makeGraph(), feeds, output);
  return output;
}

Tensor padded_backward_mps(const Tensor& grad, const Tensor& self) {
  Tensor grad_input = at::empty_like(self);
  return pad_template(grad_input, self, grad);
}

} // namespace at::native
"""


def test_a_tensor_that_a_helper_takes_as_an_optional_one_is_what_that_holds(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS)
    (checkout.root / OPERATIONS / "Padded.mm").write_text(HOST)
    served = find_served(checkout, NativeFunctions.read(checkout).by_name["padded_backward"])
    assert served is not None
    target = find_target(checkout, served, frozenset({"padded_backward_mps"}))
    assert target.function.name == "pad_template"
    assert target.variables["grad_output"] == "grad_output"
    assert target.variables["self"] == "input"
