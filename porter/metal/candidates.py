"""What a functor computes, from the first source that can say it.

The sources: Metal's own function, c10::metal's, ATen's CPU lambda, the old graph.
The reference is ATen's CPU semantics (NaN, integer width, opmath for half); the overlay judges what is chosen here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from porter import dtypes
from porter.aten.cpu_kernels import CpuKernel, Lambda
from porter.aten.meta import TypeRule
from porter.dtypes import DType, Kind
from porter.errors import PorterError
from porter.metal.complex_forms import helper, table
from porter.metal.expression import Printer
from porter.metal.functor import Body, Functor, Looks, merged
from porter.metal.library import Library
from porter.mpsgraph.graph import Call, Case, Cast, Constant, Expr, Graph, Input, Scalar
from porter.mpsgraph.selectors import by_op

_FUNCTION = re.compile(r"(?:precise|::metal|c10::metal)::(\w+)\((?:\{\d\}(?:, )?)+\)")
_COMPLEX_OPERATORS = {
    "addition": "{0} + {1}",
    "subtraction": "{0} - {1}",
    "negative": "-{0}",
    "multiplication": "c10::metal::mul({0}, {1})",
    "division": "c10::metal::div({0}, {1})",
    "conjugate": "c10::metal::conj({0})",
    "equal": "all({0} == {1})",
    "notEqual": "any({0} != {1})",
}


@dataclass(frozen=True)
class Subject:
    """Everything known of what one stub computes. `names`: the functions it may already be known by, its own first."""

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    scalars: tuple[str, ...]
    rule: TypeRule
    cpu: CpuKernel
    graph: Graph | None
    library: Library
    looks: Looks

    @property
    def params(self) -> tuple[str, ...]:
        return self.looks.params(len(self.inputs))

    def result(self, dtype: DType) -> DType | None:
        return self.rule.result(dtype)

    @property
    def served(self) -> tuple[DType, ...]:
        """What the CPU supports, of what Metal has; complex halves where the old path took them too."""
        return tuple(dtype for dtype in dtypes.ALL if self._serves(dtype))

    def _serves(self, dtype: DType) -> bool:
        if self.result(dtype) is None:
            return False
        if dtype is dtypes.HALF2 and self.result(dtype) is dtypes.HALF:
            return False
        if dtype is dtypes.HALF2 and dtypes.FLOAT2 in self.cpu.dtypes:
            return dtype in self.cpu.dtypes or bool(self.graph and self.graph.of(dtype))
        return self.rule.compute(dtype) in self.cpu.dtypes


def choose(subject: Subject) -> Functor:
    """The functor, one body for each kind of element that is served. Raises PTR094 when a kind has no source."""
    served = {dtype.kind for dtype in subject.served}
    bodies = [(kind, _body(subject, kind)) for kind in Kind if kind in served]
    overloads = merged(bodies)
    return Functor(subject.names[0], subject.params, _scalar_params(subject), overloads)


def _scalar_params(subject: Subject) -> tuple[tuple[str, str], ...]:
    return tuple(("A", name) for name in subject.scalars)


def _body(subject: Subject, kind: Kind) -> Body:
    for found in _candidates(subject, kind):
        return found
    reasons = [u.error.what for u in subject.cpu.untranslated if any(d.kind is kind for d in u.dtypes)]
    why = "; ".join(reasons) or "none is read"
    raise PorterError(
        "PTR094",
        f"no source says what {subject.names[0]} computes for {kind.value} elements: {why}",
        subject.cpu.place,
        "Write the functor by hand; porter explain shows what was read.",
    )


def _candidates(subject: Subject, kind: Kind) -> Iterator[Body]:
    if kind is Kind.COMPLEX:
        yield from _complex(subject)
    elif kind is not Kind.FLOATING and subject.result(_EXEMPLARS[kind]) is dtypes.FLOAT:
        floating = _body(subject, Kind.FLOATING)
        yield _promoted(floating)
    else:
        yield from _real(subject, kind)


_EXEMPLARS = {
    Kind.FLOATING: dtypes.FLOAT,
    Kind.INTEGRAL: dtypes.INT,
    Kind.BOOL: dtypes.BOOL,
    Kind.COMPLEX: dtypes.FLOAT2,
}


def _real(subject: Subject, kind: Kind) -> Iterator[Body]:
    dtype = _EXEMPLARS[kind]
    result = "T" if subject.result(dtype) == dtype and dtype is not dtypes.BOOL else _metal(subject, dtype)
    if kind is Kind.FLOATING:
        single = _single(subject, dtype)
        if single:
            yield _in_float(single, subject, result, "Metal's own function, which the old graph names")
    function = next((f for n in subject.names if (f := subject.library.find(n, _arity(subject), kind))), None)
    if function and (kind is Kind.FLOATING or not function.float_only):
        call = f"c10::metal::{function.name}({_slots(subject)})"
        origin = f"c10::metal::{function.name} of {function.header}"
        if kind is Kind.FLOATING:
            yield _in_float(call, subject, result, origin, function.header)
        else:
            yield Body((f"return {call.format(*_all_params(subject))};",), result, origin, headers=(function.header,))
    chosen = _lambda(subject, kind)
    if chosen:
        yield _of_lambda(chosen, subject, kind, result)
    yield from _of_graph(subject, dtype, result)


def _metal(subject: Subject, dtype: DType) -> str:
    found = subject.result(dtype)
    return found.metal if found else "T"


def _slots(subject: Subject) -> str:
    """`{0}, {1}`: a place for every argument."""
    return ", ".join(f"{{{at}}}" for at in range(_arity(subject)))


def _arity(subject: Subject) -> int:
    return len(subject.inputs) + len(subject.scalars)


def _all_params(subject: Subject) -> tuple[str, ...]:
    return (*subject.params, *subject.scalars)


def _single(subject: Subject, dtype: DType) -> str | None:
    """The MSL form when the old graph is one call of a function of the inputs, in order."""
    call = _single_call(subject, dtype)
    form = by_op()[call.op].msl if call else ""
    return form if _FUNCTION.fullmatch(form) else None


def _single_call(subject: Subject, dtype: DType) -> Call | None:
    cases = subject.graph.of(dtype) if subject.graph else ()
    if len(cases) != 1 or cases[0].when:
        return None
    expr = cases[0].expr
    expr = expr.arg if isinstance(expr, Cast) else expr
    named = (*subject.inputs, *subject.scalars)
    if isinstance(expr, Call) and tuple(getattr(a, "name", "") for a in expr.args) == named:
        return expr
    return None


def _cast(subject: Subject, name: str) -> str:
    return f"{subject.looks.cast}({name})" if subject.looks.cast else f"float({name})"


def _in_float(form: str, subject: Subject, result: str, origin: str, header: str = "") -> Body:
    """A function of reals, computed in float whatever the element is, and cast back."""
    value = form.format(*(_cast(subject, name) for name in _all_params(subject)))
    headers = (header,) if header else _headers(form)
    return Body(
        (f"return static_cast<T>({value});" if result == "T" else f"return {value};",), result, origin, headers=headers
    )


def _headers(text: str) -> tuple[str, ...]:
    return ("c10/metal/special_math.h",) if "c10::metal::erf" in text else ()


def _promoted(floating: Body) -> Body:
    """The same for integers whose result is float: no cast back, locals in float."""
    lines = tuple(_unwrapped(line) for line in floating.statements)
    lines = tuple(re.sub(r"\bT\b", "float", line) for line in lines)
    return Body(lines, "float", floating.origin, floating.helpers, floating.headers)


def _unwrapped(line: str) -> str:
    match = re.fullmatch(r"(\s*)return static_cast<T>\((.*)\);", line, re.S)
    return f"{match[1]}return {match[2]};" if match and _one_call(match[2]) else line


def _one_call(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _lambda(subject: Subject, kind: Kind) -> Lambda | None:
    order = {
        Kind.FLOATING: (dtypes.HALF, dtypes.FLOAT, dtypes.BFLOAT),
        Kind.INTEGRAL: (dtypes.LONG, dtypes.INT, dtypes.UCHAR),
        Kind.BOOL: (dtypes.BOOL,),
        Kind.COMPLEX: (dtypes.FLOAT2,),
    }
    return next((found for dtype in order[kind] if (found := subject.cpu.lambda_for(dtype))), None)


def _of_lambda(found: Lambda, subject: Subject, kind: Kind, result: str) -> Body:
    """ATen's CPU lambda with the house's parameter names; in float where half and bfloat need it."""
    names = dict(zip(found.params, subject.params, strict=True))
    names |= {p: _free(f"{p}_", found.body) for p in subject.params if p not in found.params and p not in names}
    names |= {each.name: subject.scalars[0] for each in found.scalars if subject.scalars}
    lines = tuple(_renamed(line, names) for line in found.body.split("\n"))
    if not found.is_block:
        lines = (f"return {lines[0] if len(lines) == 1 else ' '.join(lines)};",)
    needs_float = (
        kind is Kind.FLOATING
        and result == "T"
        and (found.opmath or "precise::" in found.body or "metal::" in found.body)
    )
    if needs_float and "float a0" not in found.body and not (found.is_block and "opmath_t<T>" in found.body):
        lines = _floated(lines, subject)
    origin = f"ATen's CPU kernel ({found.place})"
    return Body(lines, result, origin, found.helpers, _headers(found.body))


def _renamed(line: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda m: names.get(m[0], m[0]), line)


def _floated(lines: tuple[str, ...], subject: Subject) -> tuple[str, ...]:
    """Statements over T as statements over float: parameters cast on the way in, results on the way out."""
    text = "\n".join(lines)
    text = re.sub(r"return static_cast<T>\((.*)\);", lambda m: f"return {m[1]};" if _one_call(m[1]) else m[0], text)
    text = re.sub(r"\bT\b", "float", text)
    single = len(lines) == 1
    params = _all_params(subject)
    if single:
        text = _renamed(text, {name: _cast(subject, name) for name in params})
    else:
        locals_ = {name: _free(f"{name}_", text) for name in params}
        text = _renamed(text, locals_)
        text = "\n".join([*(f"const float {new} = {_cast(subject, old)};" for old, new in locals_.items()), text])
    text = re.sub(r"return (.*);", lambda m: f"return static_cast<T>({m[1]});", text)
    return tuple(text.split("\n"))


def _free(name: str, text: str) -> str:
    """The name, lengthened until the text has no other use of it."""
    while re.search(rf"\b{name}\b", text):
        name += "f"
    return name


def _of_graph(subject: Subject, dtype: DType, result: str) -> Iterator[Body]:
    """The old graph itself, when it does not branch and computes in the type it should."""
    cases: tuple[Case, ...] = subject.graph.of(dtype) if subject.graph else ()
    if len(cases) != 1 or cases[0].when or _misses_width(cases[0].expr, dtype):
        return
    floating = dtype.kind is Kind.FLOATING
    spelled = {n: _cast(subject, p) if floating else p for n, p in zip(subject.inputs, subject.params, strict=True)}
    spelled |= {name: name for name in subject.scalars}
    printer = Printer(spelled, lambda call: by_op()[call.op].msl)
    wrap = (lambda value: f"static_cast<T>({value})") if result == "T" else str
    yield Body(printer.statements(cases[0].expr, wrap), result, "the old graph, translated")


def _misses_width(expr: Expr, dtype: DType) -> bool:
    """Whether an integer result goes through floating point on the way."""
    if dtype.kind is Kind.FLOATING:
        return False
    match expr:
        case Cast(arg=arg, dtype=to):
            return to.kind is Kind.FLOATING or _misses_width(arg, dtype)
        case Call(args=args):
            return any(_misses_width(arg, dtype) for arg in args)
        case Constant() | Input() | Scalar():
            return False


def _complex(subject: Subject) -> Iterator[Body]:
    result = "T" if subject.result(dtypes.FLOAT2) is dtypes.FLOAT2 else _metal(subject, dtypes.FLOAT2)
    call = _single_call(subject, dtypes.FLOAT2)
    for name in ([call.op] if call else []) + list(subject.names):
        row = table()["functions"].get(name)
        if row is not None and len(subject.inputs) == 1:
            yield _of_complex_row(row, subject, result)
    if call and call.op in _COMPLEX_OPERATORS:
        value = _COMPLEX_OPERATORS[call.op].format(*_all_params(subject))
        yield Body((f"return {value};",), result, "complex arithmetic of c10::metal, as the old graph has it")
    function = next((f for n in subject.names if (f := subject.library.find(n, _arity(subject), Kind.COMPLEX))), None)
    if function:
        value = f"c10::metal::{function.name}({', '.join(_all_params(subject))})"
        yield Body(
            (f"return {value};",),
            result,
            f"c10::metal::{function.name} of {function.header}",
            headers=(function.header,),
        )
    found = _lambda(subject, Kind.COMPLEX)
    if found:
        yield _of_lambda(found, subject, Kind.COMPLEX, result)


def _of_complex_row(row: Any, subject: Subject, result: str) -> Body:
    text = row if isinstance(row, str) else row["body"]
    *before, value = _joined(text)
    param = subject.params[0]
    lines = (f"const float2 z = float2({param}.x, {param}.y);", *before)
    last = f"return T({value});" if result == "T" else f"return {value};"
    helpers = tuple(helper(name) for name in _needed(row))
    return Body((*lines, last), result, "the complex form of the function (porter/metal/complex.yaml)", helpers)


def _joined(text: str) -> list[str]:
    """The statements of a row, the value last, each on one line: the formatter breaks them again."""
    parts = [" ".join(part.split()) for part in text.strip().split(";\n")]
    return [*(f"{part};" for part in parts[:-1]), parts[-1].rstrip(";")]


def _needed(row: Any) -> tuple[str, ...]:
    return () if isinstance(row, str) else tuple(row.get("uses", ()))
