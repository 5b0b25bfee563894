"""Every function of the installed wheel's special_math.h has a float64 reference, and comes close to it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
import special_math

# Largest error in ULP, relative to the function's own scale: near a zero no float32 algorithm keeps relative accuracy.
LIMIT = 50.0
LOOSER = {"gamma": 200.0, "shifted_chebyshev_polynomial_v_forward": 120.0}


def test_every_function_is_close_to_its_reference() -> None:
    spec = find_spec("torch")
    assert spec and spec.origin
    errors, unknown = special_math.table(Path(spec.origin).parent / "include")
    assert unknown == ()
    assert len(errors) > 30
    assert {n: e.scaled for n, e in errors.items() if e.scaled > LOOSER.get(n, LIMIT)} == {}
