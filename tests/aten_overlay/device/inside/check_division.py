"""The divisions of the fork's own headers, by which its kernels divide: integers by zero never end the process."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

SOURCE = """
#include <c10/metal/utils.h>
#define DIVISION(name, T) \\
  kernel void name##_##T(device T* out, device const T* a, device const T* b, uint i [[thread_position_in_grid]]) { \\
    out[i] = c10::metal::name(a[i], b[i]); \\
  }
#define DIVISIONS(T) DIVISION(div, T) DIVISION(fmod, T) DIVISION(remainder, T) DIVISION(floor_divide, T)
DIVISIONS(char) DIVISIONS(uchar) DIVISIONS(short) DIVISIONS(int) DIVISIONS(long)
"""
NAMES = {
    torch.int8: "char", torch.uint8: "uchar", torch.int16: "short", torch.int32: "int", torch.int64: "long",
}  # fmt: skip
ON_THE_CPU: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "div": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "fmod": torch.fmod, "remainder": torch.remainder,
    "floor_divide": torch.floor_divide,
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Any:
    return torch.mps.compile_shader(SOURCE)


def divided(library: Any, name: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(a, device="mps")
    getattr(library, f"{name}_{NAMES[a.dtype]}")(out, a.to("mps"), b.to("mps"))
    return out.cpu()


@pytest.mark.parametrize("name", ON_THE_CPU)
@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_only_what_has_no_quotient_is_left_open(library: Any, name: str, dtype: torch.dtype) -> None:
    least = torch.iinfo(dtype).min
    values = torch.tensor([least, 0, 1, 3, 7, 100, torch.iinfo(dtype).max, *([-1, -7] if least else [])], dtype=dtype)
    a, b = (grid.flatten() for grid in torch.meshgrid(values, values, indexing="ij"))
    has_one = (b != 0) & ((a != least) | (b != torch.tensor(-1, dtype=torch.int64)))
    runs = torch.stack([divided(library, name, a, b) for _ in range(8)])
    assert torch.equal(runs[0][has_one], ON_THE_CPU[name](a[has_one], b[has_one]))
    varies = (runs != runs[0]).any(0)
    assert varies[b == 0].all() and not varies[has_one].any()


def test_every_launch_leaves_other_values(library: Any) -> None:
    a, b = torch.arange(1, 65, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    assert not torch.equal(divided(library, "div", a, b), divided(library, "div", a, b))
