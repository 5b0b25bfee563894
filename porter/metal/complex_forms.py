"""How functions of a complex number are computed from its parts: the rows of complex.yaml."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The rows: `functions` by the name of the operation, `helpers` by the name of the MSL function."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load(Path(__file__).with_name("complex.yaml").read_text(), Loader=loader))


def helper(name: str) -> str:
    """The text of a helper function, without the last line feed."""
    row = table()["helpers"][name]
    return str(row if isinstance(row, str) else row["body"]).rstrip("\n")
