"""The Metal API of the stand-in over kernels compiled for the host, and its validation."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from aten_overlay.apple import offline
from aten_overlay.apple.build import build_frameworks
from aten_overlay.apple.compiler import Compiler
from aten_overlay.lint import MetalWarning
from tests.aten_overlay.apple.objective_c import build_program

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def tell() -> Callable[[str], str]:
    library = ctypes.CDLL(str(build_program("metal", HERE / "programs" / "metal.mm")))
    compiler = Compiler(ctypes.CDLL(str(build_frameworks()), mode=ctypes.RTLD_GLOBAL))
    compiler.install()

    def run(name: str) -> str:
        function = library[name]
        function.restype = ctypes.c_char_p
        return str(function().decode())

    run.kept = compiler  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("scaled", "-1 6 9 12 15 18 -1 -1 | left 0"),
        ("aligned", "1 -1 2 -1 3 -1 4 -1 | left 0"),
        ("unvalidated", "1 2 3 -1 -1 -1 -1 -1 | left 0"),
        ("unvalidated_unbound", "0 0 -1 -1 -1 -1 -1 -1 | left 0"),
        ("no_bytes", "-1 -1 -1 -1 -1 -1 -1 -1 | left 0"),
        ("summed", "28 1024 32 | left 0"),
        ("kept", "42 | left 0"),
        ("waited", "-1 -1 3 | left 0"),
        ("asked", "-1 3 | left 0"),
        ("handled", "-1 handled 3 | left 0"),
        ("later_waited", "-1 -1 3 | left 0"),
        ("many_committed", f"{'-1 ' * 65}3 3 | left 0"),
        ("never_committed", "-1 -1 | left 0"),
        ("one_after_the_other", "committed | left 0"),
        ("macros", "named | left 0"),
        ("specialized", "1.5 -2 -inf 1 7 65535 -1 -1 | left 0"),
        ("indirect", "3 6 9 12 15 18 -1 -1 | left 0"),
        ("described", "applegpu_g15s 1000 0 110 one3 | left 0"),
        ("math_modes", "0 0 1 0 1 | left 0"),
    ],
)
def test_kernels_read_and_write_bound_buffers(tell: Callable[[str], str], name: str, told: str) -> None:
    assert tell(name) == told


def test_libraries_that_are_source_or_lie_beside_it_are_loaded_by_url(
    tell: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("made", "beside"):
        (tmp_path / f"{name}.metal").write_text(f"kernel void {name}(device float* o) {{ o[0] = 1; }}")
    (tmp_path / "beside.metallib").write_bytes(b"MTLB")
    assert offline.main("metal", [str(tmp_path / "made.metal"), "-o", str(tmp_path / "made.metallib")]) == 0
    (tmp_path / "made.metal").unlink()
    monkeypatch.setenv("PORTER_TEST_LIBRARIES", str(tmp_path))
    assert tell("libraries") == "made64 beside64 | left 0"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gathered", "PTR124: kernel `gather`: index 4 is not in the argument buffer at buffer index 0"),
        ("short_bytes", "PTR126: kernel `sizes`: argument `sizes` takes 16 bytes; 12 are bound (buffer 1)"),
        (
            "indirect_past_the_end",
            "PTR124: the grid of an indirect dispatch: bytes 24 to 36 are out of bounds for a buffer of 32",
        ),
        ("unbound", "PTR124: kernel `scale`, argument `in` at buffer index 1: nothing is bound there"),
        ("beyond_offset", "PTR124: kernel `scale`, argument `out` at buffer index 0: offset 40 is beyond the buffer's"),
        ("beyond_table", "PTR124: kernel `scale`: buffer index 31 is beyond the argument table, which ends at 30"),
        ("crowded", "PTR125: kernel `scale`: a threadgroup of 2048 x 1 x 1 threads; the limit is 1024"),
        ("greedy", "PTR125: kernel `total`: 65536 bytes of threadgroup memory; the limit is 32768"),
        ("freed", "PTR124: kernel `scale`, argument `out` at buffer index 0: the buffer bound there has been freed"),
        ("ended", "PTR124: a command was encoded after endEncoding"),
        ("copied", "PTR124: the source of a copy: bytes 28 to 36 are out of bounds for a buffer of 32"),
        (
            "second_encoder",
            "PTR124: a second encoder was made of a command buffer while an earlier encoder has had no end",
        ),
        ("open_at_commit", "PTR124: a command buffer was committed while an earlier encoder has had no endEncoding"),
        ("lost_encoder", "PTR124: a command buffer was committed while an earlier encoder has had no endEncoding"),
        (
            "failed_when_waited",
            "PTR124: kernel `scale`, argument `out` at buffer index 0: offset 40 is beyond the buffer's",
        ),
        ("after_commit", "PTR124: an encoder was made of a command buffer that has been committed"),
        (
            "waited_uncommitted",
            "PTR124: the host waits for a command buffer that has not been committed, which never ends",
        ),
        ("device_address", "PTR124: newBufferWithBytes was given an address of the device"),
        ("many_bytes", "PTR124: setBytes was given 4100 bytes at index 2, and takes 4096 at most: bind a buffer"),
        (
            "private_contents",
            "PTR124: the contents of a buffer in private storage were requested, which are nil on a Mac: copy it",
        ),
        ("unknown", "no function"),
    ],
)
def test_metal_errors_name_what_was_refused(tell: Callable[[str], str], name: str, told: str) -> None:
    _, _, found = tell(name).partition("! ")
    assert found.startswith(told)
    assert found.endswith("| left 0")


def test_a_buffer_says_how_it_is_stored(tell: Callable[[str], str]) -> None:
    assert tell("private_contents").startswith("210 ")


def test_work_that_is_never_committed_is_told(tell: Callable[[str], str], capfd: pytest.CaptureFixture[str]) -> None:
    tell("waited")
    assert capfd.readouterr().err == ""
    tell("never_committed")
    warning = (
        "porter: PTR124 a command buffer was released before `commit`, and commands in it never run: kernel `scale`\n"
        "  Commit it before its last reference goes.\n"
    )
    assert capfd.readouterr().err == warning


@pytest.mark.parametrize(
    ("family", "supported"), [("", "111011"), ("apple7", "110011"), ("apple10", "111111"), ("paravirtual", "100010")]
)
def test_a_device_supports_what_its_family_includes(
    tell: Callable[[str], str], family: str, supported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTER_FAMILY", family)
    assert tell("families").startswith(supported)


def test_sources_of_host_code_are_linted(tell: Callable[[str], str]) -> None:
    with pytest.warns(
        MetalWarning, match=r"program_source:4: PTR292 kernel `turn`: this `threadgroup_barrier` orders no"
    ):
        assert tell("unordered_source") == "compiled | left 0"
    with pytest.warns(MetalWarning, match=r"PTR291 kernel `lost_total`: `simd_sum` reduces a simdgroup") as heard:
        assert tell("total_in_64") == "112 | left 0"
    assert heard[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tell("total_in_32") == "112 | left 0"
        assert tell("unordered_source").startswith("program_source:4: PTR292 kernel `turn`: ")
        assert tell("total_in_64").startswith("! ")


def test_commands_before_a_refused_one_have_run(tell: Callable[[str], str]) -> None:
    assert tell("gathered").startswith("7 6 5 4 -1 -1 -1 -1 !")
    assert tell("copied").startswith("1 2 0 0 -1 -1 -1 -1 !")
