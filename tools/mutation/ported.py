"""The operators of any checkout as subjects of mutation, as porter ports them from stubs or recorded runs.

What a port adds to the files of the fork is what mutants change: kernels, REGISTER lines, host code and rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from mutation.subjects import Region, Subject
from porter.aten.declarations import parse_base_name
from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS
from porter.core.progress import ignore
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of
from porter.workflows.stacking import read_old_code


def make_ported_subject(root: Path, op: str) -> Subject:
    """The port of an operator of a checkout. Runs its old code where nothing is recorded of it.

    Raises what `plan_operator` does.
    """
    checkout = Checkout(root, root.name)
    runs = read_old_code(checkout, run=True)
    recorded, programs = runs.graphs(ignore), runs.programs(ignore)
    plan = plan_operator(checkout, op, recorded=recorded, programs=programs)
    target, texts = target_of(plan, parse_base_name(op)), dict(plan.changes.apply())
    old = {file: checkout.read(file) if (root / file).is_file() else "" for file in texts}
    regions = (region for file, text in texts.items() for region in find_added(file, old[file], text))
    return Subject(f"{root.name}/{op}", target, texts, tuple(regions), root=root, is_ported=True)


def find_added(file: str, before: str, after: str) -> Iterator[Region]:
    """The parts of a file that a port adds, without comments and what the preprocessor reads.

    `before` is empty where the file is new. Files that mutants leave alone, as the test lists, have none.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    offsets = [0]
    for line in new:
        offsets.append(offsets[-1] + len(line))
    kinds = _list_kinds(file, new)
    for tag, _, _, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            for kind, lines in groupby(range(start, end), key=lambda at: kinds[at]):
                numbers = list(lines)
                if kind:
                    yield Region(kind, file, offsets[numbers[0]], offsets[numbers[-1] + 1])


def _list_kinds(file: str, lines: list[str]) -> list[str]:
    """What each line is part of; `""` for none that a mutant changes."""
    code = {".metal": "kernel", ".mm": "host"}.get(Path(file).suffix, "yaml" if file == NATIVE_FUNCTIONS else "")
    kinds, goes_on = [], False
    for line in lines:
        is_read_before = goes_on or line.lstrip().startswith(("#", "//"))
        goes_on = is_read_before and line.rstrip().endswith("\\")
        is_registration = code == "kernel" and line.startswith("REGISTER_")
        kinds.append("" if is_read_before else "registration" if is_registration else code)
    return kinds
