"""Makes an older PyTorch tree modern enough to plan on: newer c10/metal headers and the embedded fork's host side of
the dialect.

    python tools/modernize.py OLD_TREE HEADERS NEW_TREE

HEADERS is the `torch/include` folder of an unpacked macOS wheel. The result is for planning, not a fork to send
upstream.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import (
    CLANG_FORMAT,
    KERNEL_LIBRARY,
    KERNELS,
    METAL_HEADERS,
    MPS,
    OPERATION_UTILS,
    OPERATIONS,
    VERSION,
)
from shared.arguments import parser

FOLDERS = ("aten", "c10", "test", "torch/testing", "torchgen")
LIBRARY = f"{MPS}/MetalShaderLibrary.mm"
# Traces of an older tree know no stream.
_TRACED_STREAM = re.compile(r"(ProfileKernel\([^;]*), stream\);")
# The old tree's own kernels in the files that are replaced, in the dialect: what was native stays native.
NATIVES = Path(__file__).parent / "dialect" / "natives.patch"
# Has an older form of what one of the kernel files defines.
BINARY = f"{OPERATIONS}/BinaryOps.mm"
DIALECT = (
    f"{KERNELS}/UnaryKernel.metal",
    f"{KERNELS}/BinaryKernel.metal",
    f"{OPERATIONS}/UnaryKernel.mm",
    f"{OPERATIONS}/BinaryKernel.mm",
)


def modernize(old: Path, headers: Path, new: Path) -> None:
    """Copies the tree, replaces the headers of c10/metal and the kernel files, and adds the `exec_*` functions."""
    _require(old, headers)
    for folder in FOLDERS:
        shutil.copytree(old / folder, new / folder, symlinks=True, dirs_exist_ok=True)
    for name in (CLANG_FORMAT, VERSION):
        if (old / name).is_file():
            shutil.copy(old / name, new / name)
    shutil.copytree(headers / METAL_HEADERS, new / METAL_HEADERS, dirs_exist_ok=True)
    for path in DIALECT:
        shutil.copy(EMBEDDED_FORK / path, new / path)
    subprocess.run(["git", "apply", str(NATIVES)], cwd=new, check=True)
    ours = read_library()
    new.joinpath(LIBRARY).write_text(ours[LIBRARY])
    header = new.joinpath(KERNEL_LIBRARY).read_text()
    new.joinpath(KERNEL_LIBRARY).write_text(with_dialect(header, ours[KERNEL_LIBRARY]))
    utilities = new.joinpath(OPERATION_UTILS).read_text()
    new.joinpath(OPERATION_UTILS).write_text(
        _cut(utilities, r"^void MetalShaderLibrary::exec_unary_kernel\(.*?^\}\n\n")
    )

    binary = new.joinpath(BINARY).read_text()
    new.joinpath(BINARY).write_text(_cut(binary, r"^TORCH_IMPL_FUNC\(sub_out_mps\).*?^\}\n\n"))


def _require(old: Path, headers: Path) -> None:
    """Ends the program, before anything is copied, if the tree or the headers lack what it needs."""
    for folder in FOLDERS:
        if not (old / folder).is_dir():
            sys.exit(f"this is no PyTorch tree: it lacks {folder}")
    for path in (KERNEL_LIBRARY, *DIALECT):
        if not (old / path).is_file():
            sys.exit(f"this tree is older than those this script knows: it lacks {path}; merge a newer upstream first")
    if not (headers / METAL_HEADERS).is_dir():
        sys.exit(f"{headers} is no torch/include of a macOS wheel: it lacks {METAL_HEADERS}")


def read_library() -> dict[str, str]:
    """The embedded fork's `MetalShaderLibrary`, header and code by path."""
    texts = {path: (EMBEDDED_FORK / path).read_text() for path in (KERNEL_LIBRARY, LIBRARY)}
    code, traces = _TRACED_STREAM.subn(r"\1);", texts[LIBRARY])
    assert traces
    return {**texts, LIBRARY: code}


def with_dialect(header: str, ours: str) -> str:
    """The old `MetalShaderLibrary.h` with the members of the embedded fork's that the `exec_*` functions need."""
    public = _found(ours, r"  // Whether the library has a kernel.*?hasFunction\([^;]*;\n").group()
    execs = _found(ours, r"  // Runs a kernel registered with REGISTER_UNARY_OP.*?(?=\n protected:)").group()
    private = _found(ours, r"  std::unordered_set<std::string> functionNames;\n.*?(?=^\};)").group()
    header = _cut(header, r"  void exec_unary_kernel\([^;]*;\n")
    at = _found(header, r"  static MetalShaderLibrary& getBundledLibrary\(\);\n").end()
    header = header[:at] + public + execs + header[at:]
    at = _found(header, r"      cplMap;\n").end()
    header = header[:at] + private + header[at:]
    includes = "#include <c10/core/Scalar.h>\n#include <optional>\n#include <unordered_set>\n"
    at = _found(header, r"^#include <unordered_map>\n").start()
    return header[:at] + includes + header[at:]


def _found(text: str, pattern: str) -> re.Match[str]:
    match = re.search(pattern, text, re.M | re.S)
    if match is None:
        sys.exit(f"this tree is not of the kind this script knows: it lacks {pattern}")
    return match


def _cut(text: str, pattern: str) -> str:
    match = _found(text, pattern)
    return text[: match.start()] + text[match.end() :]


if __name__ == "__main__":
    options = parser(__doc__)
    for name in ("old", "headers", "new"):
        options.add_argument(name, type=Path)
    modernize(**vars(options.parse_args()))
