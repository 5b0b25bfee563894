"""Results of a fork's old code are found again only while all code is as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import DEVICE, KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict.build.tree import materialise
from porter.verdict.client import digest_old_code, digest_tested_code


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(EMBEDDED_FORK, tmp_path_factory.mktemp("evidence") / "fork")


@pytest.mark.parametrize(
    "file",
    [
        f"{OPERATIONS}/New.cpp", f"{OPERATIONS}/New.mm", f"{OPERATIONS}/New.inl", f"{MPS}/New.hpp", f"{MPS}/New.cpp",
        f"{KERNELS}/New.metal", f"{KERNELS}/New.h", f"{DEVICE}/New.h", f"{METAL_HEADERS}/new.h", NATIVE_FUNCTIONS,
    ],
)  # fmt: skip
def test_every_kind_of_code_counts(fork: Path, file: str, tmp_path: Path) -> None:
    before = digest_old_code(Checkout(fork, "a test")), digest_tested_code(Checkout(fork, "a test"))
    path = fork / file
    kept = path.read_bytes() if path.exists() else None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((kept or b"") + b"\n")
    try:
        assert (materialise(fork, {}, tmp_path).root / file).exists()  # so a verdict reads it
        after = digest_old_code(Checkout(fork, "a test")), digest_tested_code(Checkout(fork, "a test"))
    finally:
        path.unlink() if kept is None else path.write_bytes(kept)
    assert before[0] != after[0] and before[1] != after[1]
