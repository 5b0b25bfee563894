"""Parts of the Metal library that few kernels use, by kernels whose results can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("library.metal")
LANES = np.arange(32)


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, ("quads", "packed", "suffixes", "lists", "marked", "commands")))


def test_functions_of_quadgroups(library: Library) -> None:
    out = np.full((9, 32), -1, np.float32)
    library.run("quads", [out], [32], [32])
    quad, at = LANES & ~3, LANES & 3
    assert out[0].tolist() == (quad + (at - 1) % 4).tolist()
    assert out[1].tolist() == (quad + (at + 1) % 4).tolist()
    assert out[2].tolist() == np.where(at, LANES - 1, quad + 3 + 100).tolist()
    assert out[3].tolist() == np.where(LANES % 2, LANES - 1 + 100, LANES + 1).tolist()
    assert out[4].tolist() == quad.tolist()
    assert out[5].tolist() == (at == 0).tolist()
    assert out[6].tolist() == [15] * 32


def test_functions_of_quadgroups_with_inactive_lanes(library: Library) -> None:
    out = np.full((9, 32), -1, np.float32)
    library.run("quads", [out], [32], [32])
    at = LANES & 3
    assert out[7].tolist() == np.where(at > 1, (LANES & ~3) + 2, -1).tolist()
    assert out[8].tolist() == np.where(at > 1, 12 + (at == 2), -1).tolist()


def test_packed_vectors_have_swizzles(library: Library) -> None:
    out, vertices = np.zeros(5, np.float32), np.zeros(1, np.dtype([("at", np.float32, 3), ("uv", np.float16, 2)]))
    vertices["at"] = 1, 2, 3
    library.run("packed", [out, vertices], [1])
    assert vertices["at"].tolist() == [[2, 1, 4]]
    assert vertices["uv"].tolist() == [[-4, 3]]
    assert out.tolist() == [16, -4, -4, -2, -8]


def test_suffixes_of_numbers(library: Library) -> None:
    out = np.zeros(4, np.float32)
    library.run("suffixes", [out], [1])
    assert out.tolist() == [3.5, 5, 0x2BF, 20]


def test_lists_steps_and_increments_of_vectors(library: Library) -> None:
    out = np.zeros(7, np.float32)
    library.run("lists", [out], [1])
    assert out.tolist() == [4, 1, 9, 11 + 2000, 2, 3, 3]


def test_marked_functions_and_rays_compile(library: Library) -> None:
    out = np.zeros(1, np.float32)
    library.run("marked", [out], [1])
    assert out.tolist() == [4 + 1.5 + 1 + 1]


def test_structures_that_kernels_fill_for_commands(library: Library) -> None:
    dispatch, factors = np.zeros(3, np.uint32), np.zeros((2, 6), np.float16)
    library.run("commands", [dispatch, factors], [1])
    assert dispatch.tolist() == [0, 20, 0]
    assert factors.tolist() == [[0] * 6, [0, 0, 0, 0, 0, 2]]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("traced", "ray tracing"),
        ("tabled", "tables of functions"),
        ("encoding", "commands"),
        ("encoding_members", "commands that kernels encode: `command_buffer`"),
    ],
)
def test_what_only_a_gpu_has_is_refused_by_name(name: str, what: str) -> None:
    with pytest.raises(OverlayError, match=what) as caught:
        compile_kernels(SOURCE, [name])
    assert caught.value.code == "PTR352"
    assert caught.value.place is not None and caught.value.place.file == str(SOURCE)
