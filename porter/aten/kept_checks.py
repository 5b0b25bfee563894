"""Functions of MPS that make a check of shared code for some element types only: that code would refuse more.

`random_mps_` checks its range `if (isFloatingType(input_dtype))`, what CPU and CUDA share checks it for all types. So
it stays, with its checks, and calls the stub that draws what its graph does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from porter.aten.declarations import MPS_KEY
from porter.aten.device_rows import OwnBody
from porter.aten.implementations import Implementation
from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import StubCall, find_stub_declaration
from porter.core.checkout import Checkout
from porter.core.dtypes import ALL
from porter.core.yaml_text import choose_loader
from porter.languages.brackets import split_at_commas
from porter.languages.definitions import split_parameters
from porter.languages.source import Function, parse_source
from porter.languages.statements import read_statements

_TABLE = Path(__file__).with_name("graph_draws.yaml")
_TYPE_TEST = re.compile(r"\bis(?:Floating|Integral|Complex)Type\(")
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
    call = re.compile(rf"\{{\s*return {own.name}\([^;]*\);\s*\}}")
    return any(call.fullmatch(text[each.body_start : each.body_end].strip()) for each in mine)


def _checks_some_types(body: str) -> bool:
    """Whether a body makes a shared check under a condition on the element type."""
    inner = body[1:-1]
    tests = (each for outer in read_statements(inner) for each in outer.walk() if each.keyword == "if")
    typed = (each for each in tests if each.head and each.body and _TYPE_TEST.search(inner[slice(*each.head)]))
    return any(_SHARED_CHECK.search(inner, each.body[0].start, each.body[-1].end) for each in typed)


def _name_generator(own: Function) -> str:
    """The parameter for the generator of random numbers."""
    [found] = [each for each in split_parameters(own.params) if "Generator" in each]
    return found.split()[-1].lstrip("&*")
