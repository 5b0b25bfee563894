"""MLX itself, which CI has not: `python -m pytest -p aten_overlay.plugin tests/porter/kernels/inside/real_mlx.py`."""

from __future__ import annotations

import math
from typing import Any

import pytest

from porter.kernels.mlx.installing import Installation, import_mlx


def test_mlx_itself() -> None:
    mx = import_mlx()
    installation = Installation(mx)
    installation.install()
    try:
        source = (
            "uint i = thread_position_in_grid.x; out[i] = metal::exp(x[elem_to_loc(i, x_shape, x_strides, x_ndim)]);"
        )
        kernel = mx.fast.metal_kernel(
            name="exp", input_names=["x"], output_names=["out"], source=source, ensure_row_contiguous=False
        )

        def exp(x: Any) -> Any:
            return kernel(inputs=[x], grid=(x.size, 1, 1), threadgroup=(32, 1, 1), output_shapes=[x.shape],
                          output_dtypes=[x.dtype])[0]  # fmt: skip

        x = mx.arange(12.0).reshape(3, 4).T / 8
        assert mx.allclose(exp(x), mx.exp(x)) and mx.allclose(mx.compile(exp)(x[::-1]), mx.exp(x[::-1]))
        with pytest.raises(ValueError, match="PTR225"):
            mx.eval(mx.grad(lambda x: exp(x).sum())(x))
        with pytest.raises(ValueError, match=r"PTR22[45]"):
            mx.eval(mx.vmap(exp)(x))
        differentiable = mx.custom_function(exp)
        differentiable.vjp(lambda inputs, gradient, output: gradient * output)
        assert mx.allclose(mx.compile(mx.grad(lambda x: differentiable(x).sum()))(x), mx.exp(x))
        half = x.astype(mx.bfloat16)
        assert exp(half).dtype == mx.bfloat16 and math.isfinite(float(exp(half).sum()))
    finally:
        installation.uninstall()
