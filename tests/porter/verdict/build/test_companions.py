"""Operators whose gradients the CPU lacks, by rows and by torch's own derivative formulas."""

from porter.verdict.build.libraries import list_companions
from porter.verdict.derivatives import list_called, list_derived_with

ROWS = """\
- func: max_pool2d(Tensor self) -> Tensor
  dispatch:
    CompositeImplicitAutograd: max_pool2d
    MPS: mps_max_pool2d

- func: max_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor
  dispatch:
    MPS: mps_max_pool2d_backward

- func: elu(Tensor self) -> Tensor
  structured_delegate: elu.out

- func: elu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA, MPS: elu_out

- func: elu_backward(Tensor grad_output) -> Tensor
  structured_delegate: elu_backward.grad_input

- func: elu_backward.grad_input(Tensor grad_output, *, Tensor(a!) grad_input) -> Tensor(a!)
  structured: True
  dispatch:
    CPU, CUDA, MPS: elu_backward_out
"""


def test_a_gradient_that_the_cpu_lacks_comes_along() -> None:
    assert list_companions(ROWS, "max_pool2d") == ("max_pool2d_backward",)


def test_it_brings_what_it_is_the_gradient_of() -> None:
    assert list_companions(ROWS, "max_pool2d_backward") == ("max_pool2d",)


def test_others_fall_back_to_the_cpu() -> None:
    assert list_companions(ROWS, "elu") == ()
    assert list_companions(ROWS, "elu_backward") == ()
    served = ROWS.replace(
        "    MPS: mps_max_pool2d_backward", "    CPU: max_pool2d_backward_cpu\n    MPS: mps_max_pool2d_backward"
    )
    assert list_companions(served, "max_pool2d") == ()


def test_formulas() -> None:
    assert "max_pool2d_backward" in list_called("max_pool2d")
    assert list_derived_with("max_pool2d_backward") == {"max_pool2d"}
