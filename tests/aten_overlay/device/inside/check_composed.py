"""Operators that Apple and the CPU have kernels for, and that ATen also composes of others, run on the CPU as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torchgen
import yaml

COMPOSED = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")


def list_keys(rows: Mapping[str, Any], name: str) -> set[str]:
    """The dispatch keys of a row, and of the structured one that serves it."""
    row = rows[name]
    keys = {key.strip() for group in row.get("dispatch", ()) for key in group.split(",")}
    return keys | (list_keys(rows, row["structured_delegate"]) if "structured_delegate" in row else set())


def test_the_rows_that_are_composed_beside_kernels_of_both_have_a_kernel_here() -> None:
    text = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text()
    rows = {row["func"].split("(")[0]: row for row in yaml.load(text, yaml.CSafeLoader)}
    composed = [
        name for name in rows if list_keys(rows, name) & {*COMPOSED} and {"CPU", "MPS"} <= list_keys(rows, name)
    ]
    assert "silu_backward" in composed
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    assert [name for name in composed if not has_kernel(f"aten::{name}", "MPS")] == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("function", [torch.nn.functional.silu, torch.nn.functional.mish])
def test_slopes_are_rounded_once(function: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype) -> None:
    slopes = []
    for device in ("cpu", "mps"):
        leaf = torch.linspace(-9, 9, 400).to(device, dtype).requires_grad_()
        function(leaf).sum().backward()
        assert leaf.grad is not None
        slopes.append(leaf.grad.cpu())
    assert torch.equal(*slopes)
