"""The functions of a row that make one result each, by a graph of their own: a port serves all that call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from porter.aten.native_functions import NativeFunctions
from porter.aten.operator import Operator, ServedFunction, find_served
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.languages.brackets import split_at_commas
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import Parameter, read_parameters, rename
from porter.languages.liveness import list_values, read_assignments
from porter.languages.patterns import find_code, match_code
from porter.languages.source import Function, Source, parse_source
from porter.languages.statements import find_returns, walk_statements
from porter.plan.recorded.corrections import remove_statements
from porter.plan.recorded.target import RUN, Target, check_runs_graph, reaches_graph, read_body, read_returned, refuse


def find_result_target(checkout: Checkout, served: ServedFunction, place: int) -> Target:
    """The function that makes a row's result of that place, which runs a graph.

    Raises PTR368 where there is none, and PTR043 where it takes a tensor that no call of the row gives.
    """
    maker = _find_function(checkout, served, place)
    if lacking := next(maker.list_lacking(), None):
        what = f"{maker.function.name} takes {lacking}, which no call of this row gives"
        raise PorterError("PTR043", what, maker.source.place(maker.function.start), "Port the row that gives it first.")
    parameters = read_parameters(maker.function)
    body = _without_copies(maker.body, parameters)
    [*_, last] = [each["value"] for each in find_returns(body)]
    tensors = {each["name"]: each["tensor"] for each in find_code(body, '$name{$tensor, "result", $position}')}
    returned = read_returned(f"return {last};") or [tensors.get(last.removeprefix("*"), last)]
    results = {f"result{i}": tensors.get(name, name) for i, name in enumerate(returned)}
    optional = frozenset(each.name for each in parameters if "ptional" in each.type)
    named = {**maker.variables, **results}
    return Target(maker.source.path, maker.function, body, named, optional, arguments=named)


def find_givers(checkout: Checkout, operator: Operator) -> Iterator[str]:
    """The operators whose calls give functions a tensor that the operator's own, which they serve too, do not."""
    lacking = {
        (maker.source.path, maker.function.signature)
        for served in operator.served
        if _is_made_apart(checkout, served)
        for maker in _list_functions(checkout, served)
        if any(maker.list_lacking())
    }
    for row in NativeFunctions.read(checkout).all if lacking else ():
        served = find_served(checkout, row)
        for maker in _list_functions(checkout, served) if served and served.builds_graph else ():
            if (maker.source.path, maker.function.signature) in lacking and not any(maker.list_lacking()):
                yield row.base


def _is_made_apart(checkout: Checkout, served: ServedFunction) -> bool:
    """Whether a row has no function that runs all of its graph."""
    try:
        check_runs_graph(checkout, served)
    except PorterError:
        return True
    return False


@dataclass(frozen=True)
class _ResultFunction:
    """A function that runs a graph, with the parameters that a row's arguments are passed as."""

    source: Source
    function: Function
    body: str
    variables: Mapping[str, str]

    def list_lacking(self) -> Iterator[str]:
        """The tensors that it takes and no call of the row gives."""
        for parameter in read_parameters(self.function):
            if "Tensor" in parameter.type and parameter.name not in self.variables.values():
                yield parameter.name


def _list_functions(checkout: Checkout, served: ServedFunction) -> Iterator[_ResultFunction]:
    for place in range(served.function.results):
        with suppress(PorterError):
            yield _find_function(checkout, served, place)


def _find_function(checkout: Checkout, served: ServedFunction, place: int) -> _ResultFunction:
    """The function that makes a row's result of that place by a graph. Raises PTR368."""
    implementation = served.implementation
    if implementation is None or implementation.function is None:
        raise refuse(served, "its code is made by a macro")
    source = parse_source(implementation.file, checkout.read(implementation.file))
    function = source.find_again(implementation.function)
    named = {each.name: each.name for each in read_parameters(function)} if function else {}
    variables = dict(zip((each.name for each in served.function.arguments), named, strict=False))
    at = place
    while function is not None:
        body = read_body(source, function)
        if contains_identifier(body, RUN):
            return _ResultFunction(source, function, body, variables)
        function, passed = next(_list_calls(source, body, at), (None, {}))
        variables = {name: passed[variable] for name, variable in variables.items() if variable in passed}
        at = 0
    raise refuse(served, f"no function of its file makes result {place} by a graph")


def makes_results(checkout: Checkout, served: ServedFunction) -> bool:
    """Whether a function of its own makes a result of a row by a graph."""
    return any(True for _ in _list_functions(checkout, served))


def _list_calls(source: Source, body: str, place: int) -> Iterator[tuple[Function, Mapping[str, str]]]:
    """The functions that make a result by a graph, with the parameters that variables are passed as."""
    returned = read_returned(body)
    values = list_values(body, returned[place]) if place < len(returned) else []
    values += [each["value"] for each in find_returns(body)]
    if place < len(returned):
        for tie in find_code(body, "std::tie($$names) = $$value;"):
            if returned[place] in map(str.strip, split_at_commas(tie["names"])):
                values.append(tie["value"])
    for name, overloads in source.functions_by_name.items():
        for value in values:
            match = match_code(value, f"{name}($$arguments)")
            arguments = split_at_commas(match["arguments"]) if match else []
            for called in overloads if match else ():
                parameters = [each.name for each in read_parameters(called)]
                if len(parameters) == len(arguments) and reaches_graph(source, called):
                    yield called, dict(zip((each.strip() for each in arguments), parameters, strict=True))


def _without_copies(body: str, parameters: tuple[Parameter, ...]) -> str:
    """A body that has tensors as they are, where it copied them to be contiguous for the graph."""
    names = {each.name for each in parameters}
    for declared in (each for each in read_assignments(body) if each.type == "Tensor" and each.value in names):
        later = [each for each in read_assignments(body) if each.name == declared.name and each is not declared]
        copies = [each for each in walk_statements(body) if each.body and each.body[0] in [a.statement for a in later]]
        if len(copies) == len(later) and {each.value for each in later} <= {f"{declared.name}.contiguous()"}:
            gone = (declared.statement, *copies)
            return rename(remove_statements(body, gone), {declared.name: declared.value})
    return body
