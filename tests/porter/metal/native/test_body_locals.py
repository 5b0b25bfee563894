"""Local variables that stand for what is computed again."""

from __future__ import annotations

from porter.metal.native.body_locals import use_variables


def test_a_call_is_made_once() -> None:
    lines = [
        "const int64_t rows = input.numel();",
        "const int64_t width = ensure_nonempty_size(input, dim);",
        "launch(input.numel() / ensure_nonempty_size(input, dim));",
        "launch(my_input.numel(), width_of::ensure_nonempty_size(input, dim));",
    ]
    assert use_variables(lines) == [*lines[:2], "launch(rows / width);", lines[3]]


def test_what_is_no_call_alone_stays() -> None:
    lines = ["const int64_t rows = input.numel() + 1;", "launch(2 * input.numel() + 1);"]
    assert use_variables(lines) == lines


def test_what_a_block_declares_is_not_there_after_it() -> None:
    lines = ["if (given) {", "const int64_t rows = input.numel();", "}", "launch(input.numel());"]
    assert use_variables(lines) == lines
