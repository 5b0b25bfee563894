"""Returns of a port before its launch: what results have there that are not empty, and for which of them it returns.

A graph's function asks whether there is anything to compute by an operand or by one of its results. One that is not
asked for is an undefined tensor, which has no elements either: `layer_norm_backward_mps`
(ATen/native/mps/operations/Normalization.mm) returned the gradients of weight and bias unwritten where the input needs
none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial

from porter.languages.identifiers import rename_identifiers
from porter.languages.liveness import read_assignments
from porter.languages.patterns import find_code
from porter.languages.statements import name_tokens
from porter.loops.empty_rows import compute_of_nothing, compute_without, find_reduced
from porter.loops.host_values import Number, SizeProduct, list_names
from porter.loops.program import Programs
from porter.metal.codegen.host_values import Names, list_results
from porter.metal.forms import Computation, FormProgram
from porter.plan.recorded.host_function import Exit, Guard, HostFunction
from porter.plan.recorded.target import Target, read_returned

_TENSORS = ("auto", "Tensor", "at::Tensor")


def fill_of_nothing(function: HostFunction, programs: Programs, names: Names) -> HostFunction:
    """Fills results before a return for an operand without elements, of which they may have some.

    They get what the kernels would store, if that is known. A function that never asks, as what is done before does
    not, returns for it too: there is no memory to launch a kernel with.
    """
    reduced = find_reduced(programs)
    fills = tuple(_write_fills(programs, names)) if reduced in names.variables else ()
    if not reduced or not fills:
        return function
    results = set(list_results(names.variables).values())
    operand = names.variables[reduced]
    if not function.asks_empty(operand):
        return function.add(Exit((f"{operand}.numel() == 0",), function.leave, fills))
    fill = partial(_fill, function, operand, results, fills)
    return replace(function, exits=tuple(map(fill, function.exits)))


def _fill(function: HostFunction, operand: str, results: Set[str], fills: tuple[str, ...], leave: Exit) -> Exit:
    """A return with what fills results, where the operand or one of them is empty, and there are all of them."""
    is_asked = operand in leave.empty <= {operand, *results}
    is_late = is_asked and _only_returns(leave) and function.bring(leave, results, inside=True) == []
    return replace(leave, lines=fills) if is_late else leave


def start_of_nothing(function: HostFunction, result: str) -> HostFunction:
    """Gives a result what it has where nothing is written to it, before a return as there is nothing to write.

    The launch says by which statement. Of an empty result, or of one that has its elements already, nothing is missing.
    Where a return stands before the declaration of what the statement reads, that goes with it; where it stands before
    the result's own, there is nothing to return yet.
    """
    start = function.launch.start
    if not start:
        return function
    used = {token.text for token in name_tokens(start)}
    return replace(function, exits=tuple(_start(function, each, start, used, result) for each in function.exits))


def _start(function: HostFunction, leave: Exit, start: str, used: Set[str], result: str) -> Exit:
    if not _only_returns(leave) or "" in leave.empty or leave.empty <= used:
        return leave
    lacking = function.bring(leave, used - {result}, inside=True)
    is_there = function.bring(leave, {result}, inside=True) == []
    return leave if lacking is None or not is_there else replace(leave, lines=(*lacking, start))


def _only_returns(leave: Exit) -> bool:
    """Whether nothing is done before a return, nor by it: what it calls may write results."""
    return leave.is_alone and "(" not in leave.leave


def _write_fills(programs: Programs, names: Names) -> Iterator[str]:
    for index, value in compute_of_nothing(programs).items():
        variable = names.variables.get(f"result{index}")
        if variable is None or variable in names.optional:
            return
        yield f"{variable}.{write_fill(value)};"


def write_fill(value: Number) -> str:
    """The call by which all elements of a tensor become a number."""
    if value == 0:
        return "zero_()"
    return f"fill_({'std::numeric_limits<double>::quiet_NaN()' if math.isnan(value) else f'{value:g}'})"


def list_counted(programs: Programs) -> set[str]:
    """The tensors whose number of elements is that of the threads of all kernels."""
    rows = [nest.rows for case in programs.cases for nest in case.nests]
    products = [each for each in rows if isinstance(each, SizeProduct)]
    whole = {name for each in products if each.begin is None and each.end is None for name in list_names(each)}
    if len(whole) == 1 and len(rows) == len(products):
        return whole
    # else the tensor that is alone, if every result has its sizes: nothing is broadcast with it
    calls = [call.tensors for case in programs.cases for call in case.calls]
    operands = {name for call in calls for name in call if not name.removeprefix("result").isdecimal()}
    have_one_shape = all(len({value.shape for value in call.values()}) == 1 for call in calls)
    return operands if len(operands) == 1 and have_one_shape else set()


def return_early(
    function: HostFunction, target: Target, variables: Mapping[str, str], counted: Iterable[str]
) -> HostFunction:
    """Returns before kernels are launched for no elements, of a result or of tensors that are `counted`."""
    result, *others = list_results(variables).values()
    alike = [each for each in others if target.alternatives or f"{each} = at::empty({result}.sizes()" in function.text]
    counts = [names[tensor] for tensor in counted for names in (variables, target.arguments) if tensor in names]
    if function.asks_empty(result, *alike, *counts):
        return function
    return function.add(Exit((f"{result}.numel() == 0",), function.leave))


def keep_unwritten(function: HostFunction, names: Names, programs: Computation) -> HostFunction:
    """Returns before the launch, or goes past it, for one result only where no other is to be written.

    Where it returns as there is nothing to compute them from either, results get what reductions of nothing have, if
    that is known. Results that have as many elements in all recorded calls are one.
    """
    variables = list_results(names.variables)
    if len(set(variables.values())) < 2:
        return function
    return _Returns(function, names, programs, variables).widen()


def find_mask(names: Names) -> str:
    """The argument that has a flag for each of several results, whether it is asked for; nothing if there is none."""
    results = len(list_results(names.variables))
    masks = [name for name, type_ in names.types.items() if type_ == f"bool[{results}]"]
    return masks[0] if len(masks) == 1 and results > 1 else ""


def may_lack(body: str, result: str) -> bool:
    """Whether a result may be an undefined tensor: it is not allocated where the body declares it, in any case."""
    values = [each.value for each in read_assignments(body) if each.name == result and each.type in _TENSORS]
    return not any(value and "?" not in value and not value.startswith("Tensor()") for value in values)


@dataclass(frozen=True)
class _Returns:
    """A function, and the variables of its results by their places."""

    function: HostFunction
    names: Names
    programs: Computation
    variables: dict[int, str]

    def widen(self) -> HostFunction:
        function = self.function
        return replace(
            function,
            guards=tuple(map(self._enter_for_all, function.guards)),
            exits=tuple(map(self._leave_for_all, function.exits)),
            nodes=tuple(self._leave_for_all(each) if isinstance(each, Exit) else each for each in function.nodes),
        )

    def _enter_for_all(self, guard: Guard) -> Guard:
        """The launch is not only reached for one result: others may have to be written."""
        if "||" in guard.test or "&&" in guard.test:
            return guard
        return replace(guard, more=tuple(f"{each}.numel() > 0" for each in self._list_others(guard.test, guard)))

    def _leave_for_all(self, leave: Exit) -> Exit:
        """It only returns for a result where no other is to be written."""
        if not leave.is_alone:  # it writes others as those of nothing are, which is wrong where there is something
            return replace(leave, tests=tuple(map(self._demand, leave.tests)))
        if leave.leave.rstrip("; ") != "return" and not read_returned(leave.leave):  # what it calls may write results
            return leave
        others = [self._list_others(test, leave) for test in leave.tests]
        if not any(others):
            return leave
        fills = tuple(dict.fromkeys(fill for each in others for fill in self._write_fills(each)))
        key, is_only = self._find_key(leave), len(leave.tests) == 1
        tests = (_join(test, each, key, is_only) for test, each in zip(leave.tests, others, strict=True))
        return replace(leave, tests=tuple(tests), lines=fills)

    def _list_others(self, test: str, place: Exit | Guard) -> list[str]:
        """The results that a test does not ask for and that may have elements where those have none; none of a test
        that asks for no result, or where there are not all results yet.
        """
        asked = set(self._list_asked(test))
        others = [
            variable
            for i, variable in self.variables.items()
            if i not in asked and not any(self._are_alike(i, j) for j in asked)
        ]
        is_early = self.function.bring(place, self.variables.values()) != []
        return [] if not asked or is_early else list(dict.fromkeys(others))

    def _list_asked(self, test: str) -> Iterator[int]:
        """The places of the results that a test is about: by their variables, by flags that are set to those, or by
        the elements of a mask.
        """
        text = self._expand(test)
        used = {token.text for token in name_tokens(text)}
        yield from (i for i, variable in self.variables.items() if variable in used)
        if self._mask:
            places = {str(i): i for i in self.variables}
            asked = (each["place"] for each in find_code(text, f"{self._mask}[$place]"))
            yield from (places[place] for place in asked if place in places)

    def _expand(self, test: str) -> str:
        """A test with what its flags are set to."""
        for _ in self._flags:
            test = rename_identifiers(test, {name: f"({value})" for name, value in self._flags.items()})
        return test

    @cached_property
    def _flags(self) -> dict[str, str]:
        assignments = read_assignments(self.function.text)
        return {each.name: each.value for each in assignments if each.value and each.type in ("bool", "auto")}

    @property
    def _mask(self) -> str:
        """The variable of the flags that say which results are asked for; nothing if there is none."""
        return self.names.variables.get(find_mask(self.names), "")

    def _are_alike(self, one: int, other: int) -> bool:
        """Whether two results have as many elements in every call, and there always are both."""
        if self._mask:
            return False
        is_alike = isinstance(self.programs, FormProgram) and self.programs.form.ALIKE
        if is_alike or self.variables[one] == self.variables[other]:
            return True
        calls = [call.tensors for call in self.programs.calls]
        pairs = [(call.get(f"result{one}"), call.get(f"result{other}")) for call in calls]
        return bool(pairs) and all(a and b and math.prod(a.shape) == math.prod(b.shape) for a, b in pairs)

    def _demand(self, test: str) -> str:
        """A test for a result without elements, which one that is not there does not meet."""
        for variable in sorted(Exit((test,), "").empty.intersection(self.variables.values())):
            if self._may_lack(variable):
                return f"({variable}.defined() && {variable}.numel() == 0)"
        return test

    def _may_lack(self, variable: str) -> bool:
        return bool(self._mask) and may_lack(self.function.text, variable)

    @property
    def _key(self) -> str:
        """The tensor that all kernels of programs read; nothing of a form, or if there are several."""
        keys = {case.key for case in self.programs.cases} if isinstance(self.programs, Programs) else set()
        return next(iter(keys)) if len(keys) == 1 else ""

    def _find_key(self, place: Exit) -> str:
        """The tensor that all kernels read, with the operator before its members, if a place may name it."""
        key = self._key
        if key not in self.names.variables or self.function.bring(place, {self.names.variables[key]}) != []:
            return ""
        return self.names.member(key)

    def _write_fills(self, variables: Collection[str]) -> Iterator[str]:
        """What gives results what kernels would store of nothing."""
        values = {}
        if isinstance(self.programs, Programs) and self._key:
            values = compute_without(self.programs, self._key)
        for index, variable in self.variables.items():
            if variable in variables and index in values:
                fill = f"{variable}.{write_fill(values[index])};"
                yield f"if ({variable}.defined()) {{\n{fill}\n}}" if self._may_lack(variable) else fill


def _join(test: str, others: Sequence[str], key: str, is_only: bool) -> str:
    """A test that others have no elements either, or that there is nothing to compute them from."""
    if not others:
        return test
    empty = " && ".join(f"{each}.numel() == 0" for each in others)
    if key:
        empty = f"(({empty}) || {key}numel() == 0)" if len(others) > 1 else f"({empty} || {key}numel() == 0)"
    joined = f"{test} && {empty}"
    return joined if is_only else f"({joined})"
