"""Ports of rows that are split by device: the diffs, on the embedded fork with a made-up operator beside its own."""

from __future__ import annotations

import re

from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import CPU_KERNELS, NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator

FORK = Checkout(EMBEDDED_FORK, "test")
GRAPH = """\
  MPSGraph* mpsGraph = nil;
  build(mpsGraph, self);
"""


def added(rows: str, files: dict[str, str], op: str) -> str:
    """The diff of a port, without the kernel files' macro lines, in a fork with these rows and files more."""
    texts = {NATIVE_FUNCTIONS: FORK.read(NATIVE_FUNCTIONS) + rows, **files}
    plan = plan_operator(FORK.layer(texts), op)
    assert plan.complete
    lines = (re.sub(r"^@@.*", "@@", line) for line in plan.changes.diff().splitlines())
    return "\n".join(line for line in lines if not line.startswith(("diff ", "index ", "--- ")))


SWELL = """
- func: swell.out(Tensor self, *, str approximate='none', Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU: swell_out_cpu
    CUDA: swell_out_cuda
    MPS: swell_out_mps
"""
SWELL_FILES = {
    f"{NATIVE}/Swell.h": "using swell_fn = void (*)(TensorIteratorBase&, SwellType);\nDECLARE_DISPATCH(swell_fn, SwellKernel)\n",
    f"{NATIVE}/Swell.cpp": """\
TORCH_META_FUNC(swell) (const Tensor& self, std::string_view approximate) {
  build_unary_op(maybe_get_output(), self);
}
TORCH_IMPL_FUNC(swell_out_cpu) (const Tensor& self, std::string_view approximate, const Tensor& result) {
  SwellKernel(kCPU, *this, read_swell_type(approximate));
}
""",
    f"{CPU_KERNELS}/SwellKernel.h": """\
constexpr double kSwell = 0.25;
template <typename T>
T swell(T x) {
  return x * T(kSwell);
}
""",
    f"{CPU_KERNELS}/SwellKernel.cpp": """\
#include <ATen/native/cpu/SwellKernel.h>
static void swell_kernel(TensorIteratorBase& it, SwellType approximate) {
  auto grain_size = at::internal::GRAIN_SIZE;
  constexpr int64_t LEAST{16384};
  if (it.numel() > LEAST) {
    grain_size = it.numel() / at::get_num_threads();
  }
  if (approximate == SwellType::Tanh) {
    AT_DISPATCH_FLOATING_TYPES(it.dtype(), "swell", [&]() {
      cpu_kernel_vec(it, [](scalar_t x) -> scalar_t { return std::tanh(x); }, vectorized_tanh<scalar_t>, grain_size);
    });
  } else {
    AT_DISPATCH_FLOATING_TYPES(it.dtype(), "swell", [&]() {
      cpu_kernel_vec(it, swell<scalar_t>, vectorized_swell<scalar_t>, grain_size);
    });
  }
}
REGISTER_DISPATCH(SwellKernel, &swell_kernel)
""",
    f"{OPERATIONS}/Swell.mm": f"""\
#include <ATen/native/mps/OperationUtils.h>

namespace at::native {{

static void build(MPSGraph* mpsGraph, const Tensor& self) {{
  [mpsGraph tanhWithTensor:nil name:nil];
}}

TORCH_IMPL_FUNC(swell_out_mps)(const Tensor& self, std::string_view kind, const Tensor& output) {{
{GRAPH}}}

}} // namespace at::native
""",
}


def test_a_structured_function_calls_the_stub_and_each_enumerator_has_a_kernel() -> None:
    assert_expected_inline(
        added(SWELL, SWELL_FILES, "swell"),
        """\
+++ b/aten/src/ATen/native/mps/kernels/UnaryKernel.metal
@@
     return T(scale * precise::cos(angle), scale * precise::sin(angle));
   }
 };
+
+struct swell_tanh_functor {
+  template <typename T>
+  inline T operator()(const T x) {
+    return static_cast<T>(precise::tanh(static_cast<float>(x)));
+  }
+};
+
+struct swell_functor {
+  template <typename T>
+  inline T operator()(const T x) {
+    return x * T(0.25f);
+  }
+};
 
 REGISTER_UNARY_OP(exp, bool, float);
 REGISTER_UNARY_OP(exp, uchar, float);
@@
 REGISTER_UNARY_OP(exp, half, half);
 REGISTER_UNARY_OP(exp, bfloat, bfloat);
 REGISTER_UNARY_OP(exp, float2, float2);
+
+REGISTER_UNARY_OP(swell_tanh, float, float);
+REGISTER_UNARY_OP(swell_tanh, half, half);
+REGISTER_UNARY_OP(swell_tanh, bfloat, bfloat);
+
+REGISTER_UNARY_OP(swell, float, float);
+REGISTER_UNARY_OP(swell, half, half);
+REGISTER_UNARY_OP(swell, bfloat, bfloat);
+++ b/aten/src/ATen/native/mps/operations/Swell.mm
@@
+#include <ATen/native/Swell.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
 
-static void build(MPSGraph* mpsGraph, const Tensor& self) {
-  [mpsGraph tanhWithTensor:nil name:nil];
-}
-
 TORCH_IMPL_FUNC(swell_out_mps)(const Tensor& self, std::string_view kind, const Tensor& output) {
-  MPSGraph* mpsGraph = nil;
-  build(mpsGraph, self);
+  SwellKernel(device_type(), *this, read_swell_type(kind));
 }
 
 } // namespace at::native
+++ b/aten/src/ATen/native/mps/operations/UnaryKernel.mm
@@
 #define TORCH_ASSERT_ONLY_METHOD_OPERATORS
 #include <ATen/TensorIterator.h>
+#include <ATen/native/Swell.h>
 #include <ATen/native/UnaryOps.h>
 #include <ATen/native/mps/MetalShaderLibrary.h>
 
@@
 static void exp_kernel_mps(TensorIteratorBase& iter) {
   lib.exec_unary_kernel(iter, "exp");
 }
+
+static void swell_kernel_mps(TensorIteratorBase& iter, SwellType approximate) {
+  if (approximate == SwellType::Tanh) {
+    lib.exec_unary_kernel(iter, "swell_tanh");
+  } else {
+    lib.exec_unary_kernel(iter, "swell");
+  }
+}
 
 REGISTER_DISPATCH(exp_stub, exp_kernel_mps)
+REGISTER_DISPATCH(SwellKernel, swell_kernel_mps)
 
 } // namespace at::native""",
    )


LOSS = """
- func: unlike(Tensor self, Tensor target, int reduction=Mean) -> Tensor
  dispatch:
    CPU: unlike_cpu
    MPS: unlike_mps

- func: unlike.out(Tensor self, Tensor target, int reduction=Mean, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: unlike_out_cpu
    MPS: unlike_out_mps
"""
LOSS_FILES = {
    f"{NATIVE}/Unlike.cpp": """\
namespace {
  static inline at::Tensor reduce(const at::Tensor& whole, int64_t reduction) {
    return reduction == at::Reduction::Mean ? whole.mean() : whole;
  }
}

Tensor unlike_cpu(const Tensor& input, const Tensor& target, int64_t reduction) {
  Tensor loss = at::empty_like(input);
  return at::native::unlike_out_cpu(input, target, reduction, loss);
}

Tensor& unlike_out_cpu(const Tensor& input, const Tensor& target, int64_t reduction, Tensor& loss) {
  auto iter = TensorIteratorConfig()
    .add_output(loss)
    .add_owned_const_input(at::squeeze(input))
    .add_owned_const_input(at::squeeze(target))
    .build();
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, loss.scalar_type(), "unlike", [&] {
    at::native::cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
      TORCH_CHECK(a >= 0, "negative");
      return std::log(a) - b;
    });
  });
  if (reduction != at::Reduction::None) {
    loss.copy_(reduce(loss, reduction));
  }
  return loss;
}
""",
    f"{OPERATIONS}/Unlike.mm": f"""\
#include <ATen/native/mps/OperationUtils.h>

namespace at::native {{

static void build(MPSGraph* mpsGraph, const Tensor& self) {{
  [mpsGraph logarithmWithTensor:nil name:nil];
}}

Tensor& unlike_out_mps(const Tensor& self, const Tensor& target, int64_t reduction, Tensor& out) {{
{GRAPH}  return out;
}}

Tensor unlike_mps(const Tensor& self, const Tensor& target, int64_t reduction) {{
  Tensor out;
{GRAPH}  return out;
}}

}} // namespace at::native
""",
}


def test_a_loop_of_the_cpu_function_becomes_a_launch() -> None:
    assert_expected_inline(
        added(LOSS, LOSS_FILES, "unlike"),
        """\
+++ b/aten/src/ATen/native/mps/kernels/BinaryKernel.metal
@@
         om_t(a) - c10::metal::mul(static_cast<om_t>(alpha), om_t(b)));
   }
 };
+
+struct unlike_functor {
+  template <typename T>
+  inline T operator()(const T a, const T b) {
+    return static_cast<T>(
+        precise::log(static_cast<float>(a)) - static_cast<float>(b));
+  }
+};
 
 #define REGISTER_FLOAT_BINARY_OP(NAME)    \\
   REGISTER_BINARY_OP(NAME, float, float); \\
@@
 
 REGISTER_FLOAT_BINARY_OP(copysign);
 REGISTER_INT2FLOAT_BINARY_OP(copysign);
+REGISTER_FLOAT_BINARY_OP(unlike);
 
 REGISTER_BINARY_ALPHA_OP(sub_alpha, long, long, long);
 REGISTER_BINARY_ALPHA_OP(sub_alpha, int, int, int);
+++ b/aten/src/ATen/native/mps/operations/Unlike.mm
@@
+#include <ATen/TensorIterator.h>
 #include <ATen/native/mps/OperationUtils.h>
+#include <ATen/ops/squeeze.h>
 
 namespace at::native {
+
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
 
 static void build(MPSGraph* mpsGraph, const Tensor& self) {
   [mpsGraph logarithmWithTensor:nil name:nil];
 }
 
+static inline at::Tensor reduce(const at::Tensor& whole, int64_t reduction) {
+  return reduction == at::Reduction::Mean ? whole.mean() : whole;
+}
+
 Tensor& unlike_out_mps(const Tensor& self, const Tensor& target, int64_t reduction, Tensor& out) {
-  MPSGraph* mpsGraph = nil;
-  build(mpsGraph, self);
+  auto iter = TensorIteratorConfig()
+                  .add_output(out)
+                  .add_owned_const_input(at::squeeze(self))
+                  .add_owned_const_input(at::squeeze(target))
+                  .build();
+  lib.exec_binary_kernel(iter, "unlike");
+  if (reduction != at::Reduction::None) {
+    out.copy_(reduce(out, reduction));
+  }
   return out;
 }
 
 Tensor unlike_mps(const Tensor& self, const Tensor& target, int64_t reduction) {
-  Tensor out;
-  MPSGraph* mpsGraph = nil;
-  build(mpsGraph, self);
-  return out;
+  Tensor loss = at::empty_like(self);
+  return at::native::unlike_out_mps(self, target, reduction, loss);
 }
 
 } // namespace at::native""",
    )


def test_a_library_of_another_kernel_file_is_set_apart_from_the_one_of_the_file() -> None:
    host = f"{OPERATIONS}/Unlike.mm"
    of_file = "namespace mps {\nstatic auto& lib = MetalShaderLibrary::getBundledLibrary();\n} // namespace mps\n"
    text = LOSS_FILES[host].replace("namespace at::native {\n", f"namespace at::native {{\n{of_file}", 1)
    texts = {NATIVE_FUNCTIONS: FORK.read(NATIVE_FUNCTIONS) + LOSS, **LOSS_FILES, host: text}
    ported = plan_operator(FORK.layer(texts), "unlike").changes.apply()[host]
    library = "static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();\n"
    scope = (
        f"namespace at::native {{\n\nnamespace binary_kernel_metal {{\n{library}}} // namespace binary_kernel_metal\n\n"
    )
    assert scope in ported and ported.count("auto& lib = ") == 2
    assert '  binary_kernel_metal::lib.exec_binary_kernel(iter, "unlike");' in ported


def test_a_library_of_namespace_mps_is_qualified_in_a_file_outside_of_it() -> None:
    kernels, host = f"{OPERATIONS}/BinaryKernel.mm", f"{OPERATIONS}/Unlike.mm"
    qualified = "static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();\n"
    inside = f"namespace mps {{\n{qualified.replace('mps::', '')}}} // namespace mps\nusing namespace mps;\n"
    model = FORK.read(kernels).replace(qualified, inside)
    assert inside in model
    for before, library in (("", qualified), ("using namespace at::native::mps;\n", qualified.replace("mps::", ""))):
        text = LOSS_FILES[host].replace("namespace at::native {\n", f"{before}namespace at::native {{\n", 1)
        texts = {NATIVE_FUNCTIONS: FORK.read(NATIVE_FUNCTIONS) + LOSS, **LOSS_FILES, host: text, kernels: model}
        assert f"\n{library}" in plan_operator(FORK.layer(texts), "unlike").changes.apply()[host]


def test_the_sum_that_torchgen_generates_is_ported() -> None:
    rows = """
- func: total.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  ufunc_inner_loop:
    Generic: total (AllAndComplex, BFloat16, Half)
  dispatch:
    MPS: total_out_mps
"""
    files = {
        f"{NATIVE}/Total.h": "DECLARE_DISPATCH(void (*)(TensorIteratorBase&, const Scalar& alpha), total_stub)\n",
        f"{NATIVE}/Total.cpp": """\
TORCH_META_FUNC2(total, Tensor) (const Tensor& self, const Tensor& other, const Scalar& alpha) {
  build_borrowing_binary_op(maybe_get_output(), self, other);
}
TORCH_META_FUNC(total) (const Tensor& self, const Tensor& other, const Scalar& alpha) {
  build_borrowing_binary_op(maybe_get_output(), self, other);
}
""",
        f"{NATIVE}/ufunc/total.h": """\
template <typename T>
C10_HOST_DEVICE C10_ALWAYS_INLINE T total(T self, T other, T alpha) {
  return self + alpha * other;
}
""",
        f"{OPERATIONS}/Total.mm": f"""\
TORCH_IMPL_FUNC(total_out_mps)(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& output) {{
{GRAPH}}}
""",
    }
    assert_expected_inline(
        added(rows, files, "total"),
        """\
+++ b/aten/src/ATen/native/mps/kernels/BinaryKernel.metal
@@
         om_t(a) - c10::metal::mul(static_cast<om_t>(alpha), om_t(b)));
   }
 };
+
+struct total_functor {
+  template <typename T, typename A>
+  inline enable_if_t<!is_complex_v<T>, T> operator()(
+      const T a,
+      const T b,
+      const A alpha) {
+    return static_cast<T>(
+        static_cast<opmath_t<T>>(a) +
+        static_cast<opmath_t<T>>(alpha) * static_cast<opmath_t<T>>(b));
+  }
+  template <typename T, typename A>
+  inline enable_if_t<is_complex_v<T>, T> operator()(
+      const T a,
+      const T b,
+      const A alpha) {
+    return static_cast<T>(
+        static_cast<A>(a) + c10::metal::mul(alpha, static_cast<A>(b)));
+  }
+};
 
 #define REGISTER_FLOAT_BINARY_OP(NAME)    \\
   REGISTER_BINARY_OP(NAME, float, float); \\
@@
 REGISTER_BINARY_ALPHA_OP(sub_alpha, bfloat, float, bfloat);
 REGISTER_BINARY_ALPHA_OP(sub_alpha, float2, float2, float2);
 REGISTER_BINARY_ALPHA_OP(sub_alpha, half2, float2, half2);
+
+REGISTER_BINARY_ALPHA_OP(total, float, float, float);
+REGISTER_BINARY_ALPHA_OP(total, half, float, half);
+REGISTER_BINARY_ALPHA_OP(total, bfloat, float, bfloat);
+REGISTER_BINARY_ALPHA_OP(total, long, long, long);
+REGISTER_BINARY_ALPHA_OP(total, int, int, int);
+REGISTER_BINARY_ALPHA_OP(total, short, short, short);
+REGISTER_BINARY_ALPHA_OP(total, uchar, uchar, uchar);
+REGISTER_BINARY_ALPHA_OP(total, char, char, char);
+REGISTER_BINARY_ALPHA_OP(total, bool, bool, bool);
+REGISTER_BINARY_ALPHA_OP(total, float2, float2, float2);
+REGISTER_BINARY_ALPHA_OP(total, half2, float2, half2);
+++ b/aten/src/ATen/native/mps/operations/BinaryKernel.mm
@@
 #include <ATen/OpMathType.h>
 #include <ATen/TensorIterator.h>
 #include <ATen/native/BinaryOps.h>
+#include <ATen/native/Total.h>
 #include <ATen/native/mps/MetalShaderLibrary.h>
 
 #ifndef AT_PER_OPERATOR_HEADERS
@@
 static void copysign_mps_kernel(TensorIteratorBase& iter) {
   lib.exec_binary_kernel(iter, "copysign");
 }
+
+static void total_mps_kernel(TensorIteratorBase& iter, const Scalar& alpha) {
+  lib.exec_binary_kernel(iter, "total", alpha, at::toOpMathType(iter.common_dtype()));
+}
 
 REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)
+REGISTER_DISPATCH(total_stub, &total_mps_kernel)
 
 // Half would round alpha away: it is passed in the type the kernel computes in
 TORCH_IMPL_FUNC(sub_out_mps)(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& output) {
+++ b/aten/src/ATen/native/mps/operations/Total.mm
@@
+#include <ATen/native/Total.h>
 TORCH_IMPL_FUNC(total_out_mps)(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& output) {
-  MPSGraph* mpsGraph = nil;
-  build(mpsGraph, self);
+  total_stub(device_type(), *this, alpha);
 }""",
    )
