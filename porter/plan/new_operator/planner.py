"""Plans a new operator: its rows, C++ files and tests, then its Metal kernel, as `porter add` plans any other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from porter.aten.native_functions import NativeFunctions
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.formatting import format_block
from porter.core.layout import (
    DERIVATIVES,
    DOCSTRINGS,
    EXPECTED_DECOMPOSITIONS,
    FUNCTION_LIST,
    NATIVE_FUNCTIONS,
    OPINFOS,
    TEST_MPS,
)
from porter.plan.addition import plan_addition
from porter.plan.draft import Draft
from porter.plan.new_operator import tests
from porter.plan.new_operator.functor import replace_functor
from porter.plan.new_operator.operator import NewOperator, Wish, read_operator
from porter.plan.new_operator.sources import write_files, write_rows
from porter.plan.plan import Plan
from porter.plan.test_files import insert_decompositions, insert_opinfo, insert_test

_LISTED = re.compile(
    r"^Pointwise Ops\n.*?\.\. autosummary::\n(?:    :\w+:[^\n]*\n)*\n(?P<names>(?:    \w+\n)+)", re.M | re.S
)


@dataclass(frozen=True, eq=False)
class NewOperatorPlan:
    """The operator, and the plan that adds it, with a note for each decision that is left."""

    operator: NewOperator
    plan: Plan


def plan_new_operator(checkout: Checkout, wish: Wish) -> NewOperatorPlan:
    """The change set that adds an operator to a fork, its kernel on MPS included.

    Raises PTR314 to PTR319, PTR367 and PTR399 for what cannot be added, and what `plan_addition` raises.
    """
    operator = read_operator(wish)
    _refuse_clash(checkout, operator)
    draft = Draft(checkout).follow(_create_files(checkout, operator))
    draft = draft.apply(
        each for path, make in _EDITS.items() if checkout.exists(path) for each in make(checkout, operator)
    )
    added = plan_addition(draft.fork, operator.schema.name)
    draft = draft.follow(added.changes)
    if wish.functor:
        draft, added = replace_functor(draft, added, operator.schema, wish.functor)
    notes = (*added.notes, *_list_notes(checkout, operator))
    return NewOperatorPlan(operator, replace(added, changes=draft.changes, notes=notes))


def _refuse_clash(checkout: Checkout, operator: NewOperator) -> None:
    functions, op = NativeFunctions.read(checkout), operator.schema.name
    if functions.has(op):
        place = functions.find_overloads(op)[0].place
        raise PorterError("PTR318", f"the fork has the operator {op} already", place, "Choose another name.")
    for path in write_files(operator):
        folder, _, name = path.rpartition("/")
        taken = [other for other in checkout.list(folder, name[name.rindex(".") :]) if other.lower() == path.lower()]
        if taken:
            raise PorterError("PTR318", f"the fork has the file {taken[0]} already", hint="Choose another name.")


def _create_files(checkout: Checkout, operator: NewOperator) -> ChangeSet:
    files = {path: format_block(checkout, path, text) for path, text in write_files(operator).items()}
    return ChangeSet({}, tuple(Edit(path, 0, 0, text) for path, text in files.items()))


def _add_rows(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    text = checkout.read(NATIVE_FUNCTIONS)
    gap = "\n" * max(0, 2 - (len(text) - len(text.rstrip("\n"))))
    yield Edit(NATIVE_FUNCTIONS, len(text), len(text), f"{gap}{write_rows(operator.schema)}")


def _add_derivative(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    text, entry = checkout.read(DERIVATIVES), tests.write_derivative(operator)
    if entry:
        gap = "" if text.endswith("\n\n") or not text else "\n"
        yield Edit(DERIVATIVES, len(text), len(text), gap + entry)


def _add_docs(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    text = checkout.read(DOCSTRINGS)
    yield Edit(DOCSTRINGS, len(text), len(text), f"\n{tests.write_docs(operator)}")


def _add_to_list(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    """The operator among the pointwise functions of the documentation, in their order."""
    found = _LISTED.search(checkout.read(FUNCTION_LIST))
    if found is None:
        return
    at = found.start("names")
    for line in found["names"].splitlines(keepends=True):
        if line.strip() > operator.schema.name:
            break
        at += len(line)
    yield Edit(FUNCTION_LIST, at, at, f"    {operator.schema.name}\n")


def _add_opinfo(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    functions, entry = tests.write_functions(operator), tests.write_opinfo(operator)
    return insert_opinfo(checkout.read(OPINFOS), operator.schema.name, functions, entry)


def _add_test(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    return insert_test(checkout.read(TEST_MPS), tests.write_test(operator))


def _add_decompositions(checkout: Checkout, operator: NewOperator) -> Iterator[Edit]:
    op = operator.schema.name
    return insert_decompositions(checkout.read(EXPECTED_DECOMPOSITIONS), (op, f"{op}.out", f"{op}_"))


# What is added to each file that the fork has.
_EDITS = {
    NATIVE_FUNCTIONS: _add_rows,
    DERIVATIVES: _add_derivative,
    DOCSTRINGS: _add_docs,
    FUNCTION_LIST: _add_to_list,
    OPINFOS: _add_opinfo,
    TEST_MPS: _add_test,
    EXPECTED_DECOMPOSITIONS: _add_decompositions,
}


def _list_notes(checkout: Checkout, operator: NewOperator) -> Iterator[str]:
    if not operator.derivatives:
        yield "there is no gradient: sympy could not derive one in the functions that an expression may use"
    for path in _EDITS:
        if not checkout.exists(path):
            missing = "gradient" if path == DERIVATIVES else "entry there"
            yield f"the checkout has no {path}, so the operator has no {missing}"
