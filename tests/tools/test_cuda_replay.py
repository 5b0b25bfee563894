"""Arguments of kernels that are replayed on a GPU, and what is said of the outcomes; no GPU is asked."""

from __future__ import annotations

import torch

from cuda_replay import Outcome, Recorded, _summary, bind, find_difference
from replayed.cases import Case, Table
from replayed.families import FAMILIES


def test_a_table_has_the_addresses_of_the_tensors_that_were_placed() -> None:
    one, other = torch.arange(3.0), torch.arange(4)
    case = Case((Table((one, other), (1, -1, 0)), one, b"\1\2"), (4,), (4,))
    given, memory = bind(case, lambda tensor: tensor.clone(), lambda _index, data: data)
    copies = [memory[1].data_ptr(), 0, memory[0].data_ptr()]
    table = given[0]
    assert isinstance(table, bytes)
    assert list(torch.frombuffer(bytearray(table), dtype=torch.int64)) == copies
    assert given[1] is memory[2] and memory[2].data_ptr() != one.data_ptr()
    assert given[2] == b"\1\2"


def test_a_kernel_has_one_family_which_makes_its_arguments() -> None:
    names = ["index_put_8bit_idx32", "index_put_serial_8bit_idx64", "index_put_accumulate_32bit_float_idx32",
             "fused_adam_half_float", "fused_adamw_amsgrad_float_bfloat", "fused_sgd_half", "fused_sgd_momentum_half",
             "kernel_index_offset", "kernel_index_offsets_64", "large_m_int8pack_mm_half"]  # fmt: skip
    for name in names:
        (family,) = [each for each in FAMILIES if each.pattern.fullmatch(name)]
        match = family.pattern.fullmatch(name)
        assert match is not None
        case = family.make(match)
        assert len(case.grid) == len(case.group), name
        assert all(isinstance(case.args[index], Table) for index in family.tables), name


def test_the_summary_counts_what_torchs_cuda_says_nothing_of() -> None:
    case = Case((torch.zeros(1),), (1,), (1,))
    outcomes = [
        Outcome(Recorded("exp_float_float", "exp", case, ())),
        Outcome(Recorded("exp_half_half", "exp", case, ()), without="torch has none"),
        Outcome(Recorded("exp_bool_float", "exp", case, ()), wrong="buffer 0 is 1 at 0, 2 on the host"),
    ]
    assert _summary(outcomes) == "exp: 2 agree, 1 with torch's CUDA too"


def test_a_difference_is_more_than_both_may_round() -> None:
    assert find_difference(torch.ones(3), torch.ones(3) + 1e-6) == ""
    assert find_difference(torch.ones(3), torch.tensor([1.0, 1.0, 2.0])) == "is 1.0 at 2, 2.0"
    assert find_difference(torch.tensor([3]), torch.tensor([4])) == "is 3 at 0, 4"
