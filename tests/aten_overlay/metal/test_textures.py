"""Textures and samplers: kernels over small arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import compile_kernels, host_names
from aten_overlay.metal.launch import Library, Sampler, Texture

SOURCE = Path(__file__).with_name("textures.metal")


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE)))


def test_texels_are_read_and_written_in_their_formats(library: Library) -> None:
    given = np.arange(24, dtype=np.uint8).reshape(1, 2, 3, 4)
    out, size = np.zeros((1, 2, 3, 4), np.float16), np.zeros(1, np.uint32)
    library.run("copied", [size], [4, 4], [4, 4], textures=[Texture(given, normalized=True), Texture(out)])
    assert np.abs(out - given / 255 * 2).max() < 1e-3
    assert size[0] == 302


LINE = np.array([10, 20, 30, 40], np.float32)
CASES = {
    "nearest": (Sampler(), 0.3, 20),
    "linear": (Sampler(linear=True), 0.5, 25),
    "linear at the edge": (Sampler(linear=True), 0.0, 10),
    "repeat": (Sampler(address="repeat"), 1.3, 20),
    "repeat, linear": (Sampler(address="repeat", linear=True), 0.0, 25),
    "mirrored": (Sampler(address="mirrored_repeat"), 1.1, 40),
    "zero": (Sampler(address="clamp_to_zero"), 1.1, 0),
    "border": (Sampler(address="clamp_to_border", border="opaque_white"), -0.1, 1),
    "edge": (Sampler(), -3.0, 10),
    "pixels": (Sampler(normalized=False), 2.5, 30),
}


@pytest.mark.parametrize("case", CASES)
def test_samplers(library: Library, case: str) -> None:
    sampler, x, expected = CASES[case]
    at, out = np.array([x, 0.5], np.float32), np.zeros(1, np.float32)
    library.run("sampled", [at, out], [1], textures=[Texture(LINE.reshape(1, 1, 4, 1))], samplers=[sampler])
    assert out[0] == pytest.approx(expected)


def test_all_of_a_sparse_texture_is_there(library: Library) -> None:
    at, out = np.array([0.5, 0.5], np.float32), np.zeros(3, np.float32)
    line = Texture(LINE.reshape(1, 1, 4, 1))
    library.run("of_sparse", [at, out], [1], textures=[line], samplers=[Sampler(linear=True)])
    assert out.tolist() == [25, 30, 20]


def test_a_sampler_of_the_source(library: Library) -> None:
    out = np.zeros(2, np.float32)
    line = Texture(np.array([1, 3], np.float16).reshape(1, 1, 2, 1))
    library.run("sampled_by_a_constant", [out], [2], textures=[None, None, line])
    assert out.tolist() == [2, 2]


def test_layers_and_depth(library: Library) -> None:
    layers = np.arange(12, dtype=np.uint32).reshape(3, 2, 2, 1)
    solid = -np.arange(8, dtype=np.int32).reshape(2, 2, 2, 1)
    line = np.zeros((1, 1, 2, 1), np.float16)
    expected = (layers[0].astype(np.int64) + solid[1]).astype(np.uint32)
    library.run("layers", [], [2, 2], [2, 2], textures=[Texture(layers, layered=True), Texture(solid), Texture(line)])
    assert layers[2].tolist() == expected.tolist()
    assert line.ravel().tolist() == [0, 1]


SQUARE = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 2, 2, 1)


def test_gathering_takes_the_texels_that_a_filter_would_mix(library: Library) -> None:
    out = np.zeros((3, 4), np.float32)
    library.run("gathered", [out], [1], textures=[Texture(SQUARE)], samplers=[Sampler()])
    assert out[:2].tolist() == [[3, 4, 2, 1], [4, 4, 2, 2]]
    assert out[2].tolist() == [4, 0, 0, 1]


def test_comparisons_are_filtered_not_texels(library: Library) -> None:
    out = np.zeros((2, 4), np.float32)
    many = Texture(np.concatenate([SQUARE, SQUARE + 3]), layered=True)
    sampler = Sampler(linear=True, compare="less")
    library.run("compared", [out], [1], textures=[Texture(SQUARE), many], samplers=[sampler])
    assert out[0].tolist() == [0.5, 0, 1, 4]
    assert out[1].tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("direction", "face", "texel"),
    [
        ((1, 0.5, -0.5), 0, 1), ((-1, 0.5, -0.5), 1, 0), ((0.5, 1, -0.5), 2, 1), ((0.5, -1, -0.5), 3, 3),
        ((0.5, 0.5, 1), 4, 1), ((0.5, 0.5, -1), 5, 0),
    ],
)  # fmt: skip
def test_a_direction_meets_a_face_of_a_cube(
    library: Library, direction: tuple[float, float, float], face: int, texel: int
) -> None:
    faces = np.arange(48, dtype=np.float32).reshape(12, 2, 2, 1)
    at, out = np.array([*direction, 0], np.float32), np.zeros(4, np.float32)
    cube, cubes = Texture(faces[:6].copy(), layered=True), Texture(faces, layered=True)
    library.run("cubes", [at, out], [1], textures=[cube, cubes], samplers=[Sampler()])
    first = 4 * face + texel
    assert out.tolist() == [first, first + 24, 2 + faces[9, 1, 0, 0], first]


def test_samples_of_a_texel(library: Library) -> None:
    given, out = np.arange(16, dtype=np.float32).reshape(4, 2, 2, 1), np.zeros((1, 2, 2, 1), np.float32)
    library.run("samples", [], [2, 2], [2, 2], textures=[Texture(given), Texture(out)])
    assert (out == given.mean(0)).all()


def test_atomic_functions_of_textures(library: Library) -> None:
    one, many = np.zeros((1, 2, 2, 1), np.uint32), np.zeros((2, 1, 1, 1), np.int32)
    out = np.full(2, 77, np.uint32)
    library.run("counted", [out], [100], [50], textures=[Texture(one), Texture(many, layered=True)])
    assert one.ravel().tolist() == [200, 99, sum(range(100)), 8]
    assert many.ravel().tolist() == [0, -100]
    assert out.tolist() == [9, 0]


def test_arrays_of_textures_and_samplers(library: Library) -> None:
    many = [Texture(np.full((1, 1, 1, 1), n, np.float32)) for n in (1, 2, 3)]
    line, out = Texture(np.array([2, 4], np.float32).reshape(1, 1, 2, 1)), np.zeros(3, np.float32)
    library.run("several", [out], [3], textures=[line, *many], samplers=[Sampler(), Sampler(linear=True)])
    assert out.tolist() == [41, 32, 43]
    with pytest.raises(OverlayError, match="argument `many` has nothing bound"):
        library.run("several", [out], [3], textures=[line, *many[:2]], samplers=[Sampler(), Sampler()])


def test_what_is_not_bound_or_no_texture_is_refused(library: Library) -> None:
    with pytest.raises(OverlayError, match="argument `t` has nothing bound"):
        library.run("sampled_by_a_constant", [np.zeros(1, np.float32)], [1])
    with pytest.raises(OverlayError, match="cannot be over an array of float64"):
        Texture(np.zeros((1, 1, 1, 1))).describe()
