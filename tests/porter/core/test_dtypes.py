"""The facts about element types are torch's own."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
import torch
from torch.testing._internal import common_dtype

from porter.aten.opinfo import DTYPE_GROUPS
from porter.core.dtypes import ALL, BY_CPP, BY_METAL, BY_TORCH, SCALAR_TYPES, DType, Kind, ScalarType, promote_types

HEADER = Path(torch.__file__).parent / "include" / "torch" / "headeronly" / "core" / "ScalarType.h"


def of_torch(dtype: ScalarType) -> torch.dtype:
    found: torch.dtype = getattr(torch, dtype.torch)
    return found


@pytest.mark.parametrize("dtype", SCALAR_TYPES, ids=lambda dtype: dtype.aten)
def test_a_type_is_as_torch_has_it(dtype: ScalarType) -> None:
    ours = of_torch(dtype)
    assert ours.itemsize == dtype.size
    assert ours.is_floating_point == (dtype.kind is Kind.FLOATING)
    assert ours.is_complex == (dtype.kind is Kind.COMPLEX)
    assert ours.is_signed == dtype.is_signed
    if dtype.alias:
        assert getattr(torch, dtype.alias) is ours
    if dtype.digits:
        assert torch.finfo(ours).eps == 2.0 ** (1 - dtype.digits)


def test_a_type_has_the_code_and_the_names_of_scalar_type() -> None:
    rows = re.findall(r"_\((?:c10::)?([\w:<> ]+), (\w+)\) */\* (\d+) \*/", HEADER.read_text())
    codes = {name: int(code) for _, name, code in rows}
    assert {each.aten: each.code for each in SCALAR_TYPES} == {each.aten: codes[each.aten] for each in SCALAR_TYPES}


@pytest.mark.parametrize(("left", "right"), list(product(ALL, ALL)), ids=str)
def test_promotion_is_that_of_torch(left: DType, right: DType) -> None:
    promoted = torch.promote_types(of_torch(left), of_torch(right))
    assert of_torch(promote_types(left, right)) is promoted


def test_a_complex_type_has_the_parts_that_torch_gives_it() -> None:
    assert [of_torch(dtype.real) for dtype in ALL] == [of_torch(dtype).to_real() for dtype in ALL]


def test_basic_types_are_those_of_torchs_list() -> None:
    basic = {of_torch(each) for each in SCALAR_TYPES if each.is_basic}
    assert basic == set(common_dtype.all_types_and_complex())


@pytest.mark.parametrize("group", [name for name in DTYPE_GROUPS if hasattr(common_dtype, name)])
def test_a_group_of_types_is_that_of_torchs_common_dtype(group: str) -> None:
    if group not in ("custom_types", "_dispatch_dtypes"):
        assert {getattr(torch, name) for name in DTYPE_GROUPS[group]} == set(getattr(common_dtype, group)())


def test_no_name_is_that_of_two_types() -> None:
    assert len(BY_METAL) == len(BY_TORCH) == len(BY_CPP) == len(ALL) == len({each.mps for each in ALL})
    assert len({each.aten for each in SCALAR_TYPES}) == len({each.code for each in SCALAR_TYPES}) == len(SCALAR_TYPES)
