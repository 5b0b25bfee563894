"""What `tools/equivalence.py` takes to compute the same."""

from __future__ import annotations

import pytest

import equivalence
from porter.core.checkout import EMBEDDED_FORK

SOURCE = """#include <c10/metal/indexing.h>
using namespace metal;
struct shifted_functor {{
  template <typename T> inline T operator()(const T a, const T b) {{ return static_cast<T>({0}); }}
}};
REGISTER_BINARY_OP(shifted, float, float);
REGISTER_BINARY_OP(shifted, half, half);
{1}
"""


@pytest.mark.parametrize(
    ("expression", "more", "same"),
    [
        ("float(b) + float(a)", "", True),
        ("float(a) + float(b)", "REGISTER_BINARY_OP(shifted, int, int);", False),
        ("float(a) - -float(b)", "", True),
        ("a == T(0) && b == T(0) ? T(0) : float(a) + float(b)", "", False),
        ("b == T(1) ? float(a) + 2.0 : float(a) + float(b)", "", False),
    ],
)
def test_kernels_with_the_same_bits_are_equivalent(
    expression: str, more: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equivalence, "ROWS", 1 << 18)
    original = SOURCE.format("float(a) + float(b)", "")
    assert equivalence.same_results(original, SOURCE.format(expression, more), "shifted", EMBEDDED_FORK) == same


def test_a_functor_without_dense_kernels_is_not_compared() -> None:
    source = SOURCE.format("float(a)", "")
    with pytest.raises(ValueError, match="other has no dense kernel"):
        equivalence.same_results(source, source, "other", EMBEDDED_FORK)
