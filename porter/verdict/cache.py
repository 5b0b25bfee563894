"""What running a fork's old code told, kept under a digest of all that it depends on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from porter.core.checkout import Checkout
from porter.core.layout import KERNELS, MPS, NATIVE_FUNCTIONS, OPERATIONS
from porter.verdict import client as server
from porter.verdict.build.objects import digest
from porter.verdict.build.tree import cache
from porter.verdict.result import HOST


def evidence(checkout: Checkout) -> str:
    """A digest of what running the fork's old code depends on: its host code and kernels, torch and porter."""
    folders = [checkout.folder(folder, ".h", ".mm", ".metal") for folder in (MPS, OPERATIONS, KERNELS)]
    files = (part for folder in folders for file in folder.files for part in file)
    return digest(server.fingerprint(HOST), checkout.read(NATIVE_FUNCTIONS), *files)


def place(evidence: str, kind: str, base: str, *parts: str) -> Path:
    """The file of one kind for an operator under this evidence."""
    return cache() / kind / f"{base}-{digest(evidence, *parts)}.json"


def find(path: Path) -> Any:
    """What is kept there; None where there is nothing."""
    return json.loads(path.read_text()) if path.is_file() else None


def keep(path: Path, value: Any) -> None:
    """Keeps a JSON value there; another process that reads sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(value))
    part.replace(path)
