"""Simdgroup functions, barriers, lane orders and bounds checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

HERE = Path(__file__).parent
VALUES = np.random.default_rng(1).integers(-100, 100, 128).astype(np.int32)
LANES = VALUES.reshape(4, 32)


@pytest.fixture(scope="module")
def library() -> Library:
    source = HERE / "simdgroups.metal"
    return Library(compile_kernels(source, host_names(source)))


@pytest.fixture(scope="module")
def checked() -> Library:
    source = HERE / "bounds.metal"
    return Library(compile_kernels(source, host_names(source), Options(checked=True)))


def _spread(row: np.ndarray) -> np.ndarray:
    return np.repeat(row[:, None], 32, axis=1)


def _divergent(lanes: np.ndarray) -> np.ndarray:
    result = _spread(lanes[:, 10:].max(1))
    result[:, :10] = lanes[:, :10].sum(1)[:, None]
    return result


def _rejoined(lanes: np.ndarray) -> np.ndarray:
    result = _spread(lanes.sum(1))
    result[:, :10] += lanes[:, :10].sum(1)[:, None]
    return result


_FILLED_DOWN = np.concatenate([LANES[:, 3:], np.full((4, 3), -1)], 1)
_FILLED_UP = np.concatenate([np.full((4, 3), -1), LANES[:, :-3]], 1)
_BALLOT = _spread(((LANES > 0) << np.arange(32, dtype=np.int64)).sum(1).astype(np.uint32).view(np.int32))
EXPECTED = {
    "sum": _spread(LANES.sum(1)),
    "product": _spread(np.where(LANES & 1, 1, -1).prod(1)),
    "least": _spread(LANES.min(1)),
    "greatest": _spread(LANES.max(1)),
    "inclusive": LANES.cumsum(1),
    "exclusive": LANES.cumsum(1) - LANES,
    "broadcast": _spread(LANES[:, 7]),
    "shuffle": LANES[:, ::-1],
    "exclusive_or": LANES[:, np.arange(32) ^ 5],
    "down": _FILLED_DOWN,
    "up": _FILLED_UP,
    "rotated": np.roll(LANES, -4, 1),
    "ballot": _BALLOT,
    "every": np.ones((4, 32)),
    "elected": np.eye(1, 32).repeat(4, 0),
    "quads": LANES.reshape(4, 8, 4).sum(2).repeat(4, 1),
    "quad_swap": LANES[:, np.arange(32) ^ 1],
    "divergent": _divergent(LANES),
    "rejoined": _rejoined(LANES),
}


@pytest.mark.parametrize("shuffle", [None, 1, 2])
@pytest.mark.parametrize("name", EXPECTED)
def test_across_a_simdgroup(library: Library, name: str, shuffle: int | None) -> None:
    out = np.zeros(128, np.int32)
    library.run(name, [VALUES, out], [128], [128], shuffle=shuffle)
    assert out.reshape(4, 32).tolist() == EXPECTED[name].tolist()


def test_a_partial_simdgroup_leaves_absent_lanes_out(library: Library) -> None:
    out = np.zeros(40, np.int32)
    library.run("sum", [VALUES, out], [40], [64])
    assert out.tolist() == [VALUES[:32].sum()] * 32 + [VALUES[32:40].sum()] * 8


def test_barriers_order_a_reduction_whatever_the_lane_order(library: Library) -> None:
    x = np.arange(2048, dtype=np.int32)
    for shuffle in (None, 1, 2, 3):
        out = np.zeros(8, np.int32)
        library.run("tree_waiting", [x, out], [2048], [256], threadgroup_bytes=[1024], shuffle=shuffle)
        assert out.tolist() == x.reshape(8, 256).sum(1).tolist()


def test_a_missing_barrier_shows_when_lanes_are_shuffled(library: Library) -> None:
    x = np.arange(256, dtype=np.int32)
    results = set()
    for shuffle in range(1, 9):
        out = np.zeros(1, np.int32)
        library.run("tree_hasty", [x, out], [256], [256], threadgroup_bytes=[1024], shuffle=shuffle)
        results.add(int(out[0]))
    assert results != {int(x.sum())}


def test_threadgroup_variables_are_shared_within_a_group(library: Library) -> None:
    out = np.zeros(64, np.int32)
    library.run("own_memory", [VALUES, out], [64], [64], shuffle=4)
    assert out.tolist() == VALUES[:64][::-1].tolist()


def test_the_elements_of_a_matrix_have_a_type(library: Library) -> None:
    out = np.zeros(32, np.float32)
    library.run("matrix_elements", [out], [32], [32])
    assert sorted(out) == [0] * 24 + [2] * 8


def test_simdgroup_matrices(library: Library) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-9, 9, (8, 8)).astype(np.float32), rng.integers(-9, 9, (8, 8)).astype(np.float32)
    out = np.zeros((8, 8), np.float32)
    library.run("matrices", [a, b, out], [32], [32])
    assert (out == a @ b.T + 1).all()


def test_only_kernels_that_wait_run_on_fibers(library: Library) -> None:
    assert library.synchronizes("tree_waiting")
    source = HERE / "bounds.metal"
    assert not Library(compile_kernels(source, ["overrun"])).synchronizes("overrun")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("shift_left", r"`shift_left` reads 4 bytes out of bounds; .*argument `x` \(buffer 0, 64 bytes\), at byte 64"),
        ("overrun", r"`overrun` writes 4 bytes out of bounds; .*argument `out` \(buffer 0, 60 bytes\), at byte 60"),
        ("beyond_shared", r"`beyond_shared` writes 4 bytes out of bounds"),
        ("beyond_own", r"`beyond_own` writes 4 bytes out of bounds"),
    ],
)
def test_an_access_out_of_bounds_is_caught(checked: Library, name: str, what: str) -> None:
    x, out = np.zeros(16, np.float32), np.zeros(64, np.float32)
    bound = {"shift_left": [x, out], "overrun": [out[:15]]}.get(name, [out])
    threads = 16 if name in ("shift_left", "overrun") else 64
    with pytest.raises(OverlayError, match=what) as caught:
        checked.run(name, bound, [threads], [threads], threadgroup_bytes=[32 * 4] if name == "beyond_shared" else [])
    assert caught.value.code == "PTR107"


def test_an_empty_buffer_has_no_byte_in_bounds(checked: Library) -> None:
    empty, out = np.zeros(0, np.float32), np.zeros(16, np.float32)
    with pytest.raises(
        OverlayError, match=r"`shift_left` reads 4 bytes out of bounds; .*\(buffer 0, 0 bytes\)"
    ) as caught:
        checked.run("shift_left", [empty, out], [16], [16])
    assert caught.value.code == "PTR107"


def test_accesses_in_bounds_pass_the_checks(checked: Library) -> None:
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    checked.run("scratch", [out, x], [16])
    assert out.tolist() == [x[(i + i % 8) % 16] for i in range(16)]
    checked.run("beyond_shared", [out], [16], [16], threadgroup_bytes=[64])
    checked.run("beyond_own", [out], [16], [16])
    assert out.tolist() == list(range(16))


@pytest.mark.parametrize(
    "call", ["simd_sum(x[i])", "simd_product(x[i])", "simd_shuffle_down(x[i], 1)", "quad_max(x[i])"]
)
def test_lanes_exchange_no_bools(call: str) -> None:
    body = "kernel void k(device T* out, constant T* x, uint i [[thread_position_in_grid]]) { out[i] = %s; }"
    text = f"#include <metal_stdlib>\nusing namespace metal;\n{body % call}"
    compile_kernels(text.replace("T*", "int*"), ("k",))
    with pytest.raises(OverlayError, match="no matching function") as error:
        compile_kernels(text.replace("T*", "bool*"), ("k",))
    assert (error.value.code, "lanes exchange no bools" in error.value.hint) == ("PTR101", True)
