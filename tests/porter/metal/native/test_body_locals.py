"""Local variables that stand for what is computed again."""

from __future__ import annotations

from porter.metal.native.body_locals import use_variables
from porter.metal.native.host_code import Block, Line, Node, declare

ROWS = declare("rows", "input.numel()", "int64_t")


def test_a_call_is_made_once() -> None:
    width = declare("width", "ensure_nonempty_size(input, dim)", "int64_t")
    launch = Line("launch(input.numel() / ensure_nonempty_size(input, dim));")
    other = Line("launch(my_input.numel(), width_of::ensure_nonempty_size(input, dim));")
    assert list(use_variables([ROWS, width, launch, other])) == [ROWS, width, Line("launch(rows / width);"), other]


def test_a_call_of_calls_is_one() -> None:
    length = declare(
        "length", "c10::numelements_from_dim(a.dim() - static_cast<int64_t>(b.size()), a.sizes())", "int64_t"
    )
    nodes = use_variables([length, Block("if (given) {", (Line(f"launch(1 / {length.value});"),))])
    assert list(nodes) == [length, Block("if (given) {", (Line("launch(1 / length);"),))]


def test_what_is_no_call_alone_stays() -> None:
    nodes = [declare("rows", "input.numel() + 1", "int64_t"), Line("launch(2 * input.numel() + 1);")]
    assert list(use_variables(nodes)) == nodes


def test_what_a_block_declares_is_not_there_after_it() -> None:
    nodes: list[Node] = [Block("if (given) {", (ROWS,)), Line("launch(input.numel());")]
    assert list(use_variables(nodes)) == nodes
