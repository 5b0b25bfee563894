"""A kernel as a torch operator: on the CPU, traced, compiled, exported, differentiated."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from torch.library import opcheck
from torch.utils._python_dispatch import TorchDispatchMode

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, custom_function, differentiate
from porter.kernels.metal_kernel import _types
from porter.kernels.operator import operator, pack


def reference(x: torch.Tensor, y: torch.Tensor, k: float) -> torch.Tensor:
    return torch.sin(x) * y + k


KERNEL = MetalKernel(
    "sin_times", ["x", "y", "grid"], ["out"],
    "uint i = thread_position_in_grid.x; out[i] = sin(x[i]) * y[i] + grid;",
    reference=reference, vjp=differentiate(reference),
)  # fmt: skip
PRODUCT_GRADIENT = MetalKernel(
    "product_gradient", ["x", "y", "g"], ["dx", "dy"],
    "uint i = thread_position_in_grid.x; dx[i] = g[i] * y[i]; dy[i] = g[i] * x[i];",
    reference=lambda x, y, g: (g * y, g * x),
)  # fmt: skip


def elementwise(kernel: MetalKernel, inputs: list[Any], count: int = 1) -> Any:
    x = inputs[0]
    results = kernel(
        inputs=inputs, grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1),
        output_shapes=[x.shape] * count, output_dtypes=[x.dtype] * count,
    )  # fmt: skip
    assert isinstance(results, list)
    return results[0] if count == 1 else results


def product_vjp(primals: Any, cotangent: torch.Tensor, _: Any) -> Any:
    return elementwise(PRODUCT_GRADIENT, [*primals, cotangent], 2)


PRODUCT = MetalKernel(
    "product", ["x", "y"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] * y[i];",
    reference=torch.mul, vjp=product_vjp,
)  # fmt: skip


def sin_times(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = elementwise(KERNEL, [x, y, 0.5])
    return result


def given(device: str, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x, y = torch.randn(10, dtype=dtype), torch.randn(10, dtype=dtype)
    return x.to(device).requires_grad_(), y.to(device).requires_grad_()


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_a_gradient_from_the_reference(device: str) -> None:
    x, y = given(device)
    sin_times(x, y).sum().backward()
    assert x.grad is not None and y.grad is not None
    assert torch.allclose(x.grad.cpu(), (torch.cos(x) * y).cpu()) and torch.allclose(y.grad.cpu(), torch.sin(x).cpu())


def test_a_gradient_from_a_second_kernel() -> None:
    x, y = given("mps")
    elementwise(PRODUCT, [x, y]).sum().backward()
    assert x.grad is not None and torch.equal(x.grad, y)
    assert torch.autograd.gradcheck(lambda *v: elementwise(PRODUCT, list(v)), given("cpu", torch.float64))


@pytest.mark.filterwarnings("ignore:Input #")
def test_gradcheck() -> None:
    assert torch.autograd.gradcheck(sin_times, given("cpu", torch.float64))
    assert torch.autograd.gradcheck(sin_times, given("mps"), eps=1e-2, atol=1e-2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_compile_without_a_graph_break(device: str, backend: str) -> None:
    torch._dynamo.reset()
    x, y = given(device)

    def whole(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return sin_times(x * 2, y) + 1

    compiled = torch.compile(whole, fullgraph=True, backend=backend)
    result = compiled(x, y)
    assert torch.allclose(result, whole(x, y))
    result.sum().backward()
    assert x.grad is not None and torch.allclose(x.grad.cpu(), (2 * torch.cos(2 * x) * y).cpu(), atol=1e-5)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return sin_times(x, y) + 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_export_keeps_the_kernel_through_decompositions(device: str, dynamic: bool, strict: bool) -> None:
    shapes = ({0: torch.export.Dim("n")}, {0: torch.export.Dim("n")}) if dynamic else None
    x, y = (t.detach() for t in given(device))
    exported = torch.export.export(Model(), (x, y), dynamic_shapes=shapes, strict=strict).run_decompositions()
    called = [str(n.target) for n in exported.graph.nodes if n.op == "call_function"]
    assert sum("porter_kernels.sin_times_" in name for name in called) == 1
    x, y = (torch.randn(33 if dynamic else 10, device=device) for _ in range(2))
    assert torch.allclose(exported.module()(x, y), sin_times(x, y) + 1)


MANY = MetalKernel(
    "many", ["x", "whole", "part", "flags", "length", "start"], ["out"],
    "uint i = thread_position_in_grid.x; out[i] = x[i] * whole + part * (flags ? 2 : 1) + length + start;",
    reference=lambda x, whole, part, flags, length, start: x * whole + part * (2 if flags else 1) + length + start,
)  # fmt: skip


class Many(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first: torch.Tensor = elementwise(MANY, [x, 3, 0.5, True, x.shape[0], -1])
        second: torch.Tensor = elementwise(KERNEL, [first, first, first[0]])
        return first + 0 * second


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_an_exported_program_is_saved_and_loaded(device: str) -> None:
    shapes = {"x": {0: torch.export.Dim("n")}}
    exported = torch.export.export(Many(), (torch.ones(5, device=device),), dynamic_shapes=shapes)
    file = io.BytesIO()
    torch.export.save(exported.run_decompositions(), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    assert loaded(torch.ones(9, device=device)).tolist() == [12] * 9


RUN = MetalKernel(
    "run_times", ["x", "by"], ["out"], "uint i = thread_position_in_grid.x; out[i] = by * x[i];",
    reference=lambda x, by: by * x,
)  # fmt: skip


class Run(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = RUN.run(x, x.shape[0])
        assert isinstance(result, torch.Tensor)
        return result + 1


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_launch_that_a_reference_implies_is_compiled(backend: str, dynamic: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(Run(), fullgraph=True, backend=backend, dynamic=dynamic)
    for count in (5, 7):
        assert compiled(torch.ones(count, device="mps")).tolist() == [count + 1] * count


@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_a_launch_that_a_reference_implies_is_exported(
    strict: bool, best: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.ones(5, device="mps")
    monkeypatch.setattr(RUN, "_best", {_types((x, 5)): (64, 1, 1)} if best else {})
    exported = torch.export.export(Run(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("n")}}, strict=strict)
    module = exported.run_decompositions().module()
    assert module(torch.ones(9, device="mps")).tolist() == [10] * 9
    assert sum("run_times" in str(node.target) for node in exported.graph.nodes) == 1


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_opcheck(device: str) -> None:
    x, y = given(device)
    op = operator(KERNEL.kernel, reference, differentiate(reference)).op
    arguments = pack([x, y, 0.5], (10, 1, 1), (64, 1, 1), [(10,)], [torch.float32])
    tests = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    tests += ["test_autograd_registration"] if device == "cpu" else []  # torch's own knows no mps device
    assert set(opcheck(op, arguments, test_utils=tests).values()) == {"SUCCESS"}


def test_fake_tensors_have_the_shapes_of_the_call() -> None:
    with torch._subclasses.FakeTensorMode():
        x = torch.empty(10, device="mps")
        out = sin_times(x, x)
    assert out.shape == (10,) and out.device.type == "mps"


class Seen(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_what_watches_operators_sees_a_call() -> None:
    x, y = (t.detach() for t in given("mps"))
    sin_times(x, y)
    with Seen() as seen:
        sin_times(x, y)
    with torch.profiler.profile() as profile:
        sin_times(x, y)
    assert any("porter_kernels.sin_times_" in name for name in seen.names)
    assert any("porter_kernels::sin_times_" in event.key for event in profile.key_averages())


def test_a_call_like_an_earlier_one_is_checked_where_it_differs() -> None:
    kernel = MetalKernel("plus", ["x", "n"], ["out"],
                         "uint i = thread_position_in_grid.x; out[i] = x[i] + float(n);")  # fmt: skip

    def run(x: torch.Tensor, n: int) -> list[float]:
        found = kernel([x, n], (), (4, 1, 1), (4, 1, 1), [(4,)], [torch.float32])
        assert isinstance(found, list)
        return found[0].tolist()

    x = torch.zeros(8, device="mps")
    assert run(x[:4], 1) == [1.0] * 4 and run(x[::2], 2) == [2.0] * 4 and run(x[4:], -3) == [-3.0] * 4
    with pytest.raises(PorterError, match="PTR215"):
        run(x[:4], 1 << 31)
    with pytest.raises(PorterError, match="PTR209"):
        kernel([x[:4], 1], (), (4, 1, 1), (4, 1, 1), [(4,)], [torch.float64])


def test_a_kernel_made_twice_is_one_operator() -> None:
    def make(value: float) -> Any:
        return operator(KERNEL.kernel, lambda x, y, k: x + value, None)

    first = make(1.0)
    one = 1.0
    assert operator(KERNEL.kernel, reference, None) is operator(KERNEL.kernel, reference, None)
    assert make(one) is not make(2.0) and first.op is not make(2.0).op


def test_a_reference_that_returns_its_input() -> None:
    kernel = MetalKernel("same", ["x"], ["out"], "out[thread_position_in_grid.x] = x[thread_position_in_grid.x];",
                         reference=lambda x: x)  # fmt: skip
    x = torch.ones(4)
    out = elementwise(kernel, [x])
    out += 1
    assert x.tolist() == [1] * 4


def test_numbers_reach_the_reference_as_numbers() -> None:
    seen: list[object] = []

    def remember(x: torch.Tensor, a: object, b: object, c: object) -> torch.Tensor:
        seen[:] = [a, b, c]
        return x * 1

    kernel = MetalKernel("n", ["x", "a", "b", "c"], ["out"], "out[0] = a + b + c;", reference=remember)
    elementwise(kernel, [torch.ones(3), 2, True, 0.25])
    assert seen == [2, True, 0.25] and [type(v) for v in seen] == [int, bool, float]


def test_no_reference_no_cpu() -> None:
    kernel = MetalKernel("f", ["x"], ["out"], "out[0] = x[0];")
    with pytest.raises(PorterError, match=r"PTR221.*\n.*reference="):
        elementwise(kernel, [torch.ones(3)])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: 3, "gives a int"),
        (lambda x: (x, x), "gives 2 results"),
        (lambda x: x.double(), "float64 of shape"),
        (lambda x: x[:2], r"shape \(2,\)"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_a_reference_that_gives_something_else(wrong: Any, message: str, device: str) -> None:
    kernel = MetalKernel("f", ["x"], ["out"], "out[0] = x[0];", reference=wrong)
    with pytest.raises(PorterError, match=f"PTR222.*{message}"):
        elementwise(kernel, [torch.ones(3, device=device)])


@pytest.mark.parametrize(
    ("wrong", "message"), [(lambda p, c, o: (c, c), "gives 2 gradients"), (lambda p, c, o: c[:1], r"`x`.*\(1,\)")]
)
def test_a_vjp_that_gives_something_else(wrong: Any, message: str) -> None:
    kernel = MetalKernel("f", ["x"], ["out"], "out[0] = x[0];", reference=lambda x: x * 1, vjp=wrong)
    with pytest.raises(PorterError, match=f"PTR226.*{message}"):
        elementwise(kernel, [torch.ones(3, requires_grad=True)]).sum().backward()


def test_a_function_whose_gradient_has_its_name() -> None:
    @custom_function
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x.detach()

    def gradient(primals: Any, cotangent: torch.Tensor, output: torch.Tensor) -> Any:
        assert torch.equal(output, 2 * primals[0])
        return [[3 * cotangent]]  # as the outputs of a kernel are

    assert double.vjp(gradient) is double  # as a decorator, the gradient may go by the function's name
    x = torch.ones(2, requires_grad=True)
    double(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3]


POWER = MetalKernel(
    "power", ["x"], ["out", "sign"],
    "uint i = thread_position_in_grid.x; out[i] = x[i] * x[i]; sign[i] = x[i] < 0 ? -1 : 1;",
    reference=lambda x: (x * x, torch.where(x < 0, -1, 1).int()),
    vjp=differentiate(lambda x: (x * x, torch.where(x < 0, -1, 1).int())),
)  # fmt: skip


def power(x: torch.Tensor) -> torch.Tensor:
    return POWER.run(x)[0].sum()


def test_a_whole_result_has_no_derivative() -> None:
    x = torch.randn(5, device="mps", requires_grad=True)
    out, sign = POWER.run(x)
    assert out.requires_grad and not sign.requires_grad
    assert torch.allclose(torch.autograd.grad(out.sum(), x)[0], 2 * x)


@pytest.mark.parametrize("device", ["mps", "cpu"])
def test_transforms_of_torch_func_differentiate(device: str) -> None:
    x = torch.randn(3, 4, device=device)
    assert torch.allclose(torch.func.grad(power)(x), 2 * x)
    assert torch.allclose(torch.func.vmap(torch.func.grad(power))(x), 2 * x)
    assert torch.allclose(torch.func.jacrev(torch.func.grad(power))(x[0]), 2 * torch.eye(4, device=device))
    unrelated = torch.func.grad(lambda y: (2 * y).sum() + PRODUCT_GRADIENT.run(x, x, x)[0].sum())
    assert torch.equal(unrelated(x), torch.full_like(x, 2))


def test_transforms_of_torch_func_differentiate_a_function_with_a_gradient() -> None:
    @custom_function
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x**3

    cube.vjp(lambda primals, gradient, output: 3 * primals[0] ** 2 * gradient)
    x = torch.randn(3, 4)
    assert torch.allclose(torch.func.vmap(torch.func.grad(lambda y: cube(y).sum()))(x), 3 * x**2)
