"""Names of native functions and of the operators they belong to."""

from __future__ import annotations

import re

# torchgen.model.AUGMENTED_ASSIGNMENT_NAMES
_AUGMENTED = re.compile(r"__i(add|sub|mul|div|mod|pow|lshift|rshift|and|xor|or)__")


def parse_base_name(name: str) -> str:
    """Returns the operator's base name: `atan2` for `atan2_` and `atan2.out`, `__and__` for `__iand__.Tensor`."""
    root = name.split(".", 1)[0]
    augmented = _AUGMENTED.fullmatch(root)
    if augmented:
        return f"__{augmented[1]}__"
    return root[:-1] if root.endswith("_") and not root.endswith("__") else root
