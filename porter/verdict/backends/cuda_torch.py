"""What torch's own CUDA kernels compute of a call whose tensors lie on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from porter.core.errors import PorterError

DEVICE = "cuda"
# What a failure says of itself, of torch's own code or of a library that it calls: nothing was refused.
_FAILED = (
    "CUDA error", "INTERNAL ASSERT FAILED", "report a bug to PyTorch", "CUBLAS_STATUS_", "CUDNN_STATUS_", "cuDNN error",
    "CUFFT_", "cuFFT error", "CUSOLVER_STATUS_", "cusolver error", "CUSPARSE_STATUS_", "NVRTC_ERROR", "nvrtc: error",
)  # fmt: skip


class NoResult(Exception):
    """Torch's CUDA computes nothing for a call: it has no kernel for it, or refuses its arguments."""


def compute(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """The result on CUDA. Raises NoResult, PTR378 where the GPU is full, and what any other failure raises."""
    with refusing_full_memory():
        try:
            result = function(*map(_move, args), **{name: _move(value) for name, value in kwargs.items()})
        except NotImplementedError as error:
            raise NoResult(_first_line(error)) from error
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError, ValueError) as error:
            if not is_refusal(error):
                raise
            raise NoResult(_first_line(error)) from error
    if not isinstance(result, torch.Tensor):
        raise NoResult("its result is no tensor")
    return result


def is_refusal(error: Exception) -> bool:
    """Whether an error says that torch has no kernel for a call or does not take its arguments: not that one failed."""
    text = str(error)
    return not _is_fault(error) and not any(each in text for each in _FAILED)


@contextmanager
def refusing_full_memory() -> Iterator[None]:
    """Raises PTR378 where the GPU's memory is full: nothing is known of the call then."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise PorterError(
            "PTR378", f"torch has no memory left on the GPU: {_first_line(error)}",
            hint="Use a GPU with more memory, or stop what else uses it: nothing is known of this call.",
        ) from error  # fmt: skip


def _is_fault(error: Exception) -> bool:
    """Whether the device itself failed, as a faulting kernel makes it."""
    kind = getattr(torch, "AcceleratorError", None)
    return kind is not None and isinstance(error, kind)


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0][:200]


def _move(value: Any) -> Any:
    return value.to(DEVICE) if isinstance(value, torch.Tensor) and value.dtype != torch.float64 else value
