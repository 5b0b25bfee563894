"""Cache keys for the results of running a fork's old code."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.layout import DEVICE, KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS, TEST_LISTS
from porter.verdict import client, limits

# The code that a tree of a verdict takes from the checkout, as `build.tree` links it.
_FOLDERS = (MPS, OPERATIONS, KERNELS, DEVICE, METAL_HEADERS)
_CODE = (".h", ".hpp", ".inl", ".mm", ".cpp", ".metal")


def digest_old_code(checkout: Checkout) -> str:
    """A digest of the fork's host code and kernels, torch, porter and its limits. Raises PTR170 without torch."""
    folders = [checkout.folder(folder, *_CODE) for folder in _FOLDERS]
    files = (part for folder in folders for file in folder.files for part in file)
    settings = repr(limits.select(limits.READ_WHEN_RUN))
    imported = checkout.remember("imported", client.digest_imported)
    return _digest(imported, settings, checkout.read(NATIVE_FUNCTIONS), *files)


@lru_cache(maxsize=2)
def _digest(*parts: str | bytes) -> str:
    """Every row that has been run asks for the digest of the same megabytes."""
    return cache.digest(*parts)


def digest_tested_code(checkout: Checkout) -> str:
    """A digest of what the result of a test on the fork depends on: its old code and its test lists."""
    lists = (checkout.read(path) for path in TEST_LISTS if checkout.exists(path))
    return cache.digest(digest_old_code(checkout), *lists)


def key(evidence: str, kind: str, base: str, *parts: str) -> Path:
    """The cache file of one kind of result for an operator; `evidence` is the digest of what it depends on."""
    return cache.key(kind, base, evidence, *parts)
