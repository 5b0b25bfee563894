"""A host function as a value: the code it keeps, and the nodes that replace its graph.

The code that stays is read once, into its early returns and the conditions around the launch. Stages change these, and
add nodes where the graph ran; `print_body` writes the text, once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from porter.core.edits import replace_spans
from porter.core.errors import Place, explained
from porter.languages.brackets import is_balanced, strip_parentheses
from porter.languages.identifiers import contains_identifier
from porter.languages.liveness import bring_declarations, list_declared, prune, read_assignments
from porter.languages.patterns import match_code
from porter.languages.statements import DISPATCH, POOL, Statement, name_tokens, read_statements, walk_statements
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.kept_code import KeptCode
from porter.plan.recorded.target import RUN

_EMPTY = ("$tensor.numel() == 0", "($tensor.numel() == 0)")


@dataclass(frozen=True)
class Kept:
    """Where an early return stands in the code that stays: the statement, its condition, and its last statement."""

    start: int
    end: int
    head: tuple[int, int]
    leave: tuple[int, int]
    tests: tuple[str, ...]
    is_braced: bool
    is_alone: bool  # it only returns


@dataclass(frozen=True)
class Exit:
    """An early return: where one of the `tests` holds, the port does `lines`, and `leave` is the return.

    The port adds those without a place in the kept code. They replace the graph.
    """

    tests: tuple[str, ...]
    leave: str
    lines: tuple[str, ...] = ()
    kept: Kept | None = None

    @property
    def is_alone(self) -> bool:
        """Whether nothing is done before it returns."""
        return not self.lines and (self.kept is None or self.kept.is_alone)

    @property
    def empty(self) -> frozenset[str]:
        """The tensors one of which has no elements where it returns; with "" if it asks for more than that."""
        return frozenset(match["tensor"] if (match := match_code(test, *_EMPTY)) else "" for test in self.tests)


@dataclass(frozen=True)
class Guard:
    """A condition around the launch: `head` is its place in the code that stays, in a statement from `start`.

    The port reaches the launch where one of `more` holds, too.
    """

    test: str
    start: int
    head: tuple[int, int]
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostFunction(KeptCode):
    """A function's body. In its text, the launch has the place of the empty statement `;` at the offset `at`.

    The exits and guards are those of the code that stand before the launch, and around it. `nodes` are the port's own,
    before the launch and the statements that it needs; `notes` are what the port takes away, in words.
    """

    at: int = 0
    exits: tuple[Exit, ...] = ()
    guards: tuple[Guard, ...] = ()
    nodes: tuple[Line | Exit, ...] = ()
    setup: tuple[Line, ...] = ()
    launch: Launch = field(default_factory=Launch)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.text[self.at : self.at + 1] != ";":  # with a statement there, the code around it can be read alone
            raise ValueError("no empty statement has the place of the launch")

    def add(self, *nodes: Line | Exit) -> HostFunction:
        """The function with nodes of the port behind those that it has."""
        return replace(self, nodes=(*self.nodes, *nodes))

    @property
    def behind(self) -> str:
        """The code behind the launch."""
        return self.text[self.at + 1 :]

    @cached_property
    def leave(self) -> str:
        """The statement that returns before the launch what the function returns at its end."""
        last = self.text.rstrip().rpartition("\n")[2].strip()
        dispatches = (each for each in walk_statements(self.text) if each.keyword == DISPATCH)
        is_dispatched = any(each.start < self.at < each.end for each in dispatches)  # its lambda has no value
        return last if last.startswith("return") and not is_dispatched else "return;"

    def asks_empty(self, *tensors: str) -> bool:
        """Whether the function, or what is done before it, asks for one of some tensors without elements."""
        added = (node.empty for node in self.nodes if isinstance(node, Exit))
        return super().asks_empty(*tensors) or any(not empty.isdisjoint(tensors) for empty in added)

    def bring(self, place: Exit | Guard, names: Collection[str], inside: bool = False) -> list[str] | None:
        """The declarations that a place lacks to use some names, as `bring_declarations` tells them."""
        kept = place.kept if isinstance(place, Exit) else None
        start = place.start if isinstance(place, Guard) else kept.start if kept else self.at
        return bring_declarations(self.text, kept.leave[0] if kept and inside else start, names)


def read_function(code: str, at: int, before: str = "") -> HostFunction:
    """The value of a body whose launch has the place of the empty statement at an offset."""
    branches = [each for each in walk_statements(code) if each.keyword == "if" and each.head and each.body]
    branches = [each for each in branches if not each.otherwise]
    returning = (each for each in branches if code.startswith("return", each.body[-1].start))
    exits = tuple(_read_exit(code, each) for each in returning if each.end <= at)
    guards = tuple(_read_guard(code, each) for each in branches if each.start < at < each.end)
    return HostFunction(code, before, at, exits, guards)


def _read_exit(code: str, statement: Statement) -> Exit:
    assert statement.head is not None
    last = statement.body[-1]
    test = strip_parentheses(code[slice(*statement.head)].strip())
    parts = test.split("||")
    tests = tuple(each.strip() for each in (parts if all(map(is_balanced, parts)) else [test]))
    span, is_alone = (last.start, last.end), len(statement.body) == 1
    kept = Kept(statement.start, statement.end, statement.head, span, tests, statement.inner is not None, is_alone)
    return Exit(tests, code[slice(*span)], (), kept)


def _read_guard(code: str, statement: Statement) -> Guard:
    assert statement.head is not None
    return Guard(code[slice(*statement.head)].strip(), statement.start, statement.head)


def print_body(function: HostFunction, profiles_stream: bool = False) -> str:
    """The text of a body, with what the port has in the place of the launch."""
    nodes = (node.text if isinstance(node, Line) else _print_exit(node) for node in function.nodes)
    setup = (line.text for line in function.setup)
    text = "\n".join((*nodes, *setup, f"{function.launch.write(profiles_stream)}\n"))
    launch = (function.at, function.at + 1, text)
    return replace_spans(function.text, sorted((*_edit_code(function), launch)))


def _edit_code(function: HostFunction) -> Iterator[tuple[int, int, str]]:
    """What changes in the code that stays: conditions, and what is done before returns."""
    for guard in function.guards:
        if guard.more:
            yield (*guard.head, " || ".join((guard.test, *guard.more)))
    for exit_ in function.exits:
        assert exit_.kept is not None
        if exit_.tests != exit_.kept.tests:
            yield (*exit_.kept.head, " || ".join(exit_.tests))
        if exit_.lines:
            text = "\n".join((*exit_.lines, exit_.leave))
            yield (*exit_.kept.leave, text if exit_.kept.is_braced else f"{{\n{text}\n}}")


def _print_exit(node: Exit) -> str:
    return "\n".join((f"if ({' || '.join(node.tests)}) {{", *node.lines, node.leave, "}\n"))


_LAUNCH = "launch_of_kernels();"  # in the place of the run while what served that is removed: no other code has it
# What only the building, the caching and the running of graphs use.
_GRAPH = re.compile(
    r"\bMPSGraph\w*|\w*CachedGraph\b|\bPlaceholder\b|\bMPSShape\b|\bMPSDataType\w*|\bMPSNDArray\w*|\bmpsGraph\w*"
    r"|\bNS(?:Mutable)?(?:Array|Number|String|Dictionary|Data)\b|\bdictionaryFromPlaceholders\b"
    r"|\bget(?:MPS(?:DataType|ScalarType|Shape|TypeString|GraphTensor\w*|Scalar)|TensorsStringKey)\b|\bget_mem_format_string\b"
    r"|\bupdate_philox_counters\b"
)
_RUNS = re.compile(rf"(?:\w+::)*{RUN}\b")
_COMMENT = re.compile(rf"[ \t]*//[^\n]*\b(?:MPS)?graph\b[^\n]*\n(?=\s*{re.escape(_LAUNCH)})", re.I)  # on its run


def replace_graph(body: str, place: Place, needed: Collection[str], before: str = "") -> HostFunction:
    """A body without its graph, and the launch's place where that ran. `needed` are the names that the launch uses.

    What is done `before` the function stays as it is.

    What it checks for the graph's sake goes too. Raises PTR370 unless it runs one graph.
    """
    body = drop_graph_limits(body)
    statements = [each for each in walk_statements(body) if not each.keyword]
    runs = [each for each in statements if _RUNS.match(body, each.start, each.end)]
    if len(runs) != 1:
        raise explained("PTR370", f"the function runs {len(runs)} graphs", place)
    marked = body[: runs[0].start] + _LAUNCH + body[runs[0].end :]
    pruned = _drop_shortcuts(prune(marked, _GRAPH, needed), _list_gone(marked))
    code = _COMMENT.sub("", _unwrap(pruned))
    at = code.index(_LAUNCH)
    return read_function(f"{code[:at]};{code[at + len(_LAUNCH) :]}", at, before)


def _list_gone(body: str) -> frozenset[str]:
    """The variables that only the graph used."""
    statements = (each for each in walk_statements(body) if not each.keyword)
    texts = (body[each.start : each.end] for each in statements)
    return frozenset(name for text in texts if _GRAPH.search(text) for name in list_declared(text))


def _drop_shortcuts(body: str, gone: frozenset[str]) -> str:
    """A body that no longer returns early by a variable that is gone: kernels compute that case as any other."""
    branches = [branch for branch in walk_statements(body) if branch.keyword == "if" and branch.head]
    for branch in reversed(branches):
        assert branch.head is not None
        start, end = branch.head
        tests = body[start:end].split("||")
        kept = [test for test in tests if not any(contains_identifier(test, name) for name in gone)]
        if kept and len(kept) < len(tests) and all(map(is_balanced, tests)) and _ends_returning(branch, body):
            body = body[:start] + "||".join(kept).strip() + body[end:]
    return body


def _ends_returning(statement: Statement, body: str) -> bool:
    last = statement.body[-1] if statement.body and not statement.otherwise else None
    return last is not None and body[last.start : last.end].startswith("return")


def _unwrap(body: str) -> str:
    """The launch without the pool around it: it has one of its own."""
    pools = [each for each in walk_statements(body) if each.keyword == POOL]
    for pool in pools:
        assert pool.inner is not None
        inner = body[slice(*pool.inner)]
        if _LAUNCH in inner:
            return body[: pool.start] + inner.strip() + body[pool.end :]
    return body


# Removes what host code checks for MPSGraph's sake: releases of macOS whose graphs lack something. A kernel has it.


_LIMIT = "MPS_CHECK_INT64_OP_SUPPORTED("
_CHECKS = ("TORCH_CHECK(", "TORCH_CHECK_NOT_IMPLEMENTED(", "TORCH_CHECK_TYPE(", "TORCH_WARN(", "TORCH_WARN_ONCE(")
_RELEASE = "is_macos_"


def drop_graph_limits(body: str) -> str:
    """A body without checks that ask for a release of macOS, and without branches for older ones that only check."""
    asked = {a.name for a in read_assignments(body) if a.value and _asks_release(a.value, frozenset())}
    return replace_spans(body, ((*_widen(body, each), "") for each in _list_limits(body, read_statements(body), asked)))


def _list_limits(body: str, statements: Sequence[Statement], asked: Set[str]) -> Iterator[Statement]:
    for statement in statements:
        if _is_limit(body, statement, asked):
            yield statement
        else:
            yield from _list_limits(body, (*statement.body, *statement.otherwise), asked)


def _is_limit(body: str, statement: Statement, asked: Set[str]) -> bool:
    text = body[statement.start : statement.end]
    if not statement.keyword:
        return text.startswith(_LIMIT) or (text.startswith(_CHECKS) and _asks_release(text, asked))
    if statement.keyword != "if" or statement.otherwise or statement.head is None or not statement.body:
        return False
    test = match_code(body[slice(*statement.head)].strip(), "!$name", "!$name($$release)")
    is_older = test is not None and (test["name"].startswith(_RELEASE) or test["name"] in asked)
    return is_older and all(body.startswith(_CHECKS, inner.start) for inner in statement.body)


def _asks_release(text: str, asked: Set[str]) -> bool:
    return any(token.text.startswith(_RELEASE) or token.text in asked for token in name_tokens(text))


def _widen(body: str, statement: Statement) -> tuple[int, int]:
    """The span of a statement with its line, where it is alone there."""
    start = body.rfind("\n", 0, statement.start) + 1
    end = body.find("\n", statement.end)
    is_alone = end >= 0 and not body[start : statement.start].strip() and not body[statement.end : end].strip(" ;")
    return (start, end + 1) if is_alone else (statement.start, statement.end)
