"""The Metal functor of a CUDA kernel of a person's own, in the style of the fork's elementwise kernels."""

from __future__ import annotations

from dataclasses import dataclass

from porter.aten.meta import Promotion, TypeRule
from porter.aten.metal_functions import Library
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError
from porter.core.formatting import format_block
from porter.core.layout import INDEXING, KERNELS
from porter.cpu.translator import OPMATH
from porter.cuda.own import OwnKernel
from porter.languages.source import parse_source
from porter.metal.functor import (
    Body,
    Functor,
    FunctorSpec,
    FunctorStyle,
    find_lambda,
    functor_text,
    merge_overloads,
    translate_lambda,
)
from porter.metal.macros import Instance, MacroBook, MacroFamily
from porter.metal.params import PARAMETER, Field, ParamsStruct
from porter.metal.registration import Need, register_lines
from porter.metal.tidy import share_bodies, specialize_helpers, tidy_body

_FAMILIES = (MacroFamily.UNARY, MacroFamily.BINARY, MacroFamily.TERNARY)
_FORMATTED_AS = f"{KERNELS}/BinaryKernel.metal"


@dataclass(frozen=True)
class OwnFunctor:
    """A functor and all it needs: its `text`, its types of elements and results, and the struct of several numbers.

    `registrations` are the lines of the fork's macros, or `unregistered` says why there are none.
    """

    name: str
    text: str
    dtypes: tuple[tuple[DType, DType], ...]
    struct: ParamsStruct | None
    registrations: tuple[str, ...]
    unregistered: str = ""


def write_own_functor(fork: Checkout, own: OwnKernel) -> OwnFunctor:
    """Returns the functor of a kernel. Raises PTR337 for more inputs than a functor has."""
    if not 1 <= len(own.elements) <= len(_FAMILIES):
        what = f"it takes {len(own.elements)} inputs, but a functor has one to three"
        raise PorterError("PTR337", what, own.kernel.place, "Write the kernel as a script: `porter kernel new`.")
    struct = _make_struct(own)
    spec = FunctorSpec(
        (own.name,),
        own.elements,
        tuple(each.name for each in own.scalars),
        TypeRule(Promotion.SAME),
        own.kernel,
        None,
        Library.read(fork),
        FunctorStyle.of(""),
        struct,
    )
    bodies = {kind: body for kind in Kind if (body := _translate(spec, kind))}
    scalars = (("A", PARAMETER),) if struct else tuple(("A", name) for name in spec.scalars)
    bodies = {kind: tidy_body(body, kind, spec) for kind, body in bodies.items()}
    functor = Functor(
        own.name, spec.params, scalars, merge_overloads(share_bodies(specialize_helpers(bodies), spec).items()), ()
    )
    helpers = "".join(f"{helper}\n\n" for helper in functor.helpers)
    defined = f"{struct.text()}\n" if struct else ""
    text = format_block(fork, _FORMATTED_AS, helpers + defined + functor_text(functor, spec.style))
    types = tuple((d, _result(bodies[d.kind], d)) for d in own.kernel.dtypes)
    lines, why = _register(fork, spec, types)
    return OwnFunctor(own.name, text, types, struct, lines, why)


def _make_struct(own: OwnKernel) -> ParamsStruct | None:
    if len(own.scalars) < 2:
        return None
    fields = tuple(Field(each.name, "bool" if each.type == "bool" else "double") for each in own.scalars)
    return ParamsStruct(f"{own.name.title().replace('_', '')}Params", fields, opmath=True)


def _translate(spec: FunctorSpec, kind: Kind) -> Body | None:
    found = find_lambda(spec.cpu, kind)
    if found is None:
        return None
    return translate_lambda(found, spec, kind, found.result if found.result in ("bool", "int") else "T")


def _result(body: Body, dtype: DType) -> DType:
    return dtype if body.result in ("T", OPMATH) else dtypes.BY_METAL[body.result]


def _register(fork: Checkout, spec: FunctorSpec, types: tuple[tuple[DType, DType], ...]) -> tuple[tuple[str, ...], str]:
    """Returns the lines that register the functor with the fork's macros, or why it has none for it."""
    plain = _FAMILIES[len(spec.inputs) - 1]
    family = MacroFamily(f"{plain.value}_alpha") if spec.scalars else plain
    book = MacroBook.read(parse_source(INDEXING, fork.read(INDEXING)).macros()) if fork.exists(INDEXING) else None
    if book is None:
        return (), f"the checkout has no {INDEXING}"
    instances = tuple(Instance(d.metal, result.metal, _alpha(spec, d)) for d, result in types)
    try:
        lines = tuple(map(str, register_lines(spec.names[0], (Need(family, instances),), book)))
    except PorterError as error:
        return (), error.what
    return (*(spec.struct.aliases(tuple(d for d, _ in types)) if spec.struct else ()), *lines), ""


def _alpha(spec: FunctorSpec, dtype: DType) -> str | None:
    if not spec.scalars:
        return None
    return spec.struct.alias(dtype) if spec.struct else dtype.opmath.metal
