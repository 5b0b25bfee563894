"""The body of a function with kernels in the place of its graph."""

from __future__ import annotations

import re
from collections.abc import Collection

from porter.core.errors import Place, PorterError
from porter.languages.brackets import is_balanced
from porter.languages.identifiers import contains_identifier
from porter.languages.liveness import list_declared, prune
from porter.languages.statements import Statement, read_statements
from porter.plan.native.host_function import HostFunction, read_function
from porter.plan.native.target import RUN

_LAUNCH = "launch_of_kernels();"  # in the place of the run while what served that is removed: no other code has it
# What only the building, the caching and the running of graphs use.
_GRAPH = re.compile(
    r"\bMPSGraph\w*|\w*CachedGraph\b|\bPlaceholder\b|\bMPSShape\b|\bMPSDataType\w*|\bMPSNDArray\w*|\bmpsGraph\w*"
    r"|\bNS(?:Mutable)?(?:Array|Number|String|Dictionary|Data)\b|\bdictionaryFromPlaceholders\b"
    r"|\bget(?:MPS(?:DataType|ScalarType|Shape|TypeString|GraphTensor\w*|Scalar)|TensorsStringKey)\b|\bget_mem_format_string\b"
)
_POOL = "autoreleasepool"
_COMMENT = re.compile(rf"[ \t]*//[^\n]*\b(?:MPS)?graph\b[^\n]*\n(?=\s*{re.escape(_LAUNCH)})", re.I)  # on its run


def replace_graph(body: str, place: Place, needed: Collection[str]) -> HostFunction:
    """A body without its graph, and the launch's place where that ran. `needed` are the names that the launch uses.

    Raises PTR370 unless it runs one graph.
    """
    runs = [each for outer in read_statements(body) for each in outer.walk() if _runs(each, body)]
    if len(runs) != 1:
        raise PorterError("PTR370", f"the function runs {len(runs)} graphs", place, "See docs/errors/PTR370.md.")
    marked = body[: runs[0].start] + _LAUNCH + body[runs[0].end :]
    pruned = _drop_shortcuts(prune(marked, _GRAPH, needed), _list_gone(marked))
    code = _COMMENT.sub("", _unwrap(pruned))
    at = code.index(_LAUNCH)
    return read_function(f"{code[:at]};{code[at + len(_LAUNCH) :]}", at)


def _list_gone(body: str) -> frozenset[str]:
    """The variables that only the graph used."""
    statements = (each for outer in read_statements(body) for each in outer.walk() if not each.keyword)
    texts = (body[each.start : each.end] for each in statements)
    return frozenset(name for text in texts if _GRAPH.search(text) for name in list_declared(text))


def _drop_shortcuts(body: str, gone: frozenset[str]) -> str:
    """A body that no longer returns early by a variable that is gone: kernels compute that case as any other."""
    found = [each for outer in read_statements(body) for each in outer.walk() if each.keyword == "if" and each.head]
    for each in reversed(found):
        assert each.head is not None
        start, end = each.head
        tests = body[start:end].split("||")
        kept = [test for test in tests if not any(contains_identifier(test, name) for name in gone)]
        if kept and len(kept) < len(tests) and all(map(is_balanced, tests)) and _returns(each, body):
            body = body[:start] + "||".join(kept).strip() + body[end:]
    return body


def _returns(statement: Statement, body: str) -> bool:
    last = statement.body[-1] if statement.body and not statement.otherwise else None
    return last is not None and body[last.start : last.end].startswith("return")


def _runs(statement: Statement, body: str) -> bool:
    return not statement.keyword and re.match(rf"(?:\w+::)*{RUN}\b", body[statement.start : statement.end]) is not None


def _unwrap(body: str) -> str:
    """The launch without the pool around it: it has one of its own."""
    pools = [each for outer in read_statements(body) for each in outer.walk() if each.keyword == _POOL]
    for pool in pools:
        assert pool.inner is not None
        inner = body[slice(*pool.inner)]
        if _LAUNCH in inner:
            return body[: pool.start] + inner.strip() + body[pool.end :]
    return body
