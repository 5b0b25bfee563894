"""`porter migrate --ghstack`: ports as commits, one for each group, of which `ghstack` makes pull requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.git import make_commit
from porter.core.writing import write
from porter.plan.plan import Plan, RejectedCandidate
from porter.report.pull_request import group_pull_request
from porter.verdict.result import Verdict
from porter.workflows.stacking import Grouping, Measured, count_lines, find_family, group_ports

# A plan that stands on those before it, the verdict on exactly this plan, and the candidates that lost.
Port = tuple[Plan, "Verdict | None", Sequence[RejectedCandidate]]


@dataclass(frozen=True)
class Committed:
    """A commit of some ports: its id, the first line of its text, and the files that it changes."""

    ops: tuple[str, ...]
    commit: str
    title: str
    files: tuple[str, ...]


def order_by_family(checkout: Checkout, ops: Sequence[str], needed: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Operators in the order of their commits, and the family of each: those of one follow each other.

    An operator that another calls comes before it, in its family.
    """
    families: dict[str, list[str]] = {}
    for op in ops:
        families.setdefault(find_family(checkout, op), []).append(op)
    ordered: dict[str, str] = {}
    for family, members in families.items():
        for op in members:
            for name in (*needed.get(op, ()), op):
                ordered.setdefault(name, family)
    return ordered


def commit_groups(
    checkout: Checkout, ports: Sequence[Port], families: Mapping[str, str], grouping: Grouping, force: bool
) -> Iterator[Committed]:
    """Writes and commits ports, which stand one on top of the other, a group at a time.

    Raises what `write` and `make_commit` raise: the groups before are committed then.
    """

    def measure(port: Port) -> Measured:
        return Measured(families[port[0].op], count_lines(port[0]))

    for measured, group in group_ports(ports, measure, grouping):
        ops = tuple(plan.op for plan, _, _ in group)
        changes = reduce(ChangeSet.combine, (plan.changes for plan, _, _ in group))
        text = group_pull_request(measured.family, measured.lines, group)
        files = write(Checkout(checkout.root, checkout.origin), changes, force, ops)
        yield Committed(ops, make_commit(checkout.root, files, text), text.partition("\n")[0], files)


def changes_alike(one: Plan, other: Plan) -> bool:
    """Whether two plans of a port change the same lines, wherever these stand."""
    return _count_lines(one.changes.diff(0)) == _count_lines(other.changes.diff(0))


def _count_lines(diff: str) -> Counter[str]:
    return Counter(line for line in diff.splitlines() if _is_change(line))


def _is_change(line: str) -> bool:
    return line[:1] in ("+", "-") and bool(line[1:].strip()) and not line.startswith(("--- ", "+++ "))
