"""A script's cases and comparisons, on torch functions instead of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from porter.core.errors import PorterError
from porter.kernels.checking import trace
from porter.kernels.compare import BY_TYPE
from porter.kernels.script import (
    Case,
    Kind,
    Layout,
    Refusal,
    Right,
    Script,
    Stage,
    Values,
    expect,
    find_difference,
    widened,
)  # fmt: skip

# Of a tensor of (2, 3, 5): its strides, and where it starts.
LAYOUTS = {
    Layout.DENSE: ((15, 5, 1), 0), Layout.STRIDED: ((33, 11, 2), 1), Layout.TRANSPOSED: ((15, 1, 3), 0),
    Layout.CHANNELS_LAST: ((15, 1, 3), 0), Layout.SLICE: ((30, 10, 1), 2),
}  # fmt: skip


def double(x: Tensor) -> Tensor:
    return x * 2


def increase(x: Tensor) -> Tensor:
    return x + 1


def damage(x: Tensor) -> Tensor:
    wrong = double(x).clone()
    wrong[1:, 2:] += 1
    return wrong


def make_inputs(case: Case) -> Values:
    return {"x": replace(case, device="cpu").normal(*case.size)}


def script(*runs: object, refusals: tuple[Refusal, ...] = (), simple: object = None) -> Script:
    """Doubles, then increases, by `runs` instead where they are given."""
    first, second = (*runs, increase) if len(runs) == 1 else runs or (double, increase)
    stages = (
        Stage("double", first, double, ("x",), ("doubled",), simple=simple),  # type: ignore[arg-type]
        Stage("increase", second, increase, ("doubled",)),  # type: ignore[arg-type]
    )
    return Script("doubles", Kind.PIPELINE, stages, make_inputs, ((1, 1), (3, 5)), (), refusals=refusals)


def changed(**fields: object) -> Script:
    return replace(script(), **fields)  # type: ignore[arg-type]


WRONG = {
    "no stage": (lambda: changed(stages=()), "`stages`"),
    "one stage alone": (lambda: changed(stages=script().stages[0]), "`stages`"),
    "numbers as sizes": (lambda: changed(sizes=(1, 257)), "`sizes`"),
    "no sizes": (lambda: changed(sizes=()), "`sizes`"),
    "numbers to time": (lambda: changed(benchmark=(64,)), "`benchmark`"),
    "types as text": (lambda: changed(dtypes=("float32",)), "`dtypes`"),
    "layouts as text": (lambda: changed(layouts=("dense",)), "`layouts`"),
    "a function as refusal": (lambda: changed(refusals=(double,)), "`refusals`"),
    "inputs that are values": (lambda: changed(inputs={"x": torch.ones(3)}), "`inputs`"),
    "inputs that return a list": (lambda: changed(inputs=lambda case: [1]).values(Case((1, 1))), "`inputs`"),
    "a kind as text": (lambda: changed(kind="pipeline"), "`kind`"),
    "a number as tolerance": (lambda: changed(tolerance=1e-3), "`tolerance`"),
    "a stage without a reference": (lambda: Stage("s", double, None, ("x",)), "`reference` of stage s"),  # type: ignore[arg-type]
    "a text instead of names": (lambda: Stage("s", double, double, "x"), "`takes` of stage s"),  # type: ignore[arg-type]
    "a refusal without a call": (lambda: Refusal("x", None), "`call`"),  # type: ignore[arg-type]
    "a name that nothing gives": (lambda: script().stages[0].results(double, {"y": torch.ones(3)}), "takes `x`"),
    "a result that is no tensor": (
        lambda: script().stages[0].results(lambda x: x.numpy(), {"x": torch.ones(3)}), "returns ndarray",
    ),
    "one result too many": (
        lambda: script().stages[0].results(lambda x: (x, x), {"x": torch.ones(3)}), "returns Tensor, Tensor",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("use", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_script(use: Callable[[], object], said: str) -> None:
    with pytest.raises(PorterError) as caught:
        use()
    assert caught.value.code == "PTR287" and said in caught.value.what and caught.value.hint


def test_a_list_of_one_tensor_is_a_result() -> None:
    assert script().stages[0].results(lambda x: [x], {"x": torch.ones(3)})["doubled"].tolist() == [1, 1, 1]


def test_the_largest_size_has_every_type_and_layout_and_the_others_one_case() -> None:
    cases = list(script().cases("cpu"))
    assert [str(case) for case in cases[:3]] == ["1x1-float32-dense", "3x5-float32-dense", "3x5-float32-strided"]
    assert len(cases) == 1 + 3 * 3 + 3
    swept = [str(case).removeprefix("3x5-") for case in cases if case.layout.value in ("channels_last", "expanded")]
    assert swept == ["float32-channels_last", "float32-expanded"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_changes_no_value(layout: Layout) -> None:
    case = Case((3, 5), layout=layout, device="cpu")
    numbers = case.normal(2, 3, 5)
    assert (numbers.stride(), numbers.storage_offset()) == LAYOUTS[layout]
    assert torch.equal(numbers, Case((3, 5), device="cpu").normal(2, 3, 5))
    assert not torch.equal(numbers, case.normal(2, 3, 5, seed=1))


def test_an_expanded_input_repeats_its_first_row_and_indices_stay() -> None:
    case, dense = Case((3, 5), layout=Layout.EXPANDED, device="cpu"), Case((3, 5), device="cpu")
    numbers = case.normal(3, 5)
    assert numbers.stride() == (0, 1) and torch.equal(numbers[2], dense.normal(3, 5)[0])
    assert torch.equal(case.integers(3, 5, below=9), dense.integers(3, 5, below=9))


def test_a_stage_names_the_parameter_that_sizes_its_threadgroups() -> None:
    def run(x: Tensor, scale: float = 1, group: int = 64) -> Tensor:
        return x * scale * group

    stage = Stage("scale", run, double, ("x",))
    assert (stage.group, Stage("double", double, double, ("x",)).group) == ("group", "")
    assert stage.in_groups(33).run(torch.ones(1)).item() == 33
    assert Stage("taken", run, double, ("x", "scale", "group")).group == ""


def test_what_is_right_has_no_difference() -> None:
    for case in script().cases("cpu"):
        script(simple=double).check(case)


def test_a_difference_is_that_of_the_first_wrong_stage() -> None:
    case = Case((3, 5), device="cpu")
    found = script(damage, lambda x: x + 5).find_difference(case)
    assert found is not None
    told = found.difference
    assert (found.stage, told.output, told.index, told.count, told.total) == ("double", "doubled", (1, 2), 6, 15)
    assert float(told.got) == pytest.approx(float(told.expected) + 1)
    assert str(found).startswith("stage double: doubled[1, 2] is ")


def test_the_simple_tier_is_compared_too() -> None:
    with pytest.raises(AssertionError, match="3x5-float32-dense: stage double"):
        script(simple=damage).check(Case((3, 5), device="cpu"))


def test_a_wrong_stage_makes_no_other_one_wrong() -> None:
    found = script(double, lambda x: x).find_difference(Case((3, 5), device="cpu"))
    assert found is not None and found.stage == "increase"


@pytest.mark.parametrize(
    "got", [torch.zeros(3), torch.zeros(2, 2), torch.zeros(2, 3, dtype=torch.float16)], ids=["rank", "shape", "type"]
)
def test_another_shape_or_type_is_a_difference(got: Tensor) -> None:
    expected = torch.zeros(2, 3)
    stage = script().stages[1]
    found = find_difference(stage, {"out": got}, Right({"out": expected}, {"out": expected.double()}), BY_TYPE)
    assert found is not None
    assert (found.difference.expected, found.difference.got) == (
        "(2, 3) torch.float32",
        f"{tuple(got.shape)} {got.dtype}",
    )


def test_values_are_widened_but_numbers_and_integers_stay() -> None:
    wide = widened({"x": torch.ones(2, dtype=torch.float16), "n": torch.ones(2, dtype=torch.int32), "eps": 0.5})
    assert (wide["x"].dtype, wide["n"].dtype, wide["eps"]) == (torch.float64, torch.int32, 0.5)


def refuse(what: str) -> Refusal:
    return Refusal("weight", lambda: expect(False, what))


def test_a_refusal_has_to_name_the_argument() -> None:
    script(refusals=(refuse("weight is wrong"),)).check_refusals()
    with pytest.raises(AssertionError, match="`weight` is not named: something is wrong"):
        script(refusals=(refuse("something is wrong"),)).check_refusals()
    with pytest.raises(AssertionError, match="a wrong `weight` is not refused"):
        script(refusals=(Refusal("weight", lambda: None),)).check_refusals()


def test_a_trace_goes_on_from_stage_to_stage_and_stops_at_the_first_that_is_wrong() -> None:
    told = [(each.case, each.stage, each.difference is None) for each in trace(script(damage), "cpu")]
    assert told == [
        ("1x1-float32-dense", "double", True),
        ("1x1-float32-dense", "increase", True),
        ("3x5-float32-dense", "double", False),
    ]


def test_a_trace_of_what_is_right_has_every_stage_of_every_case() -> None:
    told = [(each.stage, each.difference) for each in trace(script(), "cpu")]
    assert told == [("double", None), ("increase", None)] * 13
