"""Host code that expands arguments before a launch."""

from __future__ import annotations

from dataclasses import replace

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import Programs, SymbolicProgram
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.result_types import write_expanded

Sizes = tuple[int, ...]
NAMES = Names({"x1": "a", "result0": "out"}, {"x1": "Tensor"})


def programs(own: tuple[int, ...] | None, shape: tuple[int, ...], result: tuple[int, ...]) -> Programs:
    tensors = {"x1": TensorValue(shape, FLOAT, own), "result0": TensorValue(result, FLOAT)}
    call = Arguments(tensors, {})
    return Programs("made_up", (SymbolicProgram("made_up", (), "x1", (FLOAT,), (), {}, (), call, (call,)),))


def expand(own: tuple[int, ...] | None, sizes: Sizes, result: Sizes, body: str) -> tuple[Names, tuple[str, ...]]:
    return write_expanded(programs(own, sizes, result), replace(NAMES, code=KeptCode(body)))


def test_an_argument_takes_the_first_sizes_of_the_result() -> None:
    body = "TORCH_CHECK(a.dim() >= 2);\nint64_t c = a.size(-1);\nint64_t b = a.size(0);\n"
    names, lines = expand((5, 7), (4, 5, 7), (4, 3, 6), body)
    assert lines == (
        "auto a_sizes = out.sizes().vec();",
        "std::copy(a.sizes().end() - 2, a.sizes().end(), a_sizes.end() - 2);",
        "const auto a_expanded = a.expand(a_sizes);",
    )
    assert names.variables == {"x1": "a_expanded", "result0": "out"}
    assert "c = a_expanded.size(-1)" in names.code.text and "b = a.size(0)" in names.code.text


def test_what_the_function_does_not_check_is_checked() -> None:
    _, lines = expand((5, 7), (4, 5, 7), (4, 3, 6), "auto a_expanded = a;")
    assert lines[0] == "TORCH_CHECK(a.dim() >= 2);"
    assert lines[-1] == "const auto a_expanded_ = a.expand(a_sizes);"


def test_an_argument_of_the_results_shape_is_expanded_as_it() -> None:
    names, lines = expand((1, 3), (4, 3), (4, 3), "")
    assert lines == ("const auto a_expanded = a.expand_as(out);",)
    assert names.show("x1") == "a"  # in messages


def test_what_no_graph_expands_stays() -> None:
    names, lines = expand(None, (4, 3), (4, 3), "int64_t c = a.size(-1);")
    assert names.variables == NAMES.variables and names.show("x1") == "a" and not lines
