"""The OpInfos of an ATen operator: its test names, its dtypes, and the marks that apply to MPS only.

Source: `torch/testing/_internal/common_methods_invocations.py`, `torch/testing/_internal/opinfo/definitions/*.py` and
`opinfo/core.py`. The files are scanned for the call, and only the call is parsed.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from porter.aten.skip_lists import Change, read_dtype_names
from porter.core.checkout import Checkout
from porter.core.dtypes import COMPLEX_DOUBLE, DOUBLE, HALF, Kind, of_kind
from porter.core.edits import Edit
from porter.core.layout import OPINFO_DEFINITIONS, OPINFOS
from porter.languages.python_calls import Expression, Item, find_expression, read_items, read_string, remove_items

# Calls that look like an OpInfo but describe something else.
OTHER_CALLS = ("DecorateInfo", "ForeachFuncInfo")
# Tests whose outcome on MPS depends on the forward kernel, and the test class specific to MPS.
FORWARD_TESTS = ("", "test_output_match", "test_dtypes", "test_out")
MPS_CLASSES = ("TestConsistency",)
MPS_DECORATORS = ("skipMPS", "expectedFailureMPS")
# Types that no MPS kernel supports, whatever an OpInfo lists.
NOT_ON_MPS = frozenset({DOUBLE.torch, COMPLEX_DOUBLE.torch})

_INTEGRAL, _FLOATING, _COMPLEX = (
    frozenset(each.torch for each in of_kind(kind, basic=True)) for kind in (Kind.INTEGRAL, Kind.FLOATING, Kind.COMPLEX)
)
# Source: torch/testing/_internal/common_dtype.py.
DTYPE_GROUPS = {
    "empty_types": frozenset[str](),
    "floating_types": _FLOATING,
    "floating_types_and_half": _FLOATING | {HALF.torch},
    "double_types": NOT_ON_MPS,
    "floating_and_complex_types": _FLOATING | _COMPLEX,
    "integral_types": _INTEGRAL,
    "all_types": _FLOATING | _INTEGRAL,
    "all_types_and_half": _FLOATING | _INTEGRAL | {HALF.torch},
    "complex_types": _COMPLEX,
    "all_types_and_complex": _FLOATING | _INTEGRAL | _COMPLEX,
    "custom_types": frozenset[str](),
    "_dispatch_dtypes": frozenset[str](),
}

_CALL = re.compile(r"[ \t]+(?P<cls>\w*Info)(?P<open>\()\s*(?P<quote>['\"])(?P<name>[^'\"\n]+)(?P=quote)")
_ATEN_NAME = re.compile(r"aten_name(?<!\waten_name)\s*=\s*['\"](?P<name>\w+)['\"]")
_EXPECTATION = re.compile(r"unittest\.(skip|expectedFailure)|\w*MPS$")


@dataclass(frozen=True)
class OpInfoCall:
    """The call of one OpInfo: its location, its names and its arguments."""

    cls: str
    name: str
    line: int
    expression: Expression
    arguments: tuple[Item, ...]

    @property
    def file(self) -> str:
        return self.expression.file

    @property
    def text(self) -> str:
        """The text of the whole file."""
        return self.expression.text

    @property
    def variant(self) -> str:
        return read_string(self.argument("variant_test_name"))

    @property
    def key(self) -> str:
        """Its name in the MPS test lists."""
        return self.name + self.variant

    @property
    def dtypes(self) -> frozenset[str] | None:
        """Torch names of its CPU test dtypes; None if they are not written in terms of common_dtype."""
        argument = self.argument("dtypes")
        return read_dtypes(argument) if argument else None

    def argument(self, name: str) -> ast.expr | None:
        return next((a.value for a in self.arguments if a.name == name), None)


@dataclass(frozen=True)
class Mark:
    """A part of an OpInfo that only applies to MPS: an element of `skips=` or `decorators=`, or a whole argument.

    `argument` and `element` are indexes. `dtypes` are those it is limited to; None means all of them, or if not
    `readable`, unknown ones.
    """

    call: OpInfoCall
    argument: int
    element: int | None
    text: str
    line: int
    test: str
    dtypes: tuple[str, ...] | None
    readable: bool = True


@dataclass(frozen=True)
class MarkDecision:
    """What happens to a mark, and why; `dtypes` are those removed."""

    mark: Mark
    change: Change
    dtypes: tuple[str, ...]
    why: str


def find_opinfos(checkout: Checkout, op: str) -> tuple[OpInfoCall, ...]:
    """Returns every OpInfo whose name (without `nn.functional.`) or aten_name is `op`, an ATen base name.

    Raises PTR067 (unclosed bracket, syntax error).
    """
    files = [OPINFOS] if checkout.exists(OPINFOS) else []
    files += checkout.list(OPINFO_DEFINITIONS, ".py")
    return tuple(call for file in files for call in _find_in_file(file, checkout.read(file), op))


def read_dtypes(node: ast.expr) -> frozenset[str] | None:
    """Returns the dtypes of an expression over common_dtype's groups, or None."""
    if not isinstance(node, ast.Call):
        names = read_dtype_names(node)
        return None if names is None else frozenset(names)
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    group = DTYPE_GROUPS.get(called.removesuffix("_and"))
    is_wrapped = len(node.args) == 1 and isinstance(node.args[0], ast.Tuple | ast.List)
    names = read_dtype_names(node.args[0] if is_wrapped else ast.Tuple(node.args))
    return None if group is None or names is None or node.keywords else group | {*names}


def read_marks(call: OpInfoCall) -> tuple[Mark, ...]:
    """Returns the marks of an OpInfo that only apply to MPS, in source order. Tolerances do not count."""
    return tuple(mark for index in range(len(call.arguments)) for mark in _read_marks_of(call, index))


def decide_mark(mark: Mark, ported: Collection[str]) -> MarkDecision:
    """Decides whether a mark is obsolete once the dtypes `ported` (torch names) run natively and match the CPU."""
    if mark.element is None:
        # Removes `dtypesIfMPS` if `dtypes` now also holds for MPS
        dtypes = mark.call.dtypes
        if dtypes is None:
            return MarkDecision(mark, Change.KEPT, (), "dtypes= is not written as groups of dtypes")
        return _remove_if_ported(mark, dtypes, ported, "dtypes= holds on MPS too")
    if mark.test not in FORWARD_TESTS:
        return MarkDecision(mark, Change.KEPT, (), f"{mark.test} does not test the forward kernel alone")
    if not mark.readable:
        return MarkDecision(mark, Change.KEPT, (), "its dtypes are not written out")
    if mark.dtypes is None:
        # Removes a mark for all dtypes if every tested dtype is now native
        reason = "every dtype of the operator is native now"
        return _remove_if_ported(mark, mark.call.dtypes or frozenset(), ported, reason)
    gone = tuple(d for d in mark.dtypes if d in ported)
    if not gone:
        return MarkDecision(mark, Change.KEPT, (), f"{', '.join(mark.dtypes)}: not part of the port")
    change = Change.REMOVED if len(gone) == len(mark.dtypes) else Change.NARROWED
    return MarkDecision(mark, change, gone, f"{', '.join(gone)}: native now")


def edit_marks(decisions: Iterable[MarkDecision]) -> tuple[Edit, ...]:
    """Returns the edits for these decisions, one per call. An argument left empty is removed."""
    by_call: dict[tuple[str, int], list[MarkDecision]] = {}
    for decision in decisions:
        call = decision.mark.call.expression
        by_call.setdefault((call.file, call.start), []).append(decision)
    return tuple(edit for group in by_call.values() for edit in _call_edits(group))


def _find_in_file(file: str, text: str, op: str) -> Iterator[OpInfoCall]:
    for match in _index(text).get(op, ()):
        expression = find_expression(file, text, match.start("cls"), match.start("open"))
        yield OpInfoCall(match["cls"], match["name"], expression.line(expression.node), expression, expression.items)


@lru_cache(maxsize=32)
def _index(text: str) -> Mapping[str, Sequence[re.Match[str]]]:
    """The OpInfo calls of a file by name, and by the aten_names up to the next call: one scan for all operators."""
    starts = [match for match in _find_calls(text) if match["cls"] not in OTHER_CALLS]
    names = [{n := match["name"], n.replace(".", "_"), n.removeprefix("nn.functional.")} for match in starts]
    offsets = [match.start() for match in starts]
    for match in _ATEN_NAME.finditer(text):
        at = bisect_right(offsets, match.start())
        if at:
            names[at - 1].add(match["name"])
    found: dict[str, list[re.Match[str]]] = {}
    for match, known in zip(starts, names, strict=True):
        for name in known:
            found.setdefault(name, []).append(match)
    return found


def _find_calls(text: str) -> Iterator[re.Match[str]]:
    """Yields the calls that start a line. Only the lines with a class that may be one are searched, for speed."""
    at = info = 0
    while (info := text.find("Info(", info) + 1) > 0:
        line = text.rfind("\n", 0, info) + 1
        match = _CALL.match(text, line) if line >= at else None
        if match:
            yield match
            at = match.end()


def _read_marks_of(call: OpInfoCall, index: int) -> Iterator[Mark]:
    argument = call.arguments[index]
    if argument.name == "dtypesIfMPS":
        text = f"{argument.name}={call.expression.text_of(argument.value)}"
        yield Mark(call, index, None, text, call.expression.line(argument.value), "", None)
    if argument.name in ("skips", "decorators") and isinstance(argument.value, ast.Tuple | ast.List):
        for element, item in enumerate(read_items(argument.value)):
            mark = _read_mark(call, index, element, item.value)
            if mark:
                yield mark


def _read_mark(call: OpInfoCall, argument: int, element: int, node: ast.expr) -> Mark | None:
    line = call.expression.line(node)
    if isinstance(node, ast.Name) and node.id in MPS_DECORATORS:
        return Mark(call, argument, element, node.id, line, "", None)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DecorateInfo"):
        return None
    parts = read_items(node)
    given = dict(zip(("decorators", "cls_name", "test_name"), (p.value for p in parts if not p.name), strict=False))
    given |= {p.name: p.value for p in parts if p.name}
    what = call.expression.text_of(given["decorators"]) if "decorators" in given else ""
    cls, test, device = (read_string(given.get(name)) for name in ("cls_name", "test_name", "device_type"))
    ours = device == "mps" or test.endswith("_mps") or cls.removesuffix("MPS") in MPS_CLASSES or what in MPS_DECORATORS
    if not ours or device not in ("", "mps") or not _EXPECTATION.match(what):
        return None
    dtypes = given.get("dtypes")
    names = read_dtype_names(dtypes) if dtypes else None
    flat = " ".join(call.expression.text_of(node).split())
    return Mark(call, argument, element, flat, line, test, names, readable=dtypes is None or names is not None)


def _remove_if_ported(mark: Mark, dtypes: frozenset[str], ported: Collection[str], reason: str) -> MarkDecision:
    missing = sorted(dtypes - NOT_ON_MPS - set(ported))
    if missing:
        return MarkDecision(mark, Change.KEPT, (), f"{', '.join(missing)}: not part of the port")
    return MarkDecision(mark, Change.REMOVED, (), reason)


def _call_edits(group: Sequence[MarkDecision]) -> tuple[Edit, ...]:
    call = group[0].mark.call
    gone = {path for decision in group for path in _paths(decision)}
    for index, argument in enumerate(call.arguments):
        elements = {(index, element) for element in range(len(read_items(argument.value)))}
        if elements and elements <= gone:
            gone = {(index,), *(path for path in gone if path[0] != index)}
    return remove_items(call.expression, gone)


def _paths(decision: MarkDecision) -> Iterator[tuple[int, ...]]:
    """Yields the paths to remove from a call: an argument, an element of one, or dtypes of an element."""
    mark = decision.mark
    if decision.change is Change.REMOVED:
        yield (mark.argument,) if mark.element is None else (mark.argument, mark.element)
    if decision.change is Change.NARROWED and mark.element is not None:
        parts = read_items(read_items(mark.call.arguments[mark.argument].value)[mark.element].value)
        at = next(i for i, part in enumerate(parts) if part.name == "dtypes")
        for i, dtype in enumerate(mark.dtypes or ()):
            if dtype in decision.dtypes:
                yield mark.argument, mark.element, at, i
