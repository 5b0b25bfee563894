"""Host code as nodes: statements, blocks, branches and encoded kernels, compared as values and printed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from porter.languages.identifiers import contains_identifier

PROFILER_NOTE = "// this function call is a no-op if MPS Profiler is not enabled"
KERNEL = "kernel"  # the variable for the name of a kernel, where only that differs
INDEX_TYPE = "index_type"  # that for the type of the indices of kernels


@dataclass(frozen=True)
class Line:
    """A statement, or a comment; `declares` is the variable that it makes, if any, and `value` what that is set to.

    A `helper` that it calls has to be in its file.
    """

    text: str
    declares: str = ""
    value: str = ""
    helper: str = ""


@dataclass(frozen=True)
class Profile:
    """A call of the profiler, which also takes the stream where the fork's does: only printing knows that."""

    call: str
    arguments: str


@dataclass(frozen=True)
class Block:
    """Statements between a head, which ends with a brace, and the end of that."""

    head: str
    body: tuple[Node, ...]
    end: str = "}"


@dataclass(frozen=True)
class Branches:
    """Statements under tests, each where those before do not hold; the last test may be empty."""

    tests: tuple[str, ...]
    bodies: tuple[tuple[Node, ...], ...]

    def __post_init__(self) -> None:
        if len(self.tests) != len(self.bodies) or not all(self.tests[:-1]):  # nothing is reached behind an `else`
            raise ValueError(f"{len(self.bodies)} branches under {self.tests}")


@dataclass(frozen=True)
class Encode:
    """Encodes a kernel: `types` end its name, `arguments` are bound, and `dispatch` launches it.

    `pso` is the variable for its pipeline state, and `ending` distinguishes a kernel that goes with another.
    """

    kernel: str
    types: tuple[str, ...]
    pso: str
    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    dispatch: tuple[Line, ...]
    ending: str = ""
    is_first: bool = False

    def _write_name(self, ending: str) -> str:
        if self.kernel != KERNEL:
            return f'"{self.kernel}{ending}"'
        return f'{KERNEL} + "{ending}"' if ending else KERNEL

    def list_statements(self) -> Iterator[Line | Profile]:
        """Yields the statements."""
        name = self._write_name(self.ending)
        types = ' + "_" + '.join(self.types)
        instance = f"{self._write_name(f'{self.ending}_')} + {types}" if types else name
        yield Line(f"auto {self.pso} = lib.getPipelineStateForFunc({instance});")
        if self.is_first:
            yield Line(PROFILER_NOTE)
        yield begin_profile(self.pso, name, ", ".join(self.inputs))
        yield Line(f"[computeEncoder setComputePipelineState:{self.pso}];")
        yield Line(f"mtl_setArgs(computeEncoder, {', '.join(self.arguments)});")
        yield from self.dispatch
        yield end_profile(self.pso)


Node = Line | Profile | Block | Branches | Encode


def begin_profile(pso: str, name: str, inputs: str) -> Profile:
    """Starts the profile of a kernel; the name is an expression."""
    return Profile("beginProfileKernel", f"{pso}, {name}, {{{inputs}}}")


def end_profile(pso: str) -> Profile:
    """Ends the profile of a kernel."""
    return Profile("endProfileKernel", pso)


@dataclass(frozen=True)
class Launch:
    """What launches kernels, and the headers that it needs beside OperationUtils.h.

    `start` is the statement that gives a result what it has where no kernel writes: nothing where kernels write all of
    it, or the function has done so.
    """

    nodes: tuple[Node, ...] = ()
    headers: frozenset[str] = frozenset()
    start: str = ""

    def __post_init__(self) -> None:
        if self.start and Line(self.start) not in self.nodes:  # it is written where the function returns, too
            raise ValueError(f"`{self.start}` is no statement of the launch")

    def write(self, profiles_stream: bool = False) -> str:
        """The text; with `profiles_stream`, for a fork whose profiler takes the stream."""
        return "\n".join(print_nodes(self.nodes, profiles_stream=profiles_stream))

    @property
    def computing(self) -> str:
        """The text but for what asks how wide indices are: that names numbers which nothing may compute with."""
        return "\n".join(print_nodes(self.nodes, hidden=INDEX_TYPE))

    @property
    def helpers(self) -> frozenset[str]:
        """The functions that the file has to have."""
        return frozenset(node.helper for node in walk(self.nodes) if isinstance(node, Line) and node.helper)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that are encoded, without those that go with another."""
        return tuple(node.kernel for node in walk(self.nodes) if isinstance(node, Encode) and not node.ending)

    def with_variable(self) -> Launch:
        """The launch of the kernel that a variable names; of several kernels, as it is."""
        if len(self.kernels) != 1:
            return self
        return replace(self, nodes=tuple(map(_name_by_variable, self.nodes)))


def _name_by_variable(node: Node) -> Node:
    match node:
        case Block():
            return replace(node, body=tuple(map(_name_by_variable, node.body)))
        case Encode():
            return replace(node, kernel=KERNEL)
    return node


def as_nodes(lines: Iterable[str | Node]) -> tuple[Node, ...]:
    """Lines of host code, each as a node."""
    return tuple(Line(line) if isinstance(line, str) else line for line in lines)


def rewrite(node: Node, change: Callable[[str], str]) -> Node:
    """A node with all of its texts changed, but for the names of kernels."""

    def rewrite_all(nodes: Iterable[Node]) -> tuple[Node, ...]:
        return tuple(rewrite(inner, change) for inner in nodes)

    match node:
        case Line(text, declares, value, helper):
            return Line(change(text), change(declares), change(value), helper)
        case Profile(call, arguments):
            return Profile(call, change(arguments))
        case Block(head, body, end):
            return Block(change(head), rewrite_all(body), end)
        case Branches(tests, bodies):
            return Branches(tuple(map(change, tests)), tuple(map(rewrite_all, bodies)))
        case Encode():
            types, inputs, passed = (tuple(map(change, texts)) for texts in (node.types, node.inputs, node.arguments))
            dispatch = tuple(Line(change(line.text)) for line in node.dispatch)
            return replace(node, types=types, inputs=inputs, arguments=passed, dispatch=dispatch)


def declare(name: str, value: str, type_: str = "auto", helper: str = "") -> Line:
    """A constant of the host code."""
    return Line(f"const {type_} {name} = {value};", name, value, helper)


def call_helper(name: str, helper: str, *arguments: str) -> Line:
    """A constant that a helper of the file computes."""
    return declare(name, f"{helper}({', '.join(arguments)})", helper=helper)


def run_on_stream(nodes: Iterable[Node]) -> Block:
    """Runs what encodes commands on the stream of the function."""
    pool = Block("@autoreleasepool {", (Line("auto computeEncoder = stream->commandEncoder();"), *nodes))
    return Block("dispatch_sync_with_rethrow(stream->queue(), ^() {", (pool,), "});")


def walk(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yields nodes, each before those within it."""
    for node in nodes:
        yield node
        if isinstance(node, Block):
            yield from walk(node.body)
        elif isinstance(node, Branches):
            yield from (inner for body in node.bodies for inner in walk(body))


def uses(node: Node, names: Iterable[str]) -> bool:
    """Whether a node names one of some variables."""
    text = "\n".join(print_nodes((node,)))
    return any(contains_identifier(text, name) for name in names)


def print_nodes(nodes: Iterable[Node], hidden: str = "", profiles_stream: bool = False) -> Iterator[str]:
    """Yields the lines of nodes, without the declaration of a `hidden` variable."""
    for node in nodes:
        match node:
            case Line(text, declared):
                yield from () if hidden and declared == hidden else (text,)
            case Block(head, body, end):
                yield from (head, *print_nodes(body, hidden, profiles_stream), end)
            case Branches(tests, bodies):
                for at, (test, body) in enumerate(zip(tests, bodies, strict=True)):
                    yield f"{'} else ' if at else ''}{f'if ({test}) {{' if test else '{'}"
                    yield from print_nodes(body, hidden, profiles_stream)
                yield "}"
            case Profile(call, arguments):
                yield f"getMPSProfiler().{call}({arguments}{', stream' if profiles_stream else ''});"
            case Encode():
                yield from print_nodes(node.list_statements(), hidden, profiles_stream)


@dataclass(frozen=True)
class Hoisted:
    """The nodes before all branches, those of each, and those behind them."""

    before: tuple[Node, ...]
    branches: tuple[tuple[Node, ...], ...]
    behind: tuple[Node, ...]


def hoist(branches: Sequence[Sequence[Node]]) -> Hoisted:
    """Moves the nodes that all branches have out of them, if they need nothing of what stays there.

    Only statements move before the branches, of those that a branch has before its first block, which may return; only
    blocks move behind them, of those that it has after the block of its launch.
    """
    heads = [_take_while(branch, Line) for branch in branches]
    before = _keep_independent(heads)
    tails = [_take_while(branch[::-1], Block)[::-1][1:] for branch in branches]
    inside = [[node for node in branch if node not in before] for branch in branches]
    declared = _list_declared(inside)
    shared = (node for node in tails[0] if all(node in tail for tail in tails[1:]))
    behind = [node for node in shared if not uses(node, declared)]
    staying = tuple(tuple(node for node in branch if node not in behind) for branch in inside)
    return Hoisted(tuple(before), staying, tuple(behind))


def _take_while(nodes: Sequence[Node], kind: type[Node]) -> list[Node]:
    end = next((at for at, node in enumerate(nodes) if not isinstance(node, kind)), len(nodes))
    return list(nodes[:end])


def _list_declared(bodies: Iterable[Iterable[Node]]) -> set[str]:
    return {node.declares for body in bodies for node in body if isinstance(node, Line) and node.declares}


def _keep_independent(heads: Sequence[Sequence[Node]]) -> list[Node]:
    """The nodes that are in all heads and use no variable that another of a head declares."""
    shared = [node for node in heads[0] if all(node in head for head in heads[1:])]
    while True:
        others = _list_declared([node for node in head if node not in shared] for head in heads)
        kept = [node for node in shared if not uses(node, others)]
        if kept == shared:
            return kept
        shared = kept
