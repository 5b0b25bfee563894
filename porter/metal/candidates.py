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
from porter.metal.functor_spec import FunctorSpec
from porter.metal.graph_body import of_graph, single_call
from porter.metal.lambda_body import lambda_for, of_lambda, promoted
from porter.mpsgraph.operations import by_op, headers_of

_FUNCTION = re.compile(r"(?:precise|::metal|c10::metal)::(\w+)\((?:\{\d\}(?:, )?)+\)")
_EXEMPLARS = {
    Kind.FLOATING: dtypes.FLOAT,
    Kind.INTEGRAL: dtypes.INT,
    Kind.BOOL: dtypes.BOOL,
    Kind.COMPLEX: dtypes.FLOAT2,
}


def choose(spec: FunctorSpec, turns: Mapping[Kind, int]) -> Functor:
    """The functor, one body for each kind of element that is served: of its candidates the one whose turn it is.

    A kind that `turns` does not name takes its first. Raises PTR094 when a kind has no source.
    """
    bodies: dict[Kind, Body] = {}
    origins: dict[Kind, Origin] = {}
    for kind in (kind for kind in Kind if any(dtype.kind is kind for dtype in spec.served)):
        leader = Kind.FLOATING if _becomes_float(spec, kind) else kind
        found, turn = candidates(spec, leader), turns.get(leader, 0)
        body = found[turn]
        bodies[kind] = body if leader is kind else promoted(body, spec)
        led = (*origins[leader].kinds, kind) if leader in origins else (kind,)
        origins[leader] = Origin(led, body.origin, turn, len(found))
    scalars = tuple(("A", name) for name in spec.scalars)
    return Functor(spec.names[0], spec.params, scalars, merged(bodies.items()), tuple(origins.values()))


def _becomes_float(spec: FunctorSpec, kind: Kind) -> bool:
    """Whether whole numbers are computed as floats: with the very candidate that floats have."""
    return kind in (Kind.INTEGRAL, Kind.BOOL) and spec.result(_EXEMPLARS[kind]) is dtypes.FLOAT


def candidates(spec: FunctorSpec, kind: Kind) -> tuple[Body, ...]:
    """What the sources say for a kind of element, each text once. Raises PTR094 where none says anything."""
    different: dict[tuple[str, ...], Body] = {}
    for body in _sources(spec, kind):
        different.setdefault(body.statements, body)
    if different:
        return tuple(different.values())
    reasons = [u.error.what for u in spec.cpu.untranslated if any(d.kind is kind for d in u.dtypes)]
    why = "; ".join(reasons) or "none could be read"
    raise PorterError(
        "PTR094",
        f"no source defines {spec.names[0]} for {kind.value} elements: {why}",
        spec.cpu.place,
        "Write the functor by hand; `porter explain` shows what was read.",
    )


def _sources(spec: FunctorSpec, kind: Kind) -> Iterator[Body]:
    dtype = _EXEMPLARS[kind]
    made = spec.result(dtype) or dtype
    result = "T" if made == dtype and kind is not Kind.BOOL else made.metal
    if kind is Kind.COMPLEX:
        yield from _complex(spec, result)
    elif kind is Kind.FLOATING:
        yield from _floating(spec, result)
    else:
        yield from _whole(spec, kind, result)


def _floating(spec: FunctorSpec, result: str) -> Iterator[Body]:
    call = single_call(spec, dtypes.FLOAT)
    form = by_op()[call.op].msl if call else ""
    if _FUNCTION.fullmatch(form):
        yield _in_float(form, spec, result, "Metal's own function, which the old graph names", headers_of(form))
    function = spec.declared(Kind.FLOATING)
    if function:
        slots = ", ".join(f"{{{at}}}" for at in range(function.arity))
        form = f"c10::metal::{function.name}({slots})"
        yield _in_float(form, spec, result, function.origin, (function.header,))
    yield from _read(spec, Kind.FLOATING, result)
    yield from _written(Kind.FLOATING, spec.names, spec, result)
    yield from _old(spec, Kind.FLOATING, result)


def _whole(spec: FunctorSpec, kind: Kind, result: str) -> Iterator[Body]:
    """Integers, or bool, whose result is no float."""
    function = spec.declared(kind)
    if function and not function.float_only:
        yield _called(function, spec, result)
    yield from _read(spec, kind, result)
    yield from _old(spec, kind, result)


def _complex(spec: FunctorSpec, result: str) -> Iterator[Body]:
    call = single_call(spec, dtypes.FLOAT2)
    yield from _written(Kind.COMPLEX, (*([call.op] if call else []), *spec.names), spec, result)
    if call and by_op()[call.op].complex_msl:
        value = by_op()[call.op].complex_msl.format(*spec.arguments)
        yield Body((f"return {value};",), result, "complex arithmetic of c10::metal, as the old graph has it")
    function = spec.declared(Kind.COMPLEX)
    if function:
        yield _called(function, spec, result)
    yield from _read(spec, Kind.COMPLEX, result)


def _in_float(form: str, spec: FunctorSpec, result: str, origin: str, needed: tuple[str, ...]) -> Body:
    """A function of reals, computed in float whatever the element is, and cast back."""
    value = form.format(*(spec.as_float(name) for name in spec.arguments))
    line = f"return static_cast<T>({value});" if result == "T" else f"return {value};"
    return Body((line,), result, origin, headers=needed)


def _called(function: Function, spec: FunctorSpec, result: str) -> Body:
    """A function of the fork's headers, over the elements as they are; beside a scalar it may give that one's type."""
    call = f"c10::metal::{function.name}({', '.join(spec.arguments)})"
    value = f"static_cast<T>({call})" if spec.scalars and result == "T" else call
    return Body((f"return {value};",), result, function.origin, headers=(function.header,))


def _read(spec: FunctorSpec, kind: Kind, result: str) -> Iterator[Body]:
    found = lambda_for(spec, kind)
    if found:
        yield of_lambda(found, spec, kind, result)


def _written(kind: Kind, names: Iterable[str], spec: FunctorSpec, result: str) -> Iterator[Body]:
    for name in names:
        body = form_body(kind, name, spec.arguments, result)
        if body:
            yield body


def _old(spec: FunctorSpec, kind: Kind, result: str) -> Iterator[Body]:
    body = of_graph(spec, _EXEMPLARS[kind], result)
    if body:
        yield body
