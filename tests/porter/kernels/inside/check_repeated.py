"""A call like one that ran before takes a shorter way: it has to give, and refuse, what the long way does."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from aten_overlay.device import calls
from porter.core.errors import PorterError
from porter.kernels import MetalKernel, TorchMetalKernel, differentiate, repeated
from porter.kernels.launch import Mode, observing, running


@pytest.fixture(autouse=True, params=["C++", "Python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs with calls in C++, and as they are where nothing compiles these."""
    if request.param == "Python":
        for module in (repeated, calls):
            monkeypatch.setattr(module, "find_module", lambda: None)
    return str(request.param)


SCALE = """
uint i = thread_position_in_grid.x;
out[i] = x[i * x_strides[0]] * T(factor) + T(x_shape[0]) + (FLAG ? 100 : 0) + T(x_ndim);
"""


def make(**more: Any) -> MetalKernel:
    return MetalKernel("scale", ["x", "factor"], ["out"], SCALE, ensure_row_contiguous=False, **more)


def call(kernel: MetalKernel, x: torch.Tensor, factor: float, flag: int = 0, **more: Any) -> torch.Tensor:
    given: dict[str, Any] = {
        "inputs": {"x": x, "factor": factor}, "template": {"T": x.dtype, "FLAG": flag},
        "grid": (x.numel(), 1, 1), "threadgroup": (32, 1, 1),
        "output_shapes": {"out": x.shape}, "output_dtypes": {"out": x.dtype}, **more,
    }  # fmt: skip
    outputs: dict[str, torch.Tensor] = kernel(**given)
    return outputs["out"]


def expected(x: torch.Tensor, factor: float, flag: int = 0) -> torch.Tensor:
    return x.cpu() * factor + x.shape[0] + (100 if flag else 0) + 1


def numbers(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(count).to(dtype).to("mps")


def repeats(kernel: MetalKernel) -> int:
    return len(kernel._repetitions)


def test_other_tensors_and_numbers_repeat_a_call() -> None:
    kernel = make()
    for start in range(4):
        x, factor = numbers(33) + start, 0.5 + start
        assert torch.equal(call(kernel, x, factor).cpu(), expected(x, factor))
    assert repeats(kernel) == 1


def test_each_kind_of_call_is_kept_by_itself() -> None:
    kernel = make()
    wide = numbers(66)
    for _ in range(3):
        for x in (numbers(33), numbers(7), numbers(33, torch.float16), wide[::2], wide[33:]):
            for factor in (2, 2.0):
                for flag in (1, True):
                    assert torch.equal(call(kernel, x, factor, flag).cpu(), expected(x, factor, flag))
    assert repeats(kernel) == 4 * 2 * 2


def test_outputs_do_not_share_memory() -> None:
    kernel = make()
    first, second, third = (call(kernel, numbers(8), factor) for factor in (1.0, 2.0, 3.0))
    assert [t[1].item() for t in (first, second, third)] == [10.0, 11.0, 12.0]


def test_start_values_are_filled_in_again() -> None:
    kernel = MetalKernel("add_one", ["x"], ["out"], "out[thread_position_in_grid.x] += x[0];")
    given: dict[str, Any] = {
        "inputs": {"x": numbers(3) + 1}, "grid": (2, 1, 1), "output_shapes": [(4,)], "output_dtypes": [torch.float32],
    }  # fmt: skip
    for start in (5, 5, 7.0, 7, -0.0, 0.0):
        assert kernel(**given, init_value=start)[0].tolist() == [start + 1, start + 1, start, start]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"grid": (8.0, 1, 1)}, "PTR211"),
        ({"grid": (True, 1, 1)}, "PTR211"),
        ({"threadgroup": (32.0, 1, 1)}, "PTR211"),
        ({"template": {"T": torch.float32, "FLAG": 0.0}}, "PTR210"),
        ({"output_dtypes": {"out": "float32"}}, "PTR209"),
        ({"inputs": {"x": torch.zeros(8, device="mps"), "factor": 2**40}}, "PTR215"),
        ({"inputs": {"x": torch.zeros(8), "factor": 2.0}}, "PTR221"),
    ],
)
def test_what_is_refused_first_is_refused_again(more: dict[str, Any], code: str) -> None:
    kernel = make()
    for _ in range(2):
        call(kernel, numbers(8), 2.0)
    with pytest.raises(PorterError) as error:
        call(kernel, numbers(8), 2.0, **more)
    assert error.value.code == code


def test_source_is_that_of_the_last_call() -> None:
    kernel = make()
    for _ in range(2):
        for dtype, name in ((torch.float32, "float"), (torch.float16, "half")):
            call(kernel, numbers(8, dtype), 2.0)
            assert f"<{name}, 0>" in kernel.source


def test_what_watches_calls_sees_each(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, seen = make(), []
    call(kernel, numbers(8), 2.0)
    with observing(lambda kernel, call, outputs: seen.append(kernel.name)):
        call(kernel, numbers(8), 2.0)
    assert seen == ["scale"]
    with running(Mode(checked=True)), pytest.raises(RuntimeError, match="PTR107"):
        call(kernel, numbers(8), 2.0, grid=(9, 1, 1))
    call(kernel, numbers(8), 2.0, verbose=True)
    assert "[[kernel]] void" in capsys.readouterr().out


def test_a_gradient_is_made_after_a_repeated_call() -> None:
    kernel = make(vjp=lambda inputs, gradient, output: [gradient * inputs[1], None])
    for _ in range(2):
        call(kernel, numbers(8), 3.0)
    x = numbers(8).requires_grad_()
    call(kernel, x, 3.0).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0] * 8


def test_threads_repeat_a_call_side_by_side() -> None:
    kernel = make()
    xs = [numbers(100_000) + i for i in range(8)]
    call(kernel, xs[0], 1.0)
    with ThreadPoolExecutor(4) as pool:
        for x, out in zip(xs, pool.map(lambda x: call(kernel, x, float(x[0]) + 1), xs), strict=True):
            assert torch.equal(out.cpu(), expected(x, float(x[0]) + 1))
    assert repeats(kernel) == 1


def test_a_length_of_another_type_is_refused_after_one_that_is_right() -> None:
    kernel = make()
    for _ in range(2):
        call(kernel, numbers(33), 2.0)
    for grid in ((33.0, 1, 1), (33, True, 1)):
        with pytest.raises(PorterError):
            call(kernel, numbers(33), 2.0, grid=grid)


def test_calls_are_launched_in_cpp_where_that_is_compiled(way: str) -> None:
    kernel = make()
    call(kernel, numbers(33), 2.0)
    (repetition,) = kernel._repetitions.values()
    assert (repetition.native is not None) is (way == "C++")


def test_inputs_that_are_copied_repeat_a_call() -> None:
    kernel = MetalKernel("scale", ["x", "factor"], ["out"], SCALE)
    for start in range(3):
        wide = numbers(66).reshape(33, 2) + start
        for x in (wide[:, 1], numbers(33) - start):
            assert torch.equal(call(kernel, x, 2.0).cpu(), expected(x, 2.0))
    assert repeats(kernel) == 2


def test_conjugates_and_negatives_are_computed_before_every_call() -> None:
    kernel = MetalKernel("copy", ["x"], ["out"], "out[thread_position_in_grid.x] = x[thread_position_in_grid.x];")
    x = torch.tensor([1 + 2j, 3 - 4j], device="mps")
    for lazy in (x, x.conj(), x.conj().imag, x.imag):
        for _ in range(3):
            given: dict[str, Any] = {"grid": (2,), "output_shapes": [(2,)], "output_dtypes": [lazy.dtype]}
            assert torch.equal(kernel([lazy], **given)[0].cpu(), lazy.cpu())


def test_run_and_the_kernels_of_core_ai_repeat_calls() -> None:
    body = "out[thread_position_in_grid.x] = x[thread_position_in_grid.x] * a;"
    ours = MetalKernel("times", ["x", "a"], ["out"], body, reference=torch.mul)
    theirs = TorchMetalKernel("times", ["x", "a"], ["out"], src=body, torch_defn=torch.mul)
    for length in (4, 5):
        for start in range(3):
            x = numbers(length) + start
            found = theirs(x, 3.0, threads_per_grid=(length,), threads_per_thread_group=(32,), result_shapes=[x.shape])
            for each in (ours.run(x, 3.0), found):
                assert isinstance(each, torch.Tensor) and torch.equal(each.cpu(), 3 * x.cpu())
    assert len(ours._repetitions) == len(theirs._repetitions) == 2
    with pytest.raises(PorterError, match="PTR207"):
        ours.run(numbers(4), "3.0")  # type: ignore[arg-type]


def test_a_number_of_another_type_has_the_reference_s_result_of_its_own() -> None:
    kernel = MetalKernel(
        "times", ["x", "a"], ["out"], "out[thread_position_in_grid.x] = x[thread_position_in_grid.x] * a;",
        reference=torch.mul,
    )  # fmt: skip
    x = numbers(3, torch.int32)
    for factor, dtype in ((2, torch.int32), (2.0, torch.float32), (True, torch.int32), (1, torch.int32)):
        for _ in range(2):
            found = kernel.run(x, factor)
            assert (
                isinstance(found, torch.Tensor) and found.dtype == dtype and found.tolist() == [0, factor, 2 * factor]
            )


POOL: tuple[Any, ...] = (
    0, 1, True, 1.0, 0.0, -0.0, 2**31 - 1, 2**31, -(2**31), 2**40, torch.zeros(3), torch.zeros(3, device="mps"),
    torch.zeros(3, 1, device="mps"), torch.zeros(6, device="mps")[::2], torch.zeros(6, device="mps")[3:],
    torch.zeros(3, dtype=torch.int32, device="mps"), torch.zeros((), device="mps"), torch.zeros(3, 4, device="mps"),
    torch.zeros(4, 3, device="mps").t(), torch.zeros(3, device="meta"), torch.nn.Parameter(torch.zeros(3)),
    torch.zeros(3, dtype=torch.complex64).conj(), torch.zeros(3, 3).to_sparse(), "text", None, torch.float16,
)  # fmt: skip
ATOMS = st.sampled_from([0, 1, True, False, 1.0, 0.0, -0.0, None, "T", "1", "", torch.float16, torch.float32, 2**40])
LENGTHS = st.lists(st.integers(0, 2), max_size=3).map(tuple) | st.sampled_from([torch.Size([1]), torch.Size([1, 2])])
REST = st.lists(
    ATOMS | LENGTHS | st.lists(LENGTHS, max_size=2) | st.dictionaries(st.sampled_from("TU"), ATOMS | LENGTHS),
    max_size=3,
)


@example([([0], [[()], 0, ()], False), ([0], [[()], 0, []], False)], False)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from(POOL), max_size=2), REST, st.booleans()), min_size=2, max_size=4),
    st.booleans(),
)
def test_cpp_and_python_tell_the_same_calls_apart(
    found: list[tuple[list[Any], list[Any], bool]], by_value: bool
) -> None:
    module = calls.find_module()
    likenesses = []
    for values, rest, named in found:
        inputs = {f"x{i}": value for i, value in enumerate(values)} if named else values
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(repeated, "find_module", lambda: module)
            native = repeated.describe(inputs, tuple(rest), by_value)
            patch.setattr(repeated, "find_module", lambda: None)
            likenesses.append((native, repeated.describe(inputs, tuple(rest), by_value)))
    for native, plain in likenesses:
        assert (native is None) == (plain is None)
        for others in likenesses:
            assert (native == others[0]) == (plain == others[1])


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "context", [FunctionMode, DispatchMode, forward_ad.dual_level, torch.autograd.profiler.profile, FakeTensorMode]
)
def test_what_watches_operators_takes_the_long_way(context: Callable[[], AbstractContextManager[Any]]) -> None:
    x = numbers(3)
    with context():
        assert repeated.describe([x], (), False) is None
    assert repeated.describe([x], (), False) is not None


def test_transforms_traces_and_gradients_take_the_long_way() -> None:
    seen: list[object] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        seen.append(repeated.describe([1.0], (), False))
        return x * 2

    torch.func.vmap(torch.func.vmap(note))(torch.ones(2, 3))
    torch.func.grad(lambda x: note(x).sum())(torch.ones(3))
    torch.func.jvp(note, (torch.ones(3),), (torch.ones(3),))
    torch.func.functionalize(note)(torch.ones(3))
    torch.jit.trace(note, torch.ones(3), check_trace=False)
    assert len(seen) >= 5 and set(seen) == {None}
    parameter = torch.nn.Parameter(torch.ones(3))
    assert repeated.describe([parameter], (), False) is None
    with torch.no_grad():
        assert repeated.describe([parameter], (), False) is not None
    assert repeated.describe([torch.ones(3).as_subclass(Own)], (), False) is None


class Own(torch.Tensor):
    pass


def test_what_holds_itself_is_no_likeness() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert repeated.describe([1.0], (endless,), False) is None


def test_copies_and_pickles_of_kernels_run() -> None:
    body = "out[thread_position_in_grid.x] = x[thread_position_in_grid.x] * a;"
    ours = MetalKernel("times", ["x", "a"], ["out"], body, reference=torch.mul, vjp=differentiate(torch.mul))
    theirs = TorchMetalKernel("times", ["x", "a"], ["out"], src=body, torch_defn=torch.mul)
    named = MetalKernel("times", source=body)
    x, shapes, types = numbers(3), {"out": (3,)}, {"out": torch.float32}

    def check(one: MetalKernel, other: TorchMetalKernel, third: MetalKernel) -> None:
        for _ in range(2):
            found = other(x, 2.0, threads_per_grid=(3,), threads_per_thread_group=(3,), result_shapes=[(3,)])
            last = third({"x": x, "a": 2.0}, grid=(3,), output_shapes=shapes, output_dtypes=types)
            for each in (one.run(x, 2.0), found, last["out"]):
                assert isinstance(each, torch.Tensor) and each.tolist() == [0, 2, 4]

    check(ours, theirs, named)
    copied = copy.deepcopy((ours, theirs, named))
    check(*copied)
    y = x.clone().requires_grad_()
    result = copied[0].run(y, 2.0)
    assert isinstance(result, torch.Tensor)
    result.sum().backward()
    assert y.grad is not None and y.grad.tolist() == [2, 2, 2]
    plain = MetalKernel("times", ["x", "a"], ["out"], body, reference=torch.mul)
    plain.run(x, 2.0)
    check(*pickle.loads(pickle.dumps((plain, theirs, named))))
