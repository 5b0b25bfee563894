"""The body of a function with kernels in the place of its graph."""

from __future__ import annotations

import re
from collections.abc import Collection

from porter.core.errors import Place, PorterError
from porter.languages.liveness import prune
from porter.languages.statements import Statement, read_statements
from porter.plan.native.target import RUN

LAUNCH = "launch_of_kernels();"
# What only the building, the caching and the running of graphs use.
_GRAPH = re.compile(
    r"\bMPSGraph\w*|\w*CachedGraph\b|\bPlaceholder\b|\bMPSShape\b|\bMPSDataType\w*|\bMPSNDArray\w*|\bmpsGraph\w*"
    r"|\bNS(?:Mutable)?(?:Array|Number|String|Dictionary|Data)\b|\bdictionaryFromPlaceholders\b"
    r"|\bget(?:MPS(?:DataType|ScalarType|Shape|TypeString|GraphTensor\w*|Scalar)|TensorsStringKey)\b|\bget_mem_format_string\b"
)
_POOL = "autoreleasepool"


def replace_graph(body: str, place: Place, needed: Collection[str]) -> str:
    """A body without its graph, and `LAUNCH` where the graph ran. `needed` are the names that the launch uses.

    Raises PTR370 unless it runs one graph.
    """
    runs = [each for outer in read_statements(body) for each in outer.walk() if _runs(each, body)]
    if len(runs) != 1:
        raise PorterError("PTR370", f"the function runs {len(runs)} graphs", place, "See docs/errors/PTR370.md.")
    marked = body[: runs[0].start] + LAUNCH + body[runs[0].end :]
    return _unwrap(prune(marked, _GRAPH, needed))


def _runs(statement: Statement, body: str) -> bool:
    return not statement.keyword and re.match(rf"(?:\w+::)*{RUN}\b", body[statement.start : statement.end]) is not None


def _unwrap(body: str) -> str:
    """The launch without the pool around it: it has one of its own."""
    pools = [each for outer in read_statements(body) for each in outer.walk() if each.keyword == _POOL]
    for pool in pools:
        assert pool.inner is not None
        inner = body[slice(*pool.inner)]
        if LAUNCH in inner:
            return body[: pool.start] + inner.strip() + body[pool.end :]
    return body
