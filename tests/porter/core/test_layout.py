"""The layout names paths that a fork has."""

from __future__ import annotations

import pytest

from porter.core import layout
from porter.core.checkout import EMBEDDED_FORK

PATHS = {name: path for name, path in vars(layout).items() if name.isupper() and isinstance(path, str)}

# The miniature has all of its OpInfos in one file, no list of decompositions, no CUDA, no random numbers,
# nothing of what lists an operator that is new to PyTorch, its derivatives and its docs, and no tools of contributors.
MISSING = (
    "OPINFO_DEFINITIONS", "EXPECTED_DECOMPOSITIONS", "CUDA_KERNELS", "DERIVATIVES", "DOCSTRINGS", "FUNCTION_LIST",
    "RANDOM", "PROJECT", "SPIN_COMMANDS", "SPIN_PORTER", "LINTRUNNER", "PRE_COMMIT", "MATCHER",
)  # fmt: skip


@pytest.mark.parametrize("name", PATHS)
def test_the_embedded_fork_has_every_path_of_the_layout(name: str) -> None:
    if name not in MISSING:
        assert (EMBEDDED_FORK / PATHS[name]).exists(), PATHS[name]


def test_the_roots_of_includes_are_folders_of_the_fork() -> None:
    assert all((EMBEDDED_FORK / root).is_dir() for root in layout.INCLUDE_ROOTS.values())


def test_an_include_is_spelled_from_below_aten_src() -> None:
    assert layout.spell_include(layout.OPERATIONS) == "ATen/native/mps/operations"
    assert layout.spell_include(layout.INDEXING) == "c10/metal/indexing.h"
