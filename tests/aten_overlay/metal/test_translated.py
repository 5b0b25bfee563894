"""The forms in which translators write Metal, by kernels whose results can be worked out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.metal.build import arguments, compile_kernels, host_names
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("translated.metal")


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE)))


def test_types_of_the_namespace_and_bindings_that_are_enumerators(library: Library) -> None:
    out, given = np.zeros(4, np.float32), np.array([1, 2, 3, 0], np.float32)
    given.view(np.uint8)[12] = 7
    assert [(a.kind, a.index) for a in arguments(SOURCE, "named")][:2] == [("buffer", 0), ("buffer", 5)]
    library.run("named", [out, None, None, None, None, given], [1])
    assert out.tolist() == [1, 2, 3, 7]


def test_shifts_by_vectors_of_another_type(library: Library) -> None:
    v, wide = np.array([-9, 9, 4, -(2**31)], np.int32), np.array([2**40, 3], np.uint64)
    library.run("shifted", [v, wide], [1])
    assert v.tolist() == [-6, 4, 2, -(2**30)]
    assert wide.tolist() == [2**41, 12]


def test_volatile_vectors(library: Library) -> None:
    block = np.zeros(8, np.uint32)
    block[4:7] = 5, 6, 7
    library.run("coherent_block", [block], [1])
    assert block[:4].view(np.float32).tolist() == [1, 2, 3, 4]
    assert block[4:7].tolist() == [6, 7, 8]


def test_shuffles_of_any_type_by_templates_of_the_source(library: Library) -> None:
    v = np.arange(32 * 4, dtype=np.uint64).reshape(32, 4) << 33
    flags = np.random.default_rng(3).integers(0, 2, (32, 4), np.uint8)
    moved, moved_flags = v.copy(), flags.copy()
    library.run("shuffled", [moved, moved_flags], [32])
    swapped = np.arange(32) ^ 1
    expected = v[swapped]
    assert (moved[:, :2] == expected[:, :2]).all()
    assert (moved[:, 2] == expected[:, 2] + expected[:, 1]).all()
    assert (moved_flags[:, :3] == flags[swapped, :3]).all()


def test_packing(library: Library) -> None:
    out, back = np.zeros(8, np.uint32), np.zeros(18, np.float32)
    library.run("packs", [out, back], [1])
    assert [hex(v) for v in out[:4]] == ["0x7f400081", "0xff800000", "0x4000ffff", "0x7fff8001"]
    assert int(out[4]) == 1023 | 512 << 20 | 3 << 30
    assert out[5].tobytes() == bytes((188, 188, 188, 128))
    np.testing.assert_allclose(back[:4], [-1, 0, 64 / 127, 1], rtol=1e-6)
    np.testing.assert_allclose(back[4:8], [1, 0, 512 / 1023, 1], rtol=1e-6)
    np.testing.assert_allclose(back[8:12], [0.5028864] * 3 + [128 / 255], rtol=1e-5)
    assert int(out[6]) == 31 | 32 << 5 | 31 << 11 | (63 << 5 | 8 << 11) << 16
    np.testing.assert_allclose(back[12:], [1, 32 / 63, 1, 0, 1, 8 / 31], rtol=1e-3)
    assert out[7].tobytes() == bytes((0, 127, 0, 0x81)), "what is not a number packs as 0"


def test_integer_functions_of_vectors(library: Library) -> None:
    out, sums = np.zeros((4, 4), np.int32), np.zeros((2, 2), np.uint32)
    library.run("integers", [out, sums], [1])
    v = [0x12345678, -1, 7, -0x7FFFFFFF]
    assert out[0].tolist() == [0x67, -1, 0, 0]
    assert out[1].tolist() == [(n & ~15) | 3 for n in v]
    assert out[2].tolist() == [2 * v[0] + 1, -1, 15, -(2**31)]
    assert out[3].tolist() == [17] * 4
    assert sums[0, 0] == (v[0] * v[0] >> 32) + 1
    assert sums[1].tolist() == [1, 0x7FFFFFFF]


def test_whole_and_fractional_parts(library: Library) -> None:
    v = np.zeros((4, 4), np.float32)
    v[0] = 1.25, -2.5, 3, 0.5
    library.run("splits", [v], [1])
    assert v[1].tolist() == [0.25, -0.5, 0, 0.5]
    assert v[2].tolist() == [1, -2, 3, 0]
    assert v[3, 0] == pytest.approx(0.625**2 * (3 - 2 * 0.625))


def test_lists_in_braces_are_assigned(library: Library) -> None:
    out = np.zeros(4, np.float32)
    library.run("listed", [out], [1])
    assert out.tolist() == [1, 2, 3, 4]


def test_the_sign_of_an_integer_is_the_source_s_own(library: Library) -> None:
    out = np.zeros(2, np.float32)
    library.run("signs", [out], [1])
    assert out.tolist() == [-1, 109]
