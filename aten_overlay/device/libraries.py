"""The stand-in's own libraries: device memory, the preloaded symbols, and the device."""

from __future__ import annotations

from pathlib import Path

from aten_overlay import toolchain

HERE = Path(__file__).resolve().parent
_DEVICE = ("allocator", "copy", "fallback", "generator", "guard", "hooks", "tensors")


def memory() -> Path:
    """`libporter_memory.so`: the C interface of memory.h, without torch."""
    return toolchain.build("porter_memory", [HERE / "memory.cpp"], ["-std=c++20"], link=["-lstdc++"])


def preload() -> Path:
    """`libporter_preload.so`: symbols that have to come before libtorch_cpu's own."""
    return toolchain.build("porter_preload", [HERE / "preload.cpp"], toolchain.torch_flags(), link=["-ldl", "-lstdc++"])


def device() -> Path:
    """`libporter_device.so`: allocator, guard, hooks, generator, tensors, copies and the counted fallback."""
    sources = [HERE / f"{name}.cpp" for name in _DEVICE]
    return toolchain.build(
        "porter_device",
        sources,
        toolchain.torch_flags(),
        link=(*toolchain.torch_libraries(), *link_with(memory()), "-lstdc++"),
        header=HERE / "headers.h",
    )


def link_with(library: Path) -> tuple[str, ...]:
    """Flags to link with one of these libraries, found at run time where it lies now."""
    return (str(library), f"-Wl,-rpath,{library.parent}")
