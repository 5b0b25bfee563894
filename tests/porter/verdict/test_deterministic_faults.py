"""Kernels whose sums depend on the order of threads: without an alert in deterministic mode they fail."""

from __future__ import annotations

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import COMMON_MPS, KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.result import VerifyTarget
from tests.porter.verdict.test_planted_faults import reasons
from tests.porter.verdict.written_ports import Port

KERNEL_FILE = f"{KERNELS}/AddedProducts.metal"
HOST_FILE = f"{OPERATIONS}/AddedProducts.mm"
ROWS = """
- func: trace(Tensor self) -> Tensor
  dispatch:
    CPU: trace_cpu
    MPS: trace_mps

- func: dot(Tensor self, Tensor tensor) -> Tensor
  dispatch:
    CPU: dot
    MPS: dot_mps

- func: vdot(Tensor self, Tensor other) -> Tensor
  dispatch:
    CPU: vdot
    MPS: vdot_mps
"""
KERNEL = """\
#include <metal_atomic>
#include <metal_stdlib>
using namespace metal;

inline void add(device float* output, float value) {
  atomic_fetch_add_explicit((device atomic<float>*)output, value, memory_order_relaxed);
}

#define PRODUCT(NAME)                              \\
  kernel void NAME##_float(                        \\
      device float* output [[buffer(0)]],          \\
      constant float* a [[buffer(1)]],             \\
      constant float* b [[buffer(2)]],             \\
      uint at [[thread_position_in_grid]]) {       \\
    add(output, a[at] * b[at]);                    \\
  }

PRODUCT(trace)
PRODUCT(dot)
PRODUCT(vdot)
"""
HOST = """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/Context.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/dot_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/trace_native.h>
#include <ATen/ops/vdot_native.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static Tensor add_products(const std::string& name, const Tensor& left, const Tensor& right) {
  at::globalContext().alertNotDeterministic(name);
  const Tensor a = left.contiguous(), b = right.contiguous();
  Tensor result = at::empty({}, a.options());
  result.zero_();
  if (a.numel() == 0) {
    return result;
  }
  const auto pipeline = lib.getPipelineStateForFunc(name + "_float");
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      [encoder setComputePipelineState:pipeline];
      mps::mtl_setArgs(encoder, result, a, b);
      mps::mtl_dispatch1DJob(encoder, pipeline, a.numel());
    }
  });
  return result;
}

Tensor trace_mps(const Tensor& self) {
  const Tensor diagonal = self.diagonal();
  Tensor ones = at::empty(diagonal.sizes(), self.options());
  ones.fill_(1);
  return add_products("trace", diagonal, ones);
}

Tensor dot_mps(const Tensor& self, const Tensor& tensor) {
  return add_products("dot", self, tensor);
}

Tensor vdot_mps(const Tensor& self, const Tensor& other) {
  return add_products("vdot", self, other);
}

} // namespace at::native
"""
# One of upstream's tests too: a verdict that calls no kernel of a port fails, and the check only asks for the alert.
TESTS = "float32 and (test_deterministic or test_output_match)"
ALERT = "  at::globalContext().alertNotDeterministic(name);\n"


@pytest.mark.parametrize("base", ["trace", "dot", "vdot"])
def test_a_kernel_that_adds_atomically_alerts_in_deterministic_mode(base: str) -> None:
    rows = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text()
    texts = {NATIVE_FUNCTIONS: rows + ROWS, KERNEL_FILE: KERNEL, HOST_FILE: HOST}
    port = Port(VerifyTarget(base, kernels=(base,)), texts)
    verdict = port.verdict(TESTS)
    assert verdict.failures == () and verdict.passed > 0
    told = reasons(port.edited(HOST_FILE, ALERT, "").verdict(TESTS))
    assert f"in deterministic mode kernel {base}_float adds atomically, and nothing alerts" in told


def test_a_list_that_expects_results_to_fail_hides_no_missing_alert() -> None:
    rows = (EMBEDDED_FORK / NATIVE_FUNCTIONS).read_text()
    lists = (EMBEDDED_FORK / COMMON_MPS).read_text()
    listed = lists.replace(
        "UNIMPLEMENTED_XFAILLIST = {\n", 'UNIMPLEMENTED_XFAILLIST = {\n            "dot": None,\n', 1
    )
    kernel, host = (
        text.replace('_float"', '_dense_float_float"').replace("##_float", "##_dense_float_float")
        for text in (KERNEL, HOST)
    )
    files = {KERNEL_FILE: kernel, HOST_FILE: host.replace(ALERT, ""), COMMON_MPS: listed}
    texts = {NATIVE_FUNCTIONS: rows + ROWS, **files}
    target = VerifyTarget("dot", kernels=("dot",), pairs=(("float", "float"),))
    reason = reasons(Port(target, texts).verdict("float32 and test_deterministic"))
    assert "in deterministic mode kernel dot_dense_float_float adds atomically, and nothing alerts" in reason
