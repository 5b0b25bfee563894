"""What a functor computes: every source that can say it, the best first.

The sources: Metal's own function, c10::metal's, ATen's CPU lambda, the forms written out here, the old graph.
The reference is ATen's CPU semantics (NaN, integer width, opmath for half); the overlay judges what is chosen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from porter.aten.metal_functions import Function
from porter.core import dtypes
from porter.core.dtypes import Kind
from porter.core.errors import PorterError
from porter.metal.forms import form_body
from porter.metal.functor import Body, Functor, Origin, merged
from porter.metal.graph_body import of_graph, single_call
from porter.metal.lambda_body import lambda_for, of_lambda, promoted
from porter.metal.subject import Subject
from porter.mpsgraph.operations import by_op, headers_of

_FUNCTION = re.compile(r"(?:precise|::metal|c10::metal)::(\w+)\((?:\{\d\}(?:, )?)+\)")
_EXEMPLARS = {
    Kind.FLOATING: dtypes.FLOAT,
    Kind.INTEGRAL: dtypes.INT,
    Kind.BOOL: dtypes.BOOL,
    Kind.COMPLEX: dtypes.FLOAT2,
}


def choose(subject: Subject, turns: Mapping[Kind, int]) -> Functor:
    """The functor, one body for each kind of element that is served: of its candidates the one whose turn it is.

    A kind that `turns` does not name takes its first. Raises PTR094 when a kind has no source.
    """
    bodies: dict[Kind, Body] = {}
    origins: dict[Kind, Origin] = {}
    for kind in (kind for kind in Kind if any(dtype.kind is kind for dtype in subject.served)):
        leader = Kind.FLOATING if _becomes_float(subject, kind) else kind
        found, turn = candidates(subject, leader), turns.get(leader, 0)
        body = found[turn]
        bodies[kind] = body if leader is kind else promoted(body, subject)
        led = (*origins[leader].kinds, kind) if leader in origins else (kind,)
        origins[leader] = Origin(led, body.origin, turn, len(found))
    scalars = tuple(("A", name) for name in subject.scalars)
    return Functor(subject.names[0], subject.params, scalars, merged(bodies.items()), tuple(origins.values()))


def _becomes_float(subject: Subject, kind: Kind) -> bool:
    """Whether whole numbers are computed as floats: with the very candidate that floats have."""
    return kind in (Kind.INTEGRAL, Kind.BOOL) and subject.result(_EXEMPLARS[kind]) is dtypes.FLOAT


def candidates(subject: Subject, kind: Kind) -> tuple[Body, ...]:
    """What the sources say for a kind of element, each text once. Raises PTR094 where none says anything."""
    different: dict[tuple[str, ...], Body] = {}
    for body in _sources(subject, kind):
        different.setdefault(body.statements, body)
    if different:
        return tuple(different.values())
    reasons = [u.error.what for u in subject.cpu.untranslated if any(d.kind is kind for d in u.dtypes)]
    why = "; ".join(reasons) or "none is read"
    raise PorterError(
        "PTR094",
        f"no source says what {subject.names[0]} computes for {kind.value} elements: {why}",
        subject.cpu.place,
        "Write the functor by hand; porter explain shows what was read.",
    )


def _sources(subject: Subject, kind: Kind) -> Iterator[Body]:
    dtype = _EXEMPLARS[kind]
    made = subject.result(dtype) or dtype
    result = "T" if made == dtype and kind is not Kind.BOOL else made.metal
    if kind is Kind.COMPLEX:
        yield from _complex(subject, result)
    elif kind is Kind.FLOATING:
        yield from _floating(subject, result)
    else:
        yield from _whole(subject, kind, result)


def _floating(subject: Subject, result: str) -> Iterator[Body]:
    call = single_call(subject, dtypes.FLOAT)
    form = by_op()[call.op].msl if call else ""
    if _FUNCTION.fullmatch(form):
        yield _in_float(form, subject, result, "Metal's own function, which the old graph names", headers_of(form))
    function = subject.declared(Kind.FLOATING)
    if function:
        slots = ", ".join(f"{{{at}}}" for at in range(function.arity))
        form = f"c10::metal::{function.name}({slots})"
        yield _in_float(form, subject, result, function.origin, (function.header,))
    yield from _read(subject, Kind.FLOATING, result)
    yield from _written(Kind.FLOATING, subject.names, subject, result)
    yield from _old(subject, Kind.FLOATING, result)


def _whole(subject: Subject, kind: Kind, result: str) -> Iterator[Body]:
    """Integers, or bool, whose result is no float."""
    function = subject.declared(kind)
    if function and not function.float_only:
        yield _called(function, subject, result)
    yield from _read(subject, kind, result)
    yield from _old(subject, kind, result)


def _complex(subject: Subject, result: str) -> Iterator[Body]:
    call = single_call(subject, dtypes.FLOAT2)
    yield from _written(Kind.COMPLEX, (*([call.op] if call else []), *subject.names), subject, result)
    if call and by_op()[call.op].complex_msl:
        value = by_op()[call.op].complex_msl.format(*subject.arguments)
        yield Body((f"return {value};",), result, "complex arithmetic of c10::metal, as the old graph has it")
    function = subject.declared(Kind.COMPLEX)
    if function:
        yield _called(function, subject, result)
    yield from _read(subject, Kind.COMPLEX, result)


def _in_float(form: str, subject: Subject, result: str, origin: str, needed: tuple[str, ...]) -> Body:
    """A function of reals, computed in float whatever the element is, and cast back."""
    value = form.format(*(subject.as_float(name) for name in subject.arguments))
    line = f"return static_cast<T>({value});" if result == "T" else f"return {value};"
    return Body((line,), result, origin, headers=needed)


def _called(function: Function, subject: Subject, result: str) -> Body:
    """A function of the fork's headers, over the elements as they are; beside a scalar it may give that one's type."""
    call = f"c10::metal::{function.name}({', '.join(subject.arguments)})"
    value = f"static_cast<T>({call})" if subject.scalars and result == "T" else call
    return Body((f"return {value};",), result, function.origin, headers=(function.header,))


def _read(subject: Subject, kind: Kind, result: str) -> Iterator[Body]:
    found = lambda_for(subject, kind)
    if found:
        yield of_lambda(found, subject, kind, result)


def _written(kind: Kind, names: Iterable[str], subject: Subject, result: str) -> Iterator[Body]:
    for name in names:
        body = form_body(kind, name, subject.arguments, result)
        if body:
            yield body


def _old(subject: Subject, kind: Kind, result: str) -> Iterator[Body]:
    body = of_graph(subject, _EXEMPLARS[kind], result)
    if body:
        yield body
