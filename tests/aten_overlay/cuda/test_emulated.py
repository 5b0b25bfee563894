"""The cases for a GPU, by the code for a GPU, on a processor: its registers and exchanges between lanes are emulated.

What this proves is the arithmetic of positions, the exchanges, atomics and matrices of `pm/cuda`; not that a GPU's lanes are
active together where these are.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
import pytest

from aten_overlay.cuda.grid import read_grid
from aten_overlay.cuda.schedule import write_schedule
from aten_overlay.metal import build, compiler
from aten_overlay.metal.build import Options
from aten_overlay.metal.cuda.compile import compile_ptx
from aten_overlay.metal.cuda.launching import Launch, plan_launch
from aten_overlay.metal.cuda.module import Entry, PtxModule
from aten_overlay.metal.cuda.target import DEFAULT, make_target
from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.source.generate import generate
from tests.aten_overlay.cuda import planted
from tests.aten_overlay.cuda.cases import Case, all_cases, find_difference
from tests.aten_overlay.cuda.needs import needs_libdevice

HERE = Path(__file__).parent / "emulated"
WITHOUT_LIBDEVICE = ("lanes.metal", "memory.metal", "matrices.metal", "grids.metal")
CASES = [case for case in all_cases() if case.file in WITHOUT_LIBDEVICE]
FLAGS = (
    "-x", "c++", "-std=gnu++17", "-Wno-everything", "-fsigned-char", "-fPIC", "-shared", "-pthread", "-ffp-contract=on",
    "-march=native", "-fno-strict-aliasing", "-D__CUDA__=1",
)  # fmt: skip


def module_of(cases: list[Case]) -> tuple[list[str], Options]:
    values = {index: value for case in cases for index, value in case.values}
    return list(dict.fromkeys(case.kernel for case in cases)), Options(constants=tuple(values.items()))


@lru_cache(maxsize=4)
def compiled(file: str) -> PtxModule:
    cases = cases_of(file)
    return compile_ptx(cases[0].path, *module_of(cases))


def cases_of(file: str) -> list[Case]:
    return [case for case in CASES if case.file == file]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("emulated")
    clang, hardware = compiler.find_clang(), f"{folder}/hardware.o"
    subprocess.run([clang, *FLAGS, "-O1", "-c", "-o", hardware, str(HERE / "hardware.cpp")], check=True)

    @lru_cache(maxsize=8)
    def library(file: str, *flags: str) -> ctypes.CDLL:
        cases = cases_of(file)
        names, options = module_of(cases) if cases else (list(planted.MISSED), Options())
        unit = build.read_unit(build.preprocess(cases[0].path if cases else planted.SOURCE, options))
        text = generate(unit, names, dict(options.constants), make_target(names, DEFAULT))
        symbols = re.findall(r"void (\w+__(?:grid|flat|several))\(", text)
        calls = "".join(f'extern "C" void run_{s}(void** a) {{ hardware_call(&{s}, a); }}\n' for s in symbols)
        source = folder / f"{file}{len(flags)}.cpp"
        source.write_text(f"{text}\n{calls}")
        made = source.with_suffix(".so")
        headers = ["-include", str(HERE / "builtins.h"), "-include", str(INCLUDE / "metal_stdlib")]
        subprocess.run([clang, *FLAGS, "-O0", *flags, *headers, "-c", "-o", f"{made}.o", str(source)], check=True)
        subprocess.run([clang, "-shared", "-pthread", "-o", str(made), f"{made}.o", hardware], check=True)
        return ctypes.CDLL(str(made))

    return library


def run(library: ctypes.CDLL, case: Case, entry: Entry, launch: Launch) -> list[str]:
    """What differs after a run of `case`."""
    buffers = [np.array(each) for each in case.buffers]
    kept = [ctypes.create_string_buffer(launch.sizes, len(launch.sizes))]
    for parameter in entry.parameters:
        if parameter.kind == "threadgroup":
            data = launch.offsets[parameter.index].to_bytes(4, "little")
        elif parameter.kind == "constant":
            data = buffers[parameter.index].tobytes()
        else:
            data = buffers[parameter.index].ctypes.data.to_bytes(8, "little")
        kept.append(ctypes.create_string_buffer(data, max(parameter.size, len(data))))
    addresses = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(each) for each in kept))
    wide = {narrow: entry.symbols[form] for form, narrow in entry.narrow.items()}  # the same code
    library.hardware_run(
        library[f"run_{wide.get(launch.symbol, launch.symbol)}"],
        addresses,
        (ctypes.c_uint * 3)(*launch.blocks),
        launch.threads,
    )
    found = [find_difference(case, index, buffers[index]) for index in case.expected]
    return [f"{case.name}, {launch.symbol}: {each}" for each in found if each]


def run_all(library: ctypes.CDLL, file: str) -> tuple[list[str], set[str]]:
    """What differs after a run of every case of a file in every form, and the symbols that were run."""
    wrong, symbols = [], set()
    for case in cases_of(file):
        entry = compiled(file).entries[case.kernel]
        for form in entry.symbols:
            launch = plan_launch(entry, form, case.grid, case.group, case.threadgroup_bytes)
            symbols.add(launch.symbol)
            wrong += run(library, case, entry, launch)
    return wrong, symbols


@needs_libdevice
@pytest.mark.parametrize("file", WITHOUT_LIBDEVICE)
def test_code_for_a_gpu_computes_what_is_expected(file: str, load: Callable[..., ctypes.CDLL]) -> None:
    wrong, symbols = run_all(load(file), file)
    assert wrong == []
    assert len(symbols) > len(compiled(file).entries), "no form but one was run"


def write_order(library: ctypes.CDLL, grid: Sequence[int], group: Sequence[int], seed: int) -> None:
    """Gives the next launch an order."""
    data = write_schedule(read_grid(grid, group), Random(seed))
    ctypes.memmove(ctypes.addressof(ctypes.c_char.in_dll(library, "pm_schedule")), data, len(data))


@needs_libdevice
@pytest.mark.parametrize("file", WITHOUT_LIBDEVICE)
def test_an_order_made_of_a_seed_changes_no_result(file: str, load: Callable[..., ctypes.CDLL]) -> None:
    library = load(file, "-DPM_SCHEDULED")
    for case in cases_of(file):
        entry = compiled(file).entries[case.kernel]
        write_order(library, case.grid, case.group, 5)
        launch = plan_launch(entry, "grid", case.grid, case.group, case.threadgroup_bytes)
        assert run(library, case, entry, launch) == []
        assert read_note(library)[0] == 0, case.name


def read_note(library: ctypes.CDLL) -> tuple[int, ...]:
    """Whether a barrier was missed, its line, and how many threads reached it of how many."""
    start = ctypes.addressof(ctypes.c_char.in_dll(library, "pm_schedule"))
    return struct.unpack_from("<4I", ctypes.string_at(start, 64), 48)


@pytest.mark.parametrize("kernel, reached", [("barrier_after_return", 200), ("barrier_in_a_branch", 128)])
def test_a_barrier_that_threads_miss_is_noted(kernel: str, reached: int, load: Callable[..., ctypes.CDLL]) -> None:
    library = load("planted.metal", "-DPM_SCHEDULED")
    write_order(library, (512,), (256,), 1)
    x, y = np.ones(512, np.float32), np.zeros(512, np.float32)
    kept = [np.array([512, 1, 1, 256, 1, 1, 2, 1, 1], np.uint32), np.array([x.ctypes.data]), np.array([y.ctypes.data])]
    addresses = (ctypes.c_void_p * 3)(*(each.ctypes.data for each in kept))
    library.hardware_run(library[f"run_{kernel}__grid"], addresses, (ctypes.c_uint * 3)(2, 1, 1), 256)
    assert read_note(library) == (1, *planted.find_lines(kernel), reached, 256)
    start = ctypes.addressof(ctypes.c_char.in_dll(library, "pm_schedule"))
    assert ctypes.string_at(start + 64) == b"planted.metal"


@needs_libdevice
def test_tensor_cores_multiply_the_same(load: Callable[..., ctypes.CDLL]) -> None:
    assert run_all(load("matrices.metal", "-DPM_TENSOR_CORES"), "matrices.metal")[0] == []
