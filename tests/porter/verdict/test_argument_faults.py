"""Faults that only a call of the operator itself shows, with arguments that no OpInfo sample gives."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.result import VerifyTarget
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import Port

KERNEL_FILE = f"{KERNELS}/SlopeKernel.metal"
ROWS = """
- func: elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor
  dispatch:
    CPU: elu_backward
    MPS: elu_backward_mps

- func: hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor
  dispatch:
    CPU: hardtanh_backward
    MPS: hardtanh_backward_mps

- func: gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor
  dispatch:
    CPU: gelu_backward_cpu
    MPS: gelu_backward_mps

- func: nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
  dispatch:
    CompositeExplicitAutograd: nan_to_num
    MPS: nan_to_num_mps

- func: gelu(Tensor self, *, str approximate='none') -> Tensor
  dispatch:
    CPU: gelu_cpu
    MPS: gelu_mps

- func: hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor
  dispatch:
    CPU: hardshrink
    MPS: hardshrink_mps
"""
SLOPES = """\
#include <c10/metal/special_math.h>
#include <metal_stdlib>
using namespace metal;

inline float elu_slope(float a, float b, float4 p) {
  if (p.w != 0) {
    return b <= 0 ? a * p.z * (b + p.x * p.y) : a * p.y;
  }
  return b <= 0 ? a * p.z * (p.x * p.y) * precise::exp(b * p.z) : a * p.y;
}

inline float hardtanh_slope(float a, float b, float4 p) {
  return b <= p.x || b >= p.y ? 0.0f : a;
}

inline float gelu_slope(float a, float b, float4 p) {
  if (p.x != 0) {
    const float inner = 0.7978845608f * (b + 0.044715f * (b * b * b));
    const float t = precise::tanh(inner);
    const float right = 0.5f * b * (1 - t * t) * (0.7978845608f * (1 + 3 * 0.044715f * (b * b)));
    return a * (0.5f * (1 + t) + right);
  }
  const float cdf = 0.5f * (1 + c10::metal::erf(b * M_SQRT1_2_F));
  return a * (cdf + b * (0.3989422804f * precise::exp(b * b * -0.5f)));
}

inline float nan_to_num_value(float a, float b, float4 p) {
  return isnan(b) ? p.x : (b == INFINITY ? p.y : (b == -INFINITY ? p.z : b));
}

inline float gelu_value(float a, float b, float4 p) {
  if (p.x != 0) {
    return 0.5f * b * (1 + precise::tanh(0.7978845608f * (b + 0.044715f * (b * b * b))));
  }
  return b * (0.5f * (1 + c10::metal::erf(b * M_SQRT1_2_F)));
}

inline float hardshrink_value(float a, float b, float4 p) {
  return b >= -p.x && b <= p.x ? 0.0f : b;
}

#define SLOPE(NAME, T)                                        \\
  kernel void NAME##_##T(                                     \\
      device T* output [[buffer(0)]],                         \\
      constant T* slope [[buffer(1)]],                        \\
      constant T* input [[buffer(2)]],                        \\
      constant float4& numbers [[buffer(3)]],                 \\
      uint at [[thread_position_in_grid]]) {                  \\
    output[at] = T(NAME(slope[at], input[at], numbers));      \\
  }

SLOPE(elu_slope, float)
SLOPE(hardtanh_slope, float)
SLOPE(gelu_slope, float)
SLOPE(nan_to_num_value, float)
SLOPE(gelu_value, float)
SLOPE(hardshrink_value, float)
"""
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/elu_backward_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu_backward_native.h>
#include <ATen/ops/gelu_native.h>
#include <ATen/ops/hardshrink_native.h>
#include <ATen/ops/hardtanh_backward_native.h>
#include <ATen/ops/nan_to_num_native.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static Tensor run_slope(const char* name, const Tensor& slope, const Tensor& input, std::array<float, 4> numbers) {
  TORCH_CHECK(slope.scalar_type() == kFloat, "only float is written here");
  const Tensor a = slope.expand_as(input).contiguous(), b = input.contiguous();
  Tensor result = at::empty(b.sizes(), b.options());
  if (result.numel() == 0) {
    return result;
  }
  const auto pipeline = lib.getPipelineStateForFunc(std::string(name) + "_float");
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      mps::mtl_setArgs(encoder, result, a, b, numbers);
      mps::mtl_dispatch1DJob(encoder, pipeline, result.numel());
    }
  });
  return result;
}

Tensor elu_backward_mps(const Tensor& slope, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                        bool is_result, const Tensor& input) {
  TORCH_CHECK(!is_result || alpha.to<double>() >= 0.0, "negative slope");
  return run_slope("elu_slope", slope, input,
                   {alpha.to<float>(), scale.to<float>(), input_scale.to<float>(), is_result ? 1.0f : 0.0f});
}

Tensor hardtanh_backward_mps(const Tensor& slope, const Tensor& input, const Scalar& low, const Scalar& high) {
  return run_slope("hardtanh_slope", slope, input, {low.to<float>(), high.to<float>(), 0, 0});
}

Tensor gelu_backward_mps(const Tensor& slope, const Tensor& input, c10::string_view approximate) {
  return run_slope("gelu_slope", slope, input, {approximate == "tanh" ? 1.0f : 0.0f, 0, 0, 0});
}

Tensor nan_to_num_mps(const Tensor& input, std::optional<double> nan, std::optional<double> posinf,
                      std::optional<double> neginf) {
  const double most = std::numeric_limits<float>::max();
  return run_slope("nan_to_num_value", input, input,
                   {float(nan.value_or(0)), float(posinf.value_or(most)), float(neginf.value_or(-most)), 0});
}

Tensor gelu_mps(const Tensor& input, c10::string_view approximate) {
  return run_slope("gelu_value", input, input, {approximate == "tanh" ? 1.0f : 0.0f, 0, 0, 0});
}

Tensor hardshrink_mps(const Tensor& input, const Scalar& lambd) {
  return run_slope("hardshrink_value", input, input, {lambd.to<float>(), 0, 0, 0});
}

} // namespace at::native
"""


def write_port(base: str, kernel: str) -> Port:
    """A port of an operator that gradients call, new to the fork; the files of all are the same."""
    rows = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text()
    texts = {NATIVE_FUNCTIONS: rows + ROWS, KERNEL_FILE: SLOPES, f"{OPERATIONS}/SlopeKernel.mm": HOST}
    return Port(VerifyTarget(base, kernels=(kernel,)), texts)


ELU = write_port("elu_backward", "elu_slope")
HARDTANH = write_port("hardtanh_backward", "hardtanh_slope")
GELU = write_port("gelu_backward", "gelu_slope")
NAN_TO_NUM = write_port("nan_to_num", "nan_to_num_value")
GELU_FORWARD = write_port("gelu", "gelu_value")
HARDSHRINK = write_port("hardshrink", "hardshrink_value")
HOST_FILE = f"{OPERATIONS}/SlopeKernel.mm"


@pytest.mark.parametrize("port", [ELU, HARDTANH, GELU], ids=["elu", "hardtanh", "gelu"])
def test_right_gradients_pass_with_edge_values_and_all_arguments(port: Port) -> None:
    verdict = port.verdict("test_direct and float32")
    assert verdict.failures == ()
    assert verdict.passed == 1 and verdict.kernel_calls > 0


@pytest.mark.parametrize(
    ("port", "old", "new", "told"),
    [
        (ELU, "a * p.z * (b + p.x * p.y)", "a * (b + p.x * p.y)", "is_result=True"),
        (ELU, "precise::exp(b * p.z)", "precise::exp(b)", "with input_scale="),
        (HARDTANH, "b <= p.x", "b < p.x", "differ"),
        (HARDTANH, "b >= p.y ? 0.0f : a", "!(b < p.y) ? 0.0f : a", "nan"),
        (GELU, "3 * 0.044715f", "3 * 0.044f", "tanh"),
    ],
)
def test_a_fault_that_no_gradient_shows(port: Port, old: str, new: str, told: str) -> None:
    assert told in reasons(port.edited(KERNEL_FILE, old, new).verdict("test_direct and float32"))


@pytest.mark.parametrize("port", [NAN_TO_NUM, GELU_FORWARD, HARDSHRINK], ids=["nan_to_num", "gelu", "hardshrink"])
def test_right_results_pass_with_the_arguments_that_samples_omit(port: Port) -> None:
    verdict = port.verdict("test_omitted_numbers and float32")
    assert verdict.failures == ()
    assert verdict.passed == 1 and verdict.kernel_calls > 0


@pytest.mark.parametrize(
    ("port", "file", "old", "new", "told"),
    [
        (NAN_TO_NUM, HOST_FILE, "float(nan.value_or(0))", "0.0f", "with nan=1.25: "),
        (
            NAN_TO_NUM,
            HOST_FILE,
            "float(neginf.value_or(-most))",
            "float(posinf ? -most : neginf.value_or(-most))",
            "with posinf=2.25, neginf=3.25: ",
        ),
        (
            GELU_FORWARD,
            KERNEL_FILE,
            "(b + 0.044715f * (b * b * b))));\n  }",
            "(b + 0.04f * (b * b * b))));\n  }",
            "tanh",
        ),
        (HARDSHRINK, HOST_FILE, "{lambd.to<float>(), 0, 0, 0}", "{0.5f, 0, 0, 0}", "with lambd=1.25: "),
    ],
)
def test_a_fault_of_an_argument_that_samples_omit(port: Port, file: str, old: str, new: str, told: str) -> None:
    assert told in reasons(port.edited(file, old, new).verdict("test_omitted_numbers and float32"))


def test_a_constant_of_one_string_is_measured_against_double_precision() -> None:
    wrong = GELU_FORWARD.edited(
        KERNEL_FILE, "(b + 0.044715f * (b * b * b))));\n  }", "(b + 0.0447f * (b * b * b))));\n  }"
    )
    assert "off by" in reasons(wrong.verdict("test_accuracy and float32"))
