"""What reads memory as another type than wrote it: unions, bit-fields and words of parts, of which a part has a value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aten_overlay.errors import OverlayError
from tests.aten_overlay.sanitizer.test_findings import GRID, finding, run, values

SHARED = ("shared_union", "other_member", "shared_copy", "shared_vector", "shared_fields")
PRIVATE = ("private_byte", "private_union", "private_fields", "wide_fields", "word", "halves", "assigned")
FRESH = 0xCB  # what memory holds that nothing wrote since it was allocated


def fault(name: str) -> str:
    fresh = np.full(16 * GRID, FRESH, np.uint8)
    return finding("punning.metal", name, [np.zeros(GRID, np.float32), values(), fresh]).code


@pytest.mark.parametrize("name", SHARED)
def test_a_part_of_threadgroup_memory_without_a_value_is_found(name: str) -> None:
    assert fault(name) == "PTR262"


@pytest.mark.parametrize("name", PRIVATE)
def test_a_part_of_a_private_variable_without_a_value_is_found(name: str) -> None:
    assert fault(name) == "PTR267"


WORDS = st.integers(0, 2**32 - 1)


@given(kept=WORDS, read=WORDS, by=st.integers(0, 31), value=WORDS)
@example(kept=0xFFFF, read=0xFF, by=8, value=5)
@example(kept=0xFFFF, read=0x1FF, by=8, value=5)
@settings(max_examples=200, deadline=None)
def test_a_word_is_found_where_a_bit_without_a_value_is_read(kept: int, read: int, by: int, value: int) -> None:
    numbers = np.array([kept, read, by, value], np.uint32)
    out = np.zeros(1, np.uint32)
    if (~kept & 0xFFFFFFFF) >> by & read:
        with pytest.raises(OverlayError, match="PTR267"):
            run("punning.metal", "bits", [out, numbers], grid=1)
    else:
        run("punning.metal", "bits", [out, numbers], grid=1)
        assert out[0] == (value >> by ^ value) & read
