"""Rows that are split by device: the body of the function that MPS keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.device_rows import find_own_body
from porter.aten.native_functions import NativeFunctions
from porter.core.checkout import Checkout
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS

HEADER = """\
enum class Kind { None, Fast };
DECLARE_DISPATCH(void (*)(TensorIteratorBase&, Kind), MadeKernel)
DECLARE_DISPATCH(void (*)(TensorIterator&), made_backward_stub)
DECLARE_DISPATCH(void (*)(TensorIteratorBase&, const Scalar& alpha), sum_stub)
DECLARE_DISPATCH(void (*)(const Tensor&, const Tensor&), whole_stub)
"""
STRUCTURED = """\
- func: made.out(Tensor self, *, str kind='none', Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: made_out_cpu
    CUDA: made_out_cuda
    MPS: made_out_mps
"""


def body(path: Path, rows: str, code: str, names: tuple[str, ...] = ()) -> str:
    """The body that the first row's function on MPS gets, for these names of its parameters; empty for none."""
    for name, text in ((NATIVE_FUNCTIONS, rows), (f"{NATIVE}/Made.h", HEADER), (f"{NATIVE}/Made.cpp", code)):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    fork = Checkout(path, "test")
    functions = NativeFunctions.read(fork).all
    found = find_own_body(fork, functions, functions[0])
    return found.write(names) if found else ""


def test_a_structured_function_calls_the_stub_with_its_own_names(tmp_path: Path) -> None:
    code = """\
TORCH_IMPL_FUNC(made_out_cpu)(const Tensor& self, std::string_view kind, const Tensor& result) {
  auto known = read_kind(kind);
#if OTHER_LIBRARY()
  if (use_other(self)) {
    other::compute(self, result);
  } else {
    MadeKernel(kCPU, *this, known);
  }
#else
  MadeKernel(kCPU, *this, known);
#endif
}
"""
    assert_expected_inline(
        body(tmp_path, STRUCTURED, code, ("self", "approximate", "output")),
        """\
{
  MadeKernel(device_type(), *this, read_kind(approximate));
}""",
    )


def test_the_function_of_cuda_comes_first_and_is_taken_whole(tmp_path: Path) -> None:
    code = "".join(
        f"""\
Tensor& made_backward_{device}_out(const Tensor& grad, const Tensor& input, const Tensor& buffer, Tensor& out) {{
  auto iter = TensorIteratorConfig()
      .add_output(out)
      .add_const_input(input){extra}
      .add_const_input(grad)
      .build();
  made_backward_stub(k{device.upper()}, iter);
  return out;
}}
"""
        for device, extra in (("cpu", "\n      .add_const_input(buffer)"), ("cuda", ""))
    )
    rows = """\
- func: made_backward.out(Tensor grad, Tensor self, Tensor buffer, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: made_backward_cpu_out
    CUDA: made_backward_cuda_out
    MPS: made_backward_mps_out
"""
    assert_expected_inline(
        body(tmp_path, rows, code, ("grad_output", "self", "buffer", "")),
        """\
{
  auto iter = TensorIteratorConfig()
      .add_output(out)
      .add_const_input(self)
      .add_const_input(grad_output)
      .build();
  made_backward_stub(kMPS, iter);
  return out;
}""",
    )


def test_a_generated_kernel_is_called_through_its_stub(tmp_path: Path) -> None:
    rows = """\
- func: sum.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  ufunc_inner_loop:
    Generic: sum (AllAndComplex)
  dispatch:
    MPS: sum_out_mps
"""
    assert body(tmp_path, rows, "") == "{\n  sum_stub(device_type(), *this, alpha);\n}"


@pytest.mark.parametrize(
    "code",
    [
        "  MadeKernel(kCPU, *this, Kind::None);\n  MadeKernel(kCPU, *this, Kind::Fast);\n",
        "  whole_stub(kCPU, self, result);\n",
        "  compute(self, result);\n",
    ],
    ids=["two calls", "no iterator", "no stub"],
)
def test_a_function_that_does_more_says_nothing(tmp_path: Path, code: str) -> None:
    head = "TORCH_IMPL_FUNC(made_out_cpu)(const Tensor& self, std::string_view kind, const Tensor& result) {\n"
    assert body(tmp_path, STRUCTURED, f"{head}{code}}}\n") == ""
