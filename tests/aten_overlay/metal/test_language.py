"""The language and its library, by kernels whose results can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("language.metal")


@pytest.fixture(scope="module")
def library() -> Library:
    names = [n for n in host_names(SOURCE) if n != "specialised"]
    return Library(compile_kernels(SOURCE, names))


def test_vectors_swizzle_convert_and_select(library: Library) -> None:
    out = np.zeros(20, np.float32)
    library.run("vectors", [out], [1])
    expected = [3, 4, 12, 21, 2, 4, 6, 56, 1, -1, 1, 1, 1, 2, 3, 4, 1, 2, 12, 21]
    assert out.tolist() == expected


def test_packed_vectors_compute_as_vectors(library: Library) -> None:
    out = np.zeros(20, np.uint32)
    library.run("packed_vectors", [np.array([1, 2, 3, 4], np.uint32), out], [1])
    assert out.tolist() == [3, 8, 15, 24, 2, 3, 4, 5, 9, 8, 7, 6, 1, 4, 9, 16, 1, 0, 1, 0]


def test_structures_have_metals_layout(library: Library) -> None:
    layout = np.dtype(
        {
            "names": ["sizes", "pair", "offset", "flag", "triple"],
            "formats": ["3u4", "2f4", "i8", "?", "3f4"],
            "offsets": [0, 16, 24, 32, 36],
            "itemsize": 48,
        }
    )
    p = np.zeros(1, layout)
    p[0] = ([5, 6, 7], [1.5, 2.5], -9, True, [1, 2, 3])
    out = np.zeros(7, np.float32)
    library.run("parameters", [p, out], [1])
    assert out.tolist() == [6, 2.5, -9, 1, 3 + 100 * 1 + 1000 * 2, 10, 48]


def test_integer_functions(library: Library) -> None:
    out = np.zeros(16, np.int64)
    library.run("integers", [out], [1])
    expected = [31, 3, 8, 1, 3, 0x8000, 127, 0, 0x7FFFFFFF, 0xBC, 0xFF0, 255, 0x3F800000, 0x200000001, 7, 5]
    assert out.tolist() == expected


def test_vectors_need_only_the_alignment_of_their_components(library: Library) -> None:
    memory = np.arange(16, dtype=np.float32)
    x = memory[np.flatnonzero((memory.ctypes.data + np.arange(16) * 4) % 16 == 0)[0] :][:10]
    start, sizes = x.copy(), np.zeros(2, np.uint64)
    library.run("misaligned", [x, sizes], [1])
    v, w = start[5:9], start[1:5] * 2 + start[0]
    assert x[:5].tolist() == [start[0], *v]
    assert x[5:].tolist() == [v[1], v[0], *w[2:], start[9]]
    assert sizes.tolist() == [32, 16 + 800 + 20000]


def test_limits_of_vectors_are_those_of_their_components(library: Library) -> None:
    out = np.zeros(4, np.float32)
    library.run("vector_limits", [out], [1])
    assert out.tolist() == [float("inf"), -65504, 255, 2]


def test_half_and_bfloat_round_to_nearest_even(library: Library) -> None:
    half, brain, out = np.zeros(3, np.float16), np.zeros(3, np.uint16), np.zeros(5, np.float32)
    library.run("narrow", [half, brain, out], [1])
    assert half.tolist() == [2048, 3, float("inf")]
    assert [hex(b) for b in brain] == ["0x3f80", "0x3f82", "0x4042"]
    assert out[0] == 4096
    assert 0.999 < out[1] < 1
    assert out[2] == 1 + 2 * 3.03125
    assert out[3] == 1
    assert out[4] == np.float32(3.3895314e38)


def test_unsuffixed_literals_are_float_in_templates_too(library: Library) -> None:
    out = np.zeros(2, np.uint32)
    library.run("literals", [out], [1])
    assert [hex(v) for v in out] == ["0x4444", "0x4444"]


def test_min_and_max_drop_a_nan(library: Library) -> None:
    out = np.zeros(6, np.float32)
    library.run("nans", [out], [1])
    assert out[:2].tolist() == [1, 1]
    assert np.isnan(out[2])
    assert out[3:].tolist() == [4, 0, 0]


def test_overloads_by_address_space_collapse(library: Library) -> None:
    a, b = np.array([2], np.float32), np.array([5], np.float32)
    library.run("addresses", [a, b], [1])
    assert b[0] == 12


def test_positions_of_a_grid_that_is_no_multiple_of_its_group(library: Library) -> None:
    grid, group = (5, 3, 2), (4, 2, 1)
    out = np.zeros((*grid[::-1], 21), np.uint32)
    library.run("positions", [out], grid, group)
    for z, y, x in np.ndindex(2, 3, 5):
        at, position = out[z, y, x], np.array([x, y, z])
        local, corner = position % group, position // group
        inside = np.minimum(group, np.array(grid) - corner * group)
        index = local[0] + inside[0] * (local[1] + inside[1] * local[2])
        expected = [*position, *local, *corner, *inside, 4, 2, 2, 2, index, index % 32, index // 32, 32, index // 4]
        assert at.tolist() == expected


def test_atomics_across_host_threads(library: Library) -> None:
    values = np.random.default_rng(0).integers(0, 16, 200_000).astype(np.uint32)
    bins = np.zeros(16, np.uint32)
    library.run("histogram", [bins, values], [values.size])
    assert bins.tolist() == np.bincount(values, minlength=16).tolist()
    best = np.array([-(2**31)], np.int32)
    library.run("largest", [best, values.view(np.int32)], [values.size])
    assert best[0] == values.max()


@pytest.mark.parametrize(
    ("constants", "expected"), [(((0, True), (3, 1.0)), 7), ((("doubled", False),), 3.5), (((0, True),), 6.5)]
)
def test_function_constants(constants: tuple[tuple[int | str, bool | float], ...], expected: float) -> None:
    library = Library(compile_kernels(SOURCE, ["specialised"], Options(constants=constants)))
    x = np.array([3], np.float32)
    library.run("specialised", [x], [1])
    assert x[0] == expected


def test_launch_refuses_what_does_not_fit(library: Library) -> None:
    out = np.zeros(7, np.float32)
    with pytest.raises(OverlayError, match="argument `out` has nothing bound") as unbound:
        library.run("parameters", [np.zeros(48, np.uint8)], [1])
    with pytest.raises(OverlayError, match=r"argument `p` takes [0-9]+ bytes; 40 are bound"):
        library.run("parameters", [np.zeros(5, np.uint64), out], [1])
    with pytest.raises(OverlayError, match="2048 threads; the limit is 1024"):
        library.run("vectors", [out], [1], [2048])
    with pytest.raises(OverlayError, match="no kernel named `absent`") as absent:
        library.run("absent", [], [1])
    assert (unbound.value.code, absent.value.code) == ("PTR106", "PTR102")
