"""Kernels that no test launched."""

from __future__ import annotations

from porter.verdict.build.kernel_files import describe_unlaunched, find_missing_widths, find_unlaunched_pairs
from porter.verdict.result import VerifyTarget

TARGET = VerifyTarget("f", kernels=("f",), pairs=(("float", "float"), ("float2", "float2")))


def test_kernels_that_no_test_launched_are_named() -> None:
    names = ["f_dense_float_float", "f_strided_float_float", "f_dense_float2_float2"]
    told = describe_unlaunched(names, ["f_dense_float_float", "other"])
    assert told == "no test launched 2 of 3 kernels: f_dense_float2_float2, f_strided_float_float"
    assert describe_unlaunched(names, names) == ""
    assert describe_unlaunched([f"f_{i}" for i in range(10, 24)], []).endswith(": f_10, f_11, f_12, and 11 more")


def test_a_planned_pair_is_launched_by_any_of_its_kernels() -> None:
    assert list(find_unlaunched_pairs(TARGET, ["f_strided_float_float"])) == [("float2", "float2")]
    assert list(find_unlaunched_pairs(TARGET, ["f_dense_float_float_float", "f_dense_float2_float2"])) == []


def test_a_kernel_that_writes_any_type_computes_the_pair_of_what_it_takes() -> None:
    target = VerifyTarget("f", kernels=("f",), pairs=(("float2", "float"), ("half2", "half")))
    assert list(find_unlaunched_pairs(target, ["f_dense_castout_float2"])) == [("half2", "half")]
    assert list(find_unlaunched_pairs(target, ["f_strided_castout_float2", "f_dense_castout_ilp_half2"])) == []
    binary = "f_strided_castout_float2_float"  # returns float2
    assert list(find_unlaunched_pairs(target, [binary])) == [("float2", "float"), ("half2", "half")]


def test_kernels_that_cast_compute_the_pairs_of_an_operator_whose_operands_never_have_one_type() -> None:
    """`where` takes a bool beside every other type."""
    target = VerifyTarget("f", kernels=("f",), pairs=(*TARGET.pairs, ("bool", "bool")))
    casting = ["f_dense_bool_bool", "f_dense_cast_float", "f_strided_cast_float2"]
    assert list(find_unlaunched_pairs(target, casting)) == []
    assert list(find_unlaunched_pairs(target, casting[:2])) == [("float2", "float2")]
    assert list(find_unlaunched_pairs(target, ["f_dense_float2_float2", *casting])) == [("float", "float")]
    two = ["f_dense_float_float", "f_dense_cast_float2"]  # of two types, one that runs as it is tells that both could
    assert list(find_unlaunched_pairs(TARGET, two)) == [("float2", "float2")]


def test_a_kernel_has_both_widths_of_indices_where_others_have() -> None:
    names = [f"gather_{each}_{width}" for each in ("float_int", "float_long", "half_int") for width in ("int", "long")]
    assert not list(find_missing_widths([*names, "gather_combine_float"]))
    assert list(find_missing_widths([*names, "gather_half_long_int"])) == ["gather_half_long_long"]
    assert list(find_missing_widths(names[1:])) == ["gather_float_int_int"]
    tiles = [f"mm_{name}_{width}_32" for name in ("half", "float", "int") for width in ("int", "long")]
    assert not list(find_missing_widths([*tiles, "mm_half_int_64", "mm_float_int_64"]))
    assert list(find_missing_widths([*tiles[1:], "mm_half_int_64"])) == ["mm_half_int_32"]
    # Here they are types of elements.
    assert not list(find_missing_widths(["where_dense_int_int", "where_dense_long_long", "where_dense_half_half"]))
