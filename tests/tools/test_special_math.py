"""Every function of special_math.h has a float64 reference, and comes close to it: of the installed wheel, and of the
headers in the folder `PORTER_TEST_HEADERS`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

import special_math
from porter.core.layout import SPECIAL_MATH

# Largest error in ULP, relative to the function's own scale: near a zero no float32 algorithm keeps relative accuracy.
LIMIT = 50.0
LOOSER = {"gamma": 200.0, "shifted_chebyshev_polynomial_v_forward": 120.0}
# Between poles, where the scale says little: the algorithm reflects, and the argument's own rounding counts.
LOOSER |= {"digamma, x < 0": 5000.0, "trigamma, x < 0": 20000.0}


def _headers() -> list[Path]:
    spec = find_spec("torch")
    assert spec and spec.origin
    more = os.environ.get("PORTER_TEST_HEADERS", "")
    return [Path(spec.origin).parent / "include", *([Path(more)] if more else [])]


@pytest.mark.parametrize("headers", _headers(), ids=lambda p: p.parent.name)
def test_every_function_is_close_to_its_reference(headers: Path) -> None:
    errors, unknown = special_math.table(headers)
    assert set(unknown) <= set(special_math.NOT_MEASURED)
    assert len(errors) > 40
    assert {n: e.scaled for n, e in errors.items() if e.scaled > LOOSER.get(n, LIMIT)} == {}


def test_a_header_without_known_functions_is_refused(tmp_path: Path) -> None:
    header = tmp_path / SPECIAL_MATH
    header.parent.mkdir(parents=True)
    header.write_text("#pragma once\n")
    with pytest.raises(ValueError, match="defines no function that has a reference"):
        special_math.table(tmp_path)
