"""Changes with one planted fault each, and clean ones: how many of them `porter review --no-verify` tells apart.

    python tools/review_cases.py            # counts
    python tools/review_cases.py --list     # each change, and the rules that report it

The changes are edits of the embedded fork, made in memory. Ten faults stand in files that porter never wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from porter.review.rule import Case, Finding, host_case, metal_case, run_rules
from porter.review.rules import RULES
from shared.arguments import parser

OPERATIONS = "aten/src/ATen/native/mps/operations"
KERNELS = "aten/src/ATen/native/mps/kernels"
ROWS = "aten/src/ATen/native/native_functions.yaml"
UNARY, BINARY = f"{KERNELS}/UnaryKernel.metal", f"{KERNELS}/BinaryKernel.metal"
UNARY_HOST, BINARY_HOST = f"{OPERATIONS}/UnaryKernel.mm", f"{OPERATIONS}/BinaryKernel.mm"
OLD_UNARY, OLD_BINARY = f"{OPERATIONS}/UnaryOps.mm", f"{OPERATIONS}/BinaryOps.mm"
LISTS, TESTS = "torch/testing/_internal/common_mps.py", "test/test_mps.py"

# A port of erf by hand: its row, registration, kernels, and the old path deleted.
ERF_ROW = (ROWS, "    CPU, CUDA, MTIA: erf_out\n    MPS: erf_out_mps\n", "    CPU, CUDA, MPS, MTIA: erf_out\n")
ERF_HOST = (
    UNARY_HOST,
    "REGISTER_DISPATCH(exp_stub, exp_kernel_mps)\n",
    "static void erf_kernel_mps(TensorIteratorBase& iter) {\n"
    '  lib.exec_unary_kernel(iter, "erf");\n'
    "}\n\n"
    "REGISTER_DISPATCH(exp_stub, exp_kernel_mps)\n"
    "REGISTER_DISPATCH(erf_stub, erf_kernel_mps)\n",
)
ERF_TYPES = ("bool", "uchar", "char", "short", "int", "long", "float")
ERF_LINES = "".join(f"REGISTER_UNARY_OP(erf, {kind}, float);\n" for kind in ERF_TYPES) + (
    "REGISTER_UNARY_OP(erf, half, half);\nREGISTER_UNARY_OP(erf, bfloat, bfloat);\n"
)
ERF_FUNCTOR = """struct erf_functor {
  template <typename T>
  inline enable_if_t<is_scalar_floating_point_v<T>, T> operator()(const T x) {
    return static_cast<T>(c10::metal::erf(static_cast<float>(x)));
  }
  template <typename T>
  inline enable_if_t<is_scalar_integral_v<T>, float> operator()(const T x) {
    return c10::metal::erf(static_cast<float>(x));
  }
};

"""
FIRST_LINE = "REGISTER_UNARY_OP(exp, bool, float);\n"
ERF_KERNELS = (UNARY, FIRST_LINE, ERF_FUNCTOR + ERF_LINES + FIRST_LINE)
ERF_OLD = (OLD_UNARY, "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n", "")
ERF_INCLUDE = (OLD_UNARY, "#include <ATen/ops/erf_native.h>\n", "")
ERF_PORT = (ERF_ROW, ERF_HOST, ERF_KERNELS, ERF_OLD, ERF_INCLUDE)

# Kernels and host code of a person, in a file that porter never wrote.
ROLL = """template <typename T>
kernel void rotate_rows(
    device const T* input [[buffer(0)]],
    device T* output [[buffer(1)]],
    constant long* strides [[buffer(2)]],
    constant uint& columns [[buffer(3)]],
    uint2 position [[thread_position_in_grid]]) {
  const ulong source = position.y * strides[0] + position.x * strides[1];
  output[ulong(position.y) * columns + position.x] = input[source];
}

#define REGISTER_ROTATE(DTYPE) \\
  template [[host_name("rotate_rows_" #DTYPE)]] kernel void rotate_rows<DTYPE>( \\
      device const DTYPE*, device DTYPE*, constant long*, constant uint&, uint2)

REGISTER_ROTATE(float);
REGISTER_ROTATE(half);
"""
ROLL_HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static void rotate_rows_mps(const Tensor& self, Tensor& output) {
  const uint32_t columns = static_cast<uint32_t>(self.size(1));
  auto stream = mps::getCurrentMPSStream();
  auto state = lib.getPipelineStateForFunc(fmt::format("rotate_rows_{}", mps::scalarToMetalTypeString(self)));
  auto encoder = stream->commandEncoder();
  [encoder setComputePipelineState:state];
  mps::mtl_setArgs(encoder, self, output, self.strides(), columns);
  [encoder dispatchThreads:MTLSizeMake(columns, self.size(0), 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
}

} // namespace at::native
"""
SUMS = """struct SumParams {
  int64_t rows;
  int32_t columns;
};

kernel void row_sums(
    device const float* input [[buffer(0)]],
    device float* output [[buffer(1)]],
    constant SumParams& params [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[32];
  float sum = 0.0f;
  for (uint column = thread_id; column < uint(params.columns); column += threads) {
    sum += input[ulong(row) * params.columns + column];
  }
  const float total = simd_sum(sum);
  if (lane == 0) {
    partial[group] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_id == 0) {
    float all = 0.0f;
    for (uint index = 0; index < (threads + 31) / 32; index++) {
      all += partial[index];
    }
    output[row] = all;
  }
}
"""
SUMS_HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {
namespace {
struct SumParams {
  int64_t rows;
  int32_t columns;
};
} // namespace

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static void row_sums_mps(const Tensor& self, const Scalar& alpha, Tensor& output) {
  const auto input = self.contiguous();
  SumParams params{input.size(0), static_cast<int32_t>(input.size(1))};
  auto state = lib.getPipelineStateForFunc("row_sums");
  mps::mtl_setArgs(encoder, input, output, params);
}

} // namespace at::native
"""


def edited(case: Case, *edits: tuple[str, str]) -> Case:
    """A case of new files with parts of them replaced. Raises ValueError for a part that is not there once."""
    files = dict(case.files)
    for old, new in edits:
        (path,) = [name for name, text in files.items() if text.count(old) == 1] or [""]
        if not path:
            raise ValueError(f"not once: {old!r}")
        files[path] = files[path].replace(old, new)
    return Case(files)


ROTATE = host_case(ROLL_HOST, ROLL)
SUM = host_case(SUMS_HOST, SUMS)


def port(*others: tuple[str, str, str], without: tuple[str, str, str] | None = None) -> Case:
    """The port of erf with more edits, or without one of its own."""
    return Case(edits=(*(edit for edit in ERF_PORT if edit != without), *others))


def in_port(old: str, new: str) -> Case:
    """The port of erf with a part of what it writes replaced."""
    edits = tuple((path, before, after.replace(old, new)) for path, before, after in ERF_PORT)
    if edits == ERF_PORT:
        raise ValueError(f"the port does not have {old!r}")
    return Case(edits=edits)


# What is planted, the rule that has to report it, and the change.
PLANTED: Mapping[str, tuple[str, Case]] = {
    "a double literal": ("double-literal", in_port("return static_cast<T>(c10", "return static_cast<T>(1.0 * c10")),
    "fast math": ("fast-math", in_port("return c10::metal::erf(", "return metal::fast::exp(")),
    "a tanh that overflows": ("imprecise-tanh", in_port("return c10::metal::erf(", "return metal::tanh(")),
    "half arithmetic": (
        "half-arithmetic",
        in_port("return static_cast<T>(c10::metal::erf(static_cast<float>(x)));", "return x * x + x;"),
    ),
    "integers through float": (
        "integer-through-float",
        Case(
            edits=(
                (
                    BINARY,
                    "REGISTER_FLOAT_BINARY_OP(copysign);\n",
                    "struct wrap_functor {\n  template <typename T>\n  inline T operator()(const T a, const T b) {\n"
                    "    return static_cast<T>(metal::fmod(float(a), float(b)));\n  }\n};\n"
                    "REGISTER_INTEGER_BINARY_OP(wrap);\nREGISTER_FLOAT_BINARY_OP(copysign);\n",
                ),
            )
        ),
    ),
    "a misspelled functor": (
        "unknown-kernel",
        in_port('exec_unary_kernel(iter, "erf")', 'exec_unary_kernel(iter, "erff")'),
    ),
    "a type without a kernel": ("missing-dtype", in_port("REGISTER_UNARY_OP(erf, bfloat, bfloat);\n", "")),
    "a registration twice": (
        "duplicate-registration",
        in_port("(erf, short, float);\n", "(erf, short, float);\nREGISTER_UNARY_OP(erf, short, float);\n"),
    ),
    "a type lost": ("lost-dtype", Case(edits=((UNARY, "REGISTER_UNARY_OP(exp, float2, float2);\n", ""),))),
    "the old function left": ("old-path-left", port(without=ERF_OLD)),
    "a stale include": ("stale-include", port(without=ERF_INCLUDE)),
    "no registration of the stub": ("row-without-code", in_port("REGISTER_DISPATCH(erf_stub, erf_kernel_mps)\n", "")),
    "a branch on macOS": (
        "macos-branch",
        in_port(
            '  lib.exec_unary_kernel(iter, "erf")',
            "  if (!is_macos_at_least(MacOSVersion::MACOS_15_0)) {\n"
            "    return;\n"
            "  }\n"
            '  lib.exec_unary_kernel(iter, "erf")',
        ),
    ),
    "a limit of MPSGraph": (
        "graph-limit",
        in_port(
            '  lib.exec_unary_kernel(iter, "erf")',
            '  TORCH_CHECK(iter.dtype() != kLong, "MPS does not support erf op with int64 input");\n'
            '  lib.exec_unary_kernel(iter, "erf")',
        ),
    ),
    "an entry twice": (
        "duplicate-list-entry",
        Case(
            edits=(
                (
                    LISTS,
                    '            "hypot": [torch.float16],\n',
                    '            "hypot": [torch.float16],\n'
                    "            # Also\n"
                    '            "hypot": [torch.bfloat16],\n',
                ),
            )
        ),
    ),
    "an entry of no operator": (
        "unknown-list-entry",
        port(
            (
                LISTS,
                '            "hypot": [torch.float16],\n',
                '            "hypot": [torch.float16],\n'
                "            # Rounds\n"
                '            "erf_": [torch.float16],\n'
                "            # Rounds\n"
                '            "errf": [torch.float16],\n',
            )
        ),
    ),
    "a test silenced": (
        "new-list-entry",
        port(
            (
                LISTS,
                '            "hypot": [torch.float16],\n',
                '            "hypot": [torch.float16],\n            "erf": [torch.float16],\n',
            )
        ),
    ),
    "a skip without a cause removed": (
        "unproven-removal",
        Case(edits=((LISTS, '            "logaddexp": [torch.float16, torch.bfloat16],\n', ""),)),
    ),
    "a tolerance guessed": (
        "loosened-tolerance",
        Case(
            edits=(
                (
                    TESTS,
                    "actual, expected, exact_device=False",
                    "actual, expected, exact_device=False, atol=0.1, rtol=0.1",
                ),
            )
        ),
    ),
    "a test of the CPU": (
        "test-without-device",
        Case(
            edits=(
                (
                    TESTS,
                    "instantiate_device_type_tests(T",
                    "class TestErf(TestCase):\n"
                    "    def test_erf(self):\n"
                    "        self.assertEqual(torch.zeros(2).erf(), torch.zeros(2))\n"
                    "\n"
                    "\n"
                    "instantiate_device_type_tests(T",
                ),
            )
        ),
    ),
    "a 32-bit offset": ("index-width", edited(ROTATE, ("const ulong source", "const uint source"))),
    "a writable input": ("read-only-writable", edited(ROTATE, ("    device const T* input", "    device T* input"))),
    "a name of no kernel": (
        "unknown-kernel",
        edited(ROTATE, ('fmt::format("rotate_rows_{}"', 'fmt::format("rotated_rows_{}"')),
    ),
    "ignored strides": (
        "ignored-strides",
        edited(ROTATE, ("self, output, self.strides(), columns", "self, output, columns")),
    ),
    "an ignored storage offset": (
        "storage-offset",
        edited(
            ROTATE,
            (
                "  mps::mtl_setArgs(encoder, self,",
                "  [encoder setBuffer:getMTLBufferStorage(self) offset:0 atIndex:0];\n  mps::mtl_setArgs<1>(encoder,",
            ),
        ),
    ),
    "a missing barrier": ("missing-barrier", edited(SUM, ("  threadgroup_barrier(mem_flags::mem_threadgroup);\n", ""))),
    "a simdgroup's sum as the total": (
        "simdgroup-total",
        Case(
            {
                **SUM.files,
                f"{KERNELS}/Planted.metal": SUM.files[f"{KERNELS}/Planted.metal"]
                .split("  const float total")[0]
                .replace("  threadgroup float partial[32];\n", "")
                .replace(
                    "    uint lane [[thread_index_in_simdgroup]],\n    uint group [[simdgroup_index_in_threadgroup]]",
                    "    uint unused [[thread_position_in_grid]]",
                )
                + "  const float total = simd_sum(sum);\n  if (thread_id == 0) {\n    output[row] = total;\n  }\n}\n",
            }
        ),
    ),
    "a struct of another layout": (
        "struct-layout",
        Case({**SUM.files, f"{OPERATIONS}/Planted.mm": SUMS_HOST.replace("int64_t rows;", "int32_t rows;")}),
    ),
    "a return before a barrier": (
        "divergent-barrier",
        edited(
            SUM,
            (
                "  threadgroup float partial[32];\n",
                "  threadgroup float partial[32];\n  if (thread_id >= uint(params.columns)) {\n    return;\n  }\n",
            ),
        ),
    ),
    "a shortcut for zero": (
        "zero-shortcut",
        edited(
            SUM,
            (
                "  const auto input",
                "  if (alpha.toDouble() == 0.0) {\n    output.zero_();\n    return;\n  }\n  const auto input",
            ),
        ),
    ),
}
ELSEWHERE = 10  # the last ten stand in files of a person's own

COMMENT = "// Half would round alpha away: it is passed in the type the kernel computes in\n"
CLEAN: Mapping[str, Case] = {
    "the port": port(),
    "the port in float4 steps": in_port(
        "return c10::metal::erf(static_cast<float>(x));",
        "const float wide = static_cast<float>(x);\n    return c10::metal::erf(wide);",
    ),
    "the port with halves of complex": Case(
        edits=(
            (
                UNARY,
                "REGISTER_UNARY_OP(exp, float2, float2);\n",
                "REGISTER_UNARY_OP(exp, float2, float2);\nREGISTER_UNARY_OP(exp, half2, half2);\n",
            ),
        )
    ),
    "the port in another order": in_port(
        "REGISTER_UNARY_OP(erf, half, half);\nREGISTER_UNARY_OP(erf, bfloat, bfloat);\n",
        "REGISTER_UNARY_OP(erf, bfloat, bfloat);\nREGISTER_UNARY_OP(erf, half, half);\n",
    ),
    "the port by address": in_port("(erf_stub, erf_kernel_mps)", "(erf_stub, &erf_kernel_mps)"),
    "the port with a threshold": in_port('(iter, "erf")', '(iter, "erf", std::nullopt, std::nullopt, 4096)'),
    "the port with an entry explained": port(
        (
            LISTS,
            '            "hypot": [torch.float16],\n',
            '            "hypot": [torch.float16],\n'
            "            # bfloat16 is off by one ULP at 0.3\n"
            '            "erf": [torch.bfloat16],\n',
        )
    ),
    "rows of a person": ROTATE,
    "rows of a person, for bfloat too": edited(
        ROTATE, ("REGISTER_ROTATE(half);", "REGISTER_ROTATE(half);\nREGISTER_ROTATE(bfloat);")
    ),
    "rows of a person, contiguous": edited(
        ROTATE, ("self, output, self.strides(), columns", "self.contiguous(), output, self.strides(), columns")
    ),
    "rows of a person, by size_t": edited(ROTATE, ("const ulong source", "const size_t source")),
    "rows of a person, wide columns": edited(
        ROTATE,
        ("    constant uint& columns", "    constant ulong& columns"),
        ("const uint32_t columns = static_cast<uint32_t>(self.size(1))", "const int64_t columns = self.size(1)"),
    ),
    "sums of a person": SUM,
    "sums of a person, first thread of a simdgroup": edited(
        SUM, ("if (thread_id == 0) {", "if (lane == 0 && group == 0) {")
    ),
    "sums of a person, by a name of its own": edited(
        SUM, ("  const float total = simd_sum(sum);", "  const float total = metal::simd_sum(sum);")
    ),
    "sums of a person, early out for all": edited(
        SUM,
        (
            "  threadgroup float partial[32];\n",
            "  threadgroup float partial[32];\n  if (params.columns == 0) {\n    return;\n  }\n",
        ),
    ),
    "sums of a person, with alpha": edited(
        SUM,
        (
            "  const auto input",
            '  const auto factor = alpha.to<float>();\n  TORCH_CHECK(factor >= 0, "negative");\n  const auto input',
        ),
    ),
    "a comment changed": Case(edits=((BINARY_HOST, COMMENT, COMMENT.replace("Half", "A half")),)),
    "a comment of a kernel": Case(
        edits=((UNARY, "struct exp_functor {", "// As the CPU computes it\nstruct exp_functor {"),)
    ),
    "a local renamed": Case(
        edits=(
            (
                UNARY,
                "    const float angle = static_cast<float>(x.y);\n"
                "    if (angle == 0) {\n"
                "      return T(scale, angle);\n"
                "    }\n"
                "    return T(scale * precise::cos(angle), scale * precise::sin(angle));",
                "    const float phase = static_cast<float>(x.y);\n"
                "    if (phase == 0) {\n"
                "      return T(scale, phase);\n"
                "    }\n"
                "    return T(scale * precise::cos(phase), scale * precise::sin(phase));",
            ),
        )
    ),
    "a host function renamed": Case(
        edits=(
            (UNARY_HOST, "static void exp_kernel_mps(", "static void exp_mps_kernel("),
            (UNARY_HOST, "REGISTER_DISPATCH(exp_stub, exp_kernel_mps)", "REGISTER_DISPATCH(exp_stub, exp_mps_kernel)"),
        )
    ),
    "an entry widened with its reason": Case(
        edits=(
            (
                LISTS,
                '            # The squares overflow in half precision\n            "hypot": [torch.float16],\n',
                "            # The squares overflow in half precision, and 8 digits are lost\n"
                '            "hypot": [torch.float16, torch.bfloat16],\n',
            ),
        )
    ),
    "an entry of nothing removed": Case(
        edits=((LISTS, '            # Not an operator of this fork\n            "igamma": None,\n', ""),)
    ),
    "a test of the device": Case(
        edits=(
            (
                TESTS,
                "instantiate_device_type_tests(T",
                "class TestErf(TestCase):\n"
                "    def test_erf(self):\n"
                '        x = torch.zeros(2, device="mps")\n'
                "        self.assertEqual(x.erf(), x)\n"
                "\n"
                "\n"
                "instantiate_device_type_tests(T",
            ),
        )
    ),
    "a tolerance measured": Case(
        edits=(
            (
                TESTS,
                "            self.assertEqual(actual, expected, exact_device=False)",
                "            # exp in half: 1 ULP, 9.8e-4\n"
                "            self.assertEqual(actual, expected, exact_device=False, atol=1e-3, rtol=1e-3)",
            ),
        )
    ),
    "a graph mended": Case(
        edits=(
            (
                OLD_UNARY,
                "  if (self.numel() == 0) {\n    return;\n  }\n",
                "  if (output_.numel() == 0) {\n    return;\n  }\n",
            ),
        )
    ),
    "a graph's limit kept": Case(
        edits=(
            (
                OLD_UNARY,
                '"MPS does not support log1p op with int64 input"',
                '"MPS does not support log1p with int64 input"',
            ),
        )
    ),
    "a helper of c10::metal": metal_case(
        "template <typename T>\n"
        "inline T half_of(const T x) {\n"
        "  return static_cast<T>(static_cast<float>(x) * 0.5f);\n"
        "}\n"
    ),
    "a checked index": host_case(
        'void f() {\n  auto state = lib.getPipelineStateForFunc("put_rows");\n}\n',
        "kernel void put_rows(device float* out [[buffer(0)]], device const long* rows [[buffer(1)]],\n"
        "    constant long& size [[buffer(2)]], uint index [[thread_position_in_grid]]) {\n"
        "  const long row = rows[index];\n  if (row < 0 || row >= size) {\n    return;\n  }\n  out[row] = 1.0f;\n}\n",
    ),
    "a functor removed with its use": Case(
        edits=(
            (
                BINARY_HOST,
                "static void copysign_mps_kernel(TensorIteratorBase& iter) {\n"
                '  lib.exec_binary_kernel(iter, "copysign");\n'
                "}\n"
                "\n",
                "static void copysign_mps_kernel(TensorIteratorBase& iter) {\n"
                '  const auto name = "copysign";\n'
                "  lib.exec_binary_kernel(iter, name);\n"
                "}\n"
                "\n",
            ),
        )
    ),
}


def review_case(case: Case) -> tuple[Finding, ...]:
    """What every rule says of a change."""
    return run_rules(RULES, case.make_change())


def main(arguments: list[str] | None = None) -> int:
    """Prints how many planted faults are reported by their rule, and how many clean changes have findings."""
    options = parser(__doc__ or "")
    options.add_argument("--list", action="store_true", help="print each change, and the rules that report it")
    shown = options.parse_args(arguments).list
    reported = quiet = 0
    for name, (rule, case) in PLANTED.items():
        rules = sorted({finding.rule for finding in review_case(case)})
        reported += rule in rules
        if shown or rule not in rules:
            print(f"{'reported' if rule in rules else 'MISSED'}: {name}: {', '.join(rules) or 'nothing'}")
    for name, case in CLEAN.items():
        findings = review_case(case)
        quiet += not findings
        if shown or findings:
            print(
                f"{'quiet' if not findings else 'WRONG'}: {name}",
                *(f"  {f.place}: {f.rule}: {f.what}" for f in findings),
                sep="\n",
            )
    print(f"{reported} of {len(PLANTED)} planted faults are reported by their rule")
    print(f"{quiet} of {len(CLEAN)} clean changes have no finding")
    return 0 if reported >= len(PLANTED) - 2 and quiet == len(CLEAN) else 1


if __name__ == "__main__":
    sys.exit(main())
