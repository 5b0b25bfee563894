"""OpInfos that are made from schemas call operators with operands that the CPU reads exactly."""

from __future__ import annotations

import pytest
import torch

from porter.verdict.suite import made_opinfos
from porter.verdict.suite.made_opinfos import find_dims, list_opinfos, make_opinfo

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("rank", "dim", "expected"),
    [(3, 0, (0,)), (3, 2, (2,)), (2, 1, (1,)), (1, 0, (0,)), (5, 4, (4,)), (3, 1, None)],
)
def test_dims_that_a_kernel_does_not_check(rank: int, dim: int, expected: tuple[int, ...] | None) -> None:
    whole = tuple(range(rank))
    found = find_dims(aten._weight_norm_interface.default, rank, (dim,))
    assert found == (None if expected is None else (whole, expected))


def test_sizes_that_come_from_a_later_tensor() -> None:
    found = find_dims(aten._weight_norm_interface_backward.default, 3, (2,))
    assert found == ((0, 1, 2), (0, 1, 2), (2,), (2,))


def test_samples_agree_with_their_meaning() -> None:
    op = make_opinfo("_weight_norm_interface")
    assert op is not None
    assert op.supports_autograd
    assert set(op.dtypes) == {torch.float32, torch.float16, torch.bfloat16}
    assert set(op.backward_dtypes) == {torch.float32}  # beside others, the CPU's norms are float32
    samples = list(op.sample_inputs("cpu", torch.float32))
    assert {(each.input.ndim, each.args[-1]) for each in samples} >= {(3, 0), (3, 2), (2, 1), (1, 0)}
    for sample in samples:
        weight, norms = op(sample.input, *sample.args)
        dim = sample.args[-1]
        others = [each for each in range(sample.input.ndim) if each != dim]
        expected = sample.input.double().square().sum(others, keepdim=True).sqrt() if others else sample.input.abs()
        torch.testing.assert_close(norms, expected.float())
        scale = sample.args[0].narrow(0, 0, sample.args[0].size(0))
        for each in others:
            scale = scale.narrow(each, 0, 1)
        torch.testing.assert_close(weight, (sample.input.double() / expected * scale).float())


def test_operands_of_other_shapes_are_refused() -> None:
    op = make_opinfo("_weight_norm_interface")
    assert op is not None
    with pytest.raises(ValueError, match="no operands of these shapes"):
        op(torch.ones(3, 4), torch.ones(3, 1), 0)
    with pytest.raises(ValueError, match="no operands of these shapes"):
        op(torch.ones(3, 4, 5), torch.ones(3, 4, 5), 1)


@pytest.mark.parametrize("base", ["cat", "fill_", "arange", "no_such_operator"])
def test_schemas_that_samples_are_not_made_of(base: str) -> None:
    assert make_opinfo(base) is None


def test_only_where_torch_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [op.name for op in list_opinfos(("_weight_norm_interface",), (), ())] == ["_weight_norm_interface"]
    monkeypatch.setattr(made_opinfos, "make_opinfo", lambda base: pytest.fail(f"made one for {base}"))
    assert [op.name for op in list_opinfos(("atan2",), (), ())] == ["atan2"]
    assert [op.name for op in list_opinfos(("_weight_norm_interface",), ("atan2",), ())] == ["atan2"]
    assert list_opinfos(("_weight_norm_interface",), (), ("atan2",)) == []
    assert len(list_opinfos((), (), ())) > 500


def test_types_that_the_cpu_refuses() -> None:
    """Its norms are of float32 beside operands in 16 bits, but a device may have norms in these."""
    op = make_opinfo("_weight_norm_interface_backward")
    assert op is not None
    assert set(op.dtypes) == {torch.float32, torch.float16, torch.bfloat16}
    sample = next(iter(op.sample_inputs("cpu", torch.float16)))
    found = op(sample.input, *sample.args)
    wide = [each.float() if isinstance(each, torch.Tensor) else each for each in (sample.input, *sample.args)]
    for mine, exact in zip(found, op(*wide), strict=True):
        assert mine.dtype is torch.float16
        assert mine.equal(exact.half())


def test_flags_are_set_and_elements_repeat() -> None:
    op = make_opinfo("unique_dim_consecutive")
    assert op is not None
    samples = list(op.sample_inputs("cpu", torch.float32))
    assert all(each.args[1:] == (True, True) for each in samples)
    counts = [op(each.input, *each.args)[2] for each in samples]
    assert {tuple(each.tolist()) for each in counts} >= {(1,) * 5, (2, 2, 1), (5,)}
    with pytest.raises(ValueError, match="a flag that asks for less"):
        op(samples[0].input, 0, False, True)
