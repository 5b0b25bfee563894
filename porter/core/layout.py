"""Where things are in a PyTorch fork: every path that porter reads or writes, relative to its root.

A path that only a plan tells (the kernel file of a stub, the file of an implementation) is found, not listed here.
"""

from __future__ import annotations

from collections.abc import Mapping

C10 = "c10"
ATEN_ROOT = "aten/src"  # what `#include <ATen/...>` is relative to
ATEN = f"{ATEN_ROOT}/ATen"
NATIVE = f"{ATEN}/native"
CPU_KERNELS = f"{NATIVE}/cpu"
NATIVE_FUNCTIONS = f"{NATIVE}/native_functions.yaml"

# The mps device: its allocator, streams and generator. What its operators share and run is below `native`.
DEVICE = f"{ATEN}/mps"
MPS = f"{NATIVE}/mps"
OPERATION_UTILS = f"{MPS}/OperationUtils.mm"
KERNEL_LIBRARY = f"{MPS}/MetalShaderLibrary.h"
OPERATIONS = f"{MPS}/operations"
KERNELS = f"{MPS}/kernels"

# Headers that kernel files include; host code includes some of them too.
METAL_HEADERS = f"{C10}/metal"
INDEXING = f"{METAL_HEADERS}/indexing.h"  # the REGISTER_*_OP macros
COMMON = f"{METAL_HEADERS}/common.h"  # the number of elements a thread of a strided kernel has
SPECIAL_MATH = f"{METAL_HEADERS}/special_math.h"

OPINFOS = "torch/testing/_internal/common_methods_invocations.py"
OPINFO_DEFINITIONS = "torch/testing/_internal/opinfo/definitions"
TEST_MPS = "test/test_mps.py"
# What is expected to fail on MPS: newer forks have it in a module of its own.
COMMON_MPS = "torch/testing/_internal/common_mps.py"
TEST_LISTS = (COMMON_MPS, TEST_MPS)

CLANG_FORMAT = ".clang-format"
VERSION = "version.txt"

# What the first folder of an `#include <...>` is in the fork.
INCLUDE_ROOTS: Mapping[str, str] = {"ATen/": f"{ATEN}/", "c10/": f"{C10}/"}


def spell_include(path: str) -> str:
    """How an `#include <...>` spells a file below `aten/src`; another file as it is."""
    return path.removeprefix(f"{ATEN_ROOT}/")
