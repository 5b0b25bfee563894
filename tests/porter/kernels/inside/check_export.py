"""Kernels written in other forms run as they did, or are read back and do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel, differentiate
from porter.kernels.export import export, forms, read_back, register
from porter.kernels.export.forms import Form
from porter.kernels.operator import operator
from porter.kernels.script import Script


def scale_reference(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by + x.shape[0]


def matmul_reference(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    return torch.matmul(A, B)


def rounded(x: torch.Tensor) -> torch.Tensor:
    return (x * 3).to(x.dtype)


SILU = MetalKernel(
    "silu", ["x"], ["out"],
    "\n    uint i = thread_position_in_grid.x;\n    float v = float(x[i]);\n    out[i] = T(v / (1 + exp(-v)));\n",
    reference=torch.nn.functional.silu, launch=lambda x: {"template": {"T": x.dtype}},
)  # fmt: skip
SCALE = MetalKernel(
    "scale", ["x", "by"], ["out"],
    'uint i = thread_position_in_grid.x; // a comment with """ and \\ \n'
    "out[i] = x[elem_to_loc(i, x_shape, x_strides, x_ndim)] * by + twice(x_shape[0]) / 2;",
    header="inline int twice(int n) { return 2 * n; }\n", ensure_row_contiguous=False, reference=scale_reference,
)  # fmt: skip
ROWS = MetalKernel(
    "rows", ["x"], ["out"],
    "uint i = thread_position_in_grid.x; out[i] = x[i] * N + x_shape[1] * threads_per_grid.y;",
    reference=lambda x: x * 2 + x.shape[1], launch=lambda x: {"template": {"N": 2}},
)  # fmt: skip
COUNT = MetalKernel(
    "count", ["x"], ["out"], "atomic_fetch_add_explicit(&out[x[thread_position_in_grid.x]], 1, memory_order_relaxed);",
    atomic_outputs=True,
    launch=lambda x: {"grid": (x.numel(), 1, 1), "output_shapes": [(4,)], "output_dtypes": [torch.int32], "init_value": 0},
)  # fmt: skip
TRIPLE = TorchMetalKernel(
    "triple", ["x"], ["out"], "out[id] = TYPE(3) * x[id];", rounded,
    metal_params=[MetalParameter("id", "uint", "thread_position_in_grid")], template_dtypes={"x": "TYPE"},
)  # fmt: skip
MATMUL = TorchMetalKernel(
    "product", ["A", "B"], ["C"],
    "float sum = 0; for (uint k = 0; k < A.get_extent(0); ++k) sum += A[k, g.y] * B[g.x, k]; C[g.x, g.y] = sum;",
    matmul_reference, metal_params=[MetalParameter("g", "uint2", "thread_position_in_grid")],
)  # fmt: skip

X = torch.randn(4, 6, device="mps")
INPUTS: dict[str, list[Any]] = {
    "silu": [X], "scale": [X.t(), 1.5], "rows": [X], "count": [torch.tensor([1, 3, 3, 0], device="mps")],
}  # fmt: skip


def module(files: Any, name: str) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    exec(compile(files[f"{name}.py"], name, "exec"), scope)
    return scope


def listed(found: Any) -> list[torch.Tensor]:
    return [found] if isinstance(found, torch.Tensor) else list(found)


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(listed(one), listed(other), strict=True))


@pytest.mark.parametrize("kernel", [SILU, SCALE, ROWS, COUNT], ids=lambda k: k.kernel.name)
def test_compile_shader(kernel: MetalKernel) -> None:
    name = kernel.kernel.name
    inputs = INPUTS[name]
    written = module(export(kernel, "compile_shader", inputs), name)[name]
    shape = (4,) if name == "count" else inputs[0].shape
    got = written(*inputs, threads=[inputs[0].numel(), 1, 1], group_size=[256, 1, 1], out_shape=shape)
    assert same(got, kernel.run(*inputs))
    with pytest.raises(TypeError, match="x has to be"):
        written(
            torch.zeros(1, dtype=torch.int8, device="mps"), *inputs[1:], threads=[1], group_size=[1], out_shape=(1,)
        )


@pytest.mark.parametrize("kernel", [SILU, SCALE, ROWS, COUNT], ids=lambda k: k.kernel.name)
def test_mlx_read_back(kernel: MetalKernel) -> None:
    name = kernel.kernel.name
    (text,) = export(kernel, "mlx").values()
    again = read_back(text, "mlx")
    assert isinstance(again, MetalKernel) and again.kernel == kernel.kernel
    again._launch, again._reference = kernel._launch, kernel.reference
    again._operator = operator(again.kernel, kernel.reference, None)
    assert same(again.run(*INPUTS[name]), kernel.run(*INPUTS[name]))


def run_core(kernel: Any, *inputs: torch.Tensor, shape: Sequence[int], threads: Sequence[int]) -> torch.Tensor:
    result: torch.Tensor = kernel(
        *inputs, threads_per_grid=threads, threads_per_thread_group=(8, 8, 1), result_shapes=[shape]
    )
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_mlx_from_core_ai(dtype: torch.dtype) -> None:
    x = X.to(dtype)
    (text,) = export(TRIPLE, "mlx").values()
    again = read_back(text, "mlx")
    assert isinstance(again, MetalKernel)
    got = again(inputs=[x], template=[("TYPE", x.dtype)], grid=(24, 1, 1), threadgroup=(24, 1, 1),
                output_shapes=[x.shape], output_dtypes=[x.dtype])  # fmt: skip
    assert same(got, run_core(TRIPLE, x, shape=x.shape, threads=(24, 1, 1)))


def test_core_ai_read_back() -> None:
    for kernel, inputs, shape in ((TRIPLE, [X], (4, 6)), (MATMUL, [X, X.t()], (4, 4))):
        (text,) = export(kernel, "coreai", inputs).values()
        again = read_back(text, "coreai")
        assert isinstance(again, TorchMetalKernel) and again.kernel == kernel.kernel
        threads = (shape[1], shape[0], 1) if kernel is MATMUL else (24, 1, 1)
        assert same(run_core(again, *inputs, shape=shape, threads=threads),
                    run_core(kernel, *inputs, shape=shape, threads=threads))  # fmt: skip


def test_core_ai_from_mlx() -> None:
    (text,) = export(SILU, "coreai", [X]).values()
    again = read_back(text, "coreai")
    assert again.kernel.placeholders == (("x_tensor", "T"),)
    assert same(run_core(again, X, shape=X.shape, threads=(24, 1, 1)), SILU.run(X))
    named = MetalKernel(
        "rows", ["x"], ["out"], ROWS.kernel.body, reference=rounded, launch=lambda x: {"template": {"N": 2}}
    )
    (text,) = export(named, "coreai", [X]).values()
    again = read_back(text, "coreai")
    assert "constexpr int N = 2;" in again.kernel.body and "x_tensor.get_extent(1)" in again.kernel.body
    assert same(run_core(again, X, shape=X.shape, threads=(24, 1, 1)), ROWS.run(X))


@pytest.mark.parametrize("kernel", [SCALE, MATMUL, SILU], ids=lambda k: k.kernel.name)
def test_a_script_of_porter(kernel: Any) -> None:
    (text,) = export(kernel, "porter").values()
    scope: dict[str, Any] = {}
    exec(compile(text, "script", "exec"), scope)
    assert scope["kernel"].kernel == kernel.kernel
    assert isinstance(scope["SCRIPT"], Script)


def test_an_imported_script_says_what_to_fill_in() -> None:
    """Its call is right for a kernel of one thread per element, of one type; only its reference is missing."""
    scope: dict[str, Any] = {}
    (text,) = export(SILU, "mlx").values()
    (script,) = export(read_back(text, "mlx"), "porter").values()
    exec(compile(script, "script", "exec"), scope)
    (stage,) = scope["SCRIPT"].stages
    assert same(stage.run(X), SILU.run(X))
    with pytest.raises(NotImplementedError, match="say in silu_reference what the kernel computes"):
        stage.reference(X)


def test_compile_shader_holds_every_type_that_a_script_calls() -> None:
    calls = [SILU.call_for([X.to(dtype)]) for dtype in (torch.float32, torch.float16)]
    ranks = SILU.call_for([X[0]])
    written = module(export(SILU, "compile_shader", None, calls[0], others=[*calls[1:], ranks]), "silu")
    assert len(written["KERNELS"]) == 2
    for dtype in (torch.float32, torch.float16):
        x = X.to(dtype)
        got = written["silu"](x, threads=[24, 1, 1], group_size=[24, 1, 1], out_shape=x.shape)
        assert got.dtype == dtype and same(got, SILU.run(x))


def test_a_definition_of_a_file_of_core_ai_is_taken_along_with_what_it_calls() -> None:
    (text,) = export(TRIPLE, "coreai", [X]).values()
    call = re.search(r"torch_defn=([\w.]+)", text)
    assert call
    functions = "def thrice(x):\n    return 3 * x\n\n\ndef defined(x):\n    return thrice(x)\n\n\n"
    text = text.replace("kernel = Torch", f"{functions}kernel = Torch").replace(call[0], "torch_defn=defined")
    (script,) = export(read_back(text, "coreai"), "porter").values()
    assert functions.rstrip() in script
    scope: dict[str, Any] = {}
    exec(compile(script, "script", "exec"), scope)
    assert torch.equal(scope["defined"](X), 3 * X)


def test_the_form_of_mlx() -> None:
    assert_expected_inline(
        export(SILU, "mlx")["silu.py"],
        """\
\"\"\"Kernel `silu` for MLX, written by porter.\"\"\"

import mlx.core as mx

kernel = mx.fast.metal_kernel(
    name="silu",
    input_names=["x"],
    output_names=["out"],
    source=\"\"\"
    uint i = thread_position_in_grid.x;
    float v = float(x[i]);
    out[i] = T(v / (1 + exp(-v)));
\"\"\",
    header="",
    ensure_row_contiguous=True,
    atomic_outputs=False,
)


def silu(x, *, grid, threadgroup, output_shapes, output_dtypes, template=(), init_value=None):
    return kernel(
        inputs=[x],
        template=[*template],
        grid=grid,
        threadgroup=threadgroup,
        output_shapes=output_shapes,
        output_dtypes=output_dtypes,
        init_value=init_value,
    )
""",
    )


def test_a_project_for_kernel_builder() -> None:
    files = export(SCALE, "kernel-builder", INPUTS["scale"])
    assert_expected_inline(
        files["build.toml"],
        """\
[general]
name = "scale"
version = 1
backends = ["metal"]

[torch]
src = ["torch-ext/torch_binding.cpp", "torch-ext/torch_binding.h"]

[kernel.scale_metal]
backend = "metal"
depends = ["torch"]
src = ["scale_metal/scale.mm", "scale_metal/scale.metal"]
""",
    )
    assert_expected_inline(
        files["torch-ext/scale/__init__.py"],
        """\
import torch

from ._ops import ops


def scale(x, by, *, threads, group_size, out_shape):
    out = torch.empty(out_shape, dtype=torch.float32, device=x.device)
    ops.scale(x, by, out, threads, group_size)
    return out
""",
    )
    host = files["scale_metal/scale.mm"]
    assert_expected_inline(
        host[host.index("void scale(") : host.index("      const MTLSize size")],
        """\
void scale(const at::Tensor& x, double by, at::Tensor& out, at::IntArrayRef threads, at::IntArrayRef group_size) {
  TORCH_CHECK(x.is_mps(), "x has to be on the mps device");
  TORCH_CHECK(x.scalar_type() == c10::CppTypeToScalarType<float>::value, "x has to be float32");
  TORCH_CHECK(threads.size() == 3 && group_size.size() == 3, "scale: threads and group_size are three sizes");
  if (threads[0] == 0 || threads[1] == 0 || threads[2] == 0) return;
  id<MTLComputePipelineState> state = pipeline();
  @autoreleasepool {
    dispatch_sync(torch::mps::get_dispatch_queue(), ^() {
      id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
      id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
      [encoder setComputePipelineState:state];
      bind(encoder, x, 0);
      bind<int32_t>(encoder, x.sizes(), 1);
      bind<int64_t>(encoder, x.strides(), 2);
      bind<int32_t>(encoder, int32_t(x.dim()), 3);
      bind<float>(encoder, float(by), 4);
      bind(encoder, out, 5);
""",
    )
    library = torch.mps.compile_shader(files["scale_metal/scale.metal"])
    assert all(f'@"{name}"' in host for name in dir(library)) and len(dir(library)) == 1
    assert host.count("{") == host.count("}")


LAUGHS = "\n".join(["a0 = 'x'", *(f"a{i} = a{i - 1} + a{i - 1}" for i in range(1, 40)), "metal_kernel(source=a39)"])
WIDE_LAUGHS = f"a0 = '{'x' * 50_000}'\na1 = {' + '.join(['a0'] * 100)}\nmetal_kernel(source=a1)"
CORE = "TorchMetalKernel('f', ['x'], ['o'], 'o[0] = x[0];', torch_defn={})\n"


@pytest.mark.parametrize(
    "text",
    [
        CORE.format("open('RAN', 'w')"),
        CORE.format("[f for f in [open('RAN', 'w')]][0]"),
        CORE.format("f") + "@open('RAN', 'w').write\ndef f(x):\n    return x\n",
        CORE.format("f") + "def f(x, y=open('RAN', 'w')):\n    return x\n",
        CORE.format("f") + "def f(x, *, y=open('RAN', 'w')):\n    return x\n",
        CORE.format("f") + "def f(x: open('RAN', 'w')) -> open('RAN', 'w'):\n    return x\n",
        CORE.format("f") + "def f(x):\n    open('RAN', 'w')\n    return x\n",
        CORE.format("f") + "open('RAN', 'w')\ndef f(x):\n    return x\n",
        CORE.format("torch.open('RAN', 'w')"),
    ],
)
def test_nothing_of_an_imported_file_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        read_back(text, "coreai")
    except PorterError as error:
        assert error.code == "PTR230"
    assert not (tmp_path / "RAN").exists()


@pytest.mark.parametrize(
    ("use", "code", "said"),
    [
        (lambda: export(SILU, "cuda"), "PTR232", "`cuda`"),
        (lambda: read_back("", "kernel-builder"), "PTR232", "mlx"),
        (lambda: export(SILU, "compile_shader"), "PTR228", "`silu`"),
        (lambda: export(MATMUL, "mlx"), "PTR231", "tensors"),
        (lambda: export(COUNT, "coreai", INPUTS["count"]), "PTR231", "atomic"),
        (lambda: export(SCALE, "coreai", INPUTS["scale"]), "PTR231", "numbers"),
        (lambda: export(ROWS, "coreai", [X]), "PTR231", "reference"),
        (lambda: read_back("x = (", "mlx"), "PTR229", "not Python"),
        (lambda: read_back("x = 1", "mlx"), "PTR229", "no call"),
        (lambda: read_back("metal_kernel(name='a')\nmetal_kernel(name='b')", "mlx"), "PTR229", "2 calls"),
        (lambda: read_back("metal_kernel(name=open('x').read())", "mlx"), "PTR230", "`name`"),
        (lambda: read_back("metal_kernel(name='a', fast=True)", "mlx"), "PTR230", "`fast`"),
        (lambda: read_back("metal_kernel(**options)", "mlx"), "PTR230", "`**options`"),
        (lambda: read_back("metal_kernel(name='a')", "mlx"), "PTR229", "no input_names, output_names, source"),
        (lambda: read_back("x = " + "(" * 5000, "mlx"), "PTR229", "not"),
        (lambda: read_back("x = " + "-" * 100_000 + "1", "mlx"), "PTR229", "too deep"),
        (lambda: read_back("metal_kernel(source=" + "+".join(["'a'"] * 20_000) + ")", "mlx"), "PTR229", "too deep"),
        (lambda: read_back("metal_kernel(source='x' + 5)", "mlx"), "PTR230", "adds"),
        (lambda: read_back("metal_kernel(name=['x'] + 'a')", "mlx"), "PTR230", "adds"),
        (lambda: read_back("metal_kernel(source='\\ud800')", "mlx"), "PTR230", "surrogate"),
        (lambda: read_back("metal_kernel(compile_options={[]: 1})", "mlx"), "PTR230", "`compile_options`"),
        (lambda: read_back("a = b\nb = a\nmetal_kernel(source=a)", "mlx"), "PTR230", "`source`"),
        (lambda: read_back(LAUGHS, "mlx"), "PTR230", "more than 4000 parts"),
        (lambda: read_back(WIDE_LAUGHS, "mlx"), "PTR230", "longer than 4096 KiB"),
        (lambda: read_back("metal_kernel(name=MetalParameter(1))", "mlx"), "PTR230", "MetalParameter"),
        (lambda: read_back("metal_kernel(name=1, input_names=[], output_names=[], source='')", "mlx"), "PTR200", "1"),
        (lambda: read_back("TorchMetalKernel('f', ['x'], ['o'], 'o[0] = x[0];')", "coreai"), "PTR230", "torch_defn"),
        (lambda: read_back("TorchMetalKernel('f', ['x'], ['o'], 'o[0] = 1;', torch_defn=f)", "coreai"), "PTR230", "`f`"),
    ],
)  # fmt: skip
def test_what_cannot_be_exported_or_read_is_said(use: Callable[[], Any], code: str, said: str) -> None:
    with pytest.raises(PorterError) as caught:
        use()
    assert caught.value.code == code and said in str(caught.value).replace("'f'", "`f`")


def with_vjp(vjp: Any) -> MetalKernel:
    return MetalKernel("twice", ["x"], ["y"], "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];",
                       reference=twice, vjp=vjp)  # fmt: skip


def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@pytest.mark.parametrize("form", ["compile_shader", "mlx", "coreai", "kernel-builder", "extension", "porter"])
def test_a_gradient_of_its_own_is_not_lost_silently(form: str) -> None:
    own, derived = with_vjp(lambda p, c, o: 2 * c), with_vjp(differentiate(twice))
    with pytest.raises(PorterError, match=r"PTR256 kernel `twice` has a vjp of its own(.|\n)*--without-vjp"):
        export(own, form, [X])
    assert export(own, form, [X], without_vjp=True) == export(derived, form, [X])


def test_names_and_constants_of_the_file_are_read() -> None:
    text = """
import mlx.core as mx
_HEAD = "uint i = thread_position_in_grid.x;"
def make():
    scale = 3
    body = _HEAD + f" out[i] = x[i] * {scale};"
    return mx.fast.metal_kernel(name=f"by_{scale}", input_names=["x"], output_names=["out"], source=body)
"""
    kernel = read_back(text, "mlx")
    assert kernel.kernel.name == "by_3" and kernel.kernel.body.endswith("out[i] = x[i] * 3;")


def test_options_of_mlx_are_kept_in_the_header() -> None:
    text = "metal_kernel(name='f', input_names=['x'], output_names=['y'], source='y[0] = x[0];', "
    kernel = read_back(text + "compile_options={'math_mode': 'safe'})", "mlx").kernel
    assert kernel.header == "#pragma METAL fp math_mode(safe)\n"
    assert MetalKernel("f", ["x"], ["y"], "y[0] = x[0];", compile_options={"math_mode": "safe"}).kernel == kernel
    with pytest.raises(PorterError, match="PTR289 `math_mode`"):
        read_back(text + "compile_options={'math_mode': 'precise'})", "mlx")


def test_other_forms_can_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    import porter.kernels.export as registry

    monkeypatch.setattr(registry, "_forms", dict(registry._forms))
    register(Form("names", lambda source: {"name": source.kernel.name}))
    assert export(SILU, "names") == {"name": "silu"} and "names" in forms()
