"""The candidates for a functor's body, best first.

The sources are Metal's own function, c10::metal's, ATen's CPU lambda, the definitions in `operations/*.yaml`, the old
graph, and ATen's CUDA lambda where the CPU's cannot be translated or a person asks for it. The overlay then tests the
chosen one against ATen's CPU semantics (NaN, integer width, opmath for half).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from porter.aten.metal_functions import LIBRARY, MetalFunction
from porter.core import dtypes
from porter.core.dtypes import FLOAT2, DType, Kind
from porter.core.errors import PorterError
from porter.cpu.kernels import CpuKernel
from porter.languages.brackets import ROUND, find_closing_end, is_balanced
from porter.languages.identifiers import rename_identifiers
from porter.metal.expression import Printer
from porter.metal.functor import (
    Body,
    Functor,
    FunctorSpec,
    Origin,
    Provenance,
    Source,
    find_lambda,
    merge_overloads,
    promote_body,
    rounds_halves,
    translate_lambda,
)
from porter.metal.params import PARAMETER
from porter.metal.tidy import share_bodies, specialize_helpers, tidy_body
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Input, Scalar, nodes
from porter.mpsgraph.operations import Operation, by_op, find_headers, find_written_form, helpers, operations

_FUNCTION = re.compile(r"(?:precise|::metal|c10::metal)::(\w+)\((?:\{\d\}(?:, )?)+\)")
_COMPARED, _LOOP = re.compile(r" (?:<=|>=|<|>) (?=-?[\d.])"), re.compile(r"\b(?:for|while) \(")
_TURNED = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "}
_EXEMPLARS = {
    Kind.FLOATING: dtypes.FLOAT,
    Kind.INTEGRAL: dtypes.INT,
    Kind.BOOL: dtypes.BOOL,
    Kind.COMPLEX: dtypes.FLOAT2,
}


def build_functor(spec: FunctorSpec, indexes: Mapping[Kind, int]) -> Functor:
    """Builds the functor, with a body for each supported kind of element: the candidate at the kind's index.

    Kinds missing from `indexes` use their first candidate. Raises PTR094 if a kind has none.
    """
    bodies: dict[Kind, Body] = {}
    origins: dict[Kind, Origin] = {}
    for kind in (kind for kind in Kind if any(dtype.kind is kind for dtype in spec.served)):
        is_kept = any(dtype.kind is kind for dtype in spec.kept)
        leader = Kind.FLOATING if is_kept or _becomes_float(spec, kind) else kind
        found, index = list_candidates(spec, leader), indexes.get(leader, 0)
        body = tidy_body(found[index], leader, spec)
        bodies[kind] = body if leader is kind or is_kept else promote_body(body, spec)
        kinds = (*origins[leader].kinds, kind) if leader in origins else (kind,)
        origins[leader] = Origin(kinds, body.origin, index, len(found))
    scalars = (("A", PARAMETER),) if spec.struct else tuple(("A", name) for name in spec.scalars)
    overloads = merge_overloads(share_bodies(specialize_helpers(bodies), spec).items())
    return Functor(spec.names[0], spec.params, scalars, overloads, tuple(origins.values()))


def note_other_sources(spec: FunctorSpec, origins: Iterable[Origin]) -> Iterator[str]:
    """Yields why another source defines the functor for some kinds, if CUDA's kernel was asked for.

    Raises PTR336 if it defines none.
    """
    if spec.source is not Source.CUDA or spec.cuda is None:
        return
    others = [origin for origin in origins if origin.source.owner != spec.cuda.device]
    if len(others) == len(tuple(origins)):
        reasons = "; ".join(dict.fromkeys(u.error.what for u in spec.cuda.untranslated)) or "its types are others"
        what = f"the CUDA kernel of {spec.names[0]} cannot be translated: {reasons}"
        raise PorterError("PTR336", what, spec.cuda.place, "Leave out --from cuda: other sources may define it.")
    for origin in others:
        found = (u.error.what for u in spec.cuda.untranslated if any(d.kind is origin.kinds[0] for d in u.dtypes))
        why = next(found, "it does not compute them")
        kinds = ", ".join(kind.value for kind in origin.kinds)
        yield f"{kinds} elements are not those of the CUDA kernel ({why}), but of: {origin.source.for_reviewers}"


def _becomes_float(spec: FunctorSpec, kind: Kind) -> bool:
    """Whether integers or bools are computed as floats, and so use the candidates of the floating types."""
    return kind in (Kind.INTEGRAL, Kind.BOOL) and spec.result(_EXEMPLARS[kind]) is dtypes.FLOAT


def list_candidates(spec: FunctorSpec, kind: Kind) -> tuple[Body, ...]:
    """Returns the different bodies that the sources give for a kind of element. Raises PTR094 if there are none.

    The CUDA kernel's are the only ones if they are asked for, and stand last where the CPU's cannot be translated.
    """
    different: dict[tuple[str, ...], Body] = {}
    asked = tuple(_cuda_bodies(spec, kind)) if spec.source is Source.CUDA else ()
    others = () if find_lambda(spec.cpu, kind) else _cuda_bodies(spec, kind)
    for body in asked or chain(_list_bodies(spec, kind), others):
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


def _cuda_bodies(spec: FunctorSpec, kind: Kind) -> Iterator[Body]:
    if spec.cuda:
        yield from _lambda_bodies(spec, kind, _find_result(spec, kind), spec.cuda)


def _find_result(spec: FunctorSpec, kind: Kind) -> str:
    dtype = _EXEMPLARS[kind]
    result_type = spec.result(dtype) or dtype
    return "T" if result_type == dtype and kind is not Kind.BOOL else result_type.metal


def _list_bodies(spec: FunctorSpec, kind: Kind) -> Iterator[Body]:
    result = _find_result(spec, kind)
    if kind is Kind.COMPLEX:
        yield from _complex_bodies(spec, result)
    elif kind is Kind.FLOATING:
        yield from _floating_bodies(spec, result)
    else:
        # Integers or bools, with a result that is not a float
        function = spec.find_function(kind)
        if function and not function.float_only:
            yield _call_directly(function, spec, result)
        yield from _lambda_bodies(spec, kind, result)
        yield from _graph_bodies(spec, kind, result)


def _floating_bodies(spec: FunctorSpec, result: str) -> Iterator[Body]:
    call = find_single_call(spec, dtypes.FLOAT)
    form = by_op()[call.op].msl if call else ""
    if _FUNCTION.fullmatch(form):
        origin = Provenance("Metal's own function, which the old graph names")
        yield _call_in_float(form, spec, result, origin, find_headers(form))
    function = spec.find_function(Kind.FLOATING)
    if function:
        slots = ", ".join(f"{{{at}}}" for at in range(function.arity))
        form = f"c10::metal::{function.name}({slots})"
        yield _call_in_float(form, spec, result, Provenance(function.origin, LIBRARY), (function.header,))
    yield from _lambda_bodies(spec, Kind.FLOATING, result)
    yield from _written_bodies(Kind.FLOATING, spec.names, spec, result)
    yield from _graph_bodies(spec, Kind.FLOATING, result)


def _complex_bodies(spec: FunctorSpec, result: str) -> Iterator[Body]:
    call = find_single_call(spec, dtypes.FLOAT2)
    yield from _written_bodies(Kind.COMPLEX, (*([call.op] if call else []), *spec.names), spec, result)
    if call and by_op()[call.op].complex_msl:
        value = by_op()[call.op].complex_msl.format(*spec.arguments)
        origin = Provenance("complex arithmetic of c10::metal, as the old graph has it")
        yield Body((f"return {value};",), result, origin)
    function = spec.find_function(Kind.COMPLEX)
    if function:
        yield _call_directly(function, spec, result)
    yield from _lambda_bodies(spec, Kind.COMPLEX, result)


def _call_in_float(form: str, spec: FunctorSpec, result: str, origin: Provenance, needed: tuple[str, ...]) -> Body:
    """Returns a call of a real function, computed in float and cast back to the element type."""
    value = form.format(*(spec.as_float(name) for name in spec.arguments))
    line = f"return static_cast<T>({value});" if result == "T" else f"return {value};"
    return Body((line,), result, origin, headers=needed)


def _call_directly(function: MetalFunction, spec: FunctorSpec, result: str) -> Body:
    """Returns a call of a function in the fork's headers, without casting its arguments."""
    call = f"c10::metal::{function.name}({', '.join(spec.arguments)})"
    value = f"static_cast<T>({call})" if spec.scalars and result == "T" else call
    origin = Provenance(function.origin, LIBRARY)
    return Body((f"return {value};",), result, origin, headers=(function.header,))


def _lambda_bodies(spec: FunctorSpec, kind: Kind, result: str, kernel: CpuKernel | None = None) -> Iterator[Body]:
    kernel = kernel or spec.cpu
    found = find_lambda(kernel, kind)
    if found and len(found.params) == len(spec.params):
        body = translate_lambda(found, spec, kind, result, kernel)
        bodies = [body, *_with_digits(body, spec)]
        yield from bodies
        if kind is Kind.FLOATING:
            yield from chain.from_iterable(map(_with_limits_turned, bodies))
        if kind is Kind.FLOATING and result == "T" and len(spec.params) > 1 and rounds_halves(found):
            rounded = translate_lambda(found, spec, kind, result, kernel, as_it_is=True)
            yield replace(rounded, origin=body.origin.changed("rounded after each operation"))
    own = find_lambda(kernel.own, kind) if kernel.own else None
    if own and len(own.params) == len(spec.params):
        body = translate_lambda(own, spec, kind, result, kernel.own)
        yield replace(body, origin=body.origin.changed("with its own functions"))


def _with_digits(body: Body, spec: FunctorSpec) -> Iterator[Body]:
    """The body with functions that keep the digits which it cancels: the fork's own, then a helper.

    ATen's kernels changed to such functions too.
    """
    for row in (each for each in operations().values() if each.instead_of):
        name, form = row.msl.partition("(")[0], row.written.get(Kind.FLOATING)
        if spec.library.find(name.rpartition("::")[2], 1, Kind.FLOATING):
            yield from _with_function(body, row, name, ())
        if form:
            yield from _with_function(body, row, form.text.partition("(")[0], form.helpers)


def _with_limits_turned(body: Body) -> Iterator[Body]:
    """The body with what is equal to a limit, a number in the text, on the other side of it.

    ATen's kernels differ in that from release to release, and the torch that judges may be newer than the fork.
    """
    text = "\n".join(body.statements)
    if _COMPARED.search(text) and not _LOOP.search(text):
        statements = tuple(_COMPARED.sub(lambda sign: _TURNED[sign[0]], line) for line in body.statements)
        yield replace(body, statements=statements, origin=body.origin.changed("with limits on their other sides"))


def _with_function(body: Body, row: Operation, name: str, needed: tuple[str, ...]) -> Iterator[Body]:
    statements = tuple(_replace_spelling(line, row.instead_of, name) for line in body.statements)
    if statements != body.statements:
        texts = (*body.helpers, *(helpers()[each] for each in needed))
        headers = find_headers("\n".join(statements))
        yield replace(
            body, statements=statements, origin=body.origin.changed(f"with {name}"), helpers=texts, headers=headers
        )


def _replace_spelling(line: str, spelled: str, name: str) -> str:
    """Replaces each `f(x) - 1`, as `spelled` has it for `{0}`, by a call of a function."""
    before, after = spelled.split("{0})")
    rest = re.compile(rf"{re.escape(after)}(?:\.0)?f?(?![\w.])")
    for at in reversed([m.start() for m in re.finditer(re.escape(before), line)]):
        end = find_closing_end(line, at + len(before) - 1, ROUND)
        found = rest.match(line, end)
        if found:
            line = f"{line[:at]}{name}({line[at + len(before) : end]}{line[found.end() :]}"
    return line


def _written_bodies(kind: Kind, names: Iterable[str], spec: FunctorSpec, result: str) -> Iterator[Body]:
    for name in names:
        body = form_body(kind, name, spec.arguments, result)
        if body:
            yield body


def _graph_bodies(spec: FunctorSpec, kind: Kind, result: str) -> Iterator[Body]:
    body = translate_graph(spec, _EXEMPLARS[kind], result)
    if body:
        yield body


_WORDS = {
    Kind.COMPLEX: "a formula for complex numbers",
    Kind.FLOATING: "a formula that neither overflows nor cancels",
}


def form_body(kind: Kind, function: str, arguments: Sequence[str], result: str) -> Body | None:
    """Returns a functor body that computes a function of `arguments`, or None if the table has no definition.

    `result` is the functor's result type; `T` is the element type.
    """
    written = find_written_form(function, kind)
    if written is None or len(written.arguments) != len(arguments):
        return None
    # The statements of a definition, the value last, one per line; the formatter breaks long ones
    parts = [" ".join(part.split()) for part in written.text.strip().split(";\n")]
    *before, value = [*(f"{part};" for part in parts[:-1]), parts[-1].rstrip(";")]
    type_ = written.type
    given = {n: f"{type_}({argument})" for n, argument in zip(written.arguments, arguments, strict=True)}
    if not before:
        value = rename_identifiers(value, given)
    lines = [*(f"const {type_} {name} = {argument};" for name, argument in given.items() if before), *before]
    last = f"return {_cast(kind, value) if result == 'T' else value};"
    texts = tuple(helpers()[name] for name in written.helpers)
    return Body((*lines, last), result, Provenance(_WORDS[kind], file=written.path), texts)


def _cast(kind: Kind, value: str) -> str:
    """Returns the value cast to the functor's element type."""
    if kind is Kind.FLOATING:
        return f"static_cast<T>({value})"
    parts = value.removeprefix(f"{FLOAT2.metal}(")
    return f"T({parts}" if parts != value and is_balanced(parts[:-1]) else f"T({value})"


def find_single_call(spec: FunctorSpec, dtype: DType) -> Call | None:
    """Returns the only call of the old graph if it takes the inputs and scalars in order, else None."""
    expr = _find_unbranched(spec, dtype)
    expr = expr.arg if isinstance(expr, Cast) else expr
    named = (*spec.inputs, *spec.scalars)
    if isinstance(expr, Call) and tuple(getattr(a, "name", "") for a in expr.args) == named:
        return expr
    return None


def translate_graph(spec: FunctorSpec, dtype: DType, result: str) -> Body | None:
    """Translates the old graph, or returns None if it branches, or computes in another type or of other arguments."""
    expr = _find_unbranched(spec, dtype)
    if expr is None or _misses_width(expr, dtype):
        return None
    if dtype.kind is not Kind.COMPLEX and _takes_parts(expr):
        return None
    floating = dtype.kind is Kind.FLOATING
    names = {n: spec.as_float(p) if floating else p for n, p in zip(spec.inputs, spec.params, strict=True)}
    names |= dict(zip(spec.scalars, spec.given, strict=True))
    printer = Printer(names, lambda call: by_op()[call.op].msl)
    wrap = (lambda value: f"static_cast<T>({value})") if result == "T" else str
    return Body(printer.statements(expr, wrap), result, Provenance("the old graph, translated"))


def _find_unbranched(spec: FunctorSpec, dtype: DType) -> Expr | None:
    """Returns the old graph's expression for a type, or None if it is unknown, branches or is not elementwise."""
    cases = spec.graph.of(dtype) if spec.graph else ()
    if len(cases) != 1 or cases[0].when or not all(_is_known(node, spec) for node in nodes(cases[0].expr)):
        return None
    return cases[0].expr


def _is_known(node: Expr, spec: FunctorSpec) -> bool:
    match node:
        case Input(name=name):
            return name in spec.inputs
        case Scalar(name=name):
            return name in (*spec.scalars, *spec.inputs)
        case Call(op=op):
            return op in by_op()
    return isinstance(node, (Cast, Constant))


def _misses_width(expr: Expr, dtype: DType) -> bool:
    """Whether an integer result is computed in floating point, and so may lose digits."""
    casts = (node.dtype.kind is Kind.FLOATING for node in nodes(expr) if isinstance(node, Cast))
    calls = (by_op()[node.op].is_real for node in nodes(expr) if isinstance(node, Call))
    return dtype.kind is not Kind.FLOATING and (any(casts) or (dtype.kind is not Kind.COMPLEX and any(calls)))


def _takes_parts(expr: Expr) -> bool:
    """Whether the expression takes a real or imaginary part, which a real number does not have in MSL."""
    return any(by_op()[node.op].takes_part for node in nodes(expr) if isinstance(node, Call))
