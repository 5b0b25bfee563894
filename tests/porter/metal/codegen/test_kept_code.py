"""What is asked of the code around a launch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.loops.host_values import Apply, Constant, HostValue, Rank, Scalar, Size, SizeProduct, WrappedDim
from porter.metal.codegen.host_values import Names, write_value
from porter.metal.codegen.kept_code import KeptCode, is_call

NAMES = Names({"self": "input", "dim": "dim", "eps": "eps"}, {"dim": "int", "eps": "float?"})
ROWS = SizeProduct("self")
ROWS_OF_DIM = Apply("quotient", (ROWS, Size("self", WrappedDim(Scalar("dim"), "self"))))


@pytest.mark.parametrize(
    ("body", "value", "text"),
    [
        ("int64_t rows = input.numel();", ROWS_OF_DIM, "rows / ensure_nonempty_size(input, dim)"),
        ("const auto n = (input\n.dim());", Rank("self"), "input.dim()"),  # it is spelled otherwise
        ("const auto n = input.dim();", SizeProduct("self", Constant(-2)), "c10::numelements_from_dim(n - 2, input.sizes())"),
        ("float n = input.dim();", Rank("self"), "input.dim()"),
        ("auto n = input.dim();\nauto at = maybe_wrap_dim(dim, n);", WrappedDim(Scalar("dim"), "self"), "at"),
        ("auto n = self.dim();\nauto input = cast ? self.to(kInt) : self;", Rank("self"), "n"),
        ("auto n = self.dim();\nauto input = cast ? self.to(kInt) : other;", Rank("self"), "input.dim()"),
        ("auto n = self.dim();\nauto input = self.to(kInt);\ninput = other;", Rank("self"), "input.dim()"),
        ("auto n = self.dim();\nauto input = self.view(-1);", Rank("self"), "input.dim()"),
        ("auto rows = input.numel();\ninput.resize_({2});", ROWS, "input.numel()"),
        ("auto rows = input.numel();\nauto all = input.numel();", ROWS, "rows"),
        ("auto e = eps.has_value() ? eps.value() : 1e-5;", Scalar("eps", 1e-5), "e"),
        ("auto e = eps.has_value() ? eps.value() : 1e-5;", Scalar("eps", 1e-6), "eps.value_or(1e-06)"),
    ],
)  # fmt: skip
def test_values_are_written_as_the_variables_that_hold_them(body: str, value: HostValue, text: str) -> None:
    code = KeptCode(body)
    assert write_value(value, replace(NAMES, code=code, locals=code.locals)) == text


@pytest.mark.parametrize(
    ("body", "is_contiguous"),
    [
        ("Tensor out = at::empty({2}, kFloat);", True),
        ("Tensor out = at::empty({2}, suggested_format);", False),
        ("Tensor out = at::empty({2}, c10::MemoryFormat::ChannelsLast);", False),
        ("Tensor out = at::empty_like(input, MemoryFormat::Contiguous);", True),
        ("Tensor out = at::empty_like(input);", False),
        ("Tensor out;\nif (wide) {\n  out = at::empty({2});\n} else {\n  out = other;\n}", False),
        ("out = at::empty({2});", False),  # it is declared elsewhere
    ],
)
def test_allocated_tensors_are_contiguous_without_a_format(body: str, is_contiguous: bool) -> None:
    assert KeptCode(body).allocates("out") is is_contiguous


def test_what_is_done_before_a_function_is_asked_for_too() -> None:
    assert KeptCode("launch();", "if (a.numel() == 0) return;").asks_empty("b", "a")
    assert not KeptCode("launch(a.numel());").asks_empty("a")


def test_a_call_is_one_with_calls_in_it() -> None:
    assert is_call("c10::numelements_from_dim(a.dim() - static_cast<int64_t>(b.size()), a.sizes())")
    assert not is_call("input.numel() + 1") and not is_call("a.f() / b.f()") and not is_call("x")


def test_what_a_check_that_stays_refuses_is_not_lost() -> None:
    code = KeptCode('TORCH_CHECK(!flag, "flag is not supported"); run(flag);')
    assert code.count("flag") == 2 and code.count("run") == 1
    assert code.raises("RuntimeError: flag is not supported on MPS")
    assert not code.raises("RuntimeError: another reason")
