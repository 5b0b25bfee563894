"""What lies between the values of a vector or structure is never a finding; a value beside it that nothing wrote is."""

from __future__ import annotations

import numpy as np
import pytest

from tests.aten_overlay.sanitizer.test_findings import GRID, finding, values

IN_THREADGROUPS = ("moments", "component", "structure", "plain", "boxes", "tree", "derived", "bytes")


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", IN_THREADGROUPS)
def test_a_copy_from_threadgroup_memory(name: str, seed: int | None) -> None:
    found = finding("padding.metal", name, [np.zeros(2 * GRID, np.float32), values()], seed=seed)
    assert found.code == "PTR262"
    assert "`memory` at byte" in found.what


@pytest.mark.parametrize("name", ["private_copies", "private_bytes"])
def test_a_copy_of_private_memory(name: str) -> None:
    found = finding("padding.metal", name, [np.zeros(12 * GRID, np.float32), values()])
    assert found.code == "PTR267"
