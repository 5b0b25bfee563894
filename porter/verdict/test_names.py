"""Finds words of `-k` that no test name can have, from the parts that names are made of: needs no torch and no fork."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from porter.core import dtypes
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.core.python import PACKAGES
from porter.languages.identifiers import find_words
from porter.verdict.suite import runner

_SUITE = PACKAGES / "porter" / "verdict" / "suite"
# Where OpInfos and operators have their names, relative to site-packages.
_NAMED = (
    "torch/testing/_internal/common_methods_invocations.py",
    "torch/testing/_internal/opinfo/definitions/*.py",
    "torchgen/packaged/ATen/native/native_functions.yaml",
)
_PART = re.compile(r"[^a-z\d]+")


def require_names(expr: str, named: str = "") -> None:
    """Raises PTR430 for a `-k` that no test's name can match, whatever is tested; `named` has names of its own.

    A part of a word is enough to be known, so that a verdict may still find that none of its tests is selected.
    """
    try:
        matches = runner.matcher(expr)
    except ValueError as error:
        raise PorterError("PTR430", str(error), hint="Write it as pytest's -k takes it.") from error
    words = [word for word in re.findall(r"[^\s()]+", expr) if word not in ("and", "or", "not")]
    text = f"{_read_names()} {named.lower()}"
    unknown = [word for word in words if not all(part in text for part in _PART.split(word.lower()))]
    if not unknown or "not" in find_words(expr):  # what is not selected may be named as one likes
        return
    if not matches(" ".join(word for word in words if word not in unknown)):
        what = f"no test of any operator has {unknown[0]} in its name, so -k {expr} selects none"
        raise PorterError("PTR430", what, hint="Choose part of a test's name, such as test_output_match or float16.")


@functools.cache
def _read_names() -> str:
    texts = (read_regular(path).decode(errors="replace") for path in _list_files())
    return " ".join(("mps cpu", *(dtype.torch for dtype in dtypes.ALL), *texts)).lower()


def _list_files() -> Iterator[Path]:
    yield from sorted(_SUITE.rglob("*.py"))
    spec = find_spec("torch")
    if spec and spec.origin:
        packages = Path(spec.origin).parents[1]
        yield from (path for pattern in _NAMED for path in sorted(packages.glob(pattern)))
