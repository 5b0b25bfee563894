"""Ports in pull requests: one family each, in order, and few enough lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from porter.workflows.stacking import MOST_LINES, Measured, group_ports

Port = tuple[int, str, int]


def measure(port: Port) -> Measured:
    return Measured(port[1], port[2])


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(1, 900))))
def test_groups_hold_every_port_once_by_family_and_size(made: list[tuple[str, int]]) -> None:
    ports = [(at, family, lines) for at, (family, lines) in enumerate(made)]
    groups = list(group_ports(ports, measure))
    assert sorted(port for _, group in groups for port in group) == ports
    for found, group in groups:
        assert {family for _, family, _ in group} == {found.family}
        assert found.lines == sum(lines for _, _, lines in group)
        assert found.lines <= MOST_LINES or len(group) == 1
        assert group == sorted(group)


def test_a_group_is_as_large_as_it_may_be() -> None:
    ports = [(0, "A", 300), (1, "B", 10), (2, "A", 300), (3, "A", 1)]
    assert [[at for at, _, _ in group] for _, group in group_ports(ports, measure)] == [[0, 2], [3], [1]]
