"""Runs the Metal functors of kernels on the host, and compares what they compute with float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.cuda.own import OwnKernel
from porter.metal.own_functor import OwnFunctor, write_own_functor
from porter.verdict.own.check import HEAD, kernel_name, write_kernel

Floats = NDArray[np.float64]
Reference = Callable[..., Floats]
NUMBERS = (0.75, 1.25)
COUNT = 16


@dataclass(frozen=True)
class Functors:
    """The functors of some kernels, compiled in one library."""

    each: Mapping[str, tuple[OwnKernel, OwnFunctor]]
    library: Library


def compile_functors(kernels: Mapping[str, OwnKernel]) -> Functors:
    fork = Checkout(EMBEDDED_FORK, "test")
    return compile_written({name: (own, write_own_functor(fork, own)) for name, own in kernels.items()})


def compile_written(each: Mapping[str, tuple[OwnKernel, OwnFunctor]]) -> Functors:
    names, text = list[str](), HEAD
    for own, functor in each.values():
        text += functor.text + "".join(write_kernel(own, functor, *types) for types in functor.dtypes)
        names += [kernel_name(own, dtype) for dtype, _ in functor.dtypes]
    return Functors(
        each,
        Library(build.compile_kernels(text, names, build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK))),
    )


def find_difference(functors: Functors, name: str, values: list[float], meant: Reference, terms: Reference) -> str:
    """Describes the value that is furthest from float64, or returns "" if each is within 4 units of float's spacing.

    These are units of the sum of the sizes of what is added, which `terms` gives: that many digits cancel.
    """
    own, functor = functors.each[name]
    numbers = NUMBERS[: len(own.scalars)]
    for dtype in (dtype for dtype, _ in functor.dtypes if dtype in (FLOAT, HALF)):
        kind = np.float32 if dtype == FLOAT else np.float16
        inputs = [np.array(values[at * COUNT : (at + 1) * COUNT], kind) for at in range(len(own.elements))]
        wide = [each.astype(np.float64) for each in inputs]
        out = np.zeros(COUNT, kind)
        functors.library.run(kernel_name(own, dtype), [out, np.array((*numbers, 0.0), np.float32), *inputs], [COUNT])
        exact = meant(*wide, *numbers)
        info = np.finfo(kind)
        allowed = 4 * float(np.finfo(np.float32).eps) * abs(terms(*wide, *numbers))
        allowed = allowed + float(info.eps) * abs(exact) + float(info.smallest_subnormal)
        off = abs(out.astype(np.float64) - exact) - allowed
        worst = int(off.argmax())
        if not off[worst] <= 0:
            return f"{dtype} at {[each[worst] for each in wide]}: {out[worst]} for {exact[worst]}"
    return ""
