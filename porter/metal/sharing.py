"""One overload for floating elements and integers whose bodies differ in nothing but the type they compute in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from porter.core.dtypes import Kind
from porter.languages.identifiers import rename_identifiers
from porter.metal.expression import uncast_return
from porter.metal.functor import Body
from porter.metal.functor_spec import FunctorSpec

# c10::metal's, whose namespace kernel files use: float for floating elements, at least int for integers.
_WIDER = "opmath_t<T>"


def share_bodies(bodies: Mapping[Kind, Body], spec: FunctorSpec) -> dict[Kind, Body]:
    """Returns the bodies, that of floating elements for integers too if both compute the same in their opmath type."""
    floating, integral = bodies.get(Kind.FLOATING), bodies.get(Kind.INTEGRAL)
    if floating is None or integral is None or not (floating.result == integral.result == "T"):
        return dict(bodies)
    if "::" in "".join(_plain(floating, spec)) or _plain(floating, spec) != _plain(integral, spec):
        return dict(bodies)
    if floating.statements == integral.statements:
        return dict(bodies)
    cast = re.escape(spec.as_float("{}")).replace(r"\{\}", r"([\w.]+)")
    lines = (re.sub(cast, rf"static_cast<{_WIDER}>(\1)", line) for line in floating.statements)
    shared = replace(floating, statements=tuple(line.replace("const float ", f"const {_WIDER} ") for line in lines))
    same = {kind: shared for kind, body in bodies.items() if body.statements == integral.statements}
    return {**bodies, **same, Kind.FLOATING: shared}


def _plain(body: Body, spec: FunctorSpec) -> tuple[str, ...]:
    """Returns the statements without the type that they compute in."""
    text = "\n".join(body.statements)
    for name in (*spec.params, *spec.scalars):
        text = text.replace(spec.as_float(name), name).replace(f"static_cast<T>({name})", name)
        local = re.search(rf"const float (\w+) = {name};\n", text)
        if local:
            text = rename_identifiers(text.replace(local[0], "", 1), {local[1]: name})
    return tuple(uncast_return(line, "T") for line in text.split("\n"))
