"""Metal to PTX, without a GPU: what instructions a kernel becomes, what a launcher learns of it, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from aten_overlay.cuda.compile import SCHEDULED
from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, host_names
from aten_overlay.metal.cuda.compile import compile_ptx
from aten_overlay.metal.cuda.launching import plan_launch
from aten_overlay.metal.cuda.module import PtxModule
from aten_overlay.metal.cuda.target import DEFAULT, CudaOptions
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS
from tests.aten_overlay.cuda.cases import all_cases
from tests.aten_overlay.cuda.needs import assemble, needs_assembler, needs_libdevice

pytestmark = needs_libdevice
AT = "uint i [[thread_position_in_grid]]"
FORK = sorted((EMBEDDED_FORK / KERNELS).glob("*.metal"))


def compile_one(text: str, cuda: CudaOptions = DEFAULT, options: Options = Options()) -> PtxModule:  # noqa: B008
    source = f"#include <metal_stdlib>\nusing namespace metal;\n{text}"
    return compile_ptx(source, host_names(source, options), options, cuda)


def body(module: PtxModule, form: str = "grid") -> str:
    """The instructions of the module's one kernel, in a form."""
    (entry,) = module.entries.values()
    found = re.search(rf"\.entry {entry.symbols[form]}\(.*?\n\}}", module.text, re.S)
    assert found
    return found[0]


def map_kernel(element: str, value: str) -> str:
    return f"kernel void f(device {element}* o [[buffer(0)]], device const {element}* x [[buffer(1)]], {AT}) {{ o[i] = {value}; }}"


@pytest.mark.parametrize(("element", "count"), [("uchar", 16), ("half", 8), ("bfloat", 8), ("float", 4), ("ulong", 2)])
def test_sixteen_bytes_at_once(element: str, count: int) -> None:
    module = compile_one(map_kernel(element, f"{element}(x[i] + x[i])"))
    several = body(module, "several")
    assert module.entries["f"].positions == count
    wide = r"\.global\.v(4\.\w*32|2\.\w*64)"
    stored = r"st\.global\.u32" if element == "uchar" else f"st{wide}"  # clang stores computed bytes in words
    assert re.search(f"ld{wide}", several) and re.search(stored, several)
    assert not re.search(wide, body(module, "flat"))
    assert ".local" not in module.text


def test_a_kernel_that_asks_for_its_threadgroup_has_no_neighbors() -> None:
    text = "kernel void f(device float* o, uint g [[threadgroup_position_in_grid]], uint i [[thread_position_in_grid]]) { o[i] = g; }"
    assert list(compile_one(text).entries["f"].symbols) == ["grid", "flat"]
    waiting = f"kernel void f(device float* o, {AT}) {{ o[i] = simd_sum(o[i]); }}"
    assert list(compile_one(waiting).entries["f"].symbols) == ["grid", "flat"]


INSTRUCTIONS = {
    "bfloat rounds by an instruction": (map_kernel("bfloat", "bfloat(exp(float(x[i])))"), r"cvt\.rn\.bf16\.f32"),
    "half computes in half": (map_kernel("half", "x[i] * half(3)"), r"mul(\.rn)?\.f16"),
    "fma of half": (map_kernel("half", "fma(x[i], x[i], x[i])"), r"fma\.rn\.f16"),
    "division is exact": (map_kernel("float", "x[i] / 3.1f"), r"div\.rn\.f32"),
    "square roots are exact": (map_kernel("float", "sqrt(x[i])"), r"sqrt\.rn\.f32"),
    "integers are summed by an instruction": (map_kernel("int", "simd_sum(x[i])"), r"redux\.sync\.add\.s32"),
    "votes": (map_kernel("uint", "uint(ulong(simd_ballot(x[i] > 1)))"), r"vote\.sync\.ballot"),
    "unsigned minimum": (map_kernel("uint", "simd_min(x[i])"), r"redux\.sync\.min\.u32"),
    "shuffles": (map_kernel("float", "simd_shuffle_xor(x[i], 1)"), r"shfl\.sync"),
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_what_becomes_an_instruction(name: str) -> None:
    text, pattern = INSTRUCTIONS[name]
    assert re.search(pattern, body(compile_one(text)))


def atomic_kernel(kind: str, function: str) -> str:
    return f"kernel void f(device atomic<{kind}>* o, device const {kind}* x, {AT}) {{ atomic_{function}_explicit(o, x[i], memory_order_relaxed); }}"


@pytest.mark.parametrize(
    ("kind", "function", "instruction"),
    [
        ("float", "fetch_add", r"(atom|red)\.global\.add\.f32"),
        ("int", "fetch_add", r"(atom|red)\.global\.add\.u32"),
        ("int", "fetch_min", r"(atom|red)\.global\.min\.s32"),
        ("ulong", "max", r"(atom|red)\.global\.max\.u64"),
        ("ulong", "min", r"(atom|red)\.global\.min\.u64"),
        ("uint", "exchange", r"atom\.global\.exch\.b32"),
    ],
)
def test_atomic_instructions(kind: str, function: str, instruction: str) -> None:
    assert re.search(instruction, body(compile_one(atomic_kernel(kind, function))))


def test_barriers_order_what_they_are_asked_to() -> None:
    def barrier(flags: str) -> str:
        return body(
            compile_one(
                f"kernel void f(device int* o, {AT}) {{ o[i] = 1; threadgroup_barrier(mem_flags::{flags}); o[i] += o[i ^ 1]; }}"
            )
        )

    near, far = barrier("mem_threadgroup"), barrier("mem_device")
    assert "bar.sync" in near and "bar.sync" in far
    assert "membar.gl" not in near and "membar.gl" in far


@needs_assembler
def test_an_order_that_the_host_makes_is_asked_for() -> None:
    """The threads at a barrier are counted, and simdgroups wait for times of their own."""
    text = f"kernel void f(device float* o, {AT}) {{ threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = 1; }}"
    module = compile_one(text, SCHEDULED)
    instructions = ("nanosleep.u32", "barrier.red.popc", "bar.red.popc", "bar.sync", "pm_schedule")
    assert [i for i in instructions if i in body(module)] == ["nanosleep.u32", "bar.red.popc", "pm_schedule"]
    plain = body(compile_one(text))
    assert [i for i in instructions if i in plain] == ["bar.sync"]
    assert assemble(module.text) == ""


def test_fast_math_is_asked_for() -> None:
    text = map_kernel("float", "exp(x[i]) / sqrt(x[i]) + precise::exp(x[i] * 2)")
    strict, fast = body(compile_one(text)), body(compile_one(text, CudaOptions(fast=True)))
    flushed = r"(mul|add|fma|div)[\w.]*\.ftz"
    assert "div.rn.f32" in strict and not re.search(flushed, strict)
    assert "div.rn.f32" not in fast and re.search(flushed, fast)
    quick, exact = (
        body(compile_one(map_kernel("float", f"{name}(x[i])"), CudaOptions(fast=True)))
        for name in ("exp", "precise::exp")
    )
    assert quick.count("fma") < exact.count("fma")


def test_products_and_sums_are_fused_as_on_the_host() -> None:
    text = map_kernel("float", "x[i] * 3.0f + 1.0f")
    separate = body(compile_one(text, options=Options(arithmetic="strict")))
    assert "fma.rn.f32" in body(compile_one(text)) and "fma" not in separate
    assert "mul.rn.f32" in separate or "add.rn.f32" in separate, "ptxas must not fuse them either"


MATRICES = """
kernel void f(device const {0}* a, device const {0}* b, device float* o) {{
  simdgroup_matrix<{0}, 8, 8> x, y;
  simdgroup_float8x8 z = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(x, a);
  simdgroup_load(y, b);
  {1}
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, o);
}}
"""


def test_matrices_are_multiplied_from_where_they_were_loaded() -> None:
    loaded = body(compile_one(MATRICES.format("float", "")))
    assert loaded.count("fma.rn.f32") >= 16 and "shfl" not in loaded and "mma" not in loaded
    changed = body(compile_one(MATRICES.format("float", "x.thread_elements()[0] += 1;")))
    assert changed.count("shfl") == 8


def test_a_matrix_is_read_in_vectors() -> None:
    text = MATRICES.format("float", "").replace("simdgroup_load(y, b);", "simdgroup_load(y, b, 8);")
    loaded = body(compile_one(text))
    assert loaded.count("ld.global.v4") == 2 and loaded.count("ld.global.v2") == 8


def test_a_kernel_that_needs_many_registers_has_an_entry_for_small_threadgroups() -> None:
    sums = " ".join(f"float v{n} = exp(x[i + {n}]);" for n in range(40))
    products = " + ".join(f"v{n} * v{(n * 7) % 40}" for n in range(40))
    text = f"kernel void f(device float* o, device const float* x, {AT}) {{ {sums} o[i] = simd_sum({products}); }}"
    module = compile_one(text)
    entry = module.entries["f"]
    assert dict(entry.narrow) == {"grid": "f__grid_256", "flat": "f__flat_256"}
    assert re.search(r"\.entry f__flat_256\(.*?\.maxntid 256\b", module.text, re.S)
    assert plan_launch(entry, "flat", (1000,), (256,)).symbol == "f__flat_256"
    assert plan_launch(entry, "flat", (1000,), (512,)).symbol == "f__flat"
    assert assemble(module.text) == ""
    assert not compile_one(map_kernel("float", "x[i]")).entries["f"].narrow


@pytest.mark.parametrize("element", ["half", "bfloat"])
def test_tensor_cores_are_asked_for(element: str) -> None:
    text = MATRICES.format(element, "")
    assert "mma.sync" not in body(compile_one(text))
    assert "mma.sync" in body(compile_one(text, CudaOptions(tensor_cores=True)))


ARGUMENTS = """
struct Sizes { uint n; float scale; };
kernel void f(device half4* o [[buffer(3)]], constant Sizes& sizes [[buffer(0)]], constant long* strides [[buffer(1)]],
              threadgroup float* tile [[threadgroup(1)]], device const packed_float3* x [[buffer(2)]],
              uint i [[thread_position_in_threadgroup]]) {
  threadgroup int own[10], one;
  if (i == 0) one = sizes.n;
  own[i % 10] = i;
  tile[i] = x[strides[i % 3]][0] * sizes.scale;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < sizes.n) o[i] = half4(tile[i ^ 1] + own[i % 7] + one);
}
"""


def table(module: PtxModule) -> str:
    (entry,) = module.entries.values()
    lines = [
        f"{p.name} {p.kind} {p.index}: {p.size} bytes at {p.alignment}, of {p.element_size} at {p.element_alignment}{' written' * p.writable}"
        for p in entry.parameters
    ]
    return "\n".join([*lines, f"{entry.static_bytes} bytes, at most {entry.thread_limit} threads"])


def test_what_a_launcher_is_told() -> None:
    assert_expected_inline(
        table(compile_one(ARGUMENTS)),
        """\
o buffer 3: 8 bytes at 8, of 8 at 8 written
sizes constant 0: 8 bytes at 4, of 8 at 4
strides buffer 1: 8 bytes at 8, of 8 at 8
tile threadgroup 1: 4 bytes at 4, of 4 at 4 written
x buffer 2: 8 bytes at 8, of 12 at 4
44 bytes, at most 1024 threads""",
    )


def test_how_constants_are_passed_can_be_chosen() -> None:
    passing = CudaOptions(passing=((0, 0), (1, 24)), threads=128)
    assert_expected_inline(
        table(compile_one(ARGUMENTS, passing)),
        """\
o buffer 3: 8 bytes at 8, of 8 at 8 written
sizes buffer 0: 8 bytes at 8, of 8 at 4
strides constant 1: 32 bytes at 16, of 8 at 8
tile threadgroup 1: 4 bytes at 4, of 4 at 4 written
x buffer 2: 8 bytes at 8, of 12 at 4
44 bytes, at most 128 threads""",
    )


REFUSED = {
    "PTR381": ("kernel void f(texture2d<float> t, device float* o) { o[0] = t.get_width(); }", DEFAULT),
    "PTR382": (f"kernel void f(device float* o, {AT}) {{ o[i] = 1; }}", CudaOptions(arch="sm_75")),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused(code: str) -> None:
    text, cuda = REFUSED[code]
    with pytest.raises(OverlayError) as raised:
        compile_one(text, cuda)
    assert raised.value.code == code


def test_too_much_threadgroup_memory_is_refused() -> None:
    text = f"kernel void f(device float* o, {AT}) {{ threadgroup float x[13000]; x[i] = o[i]; threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = x[i + 1]; }}"
    with pytest.raises(OverlayError, match="declares 52000 bytes"):
        compile_one(text)


@needs_assembler
@pytest.mark.parametrize("path", FORK, ids=lambda path: path.stem)
def test_every_kernel_of_the_embedded_fork(path: Path) -> None:
    options = Options(include=(EMBEDDED_FORK,))
    names = host_names(path, options)
    module = compile_ptx(path, names, options, CudaOptions(forms=("grid",)))
    assert len(module.entries) == len(names) > 0
    assert assemble(module.text) == ""


@needs_assembler
@pytest.mark.parametrize("file", ["memory.metal", "matrices.metal", "grids.metal"])
def test_every_form_of_the_cases(file: str) -> None:
    cases = [case for case in all_cases() if case.file == file]
    options = Options(constants=tuple({index: value for case in cases for index, value in case.values}.items()))
    module = compile_ptx(cases[0].path, dict.fromkeys(case.kernel for case in cases), options)
    assert assemble(module.text) == ""
