"""The OpInfos of an ATen operator: its test names and dtypes, and what they say about MPS alone.

Source: `torch/testing/_internal/common_methods_invocations.py`, `torch/testing/_internal/opinfo/definitions/*.py` and
`opinfo/core.py`. The files are scanned for the call, and only the call is read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from porter.aten.skip_lists import dtype_name
from porter.core.checkout import Checkout
from porter.core.edits import Edit, line_of
from porter.languages.python_brackets import Brackets, Element, read_brackets, remove_elements

INVOCATIONS = "torch/testing/_internal/common_methods_invocations.py"
DEFINITIONS = "torch/testing/_internal/opinfo/definitions"

# Calls that look like an OpInfo and describe something else.
OTHER_CALLS = ("DecorateInfo", "ForeachFuncInfo")
# Tests whose outcome on MPS the forward kernel decides, and the class that only MPS has.
FORWARD_TESTS = ("", "test_output_match", "test_dtypes", "test_out")
MPS_CLASSES = ("TestConsistency",)
MPS_DECORATORS = ("skipMPS", "expectedFailureMPS")
# Types that no MPS kernel has, whatever an OpInfo says.
NOT_ON_MPS = frozenset({"float64", "complex128"})

_INTEGRAL = frozenset({"uint8", "int8", "int16", "int32", "int64"})
_FLOATING = frozenset({"float32", "float64"})
_COMPLEX = frozenset({"complex64", "complex128"})
# Source: torch/testing/_internal/common_dtype.py.
DTYPE_GROUPS = {
    "empty_types": frozenset[str](),
    "floating_types": _FLOATING,
    "floating_types_and_half": _FLOATING | {"float16"},
    "double_types": frozenset({"float64", "complex128"}),
    "floating_and_complex_types": _FLOATING | _COMPLEX,
    "integral_types": _INTEGRAL,
    "all_types": _FLOATING | _INTEGRAL,
    "all_types_and_half": _FLOATING | _INTEGRAL | {"float16"},
    "complex_types": _COMPLEX,
    "all_types_and_complex": _FLOATING | _INTEGRAL | _COMPLEX,
    "custom_types": frozenset[str](),
    "_dispatch_dtypes": frozenset[str](),
}

_CALL = re.compile(r"^[ \t]+(?P<cls>\w*Info)(?P<open>\()\s*(?P<quote>['\"])(?P<name>[^'\"\n]+)(?P=quote)", re.MULTILINE)
_ATEN_NAME = re.compile(r"\baten_name\s*=\s*['\"](?P<name>\w+)['\"]")
_DTYPES = re.compile(r"(?P<group>\w+?)(?:_and)?\((?P<named>[^()]*|\([^()]*\))\)|[\[({](?P<literal>[^\[\](){}]*)[\])}]")
_STRING = re.compile(r"(['\"])([^'\"]*)\1")


@dataclass(frozen=True)
class Argument:
    """An argument of a call: `name` is empty for a positional one; `text` is its value, beginning at `start`."""

    name: str
    text: str
    start: int
    index: int


@dataclass(frozen=True)
class OpInfoCall:
    """One OpInfo: where it is called, by which names it is known, and its arguments."""

    cls: str
    name: str
    variant: str
    file: str
    line: int
    text: str
    brackets: Brackets
    arguments: tuple[Argument, ...]

    @property
    def key(self) -> str:
        """The name the MPS test lists use."""
        return self.name + self.variant

    @property
    def dtypes(self) -> frozenset[str] | None:
        """Torch names of the dtypes it is tested with on the CPU; None when not written as common_dtype groups."""
        return self._dtypes("dtypes")

    def argument(self, name: str) -> Argument | None:
        return next((a for a in self.arguments if a.name == name), None)

    def _dtypes(self, name: str) -> frozenset[str] | None:
        argument = self.argument(name)
        return read_dtypes(argument.text) if argument else None


@dataclass(frozen=True)
class Mark:
    """Something an OpInfo says about MPS alone: an element of `skips=`/`decorators=`, or the argument itself.

    `dtypes` are the ones it is limited to, None for all or when not readable (`readable` tells which).
    """

    call: OpInfoCall
    argument: Argument
    element: int | None
    text: str
    line: int
    test: str
    dtypes: tuple[str, ...] | None
    readable: bool = True


@dataclass(frozen=True)
class MarkDecision:
    """What becomes of a mark: `change` is removed, narrowed or kept; `dtypes` those that go; `why` the reason."""

    mark: Mark
    change: str
    dtypes: tuple[str, ...]
    why: str


def find_opinfos(checkout: Checkout, op: str) -> tuple[OpInfoCall, ...]:
    """Every OpInfo whose name (`nn.functional.` apart) or aten_name is `op` (an ATen base name).

    Raises PTR067 (unclosed bracket).
    """
    files = [INVOCATIONS] if checkout.exists(INVOCATIONS) else []
    files += checkout.list(DEFINITIONS, ".py")
    return tuple(call for file in files for call in _find(file, checkout.read(file), op))


def read_dtypes(text: str) -> frozenset[str] | None:
    """The dtypes that an expression of common_dtype's groups stands for, or None."""
    match = _DTYPES.fullmatch(text.strip().rstrip(","))
    if not match:
        return None
    names = [n.strip() for n in (match["literal"] or match["named"] or "").strip("() \n").split(",") if n.strip()]
    group = DTYPE_GROUPS.get(match["group"] or "custom_types")
    if group is None or not all(re.fullmatch(r"torch\.\w+", name) for name in names):
        return None
    return group | {dtype_name(name) for name in names}


def marks(call: OpInfoCall) -> tuple[Mark, ...]:
    """What an OpInfo says about MPS alone, in the order of the text. Tolerances are not expectations of failure."""
    return tuple(mark for argument in call.arguments for mark in _marks(call, argument))


def decide_mark(mark: Mark, ported: Collection[str]) -> MarkDecision:
    """Whether a mark's reason goes when `ported` (torch dtype names) run natively and agree with the CPU."""
    if mark.element is None:
        return _decide_dtypes(mark, ported)
    if mark.test not in FORWARD_TESTS:
        return MarkDecision(mark, "kept", (), f"{mark.test} does not test the forward kernel alone")
    if not mark.readable:
        return MarkDecision(mark, "kept", (), "its dtypes are not written out")
    if mark.dtypes is None:
        return _decide_whole(mark, ported)
    gone = tuple(d for d in mark.dtypes if d in ported)
    if not gone:
        return MarkDecision(mark, "kept", (), f"{', '.join(mark.dtypes)}: not part of the port")
    change = "removed" if len(gone) == len(mark.dtypes) else "narrowed"
    return MarkDecision(mark, change, gone, f"{', '.join(gone)}: native now")


def edits_of_marks(decisions: Iterable[MarkDecision]) -> tuple[Edit, ...]:
    """The edits that carry decisions out; an argument that would be left empty goes as a whole."""
    edits: list[Edit] = []
    removed: dict[tuple[str, int], list[Mark]] = {}
    for decision in decisions:
        call = decision.mark.call
        if decision.change == "removed":
            removed.setdefault((call.file, call.brackets.open), []).append(decision.mark)
        if decision.change == "narrowed":
            edits += _narrowed(decision)
    for group in removed.values():
        edits += _removed(group)
    return tuple(edits)


def _find(file: str, text: str, op: str) -> Iterator[OpInfoCall]:
    for match, aten_names in _index(text):
        name = match["name"]
        if op in (name, name.replace(".", "_"), name.removeprefix("nn.functional.")) or op in aten_names:
            yield _read_call(file, text, match)


@lru_cache(maxsize=32)
def _index(text: str) -> tuple[tuple[re.Match[str], frozenset[str]], ...]:
    """Every OpInfo call of a file with the aten_names up to the next: one scan serves every operator."""
    starts = [match for match in _CALL.finditer(text) if match["cls"] not in OTHER_CALLS]
    names: list[set[str]] = [set() for _ in starts]
    offsets = [match.start() for match in starts]
    for match in _ATEN_NAME.finditer(text):
        at = bisect_right(offsets, match.start())
        if at:
            names[at - 1].add(match["name"])
    return tuple(zip(starts, map(frozenset, names), strict=True))


def _read_call(file: str, text: str, match: re.Match[str]) -> OpInfoCall:
    brackets = read_brackets(file, text, match.start("open"))
    arguments = tuple(_argument(text, element, i) for i, element in enumerate(brackets.elements))
    variant = next((_string(a) for a in arguments if a.name == "variant_test_name"), "")
    line = line_of(text, match.start("cls"))
    return OpInfoCall(match["cls"], match["name"], variant, file, line, text, brackets, arguments)


def _argument(text: str, element: Element, index: int) -> Argument:
    match = re.compile(r"(\w+)\s*=(?!=)\s*").match(text, element.start, element.end)
    start = match.end() if match else element.start
    return Argument(match[1] if match else "", text[start : element.end], start, index)


def _string(argument: Argument | None) -> str:
    match = _STRING.fullmatch(argument.text) if argument else None
    return match[2] if match else ""


def _marks(call: OpInfoCall, argument: Argument) -> Iterator[Mark]:
    line = line_of(call.text, argument.start)
    if argument.name == "dtypesIfMPS":
        yield Mark(call, argument, None, f"{argument.name}={argument.text}", line, "", None)
    if argument.name in ("skips", "decorators") and argument.text[0] in "([":
        inner = read_brackets(call.file, call.text, argument.start)
        for i, element in enumerate(inner.elements):
            mark = _mark(call, argument, element, i)
            if mark:
                yield mark


def _mark(call: OpInfoCall, argument: Argument, element: Element, index: int) -> Mark | None:
    text, line = call.text[element.start : element.end], line_of(call.text, element.start)
    if text in MPS_DECORATORS:
        return Mark(call, argument, index, text, line, "", None)
    if not text.startswith("DecorateInfo("):
        return None
    opening = element.start + len("DecorateInfo")
    parts = [_argument(call.text, e, i) for i, e in enumerate(read_brackets(call.file, call.text, opening).elements)]
    given = dict(zip(("decorators", "cls_name", "test_name"), (p for p in parts if not p.name), strict=False))
    given |= {p.name: p for p in parts if p.name}
    what = given["decorators"].text if "decorators" in given else ""
    cls, test, device = (_string(given.get(name)) for name in ("cls_name", "test_name", "device_type"))
    ours = device == "mps" or test.endswith("_mps") or cls.removesuffix("MPS") in MPS_CLASSES or what in MPS_DECORATORS
    if not ours or device not in ("", "mps") or not re.match(r"(unittest\.(skip|expectedFailure)|\w*MPS$)", what):
        return None
    dtypes = given.get("dtypes")
    names = _listed(call, dtypes) if dtypes else None
    flat = " ".join(text.split())
    return Mark(call, argument, index, flat, line, test, names, readable=dtypes is None or names is not None)


def _listed(call: OpInfoCall, dtypes: Argument) -> tuple[str, ...] | None:
    if dtypes.text[0] not in "([{":
        return None
    inner = read_brackets(call.file, call.text, dtypes.start)
    names = [call.text[e.start : e.end] for e in inner.elements]
    return tuple(map(dtype_name, names)) if all(re.fullmatch(r"torch\.\w+", n) for n in names) else None


def _decide_dtypes(mark: Mark, ported: Collection[str]) -> MarkDecision:
    """`dtypesIfMPS` goes when `dtypes` is true of MPS too."""
    dtypes = mark.call.dtypes
    if dtypes is None:
        return MarkDecision(mark, "kept", (), "dtypes= is not written as groups of dtypes")
    missing = sorted(dtypes - NOT_ON_MPS - set(ported))
    if missing:
        return MarkDecision(mark, "kept", (), f"{', '.join(missing)}: not part of the port")
    return MarkDecision(mark, "removed", (), "dtypes= holds on MPS too")


def _decide_whole(mark: Mark, ported: Collection[str]) -> MarkDecision:
    """A mark for every dtype goes when every dtype that is tested is native."""
    missing = sorted((mark.call.dtypes or frozenset()) - NOT_ON_MPS - set(ported))
    if missing:
        return MarkDecision(mark, "kept", (), f"{', '.join(missing)}: not part of the port")
    return MarkDecision(mark, "removed", (), "every dtype of the operator is native now")


def _removed(group: list[Mark]) -> Iterator[Edit]:
    call, whole = group[0].call, {m.argument.index for m in group if m.element is None}
    by_argument: dict[int, set[int]] = {}
    for mark in group:
        if mark.element is not None:
            by_argument.setdefault(mark.argument.index, set()).add(mark.element)
    for index, gone in by_argument.items():
        inner = read_brackets(call.file, call.text, call.arguments[index].start)
        if len(gone) == len(inner.elements):
            whole.add(index)
        else:
            yield from remove_elements(call.file, call.text, inner, gone)
    yield from remove_elements(call.file, call.text, call.brackets, whole)


def _narrowed(decision: MarkDecision) -> list[Edit]:
    call, mark = decision.mark.call, decision.mark
    inner = read_brackets(call.file, call.text, mark.argument.start)
    element = inner.elements[mark.element or 0]
    match = re.compile(r"\bdtypes\s*=\s*").search(call.text, element.start, element.end)
    if match is None:
        return []
    listed = read_brackets(call.file, call.text, match.end())
    gone = {i for i, dtype in enumerate(mark.dtypes or ()) if dtype in decision.dtypes}
    return remove_elements(call.file, call.text, listed, gone)
