"""Numbers of loop nests, apart from their structure."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from porter.core.codec import decode, encode
from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.loops.building import CallProgram, build_program, transfer_program
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, coalesce, fuse
from porter.loops.graph import ConcreteGraph, Node, Result, Tensor
from porter.loops.host_values import Arguments, TensorValue, describe, evaluate
from porter.loops.numbers import digest_structure, list_numbers, replace_numbers
from porter.loops.printing import nest_lines, program_lines
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, instantiate, register_programs

INPUT, OUTPUT = Buffer(0), Buffer(2)


def make_nests(shape: tuple[int, ...], axis: int) -> tuple[LoopNest, ...]:
    """What computes the mean over an axis, with the number of elements as a constant."""
    reduced = tuple(1 if i == axis else size for i, size in enumerate(shape))
    nodes = (
        Node("placeholderWithShape:dataType", (), (Result(shape, FLOAT),)),
        Node("reductionSumWithTensor:axis", (Tensor(0), axis), (Result(reduced, FLOAT),)),
        Node("divisionWithPrimaryTensor:secondaryTensor", (Tensor(1), Tensor(3)), (Result(reduced, FLOAT),)),
        Node("constantWithScalar:dataType", (float(shape[axis]),), (Result((1,), FLOAT, (float(shape[axis]),)),)),
    )
    graph = ConcreteGraph(nodes, frozenset({Tensor(0)}), (Tensor(2),))
    return tuple(coalesce(nest) for nest in fuse(graph))


def make_call(shape: tuple[int, ...], axis: int) -> CallProgram:
    nests = make_nests(shape, axis)
    names = {INPUT: "self", OUTPUT: "result 0"}
    result = TensorValue(tuple(size for i, size in enumerate(shape) if i != axis), FLOAT)
    arguments = Arguments({"self": TensorValue(shape, FLOAT), "result0": result}, {"dim": axis})
    roles: dict[Buffer, Role] = {INPUT: ArgumentBuffer("self"), OUTPUT: ResultBuffer(0)}
    structure = digest_structure(nests, names, lambda dtype, is_memory: str(dtype))
    return CallProgram(arguments, {}, "self", FLOAT, nests, roles, structure, list_numbers(nests))


CALLS = [
    make_call(*each)
    for each in (
        ((3, 5, 7), 1),
        ((2, 11, 3), 1),
        ((4, 2, 3, 9), 2),
        ((5, 3, 2, 8), 1),
        ((6, 4, 13), 1),
        ((7, 9, 2), 1),
        ((2, 3, 4, 5), 1),
    )
]


def test_calls_of_several_ranks_and_sizes_share_a_structure() -> None:
    assert len({call.structure for call in CALLS}) == 1
    assert len({make_call((3, 5, 7), axis).structure for axis in (0, 1, 2)}) == 3


def test_strides_that_are_sorted_by_their_size_are_visited_by_what_they_stride() -> None:
    """In one call the first loop has the larger stride, in the other the second."""
    structures = {make_call(shape, 1).structure for shape in ((3, 5, 7), (7, 5, 3), (5, 2, 9))}
    assert len(structures) == 1


def test_numbers_that_are_replaced_by_themselves_leave_what_is_computed() -> None:
    nest = make_nests((3, 5, 7), 1)
    same = replace_numbers(nest, lambda occurrence: occurrence.value)
    assert list_numbers(same) == list_numbers(nest)
    assert digest_structure(same, {INPUT: "a", OUTPUT: "b"}, lambda *_: "") == digest_structure(
        nest, {INPUT: "a", OUTPUT: "b"}, lambda *_: ""
    )


def test_a_program_has_expressions_for_its_numbers() -> None:
    program, _ = build_program("mean.dim", CALLS)
    assert {number.name: describe(number.value) for number in program.numbers} == {
        "outer_size": "prod(self[:dim])",
        "inner_size": "prod(self[dim + 1:])",
        "dim_size": "self.size(dim)",
        "outer_stride": "prod(self[dim:])",
    }
    assert describe(program.nests[0].rows) == "result0.numel()" or "prod" in describe(program.nests[0].rows)


def test_a_program_at_the_sizes_of_another_call_is_the_nest_of_that_call() -> None:
    program, _ = build_program("mean.dim", CALLS)
    other = make_call((9, 4, 5), 1)
    made = instantiate([each.nest for each in program.nests], other.arguments)
    names = {INPUT: "input", OUTPUT: "output"}
    canonical = replace_numbers(other.nests, lambda occurrence: occurrence.value)
    assert [sorted(line) for nest in made for line in nest_lines(nest, names)] == [
        sorted(line) for nest in canonical for line in nest_lines(nest, names)
    ]


def test_a_number_that_no_expression_foretells_blocks_with_its_place() -> None:
    def spoil(call: CallProgram, i: int) -> CallProgram:
        nests = replace_numbers(call.nests, lambda each: math.sin(i) if isinstance(each.value, float) else each.value)
        return replace(call, nests=nests, numbers=list_numbers(nests))

    with pytest.raises(PorterError, match=r"\?0 in `output\[.*\] = sum0 / \?0` of mean is") as caught:
        build_program("mean", [spoil(call, i) for i, call in enumerate(CALLS)])
    assert caught.value.code == "PTR363"


def test_few_calls_are_no_case() -> None:
    with pytest.raises(PorterError, match="4 calls of a case of mean recorded, of 5") as caught:
        build_program("mean", CALLS[:4] * 2)
    assert caught.value.code == "PTR364"


def test_numbers_of_another_element_type_are_transferred_if_they_are_the_same() -> None:
    program, values = build_program("mean.dim", CALLS)
    other = [make_call((9, 4, 5), 1), make_call((2, 9, 3, 4), 2)]
    found = transfer_program(program, values, other)
    assert found is not None and found.numbers[0].value == program.numbers[0].value
    for call in (*CALLS, *other):
        shape = call.arguments.tensors["result0"].shape
        assert evaluate(found.nests[0].rows, call.arguments) == math.prod(shape)
    wrong = replace(other[0], arguments=CALLS[0].arguments)
    assert transfer_program(program, values, [wrong]) is None


def test_programs_come_back_from_json() -> None:
    program, _ = build_program("mean.dim", CALLS)
    programs = Programs("mean.dim", (program,), (PorterError("PTR364", "one call"),))
    register_programs()
    loaded = decode(encode(programs, Programs), Programs)
    assert loaded.cases == (program,)
    assert list(program_lines(loaded.cases[0])) == list(program_lines(program))
    assert [(each.code, each.what) for each in loaded.left] == [("PTR364", "one call")]
