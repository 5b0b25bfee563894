"""Rows that are split by device: MPS keeps a function of its own, which calls the stub that another device's calls.

`gelu.out` has `gelu_out_cpu`, `gelu_out_cuda` and `gelu_out_mps`: the first calls `GeluKernel(kCPU, *this, ...)`. The
CPU kernels of others are generated from a function of one element: `add.out` calls `add_stub`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from porter.aten.branches import Facts, find_calls, get_expression, list_executed, show
from porter.aten.declarations import MPS_KEY, DispatchEntry
from porter.aten.implementations import Implementation
from porter.aten.native_functions import SHARING_KEYS, NativeFunction
from porter.aten.stubs import Stub, StubCall, find_native_definitions, find_stub_declaration, read_builder
from porter.core.checkout import Checkout
from porter.core.dtypes import ALL, FLOAT
from porter.core.errors import PorterError
from porter.core.yaml_text import choose_loader
from porter.languages import cpp
from porter.languages.brackets import find_closing_end, split_at_commas
from porter.languages.definitions import Definition, find_definitions, parse_definition, split_parameters
from porter.languages.patterns import find_code, has_code, match_code
from porter.languages.source import Function, parse_source
from porter.languages.statements import walk_statements

_DEVICE = re.compile(r"(?:at::|c10::)?k(CPU|CUDA)")
_ITERATOR = "*this"
_DISPATCH = re.compile(r"\bAT_DISPATCH_\w+\s*\(")
_CALLED = re.compile(r"(?<![\w.>:])([a-z]\w*)\(")


LAUNCH = "launch_the_kernel();"


@dataclass(frozen=True)
class OwnBody:
    """The body of the function that MPS keeps, and the names of its parameters there, in their order.

    `call` is all of it where the meta function builds the iterator, else it is a part of `text`; that of a loop stands
    there as `LAUNCH`. A body that only calls other functions has none. `helpers` are the functions that it calls, which
    stand in its file on the other device.
    """

    call: StubCall | None
    parameters: tuple[str, ...]
    text: str
    helpers: tuple[str, ...] = ()

    @property
    def loops(self) -> bool:
        """Whether it runs the kernel itself, without a stub."""
        return LAUNCH in self.text

    def write(self, names: tuple[str, ...], launch: str = "") -> str:
        """Returns the body, from brace to brace, for a function whose parameters have these names."""
        given = {mine: name for mine, name in zip(self.parameters, names, strict=False) if name}
        text = re.sub(r"(?<![.\w>:])[A-Za-z_]\w*\b", lambda word: given.get(word[0], word[0]), self.text)
        return text.replace(LAUNCH, launch)


def find_own_body(checkout: Checkout, functions: Sequence[NativeFunction], function: NativeFunction) -> OwnBody | None:
    """What the function that MPS keeps, one of an operator's, has to do, or None if no other device says it."""
    if function.loops:
        stub = find_stub_declaration(checkout, f"{function.base}_stub")
        scalars = tuple(argument.name for argument in function.inputs if not argument.is_tensor)
        call = StubCall(stub, scalars, ALL, (), "", (), False, stub.place, SHARING_KEYS[0])
        names = tuple(argument.name for argument in function.arguments)
        return OwnBody(call, names, _write_call(call))
    # MPS is more like CUDA, whose function may leave out what only a CPU kernel uses.
    for key in reversed(SHARING_KEYS):
        entry = function.entry_for(key)
        if entry is None:
            continue
        try:
            found = [_read_body(checkout, one) for one in find_native_definitions(checkout, entry.kernel)]
        except PorterError:
            continue
        if len(found) == 1 and found[0]:
            return found[0]
    return _find_loop(checkout, functions, function)


def _find_loop(checkout: Checkout, functions: Sequence[NativeFunction], function: NativeFunction) -> OwnBody | None:
    """The body of the CPU's function, which runs a loop itself, or calls another of the operator's that does."""
    entry = function.entry_for(SHARING_KEYS[0])
    if entry is None:
        return None
    try:
        found = find_native_definitions(checkout, entry.kernel)
    except PorterError:
        return None
    if len(found) != 1:
        return None
    return _read_loop(checkout, function, entry, found[0]) or _read_forward(checkout, functions, function, found[0])


def _read_loop(checkout: Checkout, function: NativeFunction, entry: DispatchEntry, found: Definition) -> OwnBody | None:
    body = found.text[found.text.index("{") :]
    loops = [(match.start(), find_closing_end(body, match.end() - 1)) for match in _DISPATCH.finditer(body)]
    built = next(find_code(body, "auto iter = TensorIteratorConfig()$$calls;"), None)
    if len(loops) != 1 or built is None:
        return None
    [(start, end)] = loops
    if not has_code(body[start:end], "cpu_kernel(", "cpu_kernel_vec("):
        return None
    stub = Stub(function.base, (("TensorIteratorBase&", "iter"),), "", found.place)
    builder = " ".join(f"TensorIteratorConfig(){built['calls']}".split())
    call = StubCall(stub, (), ALL, (), builder, (entry.kernel,), False, found.place, SHARING_KEYS[0])
    text = f"{body[:start]}{LAUNCH}{body[end:].removeprefix(';')}"
    names = tuple(each.name for each in parse_definition(found).parameters)
    return OwnBody(call, names, text, tuple(_find_helpers(checkout, found, text)))


def _find_helpers(checkout: Checkout, found: Definition, text: str) -> Iterator[str]:
    """Yields the functions of the same file, and of no other, that a text calls."""
    source = checkout.read(found.path)
    for name in dict.fromkeys(_CALLED.findall(text)):
        for each in find_definitions(found.path, source, name):
            if each.text.startswith("static"):
                yield each.text


def _read_forward(
    checkout: Checkout, functions: Sequence[NativeFunction], function: NativeFunction, found: Definition
) -> OwnBody | None:
    body = found.text[found.text.index("{") :]
    for other in functions:
        theirs, mine = other.entry_for(SHARING_KEYS[0]), other.entry_for(MPS_KEY)
        if other is function or theirs is None or mine is None or not has_code(body, f"{theirs.kernel}("):
            continue
        called = find_own_body(checkout, functions, other)
        if called and called.loops:
            names = tuple(each.name for each in parse_definition(found).parameters)
            return OwnBody(None, names, re.sub(rf"\b{theirs.kernel}\(", f"{mine.kernel}(", body))
    return None


def _read_body(checkout: Checkout, found: Definition) -> OwnBody | None:
    """The body of a function of another device that does nothing but call one stub, whatever else its build may use."""
    function = parse_definition(found)
    calls = dict.fromkeys(_list_calls(checkout, found, function))
    if len(calls) != 1:
        return None
    [call] = calls
    names = tuple(each.name for each in function.parameters)
    if not call.builder:
        return OwnBody(call, names, _write_call(call))
    return OwnBody(call, names, re.sub(_DEVICE.pattern, "kMPS", found.text[found.text.index("{") :]))


def _list_calls(checkout: Checkout, found: Definition, function: cpp.Function) -> Iterator[StubCall]:
    for step in list_executed(function.body, Facts(FLOAT, FLOAT)):
        for call in find_calls(get_expression(step.statement)):
            device = _DEVICE.fullmatch(show(call.arguments[0])) if len(call.arguments) > 1 else None
            if device is None or not isinstance(call.function, cpp.Name):
                continue
            iterator = step.facts.resolve(call.arguments[1])
            stub = find_stub_declaration(checkout, call.function.last, found)
            if "TensorIterator" not in stub.signature[0][0]:
                continue
            arguments = tuple(show(step.facts.resolve(each)) for each in call.arguments[2:])
            builder = "" if show(iterator) == _ITERATOR else read_builder(iterator)
            yield StubCall(stub, arguments, ALL, (), builder, (), False, found.place, device[1])


def _write_call(call: StubCall) -> str:
    """Returns the body of a structured kernel."""
    return f"{{\n  {call.stub.name}({', '.join(('device_type()', _ITERATOR, *call.arguments))});\n}}"


_TABLE = Path(__file__).with_name("graph_draws.yaml")
_TYPE_TESTS = ("isFloatingType(", "isIntegralType(", "isComplexType(")
_SHARED_CHECK = re.compile(r"\btemplates::check_\w+\(")
_DRAW = re.compile(r"return (?:\w+::)*\w+<(?P<bounds>\w+)>\(\s*(?P<arguments>[^;]*)\);")
_BUILDER = "borrowing_nullary_op"


@dataclass(frozen=True)
class GraphDraw:
    """What a graph draws, and the stub that draws it too."""

    distribution: str
    bounds: str
    stub: str
    arguments: tuple[str, ...]

    def is_in(self, call: re.Match[str]) -> bool:
        """Whether a call that builds a graph has this draw."""
        return call["bounds"] == self.bounds and self.distribution in call["arguments"]


@lru_cache(maxsize=1)
def read_graph_draws() -> tuple[GraphDraw, ...]:
    """Returns every row of the table."""
    text = _TABLE.read_text()
    rows = yaml.load(text, choose_loader(text))
    return tuple(GraphDraw(**{**row, "arguments": tuple(row["arguments"])}) for row in rows)


def keep_checks(checkout: Checkout, function: NativeFunction, found: Implementation) -> OwnBody | None:
    """The body of a row's own function with a stub in the place of its graph; None of one without such a check."""
    own = found.function
    if own is None or own.wrapper or len(split_parameters(own.params)) != len(function.arguments):
        return None
    body = checkout.read(found.file)[own.body_start : own.body_end]
    drawn = _DRAW.search(body) if _checks_some_types(body) else None
    draw = next((each for each in read_graph_draws() if drawn and each.is_in(drawn)), None)
    if drawn is None or draw is None:
        return None
    tensor, least, greatest, *_ = split_at_commas(drawn["arguments"])
    values = {"least": least.strip(), "greatest": greatest.strip(), "generator": _name_generator(own)}
    arguments = tuple(each.format(**values) for each in draw.arguments)
    call = StubCall(
        find_stub_declaration(checkout, draw.stub), arguments, ALL, (), _BUILDER, (), False, found.place, MPS_KEY
    )
    lines = (
        f"auto iter = TensorIterator::{_BUILDER}({tensor});",
        f"{draw.stub}(iter.device_type(), iter, {', '.join(arguments)});",
        f"return {tensor};",
    )
    return OwnBody(call, (), f"{body[: drawn.start()]}{chr(10).join(lines)}{body[drawn.end() :]}")


def calls_kept(checkout: Checkout, function: NativeFunction, found: Implementation) -> bool:
    """Whether a row's own function only calls another one of the same name."""
    own = found.function
    if own is None:
        return False
    text = checkout.read(found.file)
    others = parse_source(found.file, text).functions_by_name[own.name]
    mine = (each for each in others if len(split_parameters(each.params)) == len(function.arguments))
    call = f"{{ return {own.name}($$arguments); }}"
    return any(match_code(text[each.body_start : each.body_end], call) for each in mine)


def _checks_some_types(body: str) -> bool:
    """Whether a body makes a shared check under a condition on the element type."""
    inner = body[1:-1]
    tests = (each for each in walk_statements(inner) if each.keyword == "if")
    typed = (each for each in tests if each.head and each.body and has_code(inner[slice(*each.head)], *_TYPE_TESTS))
    return any(_SHARED_CHECK.search(inner, each.body[0].start, each.body[-1].end) for each in typed)


def _name_generator(own: Function) -> str:
    """The parameter for the generator of random numbers."""
    [found] = [each for each in split_parameters(own.params) if "Generator" in each]
    return found.split()[-1].lstrip("&*")
