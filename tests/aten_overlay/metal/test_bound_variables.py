"""Variables at program scope that are bound to positions, by kernels whose results can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library

SOURCE = Path(__file__).with_name("bound_variables.metal")
GRID, GROUP = 128, 64
PLACE = np.arange(GRID)
EXPECTED = {
    "plain": PLACE % 32 + 100.0 * GROUP,
    "shared_float": PLACE % 32 + PLACE % GROUP,
    "shared_int": PLACE % 32 + PLACE % GROUP,
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, [*EXPECTED, "without_parameters", "with_none", "own_parameter"]))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bound_variable_is_that_of_the_thread(library: Library, name: str) -> None:
    out = np.zeros(GRID, np.int32 if name == "shared_int" else np.float32)
    library.run(name, [out], [GRID], [GROUP])
    assert (out == EXPECTED[name]).all()


def test_a_parameter_of_its_name_hides_it(library: Library) -> None:
    out = np.zeros(32, np.float32)
    library.run("own_parameter", [out], [GRID], [GROUP])
    assert (out == GRID).all()


@pytest.mark.parametrize("name", ["without_parameters", "with_none"])
def test_a_kernel_may_have_no_other_parameter(library: Library, name: str) -> None:
    library.run(name, [], [GRID], [GROUP])


@pytest.mark.parametrize(
    ("name", "what"), [("through_a_function", "'place' is unavailable"), ("broken", "undeclared identifier")]
)
def test_what_fails_names_its_line(name: str, what: str) -> None:
    with pytest.raises(OverlayError, match=what) as caught:
        compile_kernels(SOURCE, [name])
    word = {"through_a_function": "return 2 * place", "broken": "no_such_name"}[name]
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if word in text)
    assert str(caught.value.place) == f"{SOURCE}:{line}"
