"""Which environment variables of the client a verdict depends on.

A server has read some before the request comes: it answers only clients that have the same. The others travel with the
request, and the process that answers it takes them over before anything reads them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from porter.verdict.limits import TEST_SECONDS, VERDICT_SECONDS

# Names; one that ends in `_` stands for all that begin with it.
PLACES = ("HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "TMPDIR")
READ_AT_START = (
    "ATEN_", "CC", "CXX", "MKL_", "OMP_", "PORTER_CACHE", "PORTER_CACHE_SIZE", "PORTER_CLANG", "PYTORCH_", "TORCH_",
)  # fmt: skip
READ_WHEN_RUN = ("METAL_", "MTL_", "PORTER_FAMILY", "PORTER_METAL", "PORTER_SANITIZE", "PORTER_SHUFFLE")
LIMITS = (TEST_SECONDS, VERDICT_SECONDS)
SENT = (*READ_WHEN_RUN, *LIMITS)


def select(table: Iterable[str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of a table that are set in this process's environment, or in another, in the order of names."""
    given = os.environ if environment is None else environment
    exact = {name for name in table if not name.endswith("_")}
    begin = tuple(name for name in table if name.endswith("_"))
    return {name: given[name] for name in sorted(given) if name in exact or name.startswith(begin)}


def take_over(sent: Mapping[str, str]) -> None:
    """Makes this process's environment, which its C code sees as well, that of a client as far as it was sent."""
    for name in select(SENT):
        if name not in sent:
            del os.environ[name]
    os.environ.update(select(SENT, sent))
