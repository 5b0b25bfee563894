"""Kernels of MLX in which threads work together, with numpy's answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from references.case import Array, Case, Reference, make_rng, round_up, scalar

_ROWS, _COLUMNS, _LONG = 5, 250, 4500
_SCANS: dict[str, tuple[Reference, float]] = {
    "sum": (np.add.accumulate, 0),
    "prod": (np.multiply.accumulate, 1),
    "max": (np.maximum.accumulate, -np.inf),
    "min": (np.minimum.accumulate, np.inf),
}
_REDUCTIONS: dict[str, Reference] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def rows() -> Iterator[Case]:
    """Softmax, norms, scans, reductions, sorting and searching."""
    for columns, form in ((_COLUMNS, ""), (_LONG, "looped")):
        x = make_rng().standard_normal((_ROWS, columns)).astype(np.float32)
        yield from _normalizations(x, form)
    x = make_rng().uniform(0.8, 1.2, (_ROWS, _COLUMNS)).astype(np.float32)
    yield from _scans(x)
    yield from _reductions(x)
    yield from _sorts(x)


def _normalizations(x: Array, form: str) -> Iterator[Case]:
    rng, columns, wide = make_rng(), x.shape[1], x.astype(np.float64)
    threads = 1024 if form else min(round_up(-(-columns // 4), 32), 512)  # MLX launches the longest with all there are
    grid, group = (_ROWS * threads,), (threads,)
    # A thread of layer_norm reads eight values, and one that has none writes before its own memory.
    norming = min(round_up(-(-columns // 8), 32), 512)
    axis = scalar(columns)
    maximum = wide.max(1, keepdims=True)
    powers = np.exp(wide - maximum)
    total = powers.sum(1, keepdims=True)
    out = np.empty_like(x)
    yield Case(
        "softmax.metal", f"{form or 'block'}_softmax_float32", (x, out, axis), 1, powers / total, grid, group, 4e-6
    )
    logs = (np.log(total) + maximum).ravel()
    ends = np.empty(_ROWS, np.float32)
    yield Case("logsumexp.metal", f"{form or 'block'}_logsumexp_float32", (x, ends, axis), 1, logs, grid, group, 4e-6)
    w, b = (rng.standard_normal(columns).astype(np.float32) for _ in range(2))
    eps, one, axis = scalar(1e-5, np.float32), scalar(1, np.uint32), scalar(columns, np.uint32)
    named = f"_{form}" if form else ""
    mean = np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    yield Case(
        "rms_norm.metal", f"rms{named}float32", (x, w, out, eps, axis, one), 2, wide / mean * w,
        grid, group, 4e-6, constants=((20, True),),
    )  # fmt: skip
    centered = wide - wide.mean(1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    yield Case(
        "layer_norm.metal", f"layer_norm{named}float32", (x, w, b, out, eps, axis, one, one), 3,
        centered / deviation * w + b, (_ROWS * norming,), (norming,), 4e-6, constants=((20, True),),
    )  # fmt: skip


def _scans(x: Array) -> Iterator[Case]:
    wide = x.astype(np.float64)
    for name, (accumulate, first) in _SCANS.items():
        for backwards in (False, True):
            given = wide[:, ::-1] if backwards else wide
            inclusive = accumulate(given, 1)
            exclusive = np.concatenate([np.full((_ROWS, 1), first), inclusive[:, :-1]], 1)
            for kind, expected in (("inclusive", inclusive), ("exclusive", exclusive)):
                kernel = f"contig_scan_{'reverse_' * backwards}{kind}_{name}_float32_float32"
                buffers = (x, np.empty_like(x), scalar(_COLUMNS, np.uint64))
                turned = expected[:, ::-1] if backwards else expected
                yield Case("scan.metal", kernel, buffers, 1, turned, (128, _ROWS), (128, 1), 4e-6)


def _reductions(x: Array) -> Iterator[Case]:
    wide, size = x.astype(np.float64), scalar(x.size, np.uint64)
    for name, reduce in _REDUCTIONS.items():
        whole: tuple[Array, ...] = (x, np.empty(1, np.float32), size, size)
        expected = np.array([reduce(wide)])
        yield Case("reduce.metal", f"all_reduce_{name}float32", whole, 1, expected, (256,), (256,), 1e-5)
        each: tuple[Array, ...] = (x[:4], np.empty(4, np.float32), scalar(_COLUMNS, np.uint64), scalar(4, np.int64))
        # A threadgroup makes four results.
        expected = reduce(wide[:4], 1)
        yield Case("reduce.metal", f"row_reduce_simple_{name}float32", each, 1, expected, (64, 1), (64, 1), 1e-5)
    shape, strides, steps = scalar(_ROWS), scalar(_COLUMNS, np.int64), scalar(1, np.int64)
    for name, find in (("argmin", np.argmin), ("argmax", np.argmax)):
        out = np.empty(_ROWS, np.uint32)
        buffers = (x, out, shape, strides, steps, scalar(1, np.uint64), steps, scalar(_COLUMNS, np.uint64))
        yield Case("arg_reduce.metal", f"{name}_float32", buffers, 1, find(x, 1), (64, _ROWS), (64, 1))
    ones = make_rng().standard_normal((2, 512 * 32)).astype(np.float32)
    products = (ones[0], ones[1], np.empty(1, np.float32), scalar(ones.shape[1]))
    expected = np.array([np.dot(*ones.astype(np.float64))])
    yield Case("dot.metal", "dot_product_float32_it32_tg512_sg16", products, 2, expected, (512,), (512,), 1e-4)


def _sorts(x: Array) -> Iterator[Case]:
    sizes = tuple(scalar(n) for n in (_COLUMNS, 1, 1, _COLUMNS, _COLUMNS))
    for threads in (64, 128):
        name = f"block_sort_float32_float32_bn{threads}_tn4"
        buffers = (x, np.empty_like(x), *sizes)
        yield Case("sort.metal", f"c_{name}", buffers, 1, np.sort(x, 1), (threads, _ROWS), (threads, 1))
        name = f"carg_block_sort_float32_uint32_bn{threads}_tn4"
        buffers = (x, np.empty(x.shape, np.uint32), *sizes)
        expected = np.argsort(x, 1, kind="stable")
        yield Case("sort.metal", name, buffers, 1, expected, (threads, _ROWS), (threads, 1))
    ordered = np.sort(x[0])
    sought = np.concatenate([x[1], ordered[::10]])
    for side in ("left", "right"):
        buffers = (ordered, sought, np.empty(sought.size, np.uint32), scalar(_COLUMNS, np.uint32), scalar(1, np.int64))
        expected = np.searchsorted(ordered, sought, side)
        yield Case("searchsorted.metal", f"searchsorted_float32_{side}", buffers, 2, expected, sought.shape, (25,))
