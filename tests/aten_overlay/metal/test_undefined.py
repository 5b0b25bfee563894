"""Integer operations that C++ leaves undefined: what Metal says of them, and never a trap."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.metal.build import Options, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from aten_overlay.metal.passes.undefined import _range, defined

SOURCE = Path(__file__).with_name("undefined.metal")
TYPES: dict[str, type[np.signedinteger[Any]] | type[np.unsignedinteger[Any]]] = {
    "char": np.int8, "uchar": np.uint8, "short": np.int16, "ushort": np.uint16, "int": np.int32, "uint": np.uint32,
    "long": np.int64, "ulong": np.uint64,
}  # fmt: skip
FLOATS: dict[str, type] = {"half": np.float16, "bfloat": np.uint16, "float": np.float32}
SEEDS = (None, 1, 2, 3, 4, 5)
Open = None  # any value, another with every seed
Expected = int | None


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(compile_kernels(SOURCE, host_names(SOURCE)))


def bounds(kind: str) -> tuple[int, int]:
    info = np.iinfo(TYPES[kind])
    return int(info.min), int(info.max)


def wrapped(value: int, kind: str) -> int:
    low, high = bounds(kind)
    return (value - low) % (high - low + 1) + low


def agree(inputs: list[Any], runs: list[list[int]], expected: Iterable[Expected]) -> None:
    """Whether defined results are what is expected in every run, and open ones not always the same."""
    for pair, found, wanted in zip(inputs, zip(*runs, strict=True), expected, strict=True):
        assert len(set(found)) > 1 if wanted is Open else set(found) == {wanted}, (pair, found, wanted)


def check(library: Library, name: str, given: list[np.ndarray], out: type, expected: Iterable[Expected]) -> None:
    """Runs a kernel with every seed."""
    runs = []
    for seed in SEEDS:
        made: np.ndarray = np.zeros(len(given[0]), out)
        library.run(name, [*given, made], [len(made)], shuffle=seed)
        runs.append(made.tolist())
    agree(list(zip(*(array.tolist() for array in given), strict=True)), runs, expected)


def pairs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    low, high = bounds(kind)
    values = sorted({low, low + 1, 0, 1, 7, 100, high - 1, high, *([-1, -7] if low else [])})
    grid = np.array([(a, b) for a in values for b in values], TYPES[kind])
    return grid[:, 0].copy(), grid[:, 1].copy()


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def divided(kind: str, vector: bool, rest: bool) -> list[Expected]:
    """What `/` or `%` yields; narrow scalars are ints when they are divided, elements of vectors are not."""
    least = bounds("int" if np.dtype(TYPES[kind]).itemsize < 4 and not vector else kind)[0]
    expected: list[Expected] = []
    for a, b in zip(*(array.tolist() for array in pairs(kind)), strict=True):
        if b == 0 or (b == -1 and a == least):
            expected.append(Open)
        else:
            expected.append(wrapped(a - b * quotient(a, b) if rest else quotient(a, b), kind))
    return expected


def check_forms(
    library: Library,
    name: str,
    kind: str,
    given: tuple[np.ndarray, np.ndarray],
    expected: Callable[[bool], list[Expected]],
) -> None:
    """Checks the two forms of scalars, then the four of vectors, of whose elements `expected` is asked with True."""
    runs = []
    for seed in SEEDS:
        made = np.zeros((len(given[0]), 6), TYPES[kind])
        library.run(f"{name}_{kind}", [*given, made], [len(made)], shuffle=seed)
        runs.append(made.T.tolist())
    pairs = list(zip(*(array.tolist() for array in given), strict=True))
    for form in range(6):
        agree(pairs, [run[form] for run in runs], expected(form > 1))


@pytest.mark.parametrize("kind", TYPES)
def test_a_division_without_a_quotient_yields_anything(library: Library, kind: str) -> None:
    check_forms(library, "quotient", kind, pairs(kind), lambda vector: divided(kind, vector, False))
    check_forms(library, "rest", kind, pairs(kind), lambda vector: divided(kind, vector, True))


@pytest.mark.parametrize("kind", TYPES)
def test_a_shift_takes_its_amount_modulo_the_width(library: Library, kind: str) -> None:
    bits = 8 * np.dtype(TYPES[kind]).itemsize
    low, high = bounds(kind)
    amounts = [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, *([-1, -5] if low else [])]
    both = [(a, b) for a in (low, high, 1, 5) for b in amounts]
    left, right = (np.array(column, TYPES[kind]) for column in zip(*both, strict=True))

    def shifted(vector: bool, operator: Callable[[int, int], int]) -> list[Expected]:
        width = bits if vector else max(bits, 32)
        return [wrapped(operator(a, b % width), kind) for a, b in both]

    check_forms(library, "left", kind, (left, right), lambda vector: shifted(vector, int.__lshift__))
    check_forms(library, "right", kind, (left, right), lambda vector: shifted(vector, int.__rshift__))


def as_float(value: float, source: str) -> float:
    if source == "half":
        return (
            float(np.float16(value)) if abs(value) < 65520 or not math.isfinite(value) else math.copysign(65504, value)
        )
    single = struct.pack(">f", value)
    return float(struct.unpack(">f", single[:2] + b"\0\0" if source == "bfloat" else single)[0])


def edges(kind: str, source: str) -> list[float]:
    low, high = bounds(kind)
    near = [float(v) * s for v in (low, high) for s in (0.5, 0.99, 1, 1.01, 2)]
    beside = [low - 1, low - 0.5, high + 1, high + 0.5, -1, -0.5, 0.5, 0, 200, -200]
    return [as_float(v, source) for v in (*near, *beside, 1e30, -1e30, math.inf, -math.inf, math.nan)]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("source", FLOATS)
def test_a_float_that_an_integer_cannot_hold_becomes_anything(library: Library, kind: str, source: str) -> None:
    values, (low, high) = edges(kind, source), bounds(kind)
    stored = np.array(values, np.float32)
    given = (stored.view(np.uint32) >> 16).astype(np.uint16) if source == "bfloat" else stored.astype(FLOATS[source])
    wanted = [math.trunc(v) if math.isfinite(v) and low <= math.trunc(v) <= high else Open for v in values]
    check(library, f"to_{kind}_of_{source}", [given], TYPES[kind], wanted)
    if source == "float":
        check(library, f"to_{kind}_of_vector", [given], TYPES[kind], wanted)


def test_constants_are_computed_as_they_are_elsewhere(library: Library) -> None:
    check(library, "constants", [np.zeros(6, np.int32)], np.int32, [3, 12, 256 >> 4, -2, 5, 4])


def test_constants_without_a_value_are_anything(library: Library) -> None:
    check(library, "constants_without_a_value", [np.zeros(6, np.int32)], np.int32, [Open] * 6)


def test_what_is_chosen_in_its_place_is_right(library: Library) -> None:
    a, b = np.array([7, -(2**31), 9, 5], np.int32), np.array([0, -1, 2, 0], np.int32)
    for name in ("selected", "guarded", "chosen"):
        check(library, name, [a, b], np.int32, [-1, -1, 4, -1])


def test_functions_of_the_library_take_any_amount(library: Library) -> None:
    wanted = [0x23456781, 0x12345678, 0x78, 0x12345678, 32, 32, -(2**31)]
    check(library, "functions", [np.full(7, 0x12345678, np.int32)], np.int32, wanted)


@pytest.mark.parametrize("options", [Options(checked=True), Options(arithmetic="fused"), Options(optimization="-O1")],
                         ids=["checked", "fused", "O1"])  # fmt: skip
def test_however_it_is_compiled(options: Options) -> None:
    found = Library(compile_kernels(SOURCE, ["quotient_int", "rest_int", "to_int_of_float", "together"], options))
    check_forms(found, "quotient", "int", pairs("int"), lambda vector: divided("int", vector, False))
    check_forms(found, "rest", "int", pairs("int"), lambda vector: divided("int", vector, True))
    check(found, "to_int_of_float", [np.array([math.nan, 1e10, -3.7], np.float32)], np.int32, [Open, Open, -3])
    check_together(found)


def test_lanes_that_go_together_do_not_trap(library: Library) -> None:
    assert library.runs_in_lockstep("together")
    check_together(library)


def check_together(library: Library) -> None:
    a, b, out = np.arange(1, 257, dtype=np.int32), np.arange(256, dtype=np.int32) % 4, np.zeros(256, np.int32)
    for fibers in (False, True):
        library.run("together", [a, b, out], [256], [128], fibers=fibers)
        wanted = [a[i ^ 1] // b[i ^ 1] for i in range(256) if b[i ^ 1]]
        assert [out[i] for i in range(256) if b[i ^ 1]] == wanted


single = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    single | st.integers(-(2**64), 2**64).map(lambda v: as_float(float(v), "float")), st.sampled_from([8, 16, 32, 64])
)
def test_a_range_holds_what_an_integer_does(value: float, width: int) -> None:
    for signed in (False, True):
        least, most = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
        above, low, high = _range(signed, width, 24)
        first, last = (struct.unpack(">d", bytes.fromhex(bound[2:]))[0] for bound in (low, high))
        compared: Callable[[float, float], bool] = float.__gt__ if above == "ogt" else float.__ge__
        assert (compared(value, first) and value < last) == (least <= math.trunc(value) <= most)
        assert as_float(first, "float") == first and as_float(last, "float") == last


MODULE = """\
define i32 @f(i32 %a, i32 %b) {{
entry:
  {}
  ret i32 %r
}}
"""


def rewritten(line: str) -> str:
    made = defined(MODULE.format(line))
    lines = made.split("entry:\n")[1].split("  ret")[0]
    return "\n".join(line.strip() for line in lines.splitlines())


@pytest.mark.parametrize("line", ["%r = sdiv i32 %a, 7", "%r = sdiv exact i32 %a, 4", "%r = urem i32 %a, -2", "%r = ashr i32 %a, 31",
                                  "%r = add i32 %a, %b"])  # fmt: skip
def test_what_has_a_value_is_left_alone(line: str) -> None:
    assert defined(MODULE.format(line)) == MODULE.format(line)


def test_an_unsigned_division() -> None:
    assert_expected_inline(
        rewritten("%r = udiv i32 %a, %b, !srcloc !3"),
        """\
%pm.1.a = freeze i32 %a
%pm.1.b = freeze i32 %b
%pm.1.open.word = load i64, ptr @pm_open_value, align 8, !invariant.load !{}
%pm.1.open.64 = mul i64 %pm.1.open.word, 3
%pm.1.open.top = lshr i64 %pm.1.open.64, 32
%pm.1.open = trunc i64 %pm.1.open.top to i32
%pm.1.zero = icmp eq i32 %pm.1.b, 0
%pm.1.by = select i1 %pm.1.zero, i32 1, i32 %pm.1.b
%pm.1.made = udiv i32 %pm.1.a, %pm.1.by
%r = select i1 %pm.1.zero, i32 %pm.1.open, i32 %pm.1.made""",
    )


def test_a_shift() -> None:
    assert_expected_inline(
        rewritten("%r = shl nuw nsw i32 %a, %b"),
        """\
%pm.1.by = and i32 %b, 31
%r = shl i32 %a, %pm.1.by""",
    )
    assert_expected_inline(
        rewritten("%r = lshr i32 %a, 37"),
        """\
%pm.1.by = and i32 37, 31
%r = lshr i32 %a, %pm.1.by""",
    )


def test_a_conversion() -> None:
    assert_expected_inline(
        rewritten("%r = fptosi half %h to i32"),
        """\
%pm.1.wide = fpext half %h to float
%pm.1.low = fcmp oge float %pm.1.wide, 0xC1E0000000000000
%pm.1.high = fcmp olt float %pm.1.wide, 0x41E0000000000000
%pm.1.held = and i1 %pm.1.low, %pm.1.high
%pm.1.made = fptosi half %h to i32
%pm.1.open.word = load i64, ptr @pm_open_value, align 8, !invariant.load !{}
%pm.1.open.64 = mul i64 %pm.1.open.word, 3
%pm.1.open.top = lshr i64 %pm.1.open.64, 32
%pm.1.open = trunc i64 %pm.1.open.top to i32
%r = select i1 %pm.1.held, i32 %pm.1.made, i32 %pm.1.open""",
    )


def test_an_operand_without_a_value() -> None:
    assert_expected_inline(
        rewritten("%r = call i32 @g(float noundef poison, i32 %a)"),
        """\
%pm.open.float.bits.word = load i64, ptr @pm_open_value, align 8, !invariant.load !{}
%pm.open.float.bits.64 = mul i64 %pm.open.float.bits.word, 1
%pm.open.float.bits.top = lshr i64 %pm.open.float.bits.64, 32
%pm.open.float.bits = trunc i64 %pm.open.float.bits.top to i32
%pm.open.float = bitcast i32 %pm.open.float.bits to float
%r = call i32 @g(float noundef %pm.open.float, i32 %a)""",
    )
    assert_expected_inline(
        rewritten("%r = phi i32 [ poison, %x ], [ %b, %y ]"),
        """\
%pm.open.i32.word = load i64, ptr @pm_open_value, align 8, !invariant.load !{}
%pm.open.i32.64 = mul i64 %pm.open.i32.word, 1
%pm.open.i32.top = lshr i64 %pm.open.i32.64, 32
%pm.open.i32 = trunc i64 %pm.open.i32.top to i32
%r = phi i32 [ %pm.open.i32, %x ], [ %b, %y ]""",
    )
    aggregate = "%r = insertelement <4 x i32> poison, i32 %a, i32 0"
    assert rewritten(aggregate) == aggregate
