"""The layout of a PyTorch fork: the paths that porter reads or writes, relative to the fork's root.

Files that depend on the operator (the kernel file of a stub, the file of an implementation) are searched for instead.
"""

from __future__ import annotations

from collections.abc import Mapping

C10 = "c10"
ATEN_ROOT = "aten/src"  # what `#include <ATen/...>` is relative to
ATEN = f"{ATEN_ROOT}/ATen"
NATIVE = f"{ATEN}/native"
CPU_KERNELS = f"{NATIVE}/cpu"
CUDA_KERNELS = f"{NATIVE}/cuda"
NATIVE_FUNCTIONS = f"{NATIVE}/native_functions.yaml"

# The mps device: its allocator, streams and generator. Its operators are below `native`.
DEVICE = f"{ATEN}/mps"
MPS = f"{NATIVE}/mps"
OPERATION_UTILS = f"{MPS}/OperationUtils.mm"
KERNEL_LIBRARY = f"{MPS}/MetalShaderLibrary.h"
OPERATIONS = f"{MPS}/operations"
KERNELS = f"{MPS}/kernels"

# Headers that kernel files include; host code includes some of them too.
METAL_HEADERS = f"{C10}/metal"
INDEXING = f"{METAL_HEADERS}/indexing.h"  # the REGISTER_*_OP macros
UTILS = f"{METAL_HEADERS}/utils.h"  # traits of element types, arithmetic of complex numbers
RANDOM = f"{METAL_HEADERS}/random.h"  # Philox, which draws random numbers
COMMON = f"{METAL_HEADERS}/common.h"  # the number of elements a thread of a strided kernel has
SPECIAL_MATH = f"{METAL_HEADERS}/special_math.h"

OPINFOS = "torch/testing/_internal/common_methods_invocations.py"
OPINFO_DEFINITIONS = "torch/testing/_internal/opinfo/definitions"
TEST_MPS = "test/test_mps.py"
EXPECTED_DECOMPOSITIONS = "test/expect/HasDecompTest.test_has_decomposition.expect"
DERIVATIVES = "tools/autograd/derivatives.yaml"
DOCSTRINGS = "torch/_torch_docs.py"
FUNCTION_LIST = "docs/source/torch.rst"  # the functions that the documentation lists
# The expected failures on MPS; older forks have them in test_mps.py.
COMMON_MPS = "torch/testing/_internal/common_mps.py"
TEST_LISTS = (COMMON_MPS, TEST_MPS)

# What configures a contributor's tools. spin reads the first of its files that has commands.
PROJECT = "pyproject.toml"
SPIN_FILES = (".spin.toml", "spin.toml", PROJECT)
SPIN_COMMANDS = ".spin/cmds.py"
SPIN_PORTER = ".spin/porter.py"
LINTRUNNER = ".lintrunner.toml"
PRE_COMMIT = ".pre-commit-config.yaml"
MATCHER = ".github/porter-matcher.json"
# The files whose lines porter lints, as lintrunner spells them.
LINTED = (
    f"{MPS}/**", NATIVE_FUNCTIONS, f"{METAL_HEADERS}/**", TEST_MPS, "torch/testing/_internal/**",
)  # fmt: skip

CLANG_FORMAT = ".clang-format"
VERSION = "version.txt"

# The folder in the fork for the first folder of an `#include <...>`.
INCLUDE_ROOTS: Mapping[str, str] = {"ATen/": f"{ATEN}/", "c10/": f"{C10}/"}


def spell_include(path: str) -> str:
    """Returns a path as `#include <...>` spells it: relative to `aten/src` if it is below that folder."""
    return path.removeprefix(f"{ATEN_ROOT}/")
