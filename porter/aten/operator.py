"""An operator of a fork as one value: its functions, what serves MPS for each, and where those on MPSGraph can go."""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.aten.implementations import Implementation, Written, find_implementation, find_registration, written_in
from porter.aten.native_functions import MPS_KEY, SHARING_KEYS, DispatchLine, Entry, NativeFunctions, functional_variant
from porter.aten.stubs import DifferentOverloads, NoStub, StubCall, native_definitions, stub_names, stubs_of
from porter.core.checkout import Checkout
from porter.core.errors import PorterError

_OWN_KERNEL = re.compile(r"[Ss]tub\b|device_type\(\)")
_OPERATOR_CALL = re.compile(r"\bat::(\w+?)(?:_outf?|_)?\(")


@dataclass(frozen=True)
class Row:
    """A row that MPS serves: its line, its code, and what that is written in."""

    entry: Entry
    line: DispatchLine
    implementation: Implementation | None
    written: Written


@dataclass(frozen=True)
class Move:
    """A row on MPSGraph, the line it joins (its own when nothing moves), and the stubs that line leads to."""

    row: Row
    target: DispatchLine
    stubs: tuple[StubCall, ...]


@dataclass(frozen=True)
class Held:
    """A row that cannot be ported, and what says so."""

    row: Row
    error: PorterError


@dataclass(frozen=True)
class Operator:
    """The functions of an operator, or of one overload's group, and the rows among them that MPS serves."""

    name: str
    functions: tuple[Entry, ...]
    rows: tuple[Row, ...]

    @staticmethod
    def read(checkout: Checkout, name: str) -> Operator:
        """Reads an operator by its base name or an overload's. Raises PTR012 where the fork has none of that name."""
        functions = NativeFunctions.read(checkout).family(name)
        return Operator(name, functions, tuple(row for each in functions if (row := mps_row(checkout, each))))

    @property
    def base(self) -> str:
        """`atan2` for `atan2.out` too."""
        return self.functions[0].base

    @property
    def is_composite(self) -> bool:
        """Whether no backend has a kernel of its own for it."""
        return all(each.is_composite or not each.dispatch for each in self.functions)

    def functional_name(self, function: Entry) -> str:
        """The name under which the meta function of a group is declared: that of its functional variant."""
        found = functional_variant(self.functions, function)
        return found.name if found else function.name.removesuffix(".out")


def mps_row(checkout: Checkout, entry: Entry) -> Row | None:
    """What serves MPS for a row; None when nothing does."""
    line = entry.line_for(MPS_KEY)
    if line is None:
        return None
    if any(key in line.keys for key in SHARING_KEYS):
        return _shared_row(checkout, entry, line)
    try:
        found = find_implementation(checkout, line.kernel)
    except PorterError:
        return Row(entry, line, None, Written.OTHER)
    return Row(entry, line, found, written_in(checkout, found))


def _shared_row(checkout: Checkout, entry: Entry, line: DispatchLine) -> Row:
    found = [i for stub in shared_stubs(checkout, line) if (i := find_registration(checkout, stub))]
    if not found:
        return Row(entry, line, None, Written.OTHER)
    written = [written_in(checkout, each) for each in found]
    old = next((each for each, how in zip(found, written, strict=True) if how is Written.MPSGRAPH), None)
    return Row(entry, line, old or found[0], Written.MPSGRAPH if old else written[0])


def stubs_behind(checkout: Checkout, row: Row) -> tuple[str, ...]:
    """The stubs that a row's line calls, where it is one that MPS shares."""
    return shared_stubs(checkout, row.line) if is_shared(row.line) else ()


def shared_stubs(checkout: Checkout, line: DispatchLine) -> tuple[str, ...]:
    """The stubs behind a line that MPS shares: those it is known to call, else those it names and MPS registers."""
    try:
        return tuple(dict.fromkeys(call.stub.name for call in stubs_of(checkout, line.kernel)))
    except PorterError:
        pass
    try:
        return tuple(name for name in stub_names(checkout, line.kernel) if find_registration(checkout, name))
    except PorterError:
        return ()


def moves(checkout: Checkout, operator: Operator) -> tuple[Move | Held, ...]:
    """Where every row that is on MPSGraph goes; a row is held back by PTR017 (no line to join) or by what the reading
    of its stubs raises.
    """
    old = [row for row in operator.rows if row.written is Written.MPSGRAPH or _forwards(row)]
    return tuple(_tried(checkout, operator, row) for row in old)


def joining(checkout: Checkout, operator: Operator, moved: tuple[Move, ...]) -> tuple[Move, ...]:
    """The rows that MPS does not serve, but can now: their shared function leads to nothing but the stubs of the moved
    rows, or to operators that MPS serves.
    """
    ported = {call.stub for move in moved for call in move.stubs}
    new = []
    for entry in operator.functions:
        line = next((line for line in entry.dispatch if _is_shared_by_all(line)), None)
        if line is None or entry.line_for(MPS_KEY):
            continue
        outcome = _tried(checkout, operator, Row(entry, line, None, Written.OTHER))
        if isinstance(outcome, Move) and ported.issuperset(call.stub for call in outcome.stubs):
            new.append(outcome)
    return tuple(new)


def _tried(checkout: Checkout, operator: Operator, row: Row) -> Move | Held:
    try:
        return _move(checkout, operator, row)
    except PorterError as error:
        return Held(row, error)


def _forwards(row: Row) -> bool:
    """Whether a kernel of MPS's own only forwards to other operators."""
    return row.written is Written.OTHER and row.implementation is not None and not is_shared(row.line)


def is_shared(line: DispatchLine) -> bool:
    """Whether MPS joins a kernel of CPU or CUDA on this line."""
    return any(key in line.keys for key in SHARING_KEYS)


def _move(checkout: Checkout, operator: Operator, row: Row) -> Move:
    candidates = [line for line in row.entry.dispatch if is_shared(line)]
    if not candidates:
        raise PorterError(
            "PTR017",
            f"{row.entry.name} has no CPU or CUDA line that MPS can join",
            row.entry.place,
            "Its CPU kernel is generated or missing; see docs/errors/PTR017.md.",
        )
    failure: PorterError | None = None
    for line in candidates:
        try:
            return Move(row, line, stubs_of(checkout, line.kernel))
        except PorterError as error:
            failure = error
            if isinstance(error, NoStub) and _redispatches(checkout, line):
                return Move(row, line, ())
            if isinstance(error, DifferentOverloads):
                return Move(row, line, _stubs_of_out(checkout, operator, error))
    assert failure is not None
    raise failure


def _stubs_of_out(checkout: Checkout, operator: Operator, error: PorterError) -> tuple[StubCall, ...]:
    """The stubs of the out= row, for a kernel name that several C++ overloads share."""
    for entry in operator.functions:
        line = entry.line_for("CPU") if entry.name.endswith("out") else None
        if line:
            return stubs_of(checkout, line.kernel)
    raise error


def _redispatches(checkout: Checkout, line: DispatchLine) -> bool:
    """Whether a function that CPU and CUDA share calls no kernel of its own, only operators that MPS serves."""
    if not _is_shared_by_all(line):
        return False
    functions = NativeFunctions.read(checkout)
    return all(_only_calls(found.text, functions) for found in native_definitions(checkout, line.kernel))


def _only_calls(text: str, functions: NativeFunctions) -> bool:
    if "at::" not in text or _OWN_KERNEL.search(text):
        return False
    called = {name for name in _OPERATOR_CALL.findall(text) if functions.has(name)}
    return all(any(entry.line_for(MPS_KEY) for entry in functions.family(name)) for name in called)


def _is_shared_by_all(line: DispatchLine) -> bool:
    return all(key in line.keys for key in SHARING_KEYS)
