"""The cases for a GPU, on the host: what they expect is what Metal's functions compute there."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby

import numpy as np
import pytest

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from tests.aten_overlay.cuda.cases import Case, all_cases, find_difference

CASES = all_cases()
FILES = {name: tuple(group) for name, group in groupby(CASES, key=lambda case: case.file)}


@lru_cache(maxsize=8)
def library(file: str) -> Library:
    cases = FILES[file]
    values = {index: value for case in cases for index, value in case.values}
    names = dict.fromkeys(case.kernel for case in cases)
    return Library(compile_kernels(cases[0].path, names, Options(constants=tuple(values.items()), optimization=QUICK)))


def run(case: Case) -> list[str]:
    """How a run differs from what is expected."""
    buffers = [np.array(each) for each in case.buffers]
    lengths = [case.threadgroup_bytes.get(i, 0) for i in range(1 + max(case.threadgroup_bytes, default=-1))]
    library(case.file).run(case.kernel, buffers, case.grid, case.group, threadgroup_bytes=lengths)
    found = [find_difference(case, index, buffers[index]) for index in case.expected]
    return [f"{case.name}: {each}" for each in found if each]


@pytest.mark.parametrize("file", FILES)
def test_the_host_computes_what_is_expected(file: str) -> None:
    assert [line for case in FILES[file] for line in run(case)] == []


def test_a_wrong_result_is_found() -> None:
    case = next(case for case in CASES if case.kernel == "exp_float")
    right = case.expected[1]
    assert find_difference(case, 1, right) == ""
    finite = np.isfinite(right)
    assert find_difference(case, 1, np.where(finite, np.nextafter(right, np.float32(0)), right)) == ""
    wrong = right.copy()
    wrong[30] *= 1.001
    assert find_difference(case, 1, wrong).startswith(f"1 of {len(right)} differ, first element 30")
