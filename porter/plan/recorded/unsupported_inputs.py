"""What no kernel is written for, and what no recorded call shows: values of flags and numbers, and ranks."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from porter.aten.native_functions import NativeFunction
from porter.core.errors import explained
from porter.languages.patterns import has_code
from porter.loops import host_values as host
from porter.loops.expressions import Expr, Loop, Op, find_reductions, walk
from porter.loops.host_algebra import apply
from porter.loops.optional import is_explained
from porter.loops.program import (
    ArgumentBuffer,
    Programs,
    RequiredSize,
    SymbolicProgram,
    Table,
    UnexplainedCall,
    list_loaded,
)
from porter.metal.codegen.host_code import Launch, Line
from porter.metal.codegen.host_values import Message, Names, write_check
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import find_numbers
from porter.metal.forms import Computation, FormProgram
from porter.mpsgraph.conditions import Answered, Compared, Present, Question, Undecided, answer

_FLAGS = ("bool", "bool?", "str", "str?")
_NUMBERS = tuple(f"{each}{mark}" for each in ("int", "SymInt", "float", "Scalar") for mark in ("", "?"))
_CHOICES = 4  # values of a whole number, if these are choices rather than sizes


def refuse_unseen_values(programs: Computation, function: NativeFunction, names: Names, port: KeptCode) -> None:
    """Raises PTR361 for a flag or a number that all recorded calls give alike, and that code reads which a port lacks.

    Raises PTR418 where other calls give another value, of which nothing is known.
    """
    for argument in function.arguments:
        variable = names.variables.get(argument.name, "")
        if (
            argument.type not in (*_FLAGS, *_NUMBERS)
            or not variable
            or names.code.count(variable) <= port.count(variable)
        ):
            continue
        values = {repr(call.others.get(argument.name)) for call in programs.calls}
        lost = [each for each in programs.lost if not port.raises(each.why)]
        _refuse_lost(programs.name, function, argument.name, values, lost)
        is_named = isinstance(programs, FormProgram) and argument.name in programs.named
        if len(values) == 1 and not is_named:
            what = f"all recorded calls of {programs.name} give `{argument.name}` the value {values.pop()}"
            raise explained("PTR361", what, function.place)


def refuse_unseen_types(programs: Programs, function: NativeFunction) -> None:
    """Raises PTR361 for a condition that chooses a case, where calls of an element type all answer it alike.

    The port would launch the other case for none of them, and so compute what calls of this type were not seen to.
    """
    for question in dict.fromkeys(each.question for case in programs.cases for each in case.when):
        asked = [(case, {_ask(question, call) for call in case.calls}) for case in programs.cases]
        every = {answer for _, answers in asked for answer in answers if answer is not None}
        for dtype in dict.fromkeys(dtype for case in programs.cases for dtype in case.dtypes):
            own = {answer for case, answers in asked if dtype in case.dtypes for answer in answers}
            if None not in own and every - own:
                missing = "false" if every - own == {False} else "true"
                what = f"no recorded call of {programs.name} on {dtype.torch} has `{question}` {missing}"
                raise explained("PTR361", what, function.place)


def _ask(question: Question, call: host.Arguments) -> bool | None:
    """Whether a condition holds for a call, on arguments or on which tensors are given; None for one on their sizes."""
    try:
        if isinstance(question, Present) and question.name not in call.others:
            return question.name in call.tensors
        return answer(question, call.others)
    except Undecided:
        return None


def _refuse_lost(
    name: str, function: NativeFunction, argument: str, known: set[str], lost: Sequence[UnexplainedCall]
) -> None:
    others = {repr(each.arguments.others.get(argument)): each for each in lost}
    unknown = {value: each for value, each in others.items() if value not in known}
    if unknown and len(known | unknown.keys()) <= _CHOICES:
        value, call = next(iter(unknown.items()))
        what = f"nothing is known of calls of {name} with `{argument}` = {value}: {call.why}"
        raise explained("PTR418", what, function.place)


def check_ranks(programs: Computation, names: Names) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Checks of the dimensions of tensors, where a launch holds for those of recorded calls alone; and what they take
    away, in words.

    Nothing is known of other calls, unless the function refuses them itself.
    """
    limits = dict(_find_ranks(programs, names))
    checks = tuple(_write_rank_check(programs, names, tensor, ranks) for tensor, ranks in limits.items())
    return checks, tuple(_note_ranks(programs, tensor, ranks, "all recorded calls") for tensor, ranks in limits.items())


def check_case_shapes(
    programs: Programs, names: Names, launches: Sequence[Launch], *, has_meta: bool
) -> tuple[list[Launch], tuple[str, ...]]:
    """The launches of cases, each behind checks of the dimensions of tensors whose sizes it takes by their places,
    where calls of that case all have as many of them and others do not; and what that takes away, in words.

    A tensor of which kernels read the first element alone is checked to have one, where calls of other cases give it
    more: nothing else does, without a meta function. So are the sizes that the CPU requires in calls of the case.
    """
    checked, notes = [], []
    for case, launch in zip(programs.cases, launches, strict=True):
        limits = dict(_find_case_ranks(programs, case, names))
        checks = [_write_rank_check(programs, names, tensor, (rank,)) for tensor, rank in limits.items()]
        recorded = "all recorded calls of a case"
        single = [] if has_meta else list(_find_single(programs, case, names))
        checks += [_write_single_check(programs, names, tensor) for tensor in single]
        checks += write_size_checks(programs, case.calls, names, single)
        notes += [_note_ranks(programs, tensor, (rank,), recorded) for tensor, rank in limits.items()]
        checked.append(replace(launch, nodes=(*checks, *launch.nodes)))
    return checked, tuple(dict.fromkeys(notes))


def write_size_checks(
    programs: Computation, calls: Sequence[host.Arguments], names: Names, single: Collection[str] = ()
) -> Iterator[Line]:
    """Checks of the sizes that the CPU requires, where some calls have them all, and the function does not ask.

    Tensors that are `single` have one element in any case.
    """
    code = KeptCode(f"{names.code.before}{names.code.text}")
    required: dict[str, dict[int | None, tuple[RequiredSize, bool]]] = {}
    asked: set[frozenset[host.HostValue]] = set()  # in either direction
    for size in programs.sizes:
        pairs = [(host.evaluate(size.actual, call), host.evaluate(size.value, call)) for call in calls]
        having = [actual == value for actual, value in pairs if actual is not None]
        named = {size.tensor, *host.list_names(size.value)} <= names.variables.keys() - set(single)
        is_new = size.dim not in required.get(size.tensor, {}) and frozenset((size.actual, size.value)) not in asked
        if named and is_new and having and all(having) and not (size.why and code.raises(size.why)):
            required.setdefault(size.tensor, {})[size.dim] = size, len(having) < len(pairs)
            asked.add(frozenset((size.actual, size.value)))
    for tensor, sizes in required.items():
        most = max(len(call.tensors[tensor].shape) for call in calls if tensor in call.tensors)
        other = _find_alike(most, {dim: size.value for dim, (size, _) in sizes.items()})
        if other:
            yield _write_shape_check(programs, tensor, other, names)
        else:
            yield from (_write_size_check(programs, size, is_beside, names) for size, is_beside in sizes.values())


def _find_alike(most: int, required: Mapping[int | None, host.HostValue]) -> str:
    """The tensor whose sizes, `most` at most, are all that is required of another's; "" if there is none."""
    rank = required.get(None)
    if not isinstance(rank, host.Rank) or not isinstance(rank.tensor, str):
        return ""
    alike: dict[int | None, host.HostValue] = {
        dim: host.Size(rank.tensor, host.Constant(dim)) for dim in range(-most, 0)
    }
    return rank.tensor if required == {None: rank, **alike} else ""


def _write_shape_check(programs: Computation, tensor: str, other: str, names: Names) -> Line:
    shape, wanted = host.Sizes(tensor), host.Sizes(other)
    words = (f"expected {tensor} to have the sizes of {other}, ", wanted, ", but got ", shape)
    return _write_check(programs, names, (*_list_unless(tensor, names), host.SameSizes(shape, wanted)), words)


def _list_unless(tensor: str, names: Names) -> tuple[host.HostValue, ...]:
    """That a tensor which may be left out is not given."""
    return (host.Apply("not", (host.Given(tensor),)),) if names.types.get(tensor, "").endswith("?") else ()


def _write_size_check(programs: Computation, size: RequiredSize, is_beside: bool, names: Names) -> Line:
    """The check of one size; one `is_beside` calls that give no such tensor, or one of fewer dimensions."""
    unless = list(_list_unless(size.tensor, names))
    if is_beside and size.dim is not None:
        unless.append(host.Apply("<", (host.Rank(size.tensor), host.Constant(-size.dim))))
    what = "dimensions" if size.dim is None else f"elements in dimension {size.dim}"
    words = (f"expected {size.tensor} of ", size.value, f" {what}, but got ", size.actual)
    return _write_check(programs, names, (*unless, host.Apply("==", (size.actual, size.value))), words)


def _write_check(
    programs: Computation, names: Names, tests: Iterable[host.HostValue], words: Message, macro: str = "TORCH_CHECK"
) -> Line:
    """The check that one of some conditions holds."""
    first, *rest = words
    message = (f"{programs.name.partition('.')[0]}: {first}", *rest)
    return Line(write_check(reduce(partial(apply, "or"), tests), message, names, macro))


def _find_case_ranks(programs: Programs, case: SymbolicProgram, names: Names) -> Iterator[tuple[str, int]]:
    """The tensors that a case's own calls limit, and those of all cases do not, with how many dimensions they have."""
    for tensor in case.calls[0].tensors if case.calls else ():
        if tensor not in names.variables or tensor.startswith("result"):
            continue
        ours, every = (_list_ranks(calls, tensor) for calls in (case.calls, programs.calls))
        is_asked = any(_asks_dims(each, tensor) for each in case.when)
        by_place = any(_is_by_place(each, tensor) for each in _list_values(case))
        if len(ours) == 1 and ours != every and by_place and not is_asked:
            yield tensor, ours[0]


def _find_single(programs: Programs, case: SymbolicProgram, names: Names) -> Iterator[str]:
    """The tensors of which the kernels of a case read the first element alone, where calls give them one, or more.

    The old graph may have taken more in this case too, and read one of them.
    """
    loads = [load for store in case.stores for load in walk(store.value) if load.op is Op.LOAD]
    for tensor in sorted(list_loaded(case)):
        buffers = {buffer for buffer, role in case.roles.items() if role == ArgumentBuffer(tensor)}
        is_first = all(load.args[0].integer == 0 for load in loads if load.attribute in buffers)
        ours, every = (
            {math.prod(call.tensors[tensor].shape) for call in calls if tensor in call.tensors}
            for calls in (case.calls, programs.calls)
        )
        if is_first and 1 in ours and every - {1} and tensor in names.variables:
            yield tensor


def _list_ranks(calls: Sequence[host.Arguments], tensor: str) -> tuple[int, ...]:
    """How many dimensions a tensor has in some calls."""
    return tuple(sorted({len(call.tensors[tensor].shape) for call in calls if tensor in call.tensors}))


def _write_rank_check(programs: Computation, names: Names, tensor: str, ranks: Sequence[int]) -> Line:
    tests = (host.Apply("==", (host.Rank(tensor), host.Constant(rank))) for rank in ranks)
    words = (f"expected {tensor} of {_list_words(ranks)} dimensions, but got ", host.Rank(tensor))
    return _write_check(programs, names, tests, words, "TORCH_CHECK_NOT_IMPLEMENTED")


def _write_single_check(programs: Computation, names: Names, tensor: str) -> Line:
    count = host.SizeProduct(tensor)
    test = host.Apply("==", (count, host.Constant(1)))
    return _write_check(programs, names, (test,), (f"expected {tensor} of one element, but got ", count))


def _note_ranks(programs: Computation, tensor: str, ranks: Sequence[int], recorded: str) -> str:
    limit = f"`{tensor}` of {_list_words(ranks)} dimensions only, as in {recorded}"
    return f"{programs.name}: {limit}; the port refuses others"


def _list_words(ranks: Sequence[int]) -> str:
    return " or ".join(map(str, ranks))


def _find_ranks(programs: Computation, names: Names) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors that recorded calls limit, with how many dimensions they have there."""
    for tensor in dict.fromkeys(name for call in programs.calls for name in call.tensors):
        ranks = _list_ranks(programs.calls, tensor)
        if tensor not in names.variables or tensor.startswith("result"):
            continue
        tests = [f"{names.member(tensor)}{count}() == {ranks[0]}" for count in ("dim", "ndimension")]
        is_checked = len(ranks) == 1 and has_code(f"{names.code.before}{names.code.text}", *tests)
        counts = len(ranks) == 1 and _counts_dimensions(programs, tensor)
        is_lost = any(_has_other_rank(each, tensor, ranks) for each in programs.lost if not names.code.raises(each.why))
        if not is_checked and (counts or is_lost or _asks_rank(programs, tensor)):
            yield tensor, ranks


def _has_other_rank(lost: UnexplainedCall, tensor: str, ranks: Collection[int]) -> bool:
    """Whether a call of more than one element has a tensor of other dimensions."""
    given = lost.arguments.tensors
    is_single = all(math.prod(each.shape) == 1 for each in given.values())
    return tensor in given and len(given[tensor].shape) not in ranks and not is_single


def _asks_rank(programs: Computation, tensor: str) -> bool:
    """Whether cases are chosen by how many dimensions a tensor has, and the last one was recorded with one number.

    Those that a list names are counted from the last, in a tensor of any number.
    """
    if isinstance(programs, FormProgram):
        return False
    conditions = (each for case in programs.cases for each in case.when)
    ranks = _list_ranks(programs.cases[-1].calls, tensor) if programs.cases else ()
    return len(ranks) == 1 and any(_asks_dims(each, tensor) for each in conditions)


def _asks_dims(condition: Answered, tensor: str) -> bool:
    """Whether a condition asks how many dimensions a tensor has."""
    question = condition.question
    return isinstance(question, Compared) and question.name == f"{tensor}.dim()"


def _counts_dimensions(programs: Computation, tensor: str) -> bool:
    """Whether what a row computes names dimensions of a tensor by their places, or was seen to move elements of it.

    How many dimensions a tensor that is resampled has, the form says.
    """
    if isinstance(programs, FormProgram):
        return tensor in programs.form.list_moved()
    return any(_is_by_place(value, tensor) for case in programs.cases for value in _list_values(case))


def _list_values(program: SymbolicProgram) -> Iterator[host.HostValue]:
    """All that the numbers of a program and of its kernels, and how often it runs, are computed from."""
    numbers = (*program.numbers, *(number for nest in program.nests for number in find_numbers(nest.nest)))
    for value in (*(number.value for number in dict.fromkeys(numbers)), *(nest.rows for nest in program.nests)):
        yield from host.list_operands(value)


def _is_by_place(value: host.HostValue, tensor: str) -> bool:
    match value:
        case host.Size(name, host.Constant()):
            return name == tensor
        case host.SizeProduct(name, begin, end):
            return name == tensor and any(isinstance(each, host.Constant) for each in (begin, end))
    return False


def refuse_tables(programs: Programs) -> None:
    """Raises PTR377 for a program that reads constants of the graph, or whose result is one."""
    tables = (isinstance(role, Table) for case in programs.cases for role in case.roles.values())
    if any(tables) or not all(case.nests for case in programs.cases):
        raise explained("PTR377", f"the graph of {programs.name} has constants that differ by element")


def refuse_searches(programs: Programs) -> None:
    """Raises PTR360 for a program each of whose results looks for what goes there among all that is given."""
    stores = [store for case in programs.cases for store in case.stores]
    if any(_searches(each) for store in stores for each in find_reductions(store.value)):
        raise explained("PTR360", f"each result of {programs.name} would look for its elements among all of an operand")


def refuse_unseen(programs: Programs, function: NativeFunction) -> None:
    """Raises PTR361 for a tensor that may be left out, and that no recorded call gives.

    Also for one that kernels of a case read in every call, or in every one that asks for what is computed from it,
    though the old code is not known to raise without it.
    """
    calls = [call for case in programs.cases for call in case.calls]
    for argument in (each for each in function.arguments if each.type == "Tensor?"):
        if not any(argument.name in call.tensors for call in calls):
            raise explained("PTR361", f"no recorded call of {programs.name} gives `{argument.name}`", function.place)
        for case in programs.cases:
            is_read = argument.name in list_loaded(case)
            if is_read and argument.name not in case.required and not is_explained(case, argument.name):
                where = " and ".join(map(str, case.when))
                of_case = f" where {where}" if where else ""
                what = f"no recorded call of {programs.name}{of_case} leaves out `{argument.name}`"
                raise explained("PTR361", what, function.place)


def _searches(reduction: Expr) -> bool:
    """Whether a reduction keeps the turns whose index is that of the result."""
    turns = frozenset(reduction.reduction.loops)
    conditions = (each.args[0] for each in walk(*reduction.args) if each.op is Op.SELECT)
    tests = [each for condition in conditions for each in walk(condition) if each.op is Op.EQUAL]
    return any(_is_apart(one, other, turns) or _is_apart(other, one, turns) for one, other in (t.args for t in tests))


def _is_apart(of_turn: Expr, of_result: Expr, turns: frozenset[Loop]) -> bool:
    """Whether one index is of turns of a reduction, and another of results alone."""
    return bool(of_turn.loops & turns) and bool(of_result.loops) and not of_result.loops & turns
