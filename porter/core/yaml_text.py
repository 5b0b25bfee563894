"""Which loader reads a YAML text: libyaml's, which is ten times as fast, where the text cannot exhaust its stack."""

from __future__ import annotations

import yaml

_Fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SHORT = 4000  # characters, which cannot nest as deep as the C loader's stack


def choose_loader(text: str) -> type[yaml.SafeLoader]:
    """Returns a loader that makes plain values only; for a long text the one that raises RecursionError."""
    return _Fast if len(text) < _SHORT else yaml.SafeLoader
