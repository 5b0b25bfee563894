"""The function that builds a row's graph, with all that its callers know of it: where the launch of kernels goes.

A helper that only rows of the operator call is ported in its place. One that serves others too is put in the place of
its call, and stays as it is for the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import Implementation, list_host_sources, open_function
from porter.aten.native_functions import NativeFunction, NativeFunctions
from porter.aten.operator import ServedFunction, find_served, is_shared
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError, explained
from porter.core.layout import NATIVE_FUNCTIONS
from porter.languages.brackets import split_at_commas
from porter.languages.identifiers import contains_identifier, rename_identifiers
from porter.languages.inlining import (
    CallSite,
    complete_call,
    find_call_site,
    inline_call,
    list_call_sites,
    list_given,
    read_parameters,
    specialize,
)
from porter.languages.liveness import list_values, read_assignments
from porter.languages.patterns import find_code, match_code
from porter.languages.source import Function, Source, parse_source
from porter.languages.statements import find_returns, read_statements

RUN = "runMPSGraph"
_RUN_OTHERWISE = "executeMPSGraph"  # by the stream itself, on buffers
_UNSEEN = "no function of its file runs its graph"
_MAX_CALLS = 4  # from a row's function to the one that runs the graph
_REFERENCE = "OptionalScalarRef"
_BORROWED = "borrow_from_optional_tensor($optional)"
_HELD = (f"const Tensor& $name = *{_BORROWED};", f"const Tensor& $name = *({_BORROWED});")


@dataclass(frozen=True)
class Target:
    """The function that a row's launch goes to: its body as far as others are put into it, and its variables.

    `variables` are what the arguments of the schema, and the results as `result0`..., are called there.
    """

    file: str
    function: Function
    body: str
    variables: Mapping[str, str]
    optional: frozenset[str]  # the variables that are optional tensors
    references: frozenset[str] = frozenset()  # the variables that are optional references to scalars
    arguments: Mapping[str, str] = field(default_factory=dict)  # the same, with what the graph was fed
    alternatives: tuple[str, ...] = ()  # the bodies with other calls of the helper in the place of the last
    before: str = ""  # what the callers of a helper do before they call it, by the names of its parameters

    @property
    def place(self) -> Place:
        return Place(self.file, 1)


def find_target(
    checkout: Checkout, served: ServedFunction, ported: frozenset[str] | None, read: frozenset[str] = frozenset()
) -> Target:
    """The function that a row's graph is run in, which has variables for the arguments that kernels `read`.

    `ported` are the kernels of all rows that are ported with it; None puts every helper in the place of its call.
    Raises PTR368 (its code is not a function that runs one graph), PTR369 (a helper cannot be put in the place of its
    call) or PTR371 (its variables cannot be named).
    """
    source, chain = _list_chain(checkout, served)
    at = len(chain) - 1
    names = [link.function.name for link in chain]
    own = next((i - 1 for i in range(1, at + 1) if not _is_own(checkout, chain[i].function, ported, names)), at)
    own = next((i for i, link in enumerate(chain[:own]) if link.others), own)
    named = [_name_variables(source, served.function, chain[: i + 1]) for i in range(own + 1)]
    needed = read & {each.name for each in served.function.arguments}
    own = next(i for i in reversed(range(own + 1)) if needed <= named[i].keys())
    body, others = read_body(source, chain[at].function), list[str]()
    for i in reversed(range(own, at)):
        link, called = chain[i], chain[i + 1].function
        others = [_inline(source, link, link.site, called, each) for each in others]
        others += [_inline(source, link, site, called, body) for site in link.others]
        body = _inline(source, link, link.site, called, body)
    variables = named[own]
    parameters = read_parameters(chain[own].function)
    references = frozenset(each.name for each in parameters if _REFERENCE in each.type)
    optional = frozenset(each.name for each in parameters if "ptional" in each.type) - references
    required = {each.name for each in served.function.arguments if each.type == "Tensor"}
    held = {each["optional"]: each["name"] for each in find_code(body, *_HELD)}
    variables |= {name: held.get(variables[name], variables[name]) for name in required & variables.keys()}
    found = Target(source.path, chain[own].function, body, variables, optional, references)
    return replace(found, alternatives=tuple(others), before=_read_before(chain[: own + 1]))


def _read_before(chain: Sequence[_Link]) -> str:
    """What functions do before each calls the next, by the names of the last one's parameters."""
    text = ""
    for link, following in pairwise(chain):
        assert link.site is not None
        text += link.site.text[: link.site.call.statement.start]
        parameters = [each.name for each in read_parameters(following.function)]
        passed = dict(zip(link.site.call.arguments, parameters, strict=True))
        text = rename_identifiers(text, passed)
    return text


@dataclass(frozen=True)
class _Site:
    """A function's body, and where it calls another."""

    text: str
    call: CallSite


def list_leads(checkout: Checkout, served: ServedFunction) -> tuple[ServedFunction, ...]:
    """The rows whose own functions a row calls to run its graph, the one nearest to the graph first, at last itself."""
    rows = {
        entry.kernel.rsplit("::", 1)[-1]: function
        for function in reversed(NativeFunctions.read(checkout).by_name.values())
        if (entry := function.entry_for(MPS_KEY)) is not None and not is_shared(entry)
    }
    own = served.entry.kernel.rsplit("::", 1)[-1]
    named = [name for name in reversed(_list_runners(checkout, served)) if name in rows and name != own]
    return (*(each for name in named if (each := find_served(checkout, rows[name]))), served)


def check_runs_graph(checkout: Checkout, served: ServedFunction) -> None:
    """Raises PTR368 where neither a row's function nor that of a row which it calls is seen to run a graph.

    The launch of a structured row may replace its whole body, so that no graph need be seen there.
    """
    implementation, refusal = served.implementation, None
    if served.function.structured and implementation and implementation.function:
        return
    for lead in list_leads(checkout, served):
        try:
            _list_chain(checkout, lead)
            return
        except PorterError as error:
            refusal = error
    assert refusal is not None
    raise refusal


def _list_runners(checkout: Checkout, served: ServedFunction) -> list[str]:
    """The functions from a row's own to that which runs its graph, however they are called; none if several may be."""
    opened = open_function(checkout, served.implementation)
    if opened is None:
        return []
    source, called, names = opened[0], [opened[1]], list[str]()
    while len(called) == 1 and len(names) < _MAX_CALLS:
        [function] = called
        names.append(function.name)
        body, start = read_body(source, function), function.start
        if contains_identifier(body, RUN):
            return names
        called = [
            each
            for name, overloads in source.functions_by_name.items()
            if contains_identifier(body, name)
            for each in overloads
            if each.start != start and reaches_graph(source, each)
        ]
    return []


def _list_chain(checkout: Checkout, served: ServedFunction) -> tuple[Source, list[_Link]]:
    """The functions of a file from a row's own to the one that runs the graph. Raises PTR368."""
    implementation = served.implementation
    if implementation is None or implementation.function is None:
        raise refuse(served, "its code is made by a macro")
    source = parse_source(implementation.file, checkout.read(implementation.file))
    return source, list(_follow(source, implementation, served))


@dataclass(frozen=True)
class _Link:
    """A function on the way to the graph, and its call of the next: the last one, with no other in the body.

    `others` are the same for the calls before that, which make other results.
    """

    function: Function
    site: _Site | None
    others: tuple[_Site, ...] = ()


def _follow(source: Source, implementation: Implementation, served: ServedFunction) -> Iterator[_Link]:
    """The functions from a row's own to the one that runs the graph."""
    assert implementation.function is not None
    function = first = source.find_again(implementation.function)
    seen: set[int] = set()
    while function is not None and function.start not in seen:
        seen.add(function.start)
        body = read_body(source, function)
        if contains_identifier(body, RUN):
            yield _Link(function, None)
            return
        found = next(_find_calls(source, function, body), None)
        if found is None:
            break
        *others, site = found[1]
        yield _Link(function, site, tuple(others))
        function = found[0]
    raise refuse(served, _tell_runner(source, first) if first else _UNSEEN)


def _tell_runner(source: Source, function: Function) -> str:
    """What is known of the graph of a function from which no plain calls lead to one that runs it."""
    if runner := _find_runner(source, function, RUN):
        return f"{runner.name} runs its graph, and not every call on the way is a plain statement"
    if runner := _find_runner(source, function, _RUN_OTHERWISE):
        return f"{runner.name} runs its graph by {_RUN_OTHERWISE}, not by {RUN}"
    return _UNSEEN


def calls_one(checkout: Checkout, served: ServedFunction, names: Iterable[str]) -> bool:
    """Whether a row's function runs no graph by itself, and leaves that to one of some functions of its file.

    It may call that through others of the file.
    """
    opened = open_function(checkout, served.implementation)
    return opened is not None and not reaches_graph(*opened) and _leads_to(*opened, frozenset(names), _MAX_CALLS)


def _leads_to(source: Source, function: Function, names: frozenset[str], depth: int) -> bool:
    """Whether statements of a function call one of some others, directly or not."""
    body = read_body(source, function)
    called = [name for name in source.functions_by_name if find_call_site(body, name)]
    return not names.isdisjoint(called) or (
        depth > 1
        and any(
            _leads_to(source, each, names, depth - 1)
            for name in called
            for each in source.functions_by_name[name]
            if each.start != function.start
        )
    )


def _find_calls(source: Source, function: Function, body: str) -> Iterator[tuple[Function, list[_Site]]]:
    """The calls, by statements of their own, of functions of the file that run a graph, directly or not."""
    for name, overloads in source.functions_by_name.items():
        if contains_identifier(body, name):
            alone = list(_list_alone(body, name, [each.name for each in read_parameters(function)]))
            fitting = [(f, sites) for f in overloads if f.start != function.start and (sites := _complete(alone, f))]
            if len(fitting) == 1 and reaches_graph(source, fitting[0][0]):
                yield fitting[0]


def _list_alone(body: str, name: str, parameters: Collection[str]) -> Iterator[_Site]:
    """A body with each of its calls of a function alone; of calls under conditions, as it is with one of them.

    That is the first of those which pass on the most of the `parameters`.
    """
    sites = list(list_call_sites(body, name))
    outermost = [each for each in sites if each.statement in read_statements(body)]
    if len(outermost) < len(sites) or len(sites) < 2:
        passed = sorted(sites, key=lambda site: -len(set(site.arguments) & set(parameters)))
        yield from (_Site(body, each) for each in passed[:1])
        return
    for kept in sites:
        text = body
        for each in reversed(sites):
            if each is not kept:
                text = text[: each.statement.start] + text[each.statement.end :]
        yield from (_Site(text, each) for each in list_call_sites(text, name))


def _complete(sites: Sequence[_Site], function: Function) -> list[_Site]:
    """The calls with the arguments that a function has by default; none if one is not of that function."""
    completed = [(site.text, complete_call(site.call, read_parameters(function))) for site in sites]
    made = [_Site(text, call) for text, call in completed if call and specialize(function, "", call)]
    return made if len(made) == len(sites) else []


def reaches_graph(source: Source, function: Function) -> bool:
    """Whether a function runs a graph, by itself or through others of its file."""
    return _find_runner(source, function, RUN) is not None


def _find_runner(source: Source, function: Function, run: str, depth: int = _MAX_CALLS) -> Function | None:
    """The function that calls `run`: this one, or one that it leads to in its file."""
    body = read_body(source, function)
    if contains_identifier(body, run):
        return function
    called = (each for name, fs in source.functions_by_name.items() if contains_identifier(body, name) for each in fs)
    others = (each for each in called if each.start != function.start) if depth else ()
    return next(filter(None, (_find_runner(source, each, run, depth - 1) for each in others)), None)


def _is_own(checkout: Checkout, function: Function, ported: frozenset[str] | None, chain: list[str]) -> bool:
    """Whether all callers of a helper are rows that are ported, or functions on the way."""
    if ported is None:
        return False
    for path in list_host_sources(checkout):
        text = checkout.read(path)
        if not contains_identifier(text, function.name):
            continue
        for caller in parse_source(path, text).functions():
            is_known = caller.name in ported or caller.name in chain
            if not is_known and contains_identifier(text[caller.body_start : caller.body_end], function.name):
                return False
    return True


def _inline(source: Source, link: _Link, site: _Site | None, called: Function, body: str) -> str:
    assert site is not None
    special = specialize(called, body, site.call)
    assert special is not None  # a call of another template is no link
    body, parameters = special
    given = list_given(link.function, site.text)
    made = inline_call(site.text, site.call, body, parameters, list_enumerators(source.text), link.function.name, given)
    if made is None:
        what = f"{called.name} cannot be put in the place of its call in {link.function.name}"
        raise explained("PTR369", what, source.place(link.function.start))
    return made


def _name_variables(source: Source, function: NativeFunction, chain: list[_Link]) -> dict[str, str]:
    """What the schema's arguments and the results are called in the last function of a chain."""
    first = chain[0].function
    parameters = [each.name for each in read_parameters(first)]
    names = [each.name for each in function.arguments]
    if len(parameters) != len(names):
        raise _differ(source, first, parameters, function)
    variables = dict(zip(names, parameters, strict=True))
    outs = [each.name for each in function.arguments if "!" in each.type]
    returned = read_returned(read_body(source, first))
    results = [variables[each] for each in outs] if outs else returned
    variables |= {f"result{i}": each for i, each in enumerate(results)}
    for link, following in pairwise(chain):
        variables = _pass_on(variables, link, following.function, read_borrowed(read_body(source, link.function)))
    return variables


def _differ(source: Source, function: Function, parameters: Sequence[str], row: NativeFunction) -> PorterError:
    """PTR371 for a function that takes other arguments than its row has: one of another release, for the most part."""
    last = [argument.name for argument in row.arguments[len(parameters) :]]
    which = f", as `{'`, `'.join(last)}`" if last and not {*last} & {*parameters} else ""
    what = f"{function.name} takes other arguments than {row.name} has{which}"
    return explained("PTR371", what, source.place(function.start))


def _pass_on(
    variables: Mapping[str, str], link: _Link, called: Function, borrowed: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a caller by the names of the parameters that they are passed as."""
    assert link.site is not None
    converted = read_converted(link.site.text, link.site.call.arguments)
    passed = {
        borrowed.get(source := converted.get(argument, argument), source): parameter.name
        for argument, parameter in zip(link.site.call.arguments, read_parameters(called), strict=True)
    }
    return {name: passed[variable] for name, variable in variables.items() if variable in passed}


def read_body(source: Source, function: Function) -> str:
    """The text between the braces of a function."""
    return source.text[function.body_start + 1 : function.body_end - 1]


def refuse(served: ServedFunction, why: str) -> PorterError:
    """PTR368: why a row has no function to port."""
    place = served.implementation.place if served.implementation else served.function.place
    return explained("PTR368", f"{served.function.name} has no function to port: {why}", place)


_ENUMERATOR = re.compile(r"\b(?:\w+::\w+|MPSGraph[A-Z]\w+)\b")
# A tensor, that converted, or with a dimension where it has none.
_CONVERTED = ("$name", "$name.to($$type)", "$name.view({1})", "$name.view(1)")
_LISTED = (
    "make_tuple($$all)",
    "forward_as_tuple($$all)",
    "tie($$all)",
    "tuple<$$types>($$all)",
    "tuple<$$types>{$$all}",
    "($$all)",
    "{$$all}",
)


def list_enumerators(text: str) -> frozenset[str]:
    """The enumerators that a file has or names."""
    return frozenset((*_ENUMERATOR.findall(text), *_list_own_enumerators(text)))


def _list_own_enumerators(text: str) -> Iterator[str]:
    """The names of a file's own enumerations without a scope."""
    for listed in find_code(text, "enum $$head {$$names}"):
        if not listed["head"].startswith(("class ", "struct ")):
            yield from (each.partition("=")[0].strip() for each in split_at_commas(listed["names"]))


def read_borrowed(body: str) -> dict[str, str]:
    """The references to tensors that optional ones hold, by these."""
    assignments = read_assignments(body)
    owned = {each.name: each.value for each in assignments if each.type.endswith("MaybeOwned<Tensor>")}
    references = {each.name: each.value.removeprefix("*") for each in assignments if each.type == "Tensor&"}
    borrowed = {
        name: match_code(owned.get(holder, ""), "borrow_from_optional_tensor($name)")
        for name, holder in references.items()
    }
    return {name: match["name"] for name, match in borrowed.items() if match}


def read_converted(body: str, names: Iterable[str]) -> dict[str, str]:
    """Those of some variables that stand for another alone, and this one.

    Each is set to it and to that converted or viewed, or once to a dimension that it counts from the end, as the
    functions of 2.14 do before they call the helper that runs the graph (SoftMax.mm).
    """
    converted = {}
    for name in names:
        values = list_values(body, name)
        matches = [match_code(value, *_CONVERTED) for value in values]
        sources = {match["name"] if match else "" for match in matches}
        if len(values) > 1 and len(sources) == 1 and "" not in sources:
            converted[name] = sources.pop()
        elif len(values) == 1 and (wrapped := match_code(values[0], "maybe_wrap_dim($dim, $$rank)")):
            converted[name] = wrapped["dim"]
    return converted


def read_returned(body: str) -> list[str]:
    """The variables that a function returns at its end."""
    end, returned = len(body.rstrip()), list(find_returns(body))
    if not returned or returned[-1].end != end:
        return []
    value = returned[-1]["value"]
    listed = match_code(value, *_LISTED)
    parts = split_at_commas(listed["all"]) if listed else [value]
    moved = [match_code(part, "$name", "move($name)") for part in parts]
    return [each["name"] for each in moved if each] if all(moved) else []


_PRECOMPUTED = re.compile(r"^ +- (\w+) -> (.+)$", re.M)


def find_structured_target(checkout: Checkout, served: ServedFunction) -> Target | None:
    """The function of a structured row, without what it does beside its graph; None if it is not one.

    A list of the schema that torchgen passes as numbers is these in braces; an argument that it passes with others is
    the one of its name. Raises PTR371.
    """
    row, opened = served.function, open_function(checkout, served.implementation)
    if opened is None or opened[1].wrapper is None or not row.structured:
        return None
    source, function = opened
    parameters = [argument.name for argument in read_parameters(function)]
    variables, precomputed = {}, _read_precomputed(checkout, row)
    for argument in row.arguments:
        passed = precomputed.get(argument.name, [argument.name])
        named, parameters = parameters[: len(passed)], parameters[len(passed) :]
        same = [variable for name, variable in zip(passed, named, strict=False) if name == argument.name]
        variables[argument.name] = "".join(same) if argument.name in passed else f"{{{', '.join(named)}}}"
    if parameters or not all(variables.values()):
        raise _differ(source, function, [argument.name for argument in read_parameters(function)], row)
    outs = [argument.name for argument in row.arguments if "!" in argument.type]
    variables |= {f"result{i}": variables[name] for i, name in enumerate(outs)}
    return Target(source.path, function, f"\n  {RUN}();\n", variables, frozenset(), arguments=variables)


def _read_precomputed(checkout: Checkout, row: NativeFunction) -> dict[str, list[str]]:
    """The arguments that are passed as others, and the names of these."""
    text = checkout.read(NATIVE_FUNCTIONS)[row.offset :]
    end = text.find("\n- func:", 1)
    declared = text[: end if end >= 0 else None].partition("\n  precomputed:\n")[2]
    return {name: [each.split()[-1] for each in made.split(",")] for name, made in _PRECOMPUTED.findall(declared)}
