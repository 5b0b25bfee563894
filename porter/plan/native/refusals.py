"""What no kernel is written for, though the programs of a row are known."""

from __future__ import annotations

from porter.aten.native_functions import NativeFunction
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Loop, Op, find_reductions, walk
from porter.loops.optional import is_explained
from porter.loops.program import Programs, Table, list_loaded


def refuse_tables(programs: Programs) -> None:
    """Raises PTR377 for a program that reads constants of the graph, or whose result is one."""
    tables = (isinstance(role, Table) for case in programs.cases for role in case.roles.values())
    if any(tables) or not all(case.nests for case in programs.cases):
        what = f"the graph of {programs.name} has constants that differ by element"
        raise PorterError("PTR377", what, hint="See docs/errors/PTR377.md.")


def refuse_searches(programs: Programs) -> None:
    """Raises PTR360 for a program each of whose results looks for what goes there among all that is given."""
    stores = [store for case in programs.cases for nest in case.nests for store in nest.nest.stores]
    if any(_searches(each) for store in stores for each in find_reductions(store.value)):
        what = f"each result of {programs.name} would look for its elements among all of an operand"
        raise PorterError("PTR360", what, hint="See docs/errors/PTR360.md.")


def refuse_unseen(programs: Programs, function: NativeFunction) -> None:
    """Raises PTR361 for a tensor that may be left out, and that no recorded call gives.

    Also for one that kernels of a case read in every call, or in every one that asks for what is computed from it,
    though the old code is not known to raise without it.
    """
    calls = [call for case in programs.cases for call in case.calls]
    for argument in (each for each in function.arguments if each.type == "Tensor?"):
        if not any(argument.name in call.tensors for call in calls):
            what = f"no recorded call of {programs.name} gives `{argument.name}`"
            raise PorterError("PTR361", what, function.place, "See docs/errors/PTR361.md.")
        for case in programs.cases:
            is_read = argument.name in list_loaded(case)
            if is_read and argument.name not in case.required and not is_explained(case, argument.name):
                where = " and ".join(map(str, case.when))
                of_case = f" where {where}" if where else ""
                what = f"no recorded call of {programs.name}{of_case} leaves out `{argument.name}`"
                raise PorterError("PTR361", what, function.place, "See docs/errors/PTR361.md.")


def _searches(reduction: Expr) -> bool:
    """Whether a reduction keeps the turns whose index is that of the result."""
    turns = frozenset(reduction.reduction.loops)
    conditions = (each.args[0] for each in walk(*reduction.args) if each.op is Op.SELECT)
    tests = [each for condition in conditions for each in walk(condition) if each.op is Op.EQUAL]
    return any(_is_apart(one, other, turns) or _is_apart(other, one, turns) for one, other in (t.args for t in tests))


def _is_apart(of_turn: Expr, of_result: Expr, turns: frozenset[Loop]) -> bool:
    """Whether one index is of turns of a reduction, and another of results alone."""
    return bool(of_turn.loops & turns) and bool(of_result.loops) and not of_result.loops & turns
