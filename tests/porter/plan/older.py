"""Takes from a copy of the embedded fork what forks older than its dialect lack."""

from __future__ import annotations

import re
from pathlib import Path

from porter.core.layout import INDEXING, KERNEL_LIBRARY, MPS

LIBRARY = f"{MPS}/MetalShaderLibrary.mm"
_CASTOUT_KERNEL = r"// The same, and writes the output in the last type of.*?\n\}\n\n"
_CASTOUT_MACRO = r"// For outputs of another type than the functor's.*?(?=#define REGISTER_TERNARY_OP_)"
_TERNARY_KERNELS = r"// Three operands: .*?(?=#define C10_METAL_CHECK_RESULT)"
_TERNARY_MACROS = r"#define REGISTER_TERNARY_OP_\(.*?(?=\} // namespace metal\n)"


def remove_launchers(root: Path) -> None:
    """Leaves a library of kernels that launches none of three elements, and none with a struct."""
    _cut(root, KERNEL_LIBRARY, r"\n  // Runs a kernel registered with REGISTER_TERNARY_OP.*?(?=\n protected:)")
    _cut(root, LIBRARY, r"\nvoid MetalShaderLibrary::exec_ternary_kernel\(.*?\n\}\n")


def remove_castout(root: Path) -> None:
    """Leaves headers without the binary kernel that casts its results."""
    _cut(root, INDEXING, _CASTOUT_KERNEL)
    _cut(root, INDEXING, _CASTOUT_MACRO)


def remove_ternary_kernels(root: Path) -> None:
    """Leaves headers without kernels of three elements."""
    _cut(root, INDEXING, _TERNARY_KERNELS)
    _cut(root, INDEXING, _TERNARY_MACROS)


def remove_result_type(root: Path) -> None:
    """Leaves a library whose launcher of binary kernels is not given the type of results."""
    _cut(root, KERNEL_LIBRARY, r"      const std::optional<c10::ScalarType> natural_output_dtype = std::nullopt,\n", 2)
    _cut(root, LIBRARY, r" +const std::optional<ScalarType> natural_output_dtype,\n", 2)
    text = (root / LIBRARY).read_text()
    for passed, now in (
        ("params, natural_output_dtype, ", "params, "),
        ("params, natural, ", "params, "),
        ("none, natural_output_dtype, ", "none, "),
        ("natural_output_dtype.value_or(common)", "common"),
    ):
        assert passed in text
        text = text.replace(passed, now)
    assert "natural_output_dtype" not in text
    (root / LIBRARY).write_text(text)


def name_kernels_by_outputs(root: Path) -> None:
    """Leaves a launcher of binary kernels as PyTorch 2.15's: it asks for what writes the type of the output."""
    _cut(root, LIBRARY, r"  if \(output\.scalar_type\(\) != natural && !casts_out\) \{\n.*?\n  \}\n")
    text = (root / LIBRARY).read_text()
    for before, now in (
        ("natural_output_dtype.value_or(common)", "natural_output_dtype.value_or(output.scalar_type())"),
        ("natural && !params && hasFunction(castout)", "natural"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, now)
    # `natural` is of the output, which stands below it in the embedded fork
    output = "  const Tensor output = iter.output(0);\n"
    start = text.index("void MetalShaderLibrary::exec_binary_kernel(", text.index("const Params* none"))
    at = text.index("  const auto natural =", start)
    text = text[:at] + output + text[at:].replace(output, "", 1)
    (root / LIBRARY).write_text(text)


def name_scalar_kernels_by_outputs(root: Path) -> None:
    """The same of unary kernels with a scalar and of ternary ones, and of the templates that take a struct."""
    converting = (
        r"    if \(!hasFunction\(kernel\) && output\.scalar_type\(\) != iter\.common_dtype\(\)\) \{\n.*?\n    \}\n"
    )
    _cut(root, LIBRARY, converting)
    _cut(root, LIBRARY, r"  casts \|= !hasFunction\(kernel\);\n")
    text = (root / LIBRARY).read_text()
    for before in ("metal_type(output.scalar_type())", "metal_type(operands[0].scalar_type())"):
        assert text.count(before) == 1
        text = text.replace(before, "scalarToMetalTypeString(iter.output(0))")
    (root / LIBRARY).write_text(text)
    header = (root / KERNEL_LIBRARY).read_text()
    body = header[
        header.index(" {\n    const Params bytes{") : header.index("\n  template <typename T>\n  void exec_binary")
    ]
    (root / KERNEL_LIBRARY).write_text(header.replace(body, ";", 1))
    utilities = root / MPS / "OperationUtils.h"
    text = utilities.read_text()
    at = text.rindex("} // namespace at::native::mps")
    utilities.write_text(f"{text[:at]}{_WITH_PARAMS}\n{text[at:]}")


_WITH_PARAMS = """template <typename T>
void MetalShaderLibrary::exec_unary_kernel_with_params(
    TensorIteratorBase& iter,
    const std::string& name,
    T params,
    const std::string& params_type_name,
    const std::optional<uint32_t> ilp_threshold) {
  const auto kernel =
      name + "_dense_" + scalarToMetalTypeString(iter.output(0)) + "_" + scalarToMetalTypeString(iter.input(0));
  TORCH_CHECK(hasFunction(kernel + "_" + params_type_name), "Failed to create function state object for: ", kernel);
  const Params bytes{&params, sizeof(T), params_type_name};
  exec_unary_kernel(iter, name, &bytes, ilp_threshold);
}
"""


def _cut(root: Path, path: str, pattern: str, count: int = 1) -> None:
    text, cuts = re.subn(pattern, "", (root / path).read_text(), flags=re.S)
    assert cuts == count, (path, pattern, cuts)
    (root / path).write_text(text)
