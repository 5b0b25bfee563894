"""What a version of Metal lacks is refused at its line; without one nothing is."""

from __future__ import annotations

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import host_names
from aten_overlay.metal.language import LANGUAGES, OLDER_TILES, VARIABLE, choose, parse, parse_macos, select

HEADER = "#include <metal_stdlib>\n#include <metal_tensor>\nkernel void twice(device float* x) { x[0] *= 2; }\n"
LAMBDA = """#include <metal_stdlib>
kernel void twice(device float* x [[buffer(0)]], device uint* n) {
  [[maybe_unused]] float first = x[0], rest[2] = {x[1], x[n[0]]};
  auto f = [&](float v) { return 2 * v; };
  x[0] = f(x[0]);
}
"""
FENCE = """#include <metal_stdlib>
using namespace metal;
#if __METAL_VERSION__ >= 320
kernel void ordered(device float* x) { atomic_thread_fence(mem_flags::mem_device); }
#endif
kernel void twice(device float* x, CHOSEN float* y) {
  WORD;
}
"""
GUARDED = """#include <metal_stdlib>
#if __has_include(<MetalPerformancePrimitives/MetalPerformancePrimitives.h>)
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
kernel void tensors(device float* x) { x[0] = __METAL_VERSION__; }
#else
kernel void plain(device float* x) { x[0] = __METAL_VERSION__; }
#endif
"""


def _fence(chosen: str, word: str) -> str:
    return FENCE.replace("CHOSEN", chosen).replace("WORD", word)


@pytest.mark.parametrize(
    ("version", "source", "line", "message"),
    [
        ("3.2", HEADER, 2, "<metal_tensor> is of Metal 4.0, not of 3.2"),
        ("3.1", LAMBDA, 4, "a lambda is of Metal 3.2, not of 3.1"),
        ("3.1", _fence("device", "atomic_thread_fence(mem_flags::mem_device)"), 7, "`atomic_thread_fence` is of Metal 3.2, not of 3.1"),
        ("3.1", _fence("coherent(device) device", "y[0] = 1"), 6, "`coherent(...)` is of Metal 3.2, not of 3.1"),
        ("3.1", _fence("device", 'os_log_default.log("x")'), 7, "`os_log` is of Metal 3.2, not of 3.1"),
    ],
)  # fmt: skip
def test_what_a_version_lacks_is_refused(
    version: str, source: str, line: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, version)
    with pytest.raises(OverlayError) as refused:
        host_names(source)
    assert (refused.value.code, refused.value.what) == ("PTR281", message)
    assert refused.value.place is not None and refused.value.place.line == line


@pytest.mark.parametrize(
    ("version", "source", "names"),
    [
        (None, HEADER, ("twice",)), (None, LAMBDA, ("twice",)), ("4.0", HEADER, ("twice",)), ("3.2", LAMBDA, ("twice",)),
        ("3.2", GUARDED, ("plain",)), ("3.1", _fence("device", "y[0] = 1"), ("twice",)), ("4.0", GUARDED, ("tensors",)), (None, GUARDED, ("tensors",)),
    ],
)  # fmt: skip
def test_what_it_has_is_read(
    version: str | None, source: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if version:
        monkeypatch.setenv(VARIABLE, version)
    assert host_names(source) == names


def test_a_release_runs_older_versions_and_none_that_it_has_not() -> None:
    assert (choose("3.1", "26").name, choose("4.0", "26").name, choose(macos="15").name) == ("3.1", "4.0", "3.2")
    with pytest.raises(OverlayError, match=r"PTR280 macOS 15 has no Metal 4\.0"):
        choose("4.0", "15")


def test_releases_before_another_order_of_tiles_compile_for_the_older_one() -> None:
    assert [choose("4.0", release) for release in ("26.0", "26.1")] == [OLDER_TILES] * 2 == [choose(macos="26.1")] * 2
    assert not any(choose(macos=release).older_tiles for release in ("26", "26.2", "26.10", "27.0"))
    assert select({VARIABLE: OLDER_TILES.name}) is OLDER_TILES


def test_versions_are_known_by_name_and_by_the_macos_that_has_them() -> None:
    assert select({}) is None and select({VARIABLE: "3.2"}) == parse("3.2")
    assert [parse_macos(release).name for release in ("14.4", "15", "16", "26.2", "27")] == [
        "3.1",
        "3.2",
        "3.2",
        "4.0",
        "4.0",
    ]
    for read, text in ((parse, "2.4"), (parse_macos, "13"), (parse_macos, "now"), (parse_macos, "15.x")):
        with pytest.raises(OverlayError) as unknown:
            read(text)
        assert unknown.value.code == "PTR280"
    assert [language.number for language in LANGUAGES] == [310, 320, 400]
