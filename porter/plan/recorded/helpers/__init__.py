"""Functions of c10/metal that an older fork lacks: a kernel file that calls one gets it from here."""

from __future__ import annotations

import re
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.layout import METAL_HEADERS
from porter.languages.identifiers import contains_identifier

_CALLED = re.compile(r"\bc10::metal::(\w+)")


def define_missing(checkout: Checkout, file: str, text: str) -> str:
    """The functions that kernels for a file call, and neither the fork's headers nor the file has; empty if none.

    Raises PTR349 if porter does not have one either.
    """
    found = "\n".join(_list_missing(checkout, file, text))
    return (
        f"namespace c10 {{\nnamespace metal {{\n\n{found}\n}} // namespace metal\n}} // namespace c10\n\n"
        if found
        else ""
    )


def _list_missing(checkout: Checkout, file: str, text: str) -> list[str]:
    found: dict[Path, None] = {}
    known = checkout.read(file) if checkout.exists(file) else ""
    headers = [checkout.read(path) for path in checkout.list(METAL_HEADERS, ".h")]
    for name in dict.fromkeys(_CALLED.findall(text)):
        if contains_identifier(known, name) or any(contains_identifier(each, name) for each in headers):
            continue
        path = find_helper(name)
        if path is None:
            what = f"a kernel calls c10::metal::{name}, which no header of {METAL_HEADERS} has"
            raise PorterError("PTR349", what, Place(file, 1), f"Add it to {METAL_HEADERS}, as upstream has it.")
        found[path] = None
    return [path.read_text() for path in found]


def find_helper(name: str) -> Path | None:
    """The file that declares what an older fork lacks; None if there is none."""
    files = sorted(Path(__file__).parent.glob("*.metal"))
    return next((each for each in files if contains_identifier(each.read_text(), name)), None)
