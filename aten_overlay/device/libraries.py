"""The libraries of the device: the preloaded symbols, the device itself, and `at::mps`."""

from __future__ import annotations

import json
import re
from pathlib import Path

from aten_overlay import cache, memory, toolchain
from aten_overlay.apple import build

HERE = Path(__file__).resolve().parent
_DEVICE = (
    "allocator", "convolution", "copy", "fallback", "generator", "guard", "hooks", "host_call", "launches", "margins",
    "packages", "pinned", "slices", "sparse", "streams", "tensors", "unwritten",
)  # fmt: skip

# How the interfaces of ATen/mps differ between versions: what to define where a header has this text.
_VERSIONS = (
    ("PORTER_STREAM_FILLS", "MPSStream.h", "void fill(MTLBuffer_t"),
    ("PORTER_MACOS_AT_LEAST", "MPSDevice.h", "is_macos_at_least"),
    ("PORTER_GPU_FAMILIES", "MPSDevice.h", "is_apple_family_or_newer"),
    ("PORTER_LANGUAGE_VERSIONS", "MPSDevice.h", "metal_language_version("),
    ("PORTER_MPP", "MPSDevice.h", "has_mpp"),
    ("PORTER_DEVICE_ALLOCATOR", "MPSAllocatorInterface.h", "c10::DeviceAllocator"),
    ("PORTER_PINNED_ALLOCATOR", "MPSAllocatorInterface.h", "getMPSPinnedAllocator"),
    ("PORTER_DEVICE_NAMES", "MPSDevice.h", "getCoreCount"),
    ("PORTER_STREAM_POOL", "MPSStream.h", "getStreamFromPool"),
    ("PORTER_STREAM_ERRORS", "MPSStream.h", "checkLastError"),
    ("PORTER_COMMAND_BUFFER_ERRORS", "MPSStream.h", "_commandBufferError"),
    ("PORTER_EVENTS", "MPSEvent.h", "class MPSEventPool"),
    ("PORTER_EVENT_STREAMS", "MPSEvent.h", "class MPSEventPtrTarget"),
    ("PORTER_GUARD", "MPSGuardImpl.h", "void synchronizeDevice("),
    ("PORTER_GUARD_POOL", "MPSGuardImpl.h", "getStreamFromPool"),
    ("PORTER_DATA_STREAMS", "MPSGuardImpl.h", "recordDataPtrOnStream"),
    ("PORTER_HOOKS", "MPSHooks.h", "getMaxBufferLength"),
    ("PORTER_PROFILER_STREAMS", "MPSProfiler.h", "MPSStream* stream,"),
    ("PORTER_PROFILER_TRACES", "MPSProfiler.h", "struct CopyInfo"),
)
# The same for ATen/native/mps.
_NATIVE_VERSIONS = (
    ("PORTER_RAW_KERNEL_VIEWS", "MetalShaderLibrary.h", "      std::string_view name,"),
    (
        "PORTER_TERNARY_PLAIN",
        "MetalShaderLibrary.h",
        "void exec_ternary_kernel(TensorIteratorBase",
    ),
    ("PORTER_LINEAR_OFFSETS", "OperationUtils.h", "checkLinearOffset"),
    ("PORTER_VIEW_COPIES", "OperationUtils.h", "gatherViewTensor"),
    ("PORTER_CAST_COPIES", "Copy.h", "copy_cast_kernel_mps"),
    ("PORTER_SCATTER_COPIES", "Copy.h", "inner_contiguous_scatter_mps"),
)

_OPERATORS = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
_DECLARATION = re.compile(r"^AOTI_TORCH_EXPORT AOTITorchError aoti_torch_mps_(\w+)\((.*)\);$", re.M)


def build_preload() -> Path:
    """`libporter_preload.so`: symbols that have to come before libtorch_cpu's own."""
    return toolchain.build("porter_preload", [HERE / "preload.cpp"], toolchain.torch_flags(), link=["-ldl", "-lstdc++"])


@toolchain.once
def build_device() -> Path:
    """`libporter_device.so`: allocator, guard, hooks, generator, tensors, copies and the counted fallback."""
    sources = [HERE / f"{name}.cpp" for name in _DEVICE]
    link = (*toolchain.torch_libraries(), *toolchain.link_with(memory.build_library()), "-lstdc++")
    return toolchain.build("porter_device", sources, _flags_of_device(), link=link, header=HERE / "headers.h")


def build_calls(name: str, include: str) -> Path:
    """A module of Python made of calls.cpp, where Python's headers are in a folder."""
    below = ("-ltorch_python", *toolchain.link_with(memory.build_library()), "-lstdc++")
    undefined = "-Wl,--unresolved-symbols=ignore-all"  # Python's symbols are those of the process
    link = (*toolchain.torch_libraries(), *below, undefined)
    more = {"c++": ("-isystem", include)}
    sources, header = [HERE / "calls.cpp"], HERE / "headers.h"  # precompiled for the device
    return toolchain.build(name, sources, _flags_of_device(), link=link, header=header, more=more)


def _flags_of_device() -> tuple[str, ...]:
    """NDEBUG as the wheel has it: debug checks need both sides."""
    return (*toolchain.torch_flags(), "-DNDEBUG", *_define_versions(None), "-I", str(HERE.parent))


@toolchain.once
def build_mps(headers: Path | None) -> Path:
    """`libporter_mps.so`: `at::mps` against the `ATen/mps` headers of a fork, in `headers`, else of the wheel."""
    include = ("-I", str(headers)) if headers else ()
    sources = [*sorted((HERE / "mps").glob("*.mm")), *sorted((HERE / "mps").glob("*.cpp"))]
    own = ("-I", str(HERE.parent), "-I", str(HERE / "mps"))
    flags = (*include, *build.general_flags(), *_define_versions(headers), *own)
    kinds = [build.OBJECTIVE_CPP]
    libraries = (*build.build_headers(kinds), build.build_frameworks(), build_device(), memory.build_library())
    below = (flag for library in libraries for flag in toolchain.link_with(library))
    link = (*toolchain.torch_libraries(), *below, "-lstdc++")
    # The header has nothing of ATen/mps: it serves whatever headers these are.
    first = build.precompile_headers(kinds)
    return toolchain.build("porter_mps", sources, flags, [build.INCLUDE], link=link, more=first)


@toolchain.once
def build_native() -> Path:
    """`libporter_native.so`: `at::native::mps` against the wheel's headers, for extensions. A fork has its own."""
    folder = toolchain.torch_root() / "include" / "ATen" / "native" / "mps"
    defines = (f"-D{name}" for name, file, text in _NATIVE_VERSIONS if text in (folder / file).read_text())
    sources = sorted((HERE / "native").glob("*.mm"))
    kinds = [build.OBJECTIVE_CPP]
    libraries = (build_mps(None), *build.build_headers(kinds), build.build_frameworks(), memory.build_library())
    below = (flag for library in libraries for flag in toolchain.link_with(library))
    link = (*toolchain.torch_libraries(), *below, "-lstdc++")
    flags, first = (*build.general_flags(), *defines), build.precompile_headers(kinds)
    return toolchain.build("porter_native", sources, flags, [build.INCLUDE], link=link, more=first)


@toolchain.once
def build_packages() -> Path:
    """`libporter_packages.so`: what a package that AOTInductor compiled for mps calls of PyTorch's MPS build."""
    folder, kinds = HERE / "packaged", [build.OBJECTIVE_CPP]
    key = cache.digest(operators := _write_operators())
    source = cache.root() / "generated" / f"operators-{key}.cpp"
    if not source.is_file():
        cache.write(source, operators.encode())
    sources = [folder / "call.cpp", folder / "shim_mps.mm", source]
    libraries = (
        build_native(),
        build_mps(None),
        *build.build_headers(kinds),
        build.build_frameworks(),
        memory.build_library(),
    )
    below = (flag for library in libraries for flag in toolchain.link_with(library))
    link = (*toolchain.torch_libraries(), *below, "-lstdc++")
    flags = (*build.general_flags(), "-I", str(folder))
    return toolchain.build(
        "porter_packages", sources, flags, [build.INCLUDE], link=link, more=build.precompile_headers(kinds)
    )


def _write_operators() -> str:
    """The functions of C by which a package calls operators, as the wheel declares them."""
    header = toolchain.torch_root() / "include" / _OPERATORS
    defined: list[str] = []
    for name, parameters in _DECLARATION.findall(header.read_text()):
        arguments = [json.dumps(name), *(parameter.split()[-1] for parameter in parameters.split(","))]
        call = f"return porter::call({', '.join(arguments)});"
        defined.append(f"AOTITorchError aoti_torch_mps_{name}({parameters}) {{\n  {call}\n}}\n")
    return f'#include "call.h"\n#include <{_OPERATORS}>\n\n{"".join(defined)}'


def _define_versions(headers: Path | None) -> tuple[str, ...]:
    """Flags that say what the headers declare."""
    return tuple(f"-D{name}" for name, file, text in _VERSIONS if text in _header(headers, file).read_text())


def _header(fork: Path | None, name: str) -> Path:
    """Where the compiler finds a header of `ATen/mps`: a fork may have some of its own."""
    places = [root / "ATen" / "mps" / name for root in (fork, toolchain.torch_root() / "include") if root]
    return next((path for path in places if path.is_file()), places[-1])
