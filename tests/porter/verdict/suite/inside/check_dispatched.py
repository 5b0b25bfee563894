"""Which operators OpInfos dispatch, read from the counted fallback of a device that runs no fork's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

import aten_overlay
from porter.core import cache
from porter.core.errors import PorterError
from porter.verdict.suite import counters, opinfos, samples, selection
from porter.verdict.suite.dispatched import record_dispatch

device = aten_overlay.start()


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)


def named(full_name: str) -> Any:
    return next(op for op in op_db if op.full_name == full_name)


# These two come first: a table is made in a forked process, which computes no gradient once this one has.
def test_an_operator_without_an_opinfo_is_tested_through_its_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    monkeypatch.setattr("torch.testing._internal.common_methods_invocations.op_db",
                        [named(n) for n in ("unfold", "mul", "nn.functional.interpolate.bicubic")])  # fmt: skip
    assert selection.select_opinfos("unfold_backward").backward == ("unfold",)
    assert selection.select_opinfos("upsample_bicubic2d").forward == ("nn.functional.interpolate.bicubic",)
    assert selection.select_opinfos("mul") == selection.Selection()
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_a_derivative_is_tested_through_its_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """silu's gradient could be made of others, too."""
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    selection.table.cache_clear()
    monkeypatch.setattr("torch.testing._internal.common_methods_invocations.op_db",
                        [named(n) for n in ("mul", "nn.functional.silu")])  # fmt: skip
    assert selection.select_opinfos("silu_backward") == selection.Selection((), ("nn.functional.silu",))


def test_a_function_with_a_derivative_of_its_own_is_not_tested_through_those_it_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    selection.table.cache_clear()
    both = ("nn.functional.logsigmoid", "nn.functional.binary_cross_entropy_with_logits")
    monkeypatch.setattr("torch.testing._internal.common_methods_invocations.op_db", [named(n) for n in both])
    assert selection.select_opinfos("log_sigmoid_backward").backward == both[:1]


def test_an_operator_behind_a_composite_is_found() -> None:
    found = record_dispatch(named("nn.functional.interpolate.bicubic"))
    assert "upsample_bicubic2d" in found.forward and "upsample_bilinear2d" not in found.forward
    assert "upsample_bicubic2d_backward" in found.backward


def test_forward_calls_are_not_listed_as_backward() -> None:
    found = record_dispatch(named("mul"))
    assert "mul" in found.forward and "mul" not in found.backward


def test_an_operator_that_calls_without_gradients_alone_have_is_found() -> None:
    calls = record_dispatch(named("nn.functional.scaled_dot_product_attention"))
    assert {"_scaled_dot_product_attention_math_for_mps", "_softmax"} <= calls.forward


def test_a_device_argument_is_mirrored_too() -> None:
    assert samples.mirror({"device": "cpu", "dtype": torch.int32}, "mps") == {"device": "mps", "dtype": torch.int32}
    assert samples.mirror({"device": torch.device("cpu")}, "mps") == {"device": "mps"}
    assert samples.mirror({"mode": "cpu"}, "mps") == {"mode": "cpu"}


def test_gradients_are_compared_only_in_types_of_the_cpu() -> None:
    op = named("polar")
    assert torch.float16 in op.supported_backward_dtypes("mps") - op.supported_dtypes("cpu")
    assert torch.float16 not in opinfos.make_comparable(op).supported_backward_dtypes("mps")


def test_without_gradients_there_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_dispatch(named("mul"))
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    selection.table.cache_clear()
    with pytest.raises(PorterError, match=r"PTR170.*autograd's threading"):
        selection.table()
    assert list(tmp_path.rglob("*.json")) == []
