"""What a verdict's backend is, in the words of somebody who has never seen porter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from porter.verdict.result import CUDA, HOST, KERNELS, MPS
from porter.witness.witnessed import WITNESSED

NO_APPLE = "No Apple hardware, and no Apple software, took part."
_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        HOST: (
            "on Linux, against a stand-in for Metal and MPSGraph. The host code (`.mm`) and the kernels (`.metal`) of "
            f"this checkout were compiled for the CPU and ran PyTorch's OpInfo tests as an `mps` device. {NO_APPLE}"
        ),
        KERNELS: (
            "on the CPU, with the kernels (`.metal`) alone: they were compiled for the CPU and called by the OpInfo "
            f"tests. Host code was read and did not run. {NO_APPLE}"
        ),
        MPS: (
            "on a Mac's GPU, with the kernels (`.metal`) alone: `torch.mps.compile_shader` compiled them, and the "
            "OpInfo tests called them. Host code was read and did not run."
        ),
        CUDA: (
            "on an NVIDIA GPU, with the kernels (`.metal`) alone: they were compiled to PTX and called by the OpInfo "
            f"tests. Host code was read and did not run. {NO_APPLE}"
        ),
    }
)


def describe_backend(name: str) -> str:
    """Where a verdict of a backend ran, and what did not run: a phrase that follows "ran", then sentences."""
    return _MEANINGS.get(name, f"on `{name}`.")


def ran_on_apple(name: str) -> bool:
    """Whether a verdict of a backend ran on Apple hardware, of which a log is kept."""
    return name == MPS and bool(WITNESSED)
