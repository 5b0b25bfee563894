"""The function that a row's launch goes to; of some structured rows, with a body that is the launch alone.

The meta function of a structured row checks the arguments and makes the results. Source: torchgen (`structured`,
`precomputed`), ATen/native/README.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from porter.aten.native_functions import NativeFunction
from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.languages.inlining import read_parameters
from porter.languages.source import parse_source
from porter.loops.program import list_read
from porter.metal.forms.programs import Computation, FormProgram
from porter.plan.native.result_memory import with_direct_results, without_scratch
from porter.plan.native.target import RUN, Target, find_target, with_fed, with_returned

_PRECOMPUTED = re.compile(r"^ +- (\w+) -> (.+)$", re.M)


# What is corrected of the function that is found, in order.
CORRECTIONS: tuple[Callable[[Target], Target], ...] = (
    without_scratch,  # the memory that stands for a result has its name from here on
    with_returned,  # results that only a helper's code returns have names
    with_fed,  # arguments and results that have names are what the graph was fed and wrote
    with_direct_results,  # last, as it asks what is a result
)


def find_own_target(
    checkout: Checkout, served: ServedFunction, found: Computation | PorterError, ported: frozenset[str] | None
) -> Target:
    """The function that a row's launch goes to, with the names that it has. Raises PTR368, PTR369 and PTR371."""
    read = frozenset[str]()
    if isinstance(found, FormProgram):
        target = find_structured_target(checkout, served) if found.form.WHOLE_BODY else None
        if target is not None:
            return target
        read = found.named
    elif not isinstance(found, PorterError):
        read = list_read(found)
    target = find_target(checkout, served, ported, read)
    for correct in CORRECTIONS:
        target = correct(target)
    return target


def find_structured_target(checkout: Checkout, served: ServedFunction) -> Target | None:
    """The function of a structured row, without what it does beside its graph; None if it is not one.

    A list of the schema that torchgen passes as numbers is these in braces; an argument that it passes with others is
    the one of its name. Raises PTR371.
    """
    found, row = served.implementation, served.function
    if found is None or found.function is None or not row.structured:
        return None
    source = parse_source(found.file, checkout.read(found.file))
    function = source.find_again(found.function)
    if function is None or function.wrapper is None:
        return None
    parameters = [each.name for each in read_parameters(function)]
    variables, precomputed = {}, _read_precomputed(checkout, row)
    for each in row.arguments:
        made = precomputed.get(each.name, [each.name])
        taken, parameters = parameters[: len(made)], parameters[len(made) :]
        same = [variable for name, variable in zip(made, taken, strict=False) if name == each.name]
        variables[each.name] = "".join(same) if each.name in made else f"{{{', '.join(taken)}}}"
    if parameters or not all(variables.values()):
        what = f"{function.name} takes other arguments than {row.name}"
        raise PorterError("PTR371", what, source.place(function.start), "See docs/errors/PTR371.md.")
    outs = [each.name for each in row.arguments if "!" in each.type]
    variables |= {f"result{i}": variables[name] for i, name in enumerate(outs)}
    return Target(found.file, function, f"\n  {RUN}();\n", variables, frozenset(), arguments=variables)


def _read_precomputed(checkout: Checkout, row: NativeFunction) -> dict[str, list[str]]:
    """The arguments that are passed as others, and the names of these."""
    text = checkout.read(NATIVE_FUNCTIONS)[row.offset :]
    end = text.find("\n- func:", 1)
    declared = text[: end if end >= 0 else None].partition("\n  precomputed:\n")[2]
    return {name: [each.split()[-1] for each in made.split(",")] for name, made in _PRECOMPUTED.findall(declared)}
