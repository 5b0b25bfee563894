"""Plans what a fork gets of a new operator: its rows, its own files, its tests and its documentation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from porter.aten.native_functions import NativeFunctions
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
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
from porter.languages.python_calls import find_expression
from porter.plan.addition import plan_addition
from porter.plan.new_operator.elementwise import ExpressionWish, read_operator
from porter.plan.new_operator.operator import NewOperator
from porter.plan.plan import Draft, Plan

_LISTED = re.compile(
    r"^Pointwise Ops\n.*?\.\. autosummary::\n(?:    :\w+:[^\n]*\n)*\n(?P<names>(?:    \w+\n)+)", re.M | re.S
)


@dataclass(frozen=True, eq=False)
class NewOperatorPlan:
    """An operator of an expression, and the plan that adds it, with a note for each decision that is left."""

    operator: NewOperator
    plan: Plan


def plan_new_operator(checkout: Checkout, wish: ExpressionWish) -> NewOperatorPlan:
    """The change set that adds an operator to a fork, its kernel on MPS included as `porter add` plans any other.

    Raises PTR314 to PTR319, PTR367 and PTR399 for what cannot be added, and what `plan_addition` raises.
    """
    operator = read_operator(wish)
    draft = draft_operator(checkout, operator, "PTR318", "Choose another name.")
    added = plan_addition(draft.fork, operator.schema.name, functor=wish.functor)
    draft = draft.follow(added.changes)
    notes = (*added.notes, *_list_notes(checkout, operator))
    return NewOperatorPlan(operator, replace(added, changes=draft.changes, notes=notes))


def draft_operator(checkout: Checkout, operator: NewOperator, code: str, hint: str) -> Draft:
    """The fork with all that an operator adds to the files that it has, and with the operator's own files.

    Raises an error with `code` and `hint` for an operator or a file that is there already, and what reading and
    formatting raise.
    """
    functions, op = NativeFunctions.read(checkout), operator.schema.name
    if functions.has(op):
        raise PorterError(code, f"the fork has the operator {op} already", functions.find_overloads(op)[0].place, hint)
    for path in operator.files:
        folder, _, name = path.rpartition("/")
        # Not every file system tells names apart by case, and a fork is checked out on those too.
        for other in checkout.list(folder, name[name.rindex(".") :]):
            if other.lower() == path.lower():
                raise PorterError(code, "the fork has this file already", Place(other), hint)
    created = (Edit(path, 0, 0, text) for path, text in format_files(checkout, operator).items())
    draft = Draft(checkout).follow(ChangeSet({}, tuple(created)))
    present = {path: checkout.read(path) for path in _EDITS if checkout.exists(path)}
    return draft.apply(edit for path, text in present.items() for edit in _EDITS[path](text, operator))


def format_files(checkout: Checkout, operator: NewOperator) -> dict[str, str]:
    """The texts of the operator's own files by path, formatted as the fork's files are."""
    return {path: format_block(checkout, path, text) for path, text in operator.files.items()}


def _add_rows(text: str, operator: NewOperator) -> Iterator[Edit]:
    gap = "\n" * max(0, 2 - (len(text) - len(text.rstrip("\n"))))
    yield Edit(NATIVE_FUNCTIONS, len(text), len(text), f"{gap}{operator.write_rows()}")


def _add_derivative(text: str, operator: NewOperator) -> Iterator[Edit]:
    if entry := operator.write_derivative():
        gap = "" if text.endswith("\n\n") or not text else "\n"
        yield Edit(DERIVATIVES, len(text), len(text), gap + entry)


def _add_docs(text: str, operator: NewOperator) -> Iterator[Edit]:
    if operator.docs:
        yield Edit(DOCSTRINGS, len(text), len(text), f"\n{operator.docs}")


def _add_to_list(text: str, operator: NewOperator) -> Iterator[Edit]:
    """The operator among the pointwise functions of the documentation, in their order."""
    listed = _LISTED.search(text) if operator.is_pointwise else None
    if listed is None:
        return
    at = listed.start("names")
    for line in listed["names"].splitlines(keepends=True):
        if line.strip() > operator.schema.name:
            break
        at += len(line)
    yield Edit(FUNCTION_LIST, at, at, f"    {operator.schema.name}\n")


# What is added to each file that the fork has.
_EDITS: Mapping[str, Callable[[str, NewOperator], Iterator[Edit]]] = {
    NATIVE_FUNCTIONS: _add_rows,
    DERIVATIVES: _add_derivative,
    DOCSTRINGS: _add_docs,
    FUNCTION_LIST: _add_to_list,
    OPINFOS: lambda text, operator: insert_opinfo(
        text, operator.schema.name, operator.tests.functions, operator.tests.opinfo
    ),
    TEST_MPS: lambda text, operator: insert_test(text, operator.tests.case),
    EXPECTED_DECOMPOSITIONS: lambda text, operator: insert_decompositions(text, operator.forms),
}


def _list_notes(checkout: Checkout, operator: NewOperator) -> Iterator[str]:
    if not operator.derivatives:
        yield "there is no gradient: sympy could not derive one in the functions that an expression may use"
    for path in _EDITS:
        if not checkout.exists(path):
            missing = "gradient" if path == DERIVATIVES else "entry there"
            yield f"the checkout has no {path}, so the operator has no {missing}"


_OP_DB = re.compile(r"^op_db\b[^=\n]*= *(?P<open>\[)\n", re.M)
_ENTRY = re.compile(r"^    \w*Info(?P<open>\()\s*(['\"])(?P<name>[^'\"\n]+)\2", re.M)
_OP_DB_COMMENT = re.compile(r"(?:^#[^\n]*\n)*\Z", re.M)
_LAST = re.compile(r"^(?:#[^\n]*\n)*(?:instantiate_device_type_tests\(|if __name__ ==)", re.M)


def insert_opinfo(text: str, op: str, functions: str, entry: str) -> Iterator[Edit]:
    """The functions before `op_db`, and the entry, if any, behind the last one whose name comes before."""
    start = _OP_DB.search(text)
    if start is None:
        return
    comment = _OP_DB_COMMENT.search(text, 0, start.start())
    at = comment.start() if comment else start.start()
    yield Edit(OPINFOS, at, at, f"{functions}\n\n")
    if not entry:
        return
    end = find_expression(OPINFOS, text, start.start("open"), start.start("open")).end
    entries = list(_ENTRY.finditer(text, start.end(), end))
    before = [each for each in entries if each["name"] <= op]
    place = start.end()
    if before:
        nearest = max(each["name"] for each in before)
        last = next(each for each in reversed(before) if each["name"] == nearest)
        stop = find_expression(OPINFOS, text, last.start(), last.start("open")).end
        place = text.index("\n", stop) + 1
    yield Edit(OPINFOS, place, place, entry)


def insert_test(text: str, test: str) -> Iterator[Edit]:
    """A test case before what makes tests for devices, at the end of the file."""
    found = _LAST.search(text)
    at = found.start() if found else len(text)
    yield Edit(TEST_MPS, at, at, f"{test}\n\n")


def insert_decompositions(text: str, names: Sequence[str]) -> Iterator[Edit]:
    """The lines in the list of operators without a decomposition, which is sorted."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.rstrip() > f"aten::{names[0]}":
            break
        at += len(line)
    yield Edit(EXPECTED_DECOMPOSITIONS, at, at, "".join(f"aten::{name}\n" for name in names))
