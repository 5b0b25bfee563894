"""Each planted fault of lanes and barriers is found at its line; the kernel without it is clean."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library

HERE = Path(__file__).parent
LANES, BARRIERS = HERE / "lanes.metal", HERE / "barriers.metal"
SANITIZED = Options(sanitize=("lanes", "barriers"))
PLAIN = Options()
RIGHT = [(path, name) for path in (LANES, BARRIERS) for name in host_names(path) if name.endswith("_right")]
WHOLE = ("swap", "read_lane", "shift")  # kernels for full simdgroups
MODES: dict[str, dict[str, Any]] = {"in order": {}, "shuffled": {"shuffle": 3}, "fibers": {"fibers": True}}


@lru_cache(maxsize=8)
def library(path: Path, options: Options) -> Library:
    return Library(compile_kernels(path, host_names(path), options))


def fault_line(path: Path, name: str) -> int:
    lines = path.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"// FAULT {name}"))


def run(path: Path, name: str, options: Options = SANITIZED, group: int = 20, **mode: Any) -> np.ndarray:
    kind = np.int64 if "long" in name else np.int32 if "sum" in name else np.float32
    values = (np.arange(120) % 7 + 1).astype(kind)
    out = np.zeros(120, kind)
    last = [np.array([37 if "lane" in name else 9], np.uint32)]
    threads, group = (64, 64 if group > 32 else 32) if name.startswith(WHOLE) else (40, group)
    library(path, options).run(name, [out, values, *last], (threads,), (group,), **mode)
    return out


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize("name", ["sum_shuffled", "sum_long", "swap_in_branch", "read_lane"])
def test_a_shuffle_from_a_lane_that_is_not_there(name: str, mode: dict[str, Any]) -> None:
    with pytest.raises(OverlayError) as found:
        run(LANES, name, **mode)
    assert found.value.code == "PTR273"
    assert f"kernel `{name}` reads from " in found.value.what
    assert f"lanes.metal:{fault_line(LANES, name)}, in thread (" in found.value.what
    assert re.search(r"lane \d+ of a simdgroup, which is inactive|a lane that no simdgroup has", found.value.what)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("leave_early", "PTR274"),
        ("one_branch", "PTR274"),
        ("two_branches", "PTR275"),
        ("helper", "PTR275"),
        ("loop", "PTR274"),
        ("in_simdgroup", "PTR274"),
        ("turns", "PTR295"),
    ],
)
def test_a_barrier_that_not_all_threads_reach(name: str, code: str, mode: dict[str, Any]) -> None:
    with pytest.raises(OverlayError) as found:
        run(BARRIERS, name, **mode)
    assert found.value.code == code
    assert f"kernel `{name}` waits at a barrier " in found.value.what
    assert f"barriers.metal:{fault_line(BARRIERS, name)}, in thread (" in found.value.what


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
@pytest.mark.parametrize(("path", "name"), RIGHT, ids=[name for _, name in RIGHT])
@pytest.mark.parametrize("wider", [False, True])
def test_without_the_fault_nothing_is_found(path: Path, name: str, wider: bool, mode: dict[str, Any]) -> None:
    narrow = 10 if name.startswith("sum_") else 20  # sums are those of one simdgroup
    group = 2 * narrow if wider else narrow
    np.testing.assert_array_equal(run(path, name, group=group, **mode), run(path, name, PLAIN, group))


def test_a_full_simdgroup_has_no_inactive_lane() -> None:
    values, out = np.arange(64, dtype=np.int32), np.zeros(2, np.int32)
    library(LANES, SANITIZED).run("sum_shuffled", [out, values], (64,), (32,))
    assert out.tolist() == [496, 1520]


def test_only_what_is_asked_for_is_watched() -> None:
    run(LANES, "sum_shuffled", Options(sanitize=("barriers",)))
    run(BARRIERS, "one_branch", Options(sanitize=("lanes",)))
