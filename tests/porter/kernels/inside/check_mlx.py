"""MLX's `metal_kernel` on the device: over a stand-in for the parts of MLX that it uses, and over MLX where that is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from porter.core.errors import PorterError
from porter.kernels.export import take_running
from porter.kernels.launch import Mode, running
from porter.kernels.mlx.calls import Launched, MlxError, watching
from porter.kernels.mlx.installing import Installation

NAMES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
         "complex64")  # fmt: skip
COPY = "uint i = thread_position_in_grid.x; out[i] = x[i];"


class Dtype:
    """A type of the stand-in: equal to itself alone."""


TYPES = {getattr(torch, name): Dtype() for name in NAMES} | {torch.bool: Dtype(), torch.float64: Dtype()}


class Array:
    """An array over a tensor of the CPU. `traced` has no values."""

    def __init__(self, tensor: torch.Tensor, traced: bool = False) -> None:
        self.tensor, self.traced = tensor, traced
        self.shape, self.size, self.dtype = tuple(tensor.shape), tensor.numel(), TYPES[tensor.dtype]

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


class CustomFunction:
    """A function whose derivative is `backward`."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def __call__(self, *arrays: Any) -> Any:
        return self.run(*arrays)

    def vjp(self, backward: Callable[..., Any]) -> None:
        self.backward = backward

    jvp = vmap = vjp


def evaluate(*arrays: Array) -> None:
    if any(array.traced for array in arrays):
        raise ValueError("[eval] Attempting to eval an array during function transformations")


def stand_in() -> Any:
    types = {("bool_" if dtype is torch.bool else str(dtype)[6:]): made for dtype, made in TYPES.items()}

    def device(kind: str, index: int = 0) -> SimpleNamespace:
        return SimpleNamespace(type=kind, index=index)

    return SimpleNamespace(
        **types, Dtype=Dtype, array=Array, eval=evaluate, contiguous=lambda a: a, custom_function=CustomFunction,
        from_dlpack=lambda tensor: Array(tensor), fast=SimpleNamespace(metal_kernel=None), cpu="cpu", gpu="gpu",
        metal=SimpleNamespace(is_available=lambda: False), is_available=lambda device: device == "cpu", Device=device,
        default_device=lambda: device("cpu"), set_default_device=None, stream=lambda s: s,
        disable_compile=lambda: None, enable_compile=lambda: None,
    )  # fmt: skip


@pytest.fixture
def mx() -> Iterator[Any]:
    module = stand_in()
    installation = Installation(module)
    installation.install()
    module.installation = installation
    yield module
    installation.uninstall()


def call(
    mx: Any, source: str, inputs: Sequence[Any], output: torch.Tensor, names: Sequence[str] = ("x",), **options: Any
) -> torch.Tensor:
    """The one output of a kernel, of the shape and the type of `output`."""
    of_kernel = {
        key: options.pop(key)
        for key in ("ensure_row_contiguous", "atomic_outputs", "compile_options", "header")
        if key in options
    }
    kernel = mx.fast.metal_kernel(
        name="kernel-1", input_names=list(names), output_names=["out"], source=source, **of_kernel
    )
    launch = {"grid": (output.numel(), 1, 1), "threadgroup": (32, 1, 1), "output_shapes": [output.shape],
              "output_dtypes": [TYPES[output.dtype]]} | options  # fmt: skip
    (array,) = kernel(inputs=list(inputs), **launch)
    tensor = array.tensor
    assert isinstance(tensor, torch.Tensor)
    return tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.uint32, torch.complex64], ids=str)
@pytest.mark.parametrize("count", [0, 1, 9])
def test_arrays_of_every_kind_arrive_and_come_back(mx: Any, dtype: torch.dtype, count: int) -> None:
    x = torch.arange(count).to(dtype)
    assert torch.equal(call(mx, COPY, [Array(x)], x), x)


def test_arguments_of_a_call_mean_what_they_mean_in_mlx(mx: Any) -> None:
    x = torch.arange(10.0)
    source = "uint i = thread_position_in_grid.x; out[i] = e ? T(x[i] * s + f + twice(n)) : T(0);"
    got = call(mx, source, [Array(x), 0.5, 3], x, ("x", "s", "n"), header="int twice(int n) { return 2 * n; }",
               template=[("e", True), ("f", 3), ("T", mx.float16)], stream=mx.gpu)  # fmt: skip
    assert torch.equal(got, x * 0.5 + 9)
    counts = "atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);"
    got = call(
        mx, counts, [Array(x)], torch.zeros(1, dtype=torch.int32), atomic_outputs=True, init_value=5.0, grid=(70, 1, 1)
    )
    assert got.tolist() == [75]
    fast = "#if __FAST_MATH__\nout[0] = 1;\n#else\nout[0] = 0;\n#endif"
    modes = [
        call(mx, fast, [Array(x)], torch.zeros(1), compile_options={"math_mode": mode}) for mode in ("safe", "fast")
    ]
    assert [float(value) for value in modes] == [0, 1]


def test_kernels_use_what_the_headers_of_mlx_declare(mx: Any, tmp_path: Path) -> None:
    folder = tmp_path / "include" / "mlx" / "backend" / "metal" / "kernels"
    folder.mkdir(parents=True)
    (folder / "complex.h").write_text("#pragma once\nstruct complex64_t {\n  float real;\n  float imag;\n};\n")
    include = '#include "mlx/backend/metal/kernels/complex.h"\n'
    text = f"{include}{include}inline float cubed(float x) {{ return x * x * x; }}\nusing metal::uint2;\n"
    (folder / "utils.h").write_text(text)
    mx.__file__ = str(tmp_path / "core.so")
    x, numbers = torch.arange(6.0), torch.complex(torch.arange(6.0), torch.ones(6))
    body = "uint i = thread_position_in_grid.x; "
    assert torch.equal(call(mx, body + "out[i] = cubed(x[i]);", [Array(x)], x), x**3)
    got = call(
        mx, body + "T y = x[i]; y.real *= 2; out[i] = y;", [Array(numbers)], numbers, template=[("T", mx.complex64)]
    )
    assert torch.equal(got, torch.complex(numbers.real * 2, numbers.imag))
    assert torch.equal(call(mx, body + "out[i] = ceildiv(x_shape[0], 4) * x[i];", [Array(x)], x), 2 * x)  # porter's


def test_memory_is_shared_and_strides_are_those_of_the_array(mx: Any) -> None:
    x = torch.arange(24.0).reshape(4, 6).t()[1:, ::2]
    assert torch.equal(call(mx, COPY, [Array(x)], x), x)
    launches: list[Launched] = []
    body = "uint i = thread_position_in_grid.x; out[i] = x[elem_to_loc(i, x_shape, x_strides, x_ndim)];"
    with watching(launches.append):
        assert torch.equal(call(mx, body, [Array(x)], x, ensure_row_contiguous=False), x)
    (value,) = launches[0].call.inputs
    assert isinstance(value, torch.Tensor) and value.data_ptr() == x.data_ptr()
    assert launches[0].called.file == launches[0].origin.file == __file__


def test_a_finding_names_the_line_of_the_call(mx: Any) -> None:
    x = torch.arange(16.0)
    with (
        running(Mode(sanitize=True)),
        pytest.raises(RuntimeError, match=r"(?s)PTR\d+.*The call is at .*check_mlx\.py:\d+"),
    ):
        call(mx, "uint i = thread_position_in_grid.x; out[i] = x[i + 1];", [Array(x)], x)


def test_what_cannot_run_is_a_value_error_with_a_code(mx: Any) -> None:
    x = torch.arange(16.0)
    cases: list[tuple[str, Callable[[], object]]] = [
        ("PTR205", lambda: call(mx, COPY, [], x)),
        ("PTR207", lambda: call(mx, COPY, ["x"], x)),
        ("PTR209", lambda: call(mx, COPY, [Array(x.double())], x)),
        ("PTR219", lambda: call(mx, "out[0] = y;", [Array(x)], x)),
        ("PTR224", lambda: call(mx, COPY, [Array(x, traced=True)], x)),
        ("PTR289", lambda: call(mx, COPY, [Array(x)], x, compile_options={"math_mode": "precise"})),
    ]
    for code, run in cases:
        with pytest.raises(MlxError) as caught:
            run()
        assert caught.value.code == code and isinstance(caught.value, ValueError)


def test_a_kernel_refuses_to_be_differentiated(mx: Any) -> None:
    functions: list[CustomFunction] = []

    def custom_function(run: Callable[..., Any]) -> CustomFunction:
        functions.append(CustomFunction(run))
        return functions[-1]

    mx.custom_function = custom_function
    x = torch.arange(4.0)
    call(mx, COPY, [Array(x)], x)
    with pytest.raises(MlxError, match="no derivative"):
        functions[0].backward()


def test_programs_are_told_of_a_gpu_unless_they_are_not(mx: Any) -> None:
    assert mx.metal.is_available() and mx.is_available("gpu") and mx.default_device().type == "gpu"
    with mx.installation.without_metal():
        assert not mx.metal.is_available() and not mx.is_available("gpu") and mx.default_device().type == "cpu"
    mx.set_default_device("cpu")
    assert mx.default_device().type == "cpu" and mx.stream("gpu") == "cpu"
    mx.installation.uninstall()
    assert mx.fast.metal_kernel is None and not mx.metal.is_available()


FACTORIES = """
from __future__ import annotations
import mlx.core as mx

def _build(name, source, names=("x",)):
    return mx.fast.metal_kernel(name=name, input_names=list(names), output_names=["y"], source=source)

plain = _build("plain", "y[thread_position_in_grid.x] = x[thread_position_in_grid.x];")

def by(factor: int, eps: float):
    return mx.fast.metal_kernel(name=f"by_{factor}", input_names=["x"], output_names=["y"],
                                source=f"uint i = thread_position_in_grid.x; y[i] = x[i] * {factor} + {eps};")

def narrow(lanes: int):
    if lanes > 8:
        raise ValueError("too wide")
    return mx.fast.metal_kernel("narrow", ["x"], ["y"], "y[0] = x[0];")

def scale(x, count):
    kernel = _build("scale", "y[thread_position_in_grid.x] = T(x[thread_position_in_grid.x]) * n + z;", ("x", "n", "z"))
    return kernel(inputs=[x, count, 0.5], template=[("T", mx.float16), ("FLAG", True)], grid=(4, 1, 1),
                  threadgroup=(4, 1, 1), output_shapes=[(4,)], output_dtypes=[mx.float16], init_value=0)[0]

def named(source: str):
    return mx.fast.metal_kernel("named", ["x"], ["y"], source)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a package, under the stand-in for MLX."""
    core, whole = stand_in(), ModuleType("mlx")
    whole.core = core  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlx", whole)
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    for module in ("factories_of_mlx", "factories_of_mlx.inner"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    folder = tmp_path / "factories_of_mlx"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .inner import plain\n")
    (folder / "inner.py").write_text(FACTORIES)
    return folder / "inner.py"


def test_a_file_that_runs_gives_each_kernel_that_it_makes(package: Path) -> None:
    files, notes = take_running(package, "mlx")
    assert sorted(files) == ["by_64.py", "narrow.py", "plain.py"]
    assert "x[i] * 64 + 1e-05" in files["by_64.py"]
    assert [note.partition(" was called")[0].partition(" in line")[0] for note in notes] == [
        "by(factor=64, eps=1e-05)", "narrow(lanes=8)", "named(source)",
    ]  # fmt: skip
    assert not any(str(package.parent.parent) == entry for entry in sys.path)


def test_a_call_of_the_user_gives_the_launch_that_it_makes(package: Path) -> None:
    call = "import torch; from check_mlx import Array; scale(Array(torch.arange(4.0)), 3)"
    sys.modules["check_mlx"] = sys.modules[__name__]
    files, notes = take_running(package, "mlx", "scale", [call])
    scope: dict[str, Any] = {}
    exec(compile(files["scale.py"], "script", "exec"), scope)
    (case,) = scope["SCRIPT"].cases()
    values = scope["SCRIPT"].values(case)
    assert values["n"] == 3 and values["z"] == 0.5 and case.dtype == torch.float32 and not notes
    (stage,) = scope["SCRIPT"].stages
    got = stage.run(*(values[name] for name in stage.takes))
    assert got.dtype == torch.float16 and torch.equal(got.cpu(), (values["x"].cpu().half() * 3 + 0.5))


@pytest.mark.parametrize(
    ("code", "form", "kernel", "calls", "said"),
    [
        ("PTR240", "mlx", "nosuch", (), "by_64"),
        ("PTR232", "coreai", None, (), "read, not run"),
        ("PTR238", "mlx", None, ("1 / 0",), "ZeroDivisionError"),
        ("PTR229", "mlx", None, ("pass",), "named(source)"),
    ],
)
def test_a_file_that_gives_no_kernel_says_why(
    package: Path, code: str, form: str, kernel: str | None, calls: tuple[str, ...], said: str
) -> None:
    if calls:  # these run nothing, as does the file
        package.write_text(FACTORIES.replace("plain = ", "plain = None and "))
    with pytest.raises(PorterError) as caught:
        take_running(package, form, kernel, calls)
    assert caught.value.code == code and said in str(caught.value)


def test_more_buffers_than_metal_binds_are_refused_when_a_kernel_is_made(mx: Any) -> None:
    with pytest.raises(MlxError, match="PTR213"):
        mx.fast.metal_kernel(name="many", input_names=[f"x{i}" for i in range(40)], output_names=["out"], source=COPY)
