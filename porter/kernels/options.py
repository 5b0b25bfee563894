"""Options that MLX compiles a kernel with, as source that says the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from porter.core.errors import PorterError

_MODES = ("safe", "relaxed", "fast")
_NAME = "math_mode"


def write_options(name: str, options: Any) -> str:
    """The line of source for `{"math_mode": MODE}`, which comes before all others; "" for none. Raises PTR289."""
    if options is None:
        return ""
    if not isinstance(options, Mapping):
        raise PorterError(
            "PTR289", f"`compile_options` of kernel `{name}` is {options!r}, not a mapping",
            hint='Give a mapping: {"math_mode": "safe"}.',
        )  # fmt: skip
    for option, value in options.items():
        if option != _NAME:
            raise PorterError(
                "PTR289", f"`compile_options` of kernel `{name}` has an unknown option `{option}`",
                hint=f"The only one is {_NAME}.",
            )  # fmt: skip
        if value not in _MODES:
            raise PorterError(
                "PTR289", f"`{_NAME}` in `compile_options` of kernel `{name}` is {value!r}",
                hint=f"Use one of {', '.join(_MODES)}.",
            )  # fmt: skip
    return f"#pragma METAL fp math_mode({options[_NAME]})\n" if options else ""
