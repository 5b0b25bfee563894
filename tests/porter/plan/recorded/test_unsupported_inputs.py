"""Flags and numbers of dimensions that no recorded call varies."""

from dataclasses import replace
from pathlib import Path

import pytest

from porter.aten.native_functions import NativeFunctions
from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.core.layout import OPERATIONS
from porter.loops.host_values import (
    Apply,
    Arguments,
    Constant,
    HostValue,
    Named,
    Rank,
    Scalar,
    Size,
    SizeProduct,
    TensorValue,
    WrappedDim,
)  # fmt: skip
from porter.loops.program import Programs, RequiredSize, UnexplainedCall
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.forms import FormProgram
from porter.metal.forms.sort import Kept, Sort
from porter.mpsgraph.conditions import Answered, read_question
from porter.plan.planner import plan_operator
from porter.plan.recorded.unsupported_inputs import (
    _asks_rank,
    _counts_dimensions,
    check_case_shapes,
    refuse_unseen_types,
    write_size_checks,
)
from tests.porter.plan.recorded import fork, left_out


def with_flag(programs: Programs, *values: bool) -> Programs:
    """The programs with each of their calls for each of some values of `keepdim`."""
    cases = tuple(
        replace(
            case,
            calls=tuple(
                replace(call, others={**call.others, "keepdim": value}) for call in case.calls for value in values
            ),
        )
        for case in programs.cases
    )
    return replace(programs, cases=cases)


def test_a_flag_that_all_calls_give_alike_and_the_graph_reads_is_refused(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    known = with_flag(fork.largest(), False)
    with pytest.raises(PorterError, match=r"PTR361 all recorded calls of largest.out give `keepdim` the value False"):
        plan_operator(checkout, "largest", programs=lambda _: known)


def test_a_flag_of_both_values_is_not(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    known = with_flag(fork.largest(), False, True)
    assert plan_operator(checkout, "largest", programs=lambda _: known).complete


def test_an_element_type_whose_calls_all_take_one_case_is_refused(tmp_path: Path) -> None:
    """The port would compute the other case of it by a kernel for the first."""
    function = NativeFunctions.read(fork.copy_fork(tmp_path)).by_name["largest.out"]
    kept, dropped = (with_flag(fork.largest(), flag).cases[0] for flag in (True, False))
    kept, dropped = (
        replace(case, when=(Answered(read_question("keepdim"), flag),))
        for case, flag in ((kept, True), (dropped, False))
    )
    refuse_unseen_types(Programs("largest.out", (kept, dropped)), function)
    what = "PTR361 no recorded call of largest.out on float16 has `keepdim` true"
    with pytest.raises(PorterError, match=what):
        refuse_unseen_types(Programs("largest.out", (replace(kept, dtypes=(FLOAT,)), dropped)), function)


def test_a_number_that_all_calls_give_alike_and_the_graph_reads_is_refused(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    [file] = (each for each in (checkout.root / OPERATIONS).glob("*.mm") if "turn_template" in each.read_text())
    file.write_text(file.read_text().replace("(key, makeGraph)", "(key + std::to_string(times), makeGraph(times))"))
    known = fork.turned()
    with pytest.raises(PorterError, match=r"PTR361 all recorded calls of turned give `times` the value 2"):
        plan_operator(checkout, "turned", programs=lambda _: known)
    calls = tuple(replace(call, others={"times": times}) for call in known.calls for times in (2, 3))
    varied = replace(known, cases=(replace(known.cases[0], calls=calls),))
    assert plan_operator(checkout, "turned", programs=lambda _: varied).complete


def test_a_value_of_lost_calls_alone_is_refused_with_what_was_raised(tmp_path: Path) -> None:
    known = with_flag(fork.largest(), False)
    lost = UnexplainedCall(with_flag(fork.largest(), True).calls[0], "RuntimeError: no such graph")
    what = "PTR418 nothing is known of calls of largest.out with `keepdim` = True: RuntimeError: no such graph"
    with pytest.raises(PorterError, match=what):
        plan_operator(fork.copy_fork(tmp_path), "largest", programs=lambda _: replace(known, lost=(lost,)))


def test_a_lost_call_whose_values_others_have_is_not(tmp_path: Path) -> None:
    known = with_flag(fork.largest(), False, True)
    lost = UnexplainedCall(known.calls[0], "RuntimeError: no such graph")
    plan = plan_operator(fork.copy_fork(tmp_path), "largest", programs=lambda _: replace(known, lost=(lost,)))
    assert plan.complete


def turn_shape(call: Arguments, shape: tuple[int, ...]) -> Arguments:
    tensors = {name: replace(each, shape=shape) for name, each in call.tensors.items()}
    return replace(call, tensors=tensors)


def test_dimensions_of_lost_calls_are_refused(tmp_path: Path) -> None:
    known = fork.turned()
    calls = tuple(turn_shape(known.calls[0], shape) for shape in ((6, 7), (2, 3, 4)))
    lost = UnexplainedCall(turn_shape(known.calls[0], (2, 2, 3, 4)), "no program")
    varied = replace(known, cases=(replace(known.cases[0], calls=calls),))
    assert not plan_operator(fork.copy_fork(tmp_path / "some"), "turned", programs=lambda _: varied).notes
    plan = plan_operator(fork.copy_fork(tmp_path / "lost"), "turned", programs=lambda _: replace(varied, lost=(lost,)))
    what = "self.dim() == 2 || self.dim() == 3,"
    assert what in " ".join(plan.changes.diff().replace("\n+", " ").split())
    assert plan.notes == (
        "turned: `self` of 2 or 3 dimensions only, as in all recorded calls; the port refuses others",
    )


def test_a_flag_that_a_form_does_not_read_is_refused(tmp_path: Path) -> None:
    known = fork.largest()
    order = Sort("self", Kept.MEDIAN, places=False, dtypes=(FLOAT,))
    moved = FormProgram(known.name, order, with_flag(known, False).calls)
    with pytest.raises(PorterError, match=r"PTR361 all recorded calls of largest.out give `keepdim` the value False"):
        plan_operator(fork.copy_fork(tmp_path), "largest", programs=lambda _: moved)


@pytest.mark.parametrize(
    ("value", "by_place"),
    [
        (SizeProduct("self", Constant(1)), True),
        (Apply("*", (Size("self", Constant(-1)), Constant(2))), True),
        (SizeProduct("self"), False),
        (SizeProduct("other", None, Constant(2)), False),
        (Size("self", WrappedDim(Scalar("dim"), "self")), False),
    ],
)
def test_sizes_by_their_places_count_dimensions(value: HostValue, by_place: bool) -> None:
    known = fork.turned()
    case = replace(known.cases[0], numbers=(Named("count", value, 1),), nests=())
    assert _counts_dimensions(replace(known, cases=(case,)), "self") is by_place


def test_a_size_by_its_dimension_is_taken_of_as_many_dimensions_as_were_recorded(tmp_path: Path) -> None:
    plan = plan_operator(fork.copy_fork(tmp_path), "turned", programs=lambda _: fork.turned())
    check = (
        'TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 2, "turned: expected self of 2 dimensions, but got ", self.dim());'
    )
    assert check in plan.changes.diff()
    assert plan.notes == ("turned: `self` of 2 dimensions only, as in all recorded calls; the port refuses others",)


def test_an_element_type_whose_calls_all_leave_a_tensor_out_is_refused(tmp_path: Path) -> None:
    """The port would ignore the tensor where it is given."""
    function = NativeFunctions.read(fork.copy_fork(tmp_path)).by_name["largest.out"]
    [case, *_] = fork.largest().cases
    given = tuple(replace(each, tensors={**each.tensors, "weight": TensorValue((3,), FLOAT)}) for each in case.calls)
    without = tuple(replace(each, others={**each.others, "weight": None}) for each in case.calls)
    asked = Answered(read_question("weight.has_value()"), True)
    weighted = replace(case, when=(asked,), calls=given, dtypes=(FLOAT,))
    plain = replace(case, when=(replace(asked, holds=False),), calls=without)
    what = r"PTR361 no recorded call of largest.out on float16 has `weight.has_value\(\)` true"
    with pytest.raises(PorterError, match=what):
        refuse_unseen_types(Programs("largest.out", (weighted, plain)), function)


def totaled(required: tuple[str, ...]) -> Programs:
    """Programs that read a total which all calls of one case give."""
    known = left_out.centered()
    return replace(known, cases=tuple(replace(each, required=required) for each in known.cases))


def test_a_tensor_that_no_call_of_a_case_leaves_out_is_refused(tmp_path: Path) -> None:
    checkout = left_out.copy_fork(tmp_path)
    what = r"PTR361 no recorded call of centered where !\(training\) leaves out `total`"
    with pytest.raises(PorterError, match=what):
        plan_operator(checkout, left_out.NAME, programs=lambda _: totaled(required=()))


def test_a_tensor_without_which_calls_raise_is_checked(tmp_path: Path) -> None:
    check = 'TORCH_CHECK(has_total, "centered: expected total to be given");'
    for name, known, count in (
        ("other", "mask[0] || has_total", 1),
        ("case", "training || has_total", 0),
        ("own", "has_total", 0),
    ):
        checkout = left_out.copy_fork(tmp_path / name)
        host = checkout.root / OPERATIONS / "Centered.mm"
        host.write_text(host.read_text().replace("TORCH_CHECK(training || has_total,", f"TORCH_CHECK({known},"))
        plan = plan_operator(checkout, left_out.NAME, programs=lambda _: totaled(required=("total",)))
        assert plan.complete and plan.changes.diff().count(f"+    {check}") == count


def test_a_tensor_that_only_one_result_needs_is_checked_where_that_is_asked_for(tmp_path: Path) -> None:
    """The gradient of batch_norm's bias needs no running mean, its others do: Normalization.mm of 2026."""
    checkout = left_out.copy_fork(tmp_path)
    plan = plan_operator(checkout, left_out.NAME, programs=lambda _: Programs(left_out.NAME, (left_out.summed(),)))
    assert plan.complete
    [check] = [line for line in plan.changes.diff().splitlines() if "expected weight to be given" in line]
    assert check.strip("+ ") == 'TORCH_CHECK(has_weight || !sums.defined(), "centered: expected weight to be given");'
    unknown = Programs(left_out.NAME, (replace(left_out.summed(), required=()),))
    with pytest.raises(PorterError, match=r"PTR361 no recorded call of centered leaves out `weight`"):
        plan_operator(checkout, left_out.NAME, programs=lambda _: unknown)


@pytest.mark.parametrize(
    ("condition", "asks"),
    [
        ("self.dim() == 2", True),
        ("self.dim() < 3", True),
        ("names_last_dims(dim, self.dim())", False),
        ("maybe_wrap_dim(dim, self.dim()) == self.dim() - 1", False),
    ],
)
def test_a_condition_on_named_dimensions_asks_for_no_number_of_them(condition: str, asks: bool) -> None:
    known = fork.turned()
    case = replace(known.cases[0], when=(Answered(read_question(condition), True),))
    assert _asks_rank(replace(known, cases=(case,)), "self") is asks


@pytest.mark.parametrize("when", [(), (Answered(read_question("self.dim() == 3"), True),)])
def test_a_case_that_takes_sizes_by_their_places_takes_as_many_dimensions_as_its_own_calls(
    when: tuple[Answered, ...],
) -> None:
    known = fork.turned().cases[0]
    first = replace(known, name="first", when=(Answered(read_question("times == 2"), True), *when))
    first = replace(first, numbers=(Named("count", Size("self", Constant(2)), 1),), nests=())
    first = replace(first, calls=(turn_shape(known.calls[0], (2, 3, 4)),))
    last = replace(first, name="last", numbers=(), calls=(turn_shape(known.calls[0], (6, 7)), *first.calls))
    names = Names({"self": "self"}, {})
    launches = [Launch((Line("run(first);"),)), Launch((Line("run(last);"),))]
    checked, notes = check_case_shapes(Programs("turned", (first, last)), names, launches, has_meta=False)
    assert checked[1] == launches[1]
    if when:
        assert checked[0] == launches[0] and not notes
    else:
        words = '"turned: expected self of 3 dimensions, but got ", self.dim()'
        assert checked[0].write() == f"TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 3, {words});\nrun(first);"
        what = "turned: `self` of 3 dimensions only, as in all recorded calls of a case; the port refuses others"
        assert notes == (what,)


@pytest.mark.parametrize(
    ("place", "others", "has_meta", "is_checked"),
    [(0, (6, 7), False, True), (1, (6, 7), False, False), (0, (1, 1), False, False), (0, (6, 7), True, False)],
)
def test_a_tensor_of_which_a_case_reads_one_element_is_checked_to_have_no_more(
    place: int, others: tuple[int, ...], has_meta: bool, is_checked: bool
) -> None:
    """The gradient of a mean: nll_loss2d_backward has no meta function, and the graph takes one of any shape."""
    turned = fork.turned().cases[0]
    store = replace(turned.stores[0], value=fork.read(fork.integer(place)))
    nests = (replace(turned.nests[0], nest=replace(turned.nests[0].nest, stores=(store,)), rows=Constant(42)),)
    call = turn_shape(turned.calls[0], (1, 1))
    mean = replace(turned, name="mean", numbers=(), nests=nests, calls=(call,))
    none = replace(turned, name="none", numbers=(), calls=(turn_shape(turned.calls[0], others),))
    names = Names({"self": "self"}, {})
    launches = [Launch((Line("run(mean);"),)), Launch((Line("run(none);"),))]
    checked, _ = check_case_shapes(Programs("mean", (mean, none)), names, launches, has_meta=has_meta)
    check = 'TORCH_CHECK(self.numel() == 1, "mean: expected self of one element, but got ", self.numel());\n'
    assert checked[0].write() == f"{check if is_checked else ''}run(mean);"
    assert checked[1] == launches[1]


def with_shapes(*shapes: tuple[int, ...]) -> Arguments:
    names = ("grad", "self")
    return Arguments({name: TensorValue(shape, FLOAT) for name, shape in zip(names, shapes, strict=False)}, {})


REQUIRED = RequiredSize("grad", -3, Apply("+", (Size("self", Constant(-3)), Constant(1))), "no such depth at all")


@pytest.mark.parametrize(
    ("calls", "type_", "code", "check"),
    [
        ([((3, 4, 5), (2, 4, 5))], "Tensor", "", "grad.size(-3) == self.size(-3) + 1,"),
        ([((3, 4, 5), (2, 4, 5)), ((4, 5), (4, 5))], "Tensor", "", "grad.dim() < 3 || grad.size(-3) == "),
        ([((3, 4, 5), (2, 4, 5))], "Tensor?", "", "!grad.defined() || grad.size(-3) == "),
        ([((3, 4, 5), (2, 4, 5)), ((4, 4, 5), (2, 4, 5))], "Tensor", "", ""),  # another case's calls do not have it
        ([((4, 5), (4, 5))], "Tensor", "", ""),
        ([((3, 4, 5), (2, 4, 5))], "Tensor", 'TORCH_CHECK(is_right, "no such depth");', ""),
    ],
)
def test_a_size_that_the_cpu_requires_is_checked_where_calls_have_it_and_no_code_asks(
    calls: list[tuple[tuple[int, ...], ...]], type_: str, code: str, check: str
) -> None:
    programs = replace(fork.turned(), name="turned.out", sizes=(REQUIRED,))
    names = Names({"grad": "grad", "self": "self"}, {"grad": type_}, code=KeptCode(code))
    written = [line.text for line in write_size_checks(programs, [with_shapes(*shapes) for shapes in calls], names)]
    assert len(written) == bool(check) and all(line.startswith(f"TORCH_CHECK({check}") for line in written)
    unnamed = replace(names, variables={"grad": "grad"})
    assert not list(write_size_checks(programs, [with_shapes(*shapes) for shapes in calls], unnamed))


def test_a_shape_that_the_cpu_requires_has_one_check() -> None:
    rank, *sizes = (RequiredSize("grad", dim, Size("self", Constant(dim or 0))) for dim in (None, -1, -2))
    rank = replace(rank, value=Rank("self"))
    others = (RequiredSize("grad", -1, Size("self", Constant(1))), RequiredSize("self", None, Rank("grad")))
    programs = replace(fork.turned(), sizes=(rank, *sizes, *others))  # the same in other words
    names = Names({"grad": "slope", "self": "input"}, {})
    [line] = write_size_checks(programs, [with_shapes((2, 3), (2, 3))], names)
    words = '"turned: expected grad to have the sizes of self, ", input.sizes(), ", but got ", slope.sizes()'
    assert line.text == f"TORCH_CHECK(slope.sizes() == input.sizes(), {words});"
    line, *more = write_size_checks(programs, [with_shapes((9, 2, 3), (7, 2, 3))], names)
    words = '"turned: expected grad of ", input.dim(), " dimensions, but got ", slope.dim()'
    assert line.text == f"TORCH_CHECK(slope.dim() == input.dim(), {words});"
    assert len(more) == 2
    assert not list(write_size_checks(programs, [with_shapes((2, 3), (2, 3))], names, ["grad"]))
