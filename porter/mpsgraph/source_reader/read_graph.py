"""Reads the graph of an MPSGraph implementation from its source, for every type and path through its conditions."""

from __future__ import annotations

from collections.abc import Callable

from porter.aten.implementations import Implementation
from porter.aten.native_functions import NativeFunction
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.mpsgraph.graph import Case, Graph, Refusal
from porter.mpsgraph.source_reader.evaluator import Evaluation
from porter.mpsgraph.source_reader.values import CheckFailed, Paths, UnreachablePath, make_unsupported_error

_MOST_PATHS = 32
_MOST_WALKED = 1024  # with those that are refused or cannot be taken
# Code that does not compile gives values that no construct takes, and helpers that call themselves.
_MISFITS = (
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
    ZeroDivisionError,
    OverflowError,
)


def read_graph(
    checkout: Checkout,
    implementation: Implementation,
    native: NativeFunction,
    out_dtype: Callable[[DType], DType],
) -> Graph:
    """Returns the graph of an implementation, for every element type. `out_dtype` maps input types to output types.

    Raises PTR033 for an unsupported construct, and if no graph is run.
    """
    try:
        return _read_graph(checkout, implementation, native, out_dtype)
    except _MISFITS as error:
        what = f"{implementation.symbol}, whose values do not fit what they are used for ({type(error).__name__})"
        raise make_unsupported_error(what, implementation.place) from error


def _read_graph(
    checkout: Checkout,
    implementation: Implementation,
    native: NativeFunction,
    out_dtype: Callable[[DType], DType],
) -> Graph:
    cases: list[Case] = []
    refusals: list[Refusal] = []
    for dtype in dtypes.ALL:
        pending: list[tuple[bool, ...]] = [()]
        walked = 0
        while pending and len(cases) < _MOST_PATHS * len(dtypes.ALL):
            walked += 1
            if walked > _MOST_WALKED:
                raise make_unsupported_error(f"{implementation.symbol}, which has too many paths", implementation.place)
            paths = Paths(pending.pop())
            try:
                expr = Evaluation(checkout, implementation, paths).run(native, dtype, out_dtype(dtype))
                cases.append(Case(dtype, tuple(paths.taken), expr))
            except UnreachablePath:
                pass
            except CheckFailed as refused:
                refusals.append(Refusal(dtype, refused.text, refused.place))
            pending += paths.pending
    inputs = tuple(a.name for a in native.arguments if a.is_tensor and not a.is_result)
    scalars = tuple(a.name for a in native.arguments if not a.is_tensor)
    return Graph(inputs, scalars, tuple(cases), tuple(dict.fromkeys(refusals)))
