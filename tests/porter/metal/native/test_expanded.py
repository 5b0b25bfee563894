"""Host code that expands arguments before a launch."""

from __future__ import annotations

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import Programs, SymbolicProgram
from porter.metal.native.host_code import Line
from porter.metal.native.host_values import Names
from porter.metal.native.result_types import write_expanded

NAMES = Names({"x1": "a", "result0": "out"}, {"x1": "Tensor"})


def programs(own: tuple[int, ...] | None, shape: tuple[int, ...], result: tuple[int, ...]) -> Programs:
    tensors = {"x1": TensorValue(shape, FLOAT, own), "result0": TensorValue(result, FLOAT)}
    call = Arguments(tensors, {})
    return Programs("made_up", (SymbolicProgram("made_up", (), "x1", (FLOAT,), (), {}, (), call, (call,)),))


def test_an_argument_takes_the_first_sizes_of_the_result() -> None:
    body = "TORCH_CHECK(a.dim() >= 2);\nint64_t c = a.size(-1);\nint64_t b = a.size(0);\n"
    found = write_expanded(programs((5, 7), (4, 5, 7), (4, 3, 6)), NAMES, body)
    assert found.lines == (
        "auto a_sizes = out.sizes().vec();",
        "std::copy(a.sizes().end() - 2, a.sizes().end(), a_sizes.end() - 2);",
        "const auto a_expanded = a.expand(a_sizes);",
    )
    assert found.names.variables == {"x1": "a_expanded", "result0": "out"}
    assert "c = a_expanded.size(-1)" in found.body and "b = a.size(0)" in found.body


def test_what_the_function_does_not_check_is_checked() -> None:
    found = write_expanded(programs((5, 7), (4, 5, 7), (4, 3, 6)), NAMES, "auto a_expanded = a;")
    assert found.lines[0] == "TORCH_CHECK(a.dim() >= 2);"
    assert found.lines[-1] == "const auto a_expanded_ = a.expand(a_sizes);"


def test_an_argument_of_the_results_shape_is_expanded_as_it() -> None:
    found = write_expanded(programs((1, 3), (4, 3), (4, 3)), NAMES, "")
    assert found.lines == ("const auto a_expanded = a.expand_as(out);",)
    nodes = found.name_arguments([Line('TORCH_CHECK(x, "Expected a_expanded to have");')])
    assert nodes == [Line('TORCH_CHECK(x, "Expected a to have");')]


def test_what_no_graph_expands_stays() -> None:
    found = write_expanded(programs(None, (4, 3), (4, 3)), NAMES, "int64_t c = a.size(-1);")
    assert found.names == NAMES and not found.lines and found.name_arguments([Line("launch();")]) == [Line("launch();")]
