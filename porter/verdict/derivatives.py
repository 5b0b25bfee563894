"""The derivative formulas of the installed torch (derivatives.yaml), as text."""

from __future__ import annotations

import functools
import re
from importlib.resources import files

from porter.aten.declarations import parse_base_name
from porter.languages.identifiers import find_called


@functools.cache
def read_derivatives() -> tuple[tuple[str, str], ...]:
    """The base name of every differentiable function, and the text of its formulas."""
    text = (files("torchgen") / "packaged" / "autograd" / "derivatives.yaml").read_text()
    entries = re.split(r"^- name: ", text, flags=re.M)[1:]
    return tuple((parse_base_name(e.partition("(")[0].strip()), e.partition("\n")[2]) for e in entries)


def list_derived_with(base: str) -> frozenset[str]:
    """The base names of the functions whose derivatives call an operator."""
    return frozenset(
        name for name, formulas in read_derivatives() if base in formulas and base in find_called(formulas)
    )


def list_called(base: str) -> frozenset[str]:
    """The functions that the derivatives of an operator call, ATen's and others."""
    formulas = [text for name, text in read_derivatives() if name == base]
    return frozenset(name for text in formulas for name in find_called(text))
