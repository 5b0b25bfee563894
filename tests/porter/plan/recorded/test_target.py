"""What the arguments of a schema are called where a row's graph runs."""

from pathlib import Path

import pytest

from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import find_served
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.recorded.target import find_target, read_returned
from tests.porter.plan.recorded import fork

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


SHARED_HELPER = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static void run_unary(const Tensor& input, const Tensor& output) {
  runMPSGraph(getCurrentMPSStream(), makeGraph(), feeds, output);
}

static void pad_template(const Tensor& grad, const Tensor& self, const Tensor& output) {
  auto input = self.to(grad.scalar_type());
  run_unary(input, output);
}

Tensor padded_backward_mps(const Tensor& grad, const Tensor& self) {
  Tensor grad_input = at::empty_like(self);
  pad_template(grad, self, grad_input);
  return grad_input;
}

} // namespace at::native
"""


@pytest.mark.parametrize(("read", "function"), [(("self",), "pad_template"), ((), "run_unary")])
def test_a_helper_without_variables_for_what_kernels_read_is_put_in_its_caller(
    tmp_path: Path, read: tuple[str, ...], function: str
) -> None:
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS)
    (checkout.root / OPERATIONS / "Padded.mm").write_text(SHARED_HELPER)
    served = find_served(checkout, NativeFunctions.read(checkout).by_name["padded_backward"])
    assert served is not None
    target = find_target(checkout, served, frozenset({"padded_backward_mps"}), frozenset(read))
    assert target.function.name == function
    assert "runMPSGraph" in target.body


FALLBACK = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static void bend_graph(const Tensor& input, int64_t axis, const Tensor& output) {
  runMPSGraph(getCurrentMPSStream(), makeGraph(), feeds, output);
}

Tensor& bend_out_mps(const Tensor& self_, int64_t dim, Tensor& out) {
  Tensor self;
  Tensor out_ = out;
  if (self_.dim() == 0) {
    self = self_.view(1);
    out_ = out.view(1);
  } else
    self = self_;
  int64_t dim_ = maybe_wrap_dim(dim, self.dim());
  if (!is_native(self)) {
    bend_graph(self, dim_, out_);
    return out;
  }
  if (dim_ != self.dim() - 1) {
    bend_graph(self, dim_, out_);
    return out;
  }
  launch(self, out_);
  return out;
}

} // namespace at::native
"""
BENT = """
- func: bend.out(Tensor self, int dim, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: bend_out_cpu
    MPS: bend_out_mps
"""


def test_a_graph_that_a_native_function_falls_back_to_in_several_places_is_ported_in_its_helper(tmp_path: Path) -> None:
    """The arguments that views of tensors without dimensions and counted dimensions stand for have names there."""
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(BENT)
    (checkout.root / OPERATIONS / "Bend.mm").write_text(FALLBACK)
    served = find_served(checkout, NativeFunctions.read(checkout).by_name["bend.out"])
    assert served is not None
    target = find_target(checkout, served, frozenset({"bend_out_mps"}), frozenset({"self", "dim"}))
    assert target.function.name == "bend_graph"
    assert target.variables == {"self": "input", "dim": "axis", "out": "output", "result0": "output"}


@pytest.mark.parametrize(
    "value",
    ["{w, norms}", "std::tuple<Tensor, Tensor>{w, norms}", "std::tuple<Tensor, Tensor>(w, std::move(norms))"],
)
def test_returned_results_are_those_that_the_last_statement_lists(value: str) -> None:
    assert read_returned(f"  auto w = at::empty_like(v);\n  return {value};\n") == ["w", "norms"]
