"""Wrong uses: each is refused before anything runs, with a code, the name of the argument and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel, custom_function, differentiate, export

BODY = "uint i = thread_position_in_grid.x; out[i] = x[i];"
X = torch.zeros(8, device="mps")


def made(
    name: str = "f", inputs: Any = ("x",), outputs: Any = ("out",), source: str = BODY, **rest: Any
) -> MetalKernel:
    return MetalKernel(name, inputs, outputs, source, **rest)


def call(kernel: MetalKernel | None = None, **changes: Any) -> Any:
    arguments = {"inputs": [X], "grid": (8, 1, 1), "threadgroup": (8, 1, 1), "output_shapes": [(8,)],
                 "output_dtypes": [torch.float32], **changes}  # fmt: skip
    return (kernel or made())(**arguments)


def core(**changes: Any) -> Any:
    arguments: dict[str, Any] = {
        "input_names": ["x"], "result_names": ["out"], "src": "out[id] = x[id];", "torch_defn": torch.clone,
        "metal_params": [MetalParameter("id", "uint", "thread_position_in_grid")], **changes,
    }  # fmt: skip
    return TorchMetalKernel("f", **arguments)


def core_call(*inputs: Any, kernel: Any = None, **changes: Any) -> Any:
    arguments = {
        "threads_per_grid": (8, 1, 1),
        "threads_per_thread_group": (8, 1, 1),
        "result_shapes": [[8]],
        **changes,
    }
    return (kernel or core())(*inputs, **arguments)


def atomic() -> MetalKernel:
    return made(source="atomic_fetch_add_explicit(&out[0], 1, memory_order_relaxed);", atomic_outputs=True)


def with_reference(**rest: Any) -> MetalKernel:
    return made(reference=torch.clone, **rest)


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def derive(function: Callable[..., Any]) -> Any:
    x = torch.ones(8, device="mps", requires_grad=True)
    return torch.autograd.grad(function(x).sum(), x)


SCALED = made(inputs=("x", "n"), source="uint i = thread_position_in_grid.x; out[i] = n * x[i];")
MANY = [f"x{i}" for i in range(31)]

WRONG: list[tuple[str, Callable[[], Any], str, str]] = [
    ("a name with a dash", lambda: made("my-exp"), "PTR200", "`my-exp`"),
    ("a keyword as name", lambda: made("kernel"), "PTR200", "`kernel`"),
    ("an input with a dash", lambda: made(inputs=("a-b",)), "PTR201", "input `a-b`"),
    ("a keyword as input", lambda: made(inputs=("device",)), "PTR201", "input `device`"),
    ("one name for input and output", lambda: made(outputs=("x",)), "PTR201", "`x` is used as input and as output"),
    ("one name for two inputs", lambda: made(inputs=("x", "x")), "PTR201", "`x` is used as input and as input"),
    ("an output named as an attribute", lambda: made(outputs=("grid_size",)), "PTR201", "output `grid_size`"),
    ("an input named as a shape", lambda: made(inputs=("x", "x_shape"), source="out[0] = x_shape[0];"), "PTR201",
     "`x_shape`"),
    ("a parameter named as an input", lambda: core(metal_params=[MetalParameter("x", "uint", "grid_size")]), "PTR201",
     "`x`"),
    ("template_dtypes of no input", lambda: core(template_dtypes={"A": "TYPE"}), "PTR201", "`A`"),
    ("text as the list of inputs", lambda: made(inputs="x"), "PTR201", "`input_names` of kernel `f` is 'x', not a list"),
    ("text as the list of results", lambda: core(result_names="out"), "PTR201", "`result_names`"),
    ("arguments in another order", lambda: MetalKernel("f", ("x",), ("out",), ["x"]), "PTR202", "`source` of kernel `f`"),  # type: ignore[arg-type]
    ("no output", lambda: made(outputs=()), "PTR202", "`f` has no outputs"),
    ("an empty body", lambda: made(source=" // nothing\n"), "PTR202", "`f` has an empty body"),
    ("a type that Metal lacks", lambda: made(source="\ndouble d = 1;"), "PTR407", "f body:2: "),
    ("a jump", lambda: made(source="goto end; end: out[0] = 1;"), "PTR407", "`goto`"),
    ("a virtual function", lambda: made(header="struct A { virtual int f(); };"), "PTR407", "f header:1: "),
    ("memory of the heap", lambda: made(source="out[0] = *new float(1);"), "PTR407", "`new`"),
    ("a misspelled attribute", lambda: made(source="out[thread_position_in_gird.x] = 1;"), "PTR203",
     "`thread_position_in_gird`"),
    ("a parameter of no attribute", lambda: core(metal_params=[MetalParameter("id", "uint", "thread_id")]), "PTR203",
     "`id` names `thread_id`"),
    ("a parameter of the wrong type", lambda: core(metal_params=[MetalParameter("id", "int", "grid_size")]), "PTR204",
     "`id` is a `int`"),
    ("an index with dimensions", lambda: core(metal_params=[MetalParameter("id", "uint2", "thread_index_in_simdgroup")]),
     "PTR204", "`id` is a `uint2`"),
    ("a missing input", lambda: call(inputs={}), "PTR205", "lacks `x`"),
    ("too many inputs", lambda: call(inputs=[X, X]), "PTR205", "has 2 entries for 1"),
    ("an unknown input", lambda: call(inputs={"x": X, "y": X}), "PTR205", "`y`"),
    ("no names at all", lambda: call(MetalKernel("f", source=BODY)), "PTR205", "has no names"),
    ("a missing result of Core AI's form", lambda: core_call(), "PTR205", "has 0 entries for 1"),
    ("a missing output shape", lambda: call(output_shapes=[]), "PTR206", "`output_shapes`"),
    ("a missing output type", lambda: call(output_dtypes=[]), "PTR206", "`output_dtypes`"),
    ("an unknown output", lambda: call(output_shapes={"out": (8,), "y": (8,)}), "PTR206", "`y`"),
    ("a negative length", lambda: call(output_shapes=[(-8,)]), "PTR206", "output `out`"),
    ("a shape that is no shape", lambda: call(output_shapes=["8"]), "PTR206", "output `out`"),
    ("too few result shapes", lambda: core_call(X, result_shapes=[]), "PTR206", "`result_shapes`"),
    ("a list for an input", lambda: call(inputs=[[1.0, 2.0]]), "PTR207", "input `x`"),
    ("a number whose type is asked for", lambda: core_call(3.0, kernel=core(template_dtypes={"x": "T"})), "PTR207",
     "input `x`"),
    ("an input on the CPU beside one on the device", lambda: call(made(inputs=("x", "y")), inputs=[X, X.cpu()]),
     "PTR208", "input `y`"),
    ("a type that Metal lacks", lambda: call(inputs=[torch.zeros((), dtype=torch.float64)]), "PTR209", "input `x`"),
    ("an output type that Metal lacks", lambda: call(output_dtypes=[torch.float64]), "PTR209", "output `out`"),
    ("an output type that is none", lambda: call(output_dtypes=["float"]), "PTR209", "output `out`"),
    ("a template parameter with a fraction", lambda: call(template={"N": 1.5}), "PTR210", "`N`"),
    ("a template parameter of a type that Metal lacks", lambda: call(template={"T": torch.float64}), "PTR210", "`T`"),
    ("a template parameter named as an input", lambda: call(template={"x": 1}), "PTR210", "`x`"),
    ("a grid of four dimensions", lambda: call(grid=(1, 1, 1, 1)), "PTR211", "`grid`"),
    ("a negative grid", lambda: call(grid=(-1, 1, 1)), "PTR211", "`grid`"),
    ("a grid with a fraction", lambda: call(grid=(1.5, 1, 1)), "PTR211", "`grid`"),
    ("an empty threadgroup", lambda: call(threadgroup=(0, 1, 1)), "PTR211", "`threadgroup`"),
    ("a threadgroup above the limit", lambda: call(grid=(64, 64, 1), threadgroup=(64, 32, 1)), "PTR212", "2048 threads"),
    ("more than 31 buffers", lambda: call(made(inputs=MANY, source="out[0] = x0[0];"), inputs=[X] * 31), "PTR213",
     "takes 32 buffers"),
    ("more than 32 KB of threadgroup memory",
     lambda: call(made(source="threadgroup float t[9000]; t[0] = x[0]; out[0] = t[0];")), "PTR214", "36000 bytes"),
    ("a number that is too wide", lambda: call(made(inputs=("x", "n")), inputs=[X, 3_000_000_000]), "PTR215",
     "input `n`"),
    ("an atomic of half", lambda: call(atomic(), output_dtypes=[torch.float16]), "PTR216", "output `out`"),
    ("a fraction in a whole output", lambda: call(init_value=0.5, output_dtypes=[torch.int32]), "PTR217", "`out`"),
    ("a start value that is too wide", lambda: call(init_value=300, output_dtypes=[torch.uint8]), "PTR217", "`out`"),
    ("strides that the body does not read",
     lambda: call(made(ensure_row_contiguous=False), inputs=[torch.zeros(16, device="mps")[::2]]), "PTR218", "x_strides"),
    ("a sparse input", lambda: call(made(inputs=("x", "y")), inputs=[X, torch.zeros(4, 4).to_sparse()]), "PTR218",
     "input `y`"),
    ("a template parameter without a value", lambda: call(made(source="T y = x[0]; out[0] = y;")), "PTR219",
     'template={"T": torch.float32}'),
    ("a body that does not compile", lambda: call(made(source="\nout[0] = y[0];")), "PTR219", "f body:2"),
    ("a CPU input and no reference", lambda: call(inputs=[X.cpu()]), "PTR221", "input `x`"),
    ("a shape that is not the reference's", lambda: core_call(X, result_shapes=[[4]]), "PTR222", "output `out`"),
    ("a launch with an argument that no call has", lambda: made(launch=lambda x: {"thread_group": (8, 1, 1)}).run(X), "PTR258",
     "`thread_group`"),
    ("a launch that gives nothing", lambda: made(launch=lambda x: None).run(X), "PTR258", "gives a NoneType"),
    ("a check without a reference", lambda: made().check([X]), "PTR221", "`f` has no reference"),
    ("a name that is no text", lambda: made(name=3), "PTR200", "is 3"),  # type: ignore[arg-type]
    ("a whole kernel as body", lambda: made(source="kernel void f(device float* out) { out[0] = 1; }"), "PTR202",
     "a whole kernel"),
    ("a parameter without an attribute", lambda: core(metal_params=[MetalParameter("id", "uint", None)]), "PTR203", "`id`"),  # type: ignore[arg-type]
    ("a parameter that is a tuple", lambda: core(metal_params=[("id", "uint", "grid_size")]), "PTR204", "`metal_params`"),
    ("one parameter instead of a list", lambda: core(metal_params=MetalParameter("id", "uint", "grid_size")), "PTR204",
     "not a list"),
    ("template_dtypes as a list", lambda: core(template_dtypes=["x"]), "PTR201", "`template_dtypes`"),
    ("a type as placeholder", lambda: core(template_dtypes={"x": torch.float32}), "PTR201", "placeholder"),
    ("a tensor for the inputs", lambda: call(inputs=X), "PTR205", "is a tensor, not a list"),
    ("no inputs", lambda: call(inputs=None), "PTR205", "is None, not a list"),
    ("tensors without a list", lambda: made(inputs=("x", "y"))(X, X), "PTR283", "`grid`"),  # type: ignore[call-overload]
    ("no shapes", lambda: call(output_shapes=None), "PTR206", "`output_shapes` of kernel `f` is None"),
    ("no types", lambda: call(output_dtypes=None), "PTR206", "`output_dtypes` of kernel `f` is None"),
    ("a length beyond 64 bits", lambda: call(output_shapes=[(2**70,)]), "PTR206", "output `out`"),
    ("more elements than addresses", lambda: call(output_shapes=[(2**40, 2**22)]), "PTR206", "output `out`"),
    ("a number beyond 64 bits", lambda: call(made(inputs=("x", "n")), inputs=[X, 2**70]), "PTR215", "input `n`"),
    ("a start value beyond 64 bits", lambda: call(init_value=2**70), "PTR217", "init_value of kernel `f`"),
    ("a start value beyond a float", lambda: call(init_value=1e300), "PTR217", "`out`"),
    ("a whole start value beyond a half", lambda: call(init_value=70_000, output_dtypes=[torch.float16]), "PTR217", "`out`"),
    ("one number as shapes", lambda: call(output_shapes=8), "PTR206", "`output_shapes`"),
    ("one shape as shapes", lambda: call(output_shapes=(2, 4)), "PTR206", "is one shape"),
    ("one type as types", lambda: call(output_dtypes=torch.float32), "PTR206", "`output_dtypes`"),
    ("a text as types", lambda: call(output_dtypes="float32"), "PTR206", "`output_dtypes`"),
    ("one shape as result shapes", lambda: core_call(X, result_shapes=X.reshape(2, 4).shape), "PTR206", "[(2, 4)]"),
    ("no result shapes", lambda: core()(X, threads_per_grid=(8,), threads_per_thread_group=(8,)), "PTR206", "`result_shapes`"),
    ("a type as template", lambda: call(template=torch.float32), "PTR210", "template of kernel `f`"),
    ("names alone as template", lambda: call(template=["T"]), "PTR210", "template of kernel `f`"),
    ("a template parameter that is a number", lambda: call(template={1: 3}), "PTR210", "`1`"),
    ("a template parameter that is a word of Metal", lambda: call(template={"float": 1}), "PTR210", "`float`"),
    ("a template parameter that is an attribute", lambda: call(template={"grid_size": 1}), "PTR210", "`grid_size`"),
    ("a template parameter that is too wide", lambda: call(template={"N": 2**40}), "PTR210", "`N`"),
    ("a grid that 32 bits do not count", lambda: call(grid=(2**33, 1, 1)), "PTR211", "`grid`"),
    ("a text as start value", lambda: call(init_value="0"), "PTR217", "init_value of kernel `f` is '0'"),
    ("a tensor as start value", lambda: call(init_value=X), "PTR217", "init_value of kernel `f` is a tensor"),
    ("a complex start value", lambda: call(init_value=1j), "PTR217", "1j"),
    ("no grid", lambda: made()([X], output_shapes=[(8,)], output_dtypes=[torch.float32]), "PTR283", "`grid`"),
    ("no grid of Core AI's form", lambda: core()(X, threads_per_thread_group=(8,), result_shapes=[[8]]), "PTR283",
     "`threads_per_grid`"),
    ("no group of Core AI's form", lambda: core()(X, threads_per_grid=(8,), result_shapes=[[8]]), "PTR283",
     "`threads_per_thread_group`"),
    ("a template parameter twice", lambda: call(template=[("T", X.dtype), ("T", X.dtype)]), "PTR210", "`T` twice"),
    ("a grid that is an array", lambda: call(grid=X.cpu().numpy()), "PTR211", "`grid`"),
    (
        "a word for two types",
        lambda: core_call(X, X.half(), kernel=core(
            input_names=["x", "y"], torch_defn=torch.add, template_dtypes={"x": "T", "y": "T"})),
        "PTR207", "`y` of kernel `f` is torch.float16 and `x` is torch.float32",
    ),
    ("options that are no mapping", lambda: made(compile_options="safe"), "PTR289", "`compile_options`"),
    ("an unknown option", lambda: made(compile_options={"fast": True}), "PTR289", "unknown option `fast`"),
    ("an unknown mode", lambda: made(compile_options={"math_mode": "precise"}), "PTR289", "`math_mode`"),
    ("a tensor as reference", lambda: made(reference=X), "PTR284", "`reference` of kernel `f` is a Tensor"),
    ("a reference of other arguments", lambda: made(reference=lambda x, y: x), "PTR284", "does not take 1 arguments"),
    ("a launch that is no function", lambda: made(launch={"grid": (8, 1, 1)}), "PTR284", "`launch`"),
    ("a launch of no arguments", lambda: made(launch=lambda: {}), "PTR284", "`launch`"),
    ("a vjp of one argument", lambda: made(vjp=lambda gradient: gradient), "PTR284", "inputs, gradients, outputs"),
    ("a flag that is a text", lambda: made(ensure_row_contiguous="no"), "PTR284", "`ensure_row_contiguous`"),
    ("no torch_defn", lambda: core(torch_defn=None), "PTR284", "`torch_defn`"),
    ("a text as torch_defn", lambda: core(torch_defn="clone"), "PTR284", "`torch_defn`"),
    ("a derivative of no function", lambda: differentiate(X), "PTR284", "differentiate"),  # type: ignore[arg-type]
    ("an export of a function", lambda: export.export(torch.clone, "mlx", [X]), "PTR284", "not a kernel"),  # type: ignore[arg-type]
    ("an export for a tensor", lambda: export.export(with_reference(), "mlx", X), "PTR205", "is a tensor"),  # type: ignore[arg-type]
    ("a check of a tensor", lambda: with_reference().check(X), "PTR205", "is a tensor, not a list"),  # type: ignore[arg-type]
    ("a check of nothing", lambda: with_reference().check([]), "PTR205", "0 entries"),
    ("a check of lists", lambda: with_reference().check([[1.0]]), "PTR207", "input `x`"),  # type: ignore[list-item]
    ("a check of a kernel without names", lambda: MetalKernel("f", source=BODY, reference=torch.clone).check([X]), "PTR205",
     "has no names"),
    ("a check with a wrong launch", lambda: with_reference(launch=lambda x: None).check([X]), "PTR258", "NoneType"),
    ("a check in one type", lambda: with_reference().check([X], dtypes=torch.float32), "PTR285", "`dtypes`"),  # type: ignore[arg-type]
    ("a check in types as text", lambda: with_reference().check([X], dtypes=["float32"]), "PTR285", "`dtypes`"),  # type: ignore[list-item]
    ("a check with one fixed length", lambda: with_reference().check([X], fixed=8), "PTR285", "`fixed`"),  # type: ignore[arg-type]
    ("a check with a number as tolerance", lambda: with_reference().check([X], tolerance=1e-3), "PTR285", "`tolerance`"),  # type: ignore[arg-type]
    ("a check of Core AI's form on a tensor", lambda: core().check(X), "PTR205", "is a tensor"),
    ("a launch of Core AI's form that is a dict", lambda: core().check([X], {}), "PTR284", "`launch`"),
    ("a launch of MLX's words", lambda: core().check([X], lambda x: {"grid": (8,)}), "PTR258", "`grid`"),
    ("a benchmark of a tensor", lambda: with_reference().benchmark(X), "PTR285", "`examples`"),  # type: ignore[arg-type]
    ("a benchmark of one example", lambda: with_reference().benchmark([X]), "PTR285", "[[x]]"),  # type: ignore[list-item]
    ("a benchmark of nothing", lambda: with_reference().benchmark([]), "PTR285", "`examples`"),
    ("numbers as groups", lambda: with_reference().benchmark([[X]], groups=[4]), "PTR285", "`groups`"),  # type: ignore[list-item]
    ("one group as groups", lambda: with_reference().benchmark([[X]], groups=(64, 1, 1)), "PTR285", "`groups`"),  # type: ignore[arg-type]
    ("an empty group", lambda: with_reference().benchmark([[X]], groups=[(0, 1, 1)]), "PTR211", "`threadgroup`"),
    ("a derivative of a kernel without a vjp", lambda: derive(with_reference().run), "PTR286", "differentiate(reference)"),
    ("a gradient that is a text", lambda: derive(with_reference(vjp=lambda p, g, o: "g").run), "PTR226", "gives `x` a str"),
    ("two gradients of a function", lambda: derive(custom_function(double).vjp(lambda p, g, o: (g, g))), "PTR226",
     "function `double` gives 2 gradients"),
    ("a function's gradient of another shape", lambda: derive(custom_function(double).vjp(lambda p, g, o: g[:2])),
     "PTR226", "gives `x` a gradient of shape (2,)"),
    ("a gradient on another device", lambda: derive(with_reference(vjp=lambda p, g, o: g.cpu()).run), "PTR226",
     "gives `x` a gradient on cpu"),
    ("a name with letters of other alphabets", lambda: made("größe"), "PTR200", "`größe`"),
    ("an input with letters of other alphabets", lambda: made(inputs=("größe",)), "PTR201", "input `größe`"),
    ("a body that ends its function", lambda: made(source="out[0] = 1;\n} void g() {"), "PTR202", "f body:2: "),
    ("a body that leaves a brace open", lambda: made(source="if (x[0] > 0) {\n  out[0] = 1;"), "PTR202", "f body:1: "),
    ("a bool as length", lambda: call(output_shapes=[(True,)]), "PTR206", "output `out`"),
    ("a reference that changes its input", lambda: made(reference=lambda x: x.add_(1)).run(X.cpu()), "PTR222",
     "changes its input `x`"),
    ("more threads than 64 bits count", lambda: call(grid=(2**31, 2**31, 2**31), threadgroup=(1, 1, 1)), "PTR211",
     "`grid`"),
    ("a number beyond a float", lambda: call(made(inputs=("x", "n")), inputs=[X, -1e39]), "PTR215", "input `n`"),
    ("a number beyond a float after another", lambda: [call(SCALED, inputs=[X, n]) for n in (1.0, 2.0, 1e39)], "PTR215",
     "input `n`"),
    ("a nested tensor", lambda: call(inputs=[torch.nested.nested_tensor([X.cpu(), X.cpu()[:3]])]), "PTR218",
     "input `x`"),
    ("a value that is indexed", lambda: call(inputs=[X[0]]), "PTR219", "`x` has no dimensions"),
    ("a tangent", lambda: torch.func.jvp(with_reference().run, (X,), (X,)), "PTR286", "input `x`"),
    ("a tangent of a gradient", lambda: torch.func.hessian(with_reference(vjp=lambda p, g, o: g * p[0]).run)(X), "PTR286",
     "forward mode"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "code", "said"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_wrong_use(use: Callable[[], Any], code: str, said: str) -> None:
    with pytest.raises(PorterError) as caught:
        use()
    error = caught.value
    assert error.code == code and said in str(error)
    assert error.hint.endswith((".", "?")) or error.hint.endswith("`.")


def test_words_that_the_body_declares_are_no_attributes() -> None:
    body = "uint thread_index_in_row = thread_position_in_grid.x; out[thread_index_in_row] = x[thread_index_in_row];"
    assert call(made(source=body))[0].tolist() == [0] * 8
