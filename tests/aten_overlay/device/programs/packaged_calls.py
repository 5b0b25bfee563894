"""Calls operators by the functions of C that packages of AOTInductor call, and compares them with the operators."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import torch

from aten_overlay.device import load, packages
from aten_overlay.toolchain import torch_root

HEADER = torch_root() / "include/torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
device = load.started()
assert device is not None
library: Any = packages._load(device)
ANY = ctypes.c_int64


def handle(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(get_pointer(torch._C._aoti.unsafe_alloc_void_ptr_from_tensor(tensor), None))


def pointer(value: Any) -> Any:
    return ctypes.byref(value)


def integers(*values: int) -> tuple[Any, ANY]:
    return (ANY * len(values))(*values), ANY(len(values))


def call(name: str, *arguments: Any, results: int = 0) -> list[torch.Tensor]:
    places = [ctypes.c_void_p() for _ in range(results)]
    code = getattr(library, f"aoti_torch_mps_{name}")(*arguments, *map(pointer, places))
    if code:
        raise RuntimeError(name)
    return [take(place) for place in places]


def take(place: ctypes.c_void_p) -> torch.Tensor:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(make(place, None, None))


def main() -> None:
    torch.manual_seed(0)
    a, b, c = (torch.randn(4, 4, device="mps") for _ in range(3))
    out = torch.empty(4, 4, device="mps")
    call("addmm_out", *map(handle, (out, c, a, b)), ctypes.c_double(2), ctypes.c_double(0.5))
    torch.testing.assert_close(out, torch.addmm(c, a, b, beta=2, alpha=0.5))
    values, places = call("topk", handle(a), ANY(2), ANY(-1), ctypes.c_int32(1), ctypes.c_int32(1), results=2)
    torch.testing.assert_close((values, places), tuple(torch.topk(a, 2)))
    none = ctypes.c_void_p()
    index = handle(torch.tensor([3, 1], device="mps"))
    indices = (ctypes.c_void_p * 2)(none, ctypes.cast(pointer(index), ctypes.c_void_p))
    [picked] = call("index_Tensor", handle(a), indices, ANY(2), results=1)
    torch.testing.assert_close(picked, a[:, [3, 1]])
    [summed] = call("cumsum", handle(a), ANY(0), pointer(ctypes.c_int32(5)), results=1)  # c10::ScalarType::Half
    torch.testing.assert_close(summed, torch.cumsum(a, 0, dtype=torch.float16))
    [power] = call("pow_Scalar", ctypes.c_double(3), handle(a), results=1)
    torch.testing.assert_close(power, torch.pow(3.0, a))
    image, weight = torch.randn(1, 2, 5, 5, device="mps"), torch.randn(3, 2, 3, 3, device="mps")
    pair, zero, mask = integers(1, 1), integers(0, 0), (ctypes.c_int32 * 3)(1, 0, 1)
    grad = torch.randn(1, 3, 3, 3, device="mps")
    sizes, count = integers(3)
    sizes = pointer(ctypes.cast(sizes, ctypes.c_void_p))
    results = [ctypes.c_void_p() for _ in range(3)]
    code = library.aoti_torch_mps_convolution_backward(
        *map(handle, (grad, image, weight)), sizes, count, *pair, *zero, *pair, ctypes.c_int32(0), *zero, ANY(1),
        mask, ANY(3), *map(pointer, results),
    )  # fmt: skip
    assert code == 0
    torch.testing.assert_close(take(results[0]), torch.nn.functional.conv_transpose2d(grad, weight))
    torch.testing.assert_close(take(results[2]), grad.sum((0, 2, 3)))
    query = torch.randn(1, 2, 3, 4, device="mps")
    older, newer = (
        call(
            name, *map(handle, (query,) * 3), none, ctypes.c_double(0), ctypes.c_int32(1), none, none, *more, results=2
        )
        for name, more in (
            ("_scaled_dot_product_attention_math_for_mps", ()),
            ("_scaled_dot_product_attention_math_for_mps_v2", (ctypes.c_int32(0),)),
        )
    )
    torch.testing.assert_close(older, newer)
    expected = torch.nn.functional.scaled_dot_product_attention(*(query.cpu(),) * 3, is_causal=True)
    torch.testing.assert_close(older[0].cpu(), expected)
    try:
        call("addmm_out", *map(handle, (out, c, a, picked)), ctypes.c_double(1), ctypes.c_double(1))
    except RuntimeError:
        print("refused")
    names = re.findall(r"aoti_torch_mps_(\w+)\(", HEADER.read_text())
    print(len(names) > 100, [name for name in names if not library.porter_finds_operator(name.encode())])


if __name__ == "__main__":
    main()
