"""The fork's natives of a kind, and what none of them has."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import MPS
from porter.verdict.build.siblings import Siblings, find_siblings
from porter.verdict.build.tree import Tree, materialise
from porter.verdict.result import VerifyTarget

LIBRARY = f"{MPS}/MetalShaderLibrary.mm"
SIBLINGS = Siblings(
    "exec_binary_kernel",
    "aten/L.mm:3",
    ("atan2", "atan2_like"),
    ("atan2_dense_float_float", "atan2_dense_short_short"),
    (frozenset(("dense_float_float", "dense_int_int")), frozenset(("dense_float_short", "dense_bool_bool"))),
)
SUB = VerifyTarget("sub", kernels=("sub_alpha",))


@pytest.mark.parametrize(
    ("message", "is_gap"),
    [
        ("Failed to create function state object for: atan2_dense_float_bfloat", True),
        ("no kernel `atan2_like_dense_float_bfloat` is there", True),
        ("kernel `atan2_dense_float_float`: nothing is bound there", False),  # it is there
        ("Failed to create function state object for: atan2_dense_int_int", False),  # a sibling has it
        ("Failed to create function state object for: atan2_dense_float_short", True),  # one has, with no other result
        ("Failed to create function state object for: hypot_dense_float_bfloat", False),  # not under test
        ("Expected all tensors to be on the same device", False),
    ],
)
def test_a_kernel_that_no_sibling_has_either_is_a_gap(message: str, is_gap: bool) -> None:
    gap = SIBLINGS.find_gap(message)
    assert (gap is not None) == is_gap
    assert gap is None or gap.place == "aten/L.mm:3"


def test_siblings_are_launched_by_the_same_function() -> None:
    found = find_siblings(Tree(EMBEDDED_FORK, EMBEDDED_FORK, {}), SUB)
    assert found and found.function == "exec_binary_kernel" and found.place.startswith(f"{LIBRARY}:")
    assert "sub_alpha_dense_int_int_int" in found.names and any("dense_float_float" in forms for forms in found.forms)
    assert not any(name.startswith("copysign") for name in found.names)


def test_none_where_a_plan_writes_what_launches_them(tmp_path: Path) -> None:
    text = (EMBEDDED_FORK / LIBRARY).read_text()
    start = text.index("{", text.index("void MetalShaderLibrary::exec_binary_kernel(")) + 1
    edited = materialise(EMBEDDED_FORK, {LIBRARY: f"{text[:start]}\n  // as before{text[start:]}"}, tmp_path)
    assert find_siblings(edited, SUB) is None
    beside = materialise(EMBEDDED_FORK, {LIBRARY: f"// as before\n{text}"}, tmp_path)
    assert find_siblings(beside, SUB) is not None
    assert find_siblings(beside, VerifyTarget("nothing", kernels=("nothing",))) is None
