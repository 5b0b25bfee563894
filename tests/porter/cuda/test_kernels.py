"""The CUDA kernel of a stub, as a source of functors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.checkout import Checkout
from porter.core.dtypes import BOOL, FLOAT, LONG, Kind
from porter.core.errors import Place, PorterError
from porter.core.layout import CUDA_KERNELS
from porter.cpu.kernels import CpuKernel, Untranslated
from porter.cuda.loops import read_cuda_kernel
from porter.metal.candidates import build_functor, list_candidates, note_other_sources
from porter.metal.functor import FunctorSpec, Source
from tests.porter.metal.test_lambda_body import LAMBDA, subject

KERNELS = """
constexpr char bend_name[] = "bend";
const auto bend_string = jiterator_stringify(
  template <typename T> T bend(T x) { return unknown_to_metal(x); }
);
void bend_kernel_cuda(TensorIteratorBase& iter) {
#if AT_USE_JITERATOR()
  AT_DISPATCH_FLOATING_TYPES(iter.dtype(), "bend_cuda", [&]() {
    jitted_gpu_kernel<bend_name, scalar_t, scalar_t, 1>(iter, bend_string);
  });
#else
  AT_DISPATCH_FLOATING_TYPES(iter.dtype(), "bend_cuda", [&]() {
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a) -> scalar_t { return a + scalar_t(1); });
  });
#endif
}
constexpr char both_name[] = "both";
const auto both_string = jiterator_stringify(
  template <typename T> bool both(T a, T b) { return a && b; }
);
void both_kernel_cuda(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "both_cuda", [&]() {
    jitted_gpu_kernel<both_name, scalar_t, scalar_t, 2>(iter, both_string);
  });
}
void split_kernel_cuda(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.dtype(), "split_cuda", [&]() {
    gpu_kernel_multiple_outputs(iter, [] GPU_LAMBDA(scalar_t a) -> thrust::tuple<scalar_t, scalar_t> { return {a, a}; });
  });
}
void sum_kernel_cuda(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.dtype(), "sum_cuda", [&]() {
    using acc_t = at::acc_type<scalar_t, true>;
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a) -> scalar_t { return static_cast<acc_t>(a) * static_cast<acc_t>(a); });
  });
}
REGISTER_DISPATCH(bend_stub, &bend_kernel_cuda)
REGISTER_DISPATCH(both_stub, &both_kernel_cuda)
REGISTER_DISPATCH(split_stub, &split_kernel_cuda)
REGISTER_DISPATCH(sum_stub, &sum_kernel_cuda)
REGISTER_DISPATCH(far_stub, &defined_elsewhere)
"""
PLACE = Place("Kernel.cu", 1)
CUDA = CpuKernel(
    "bend_stub", "bend", (), (FLOAT,), (replace(LAMBDA, body="z * 2", dtypes=(FLOAT,)),), (), PLACE, "CUDA"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / CUDA_KERNELS).mkdir(parents=True)
    (tmp_path / CUDA_KERNELS / "Kernels.cu").write_text(KERNELS)
    return Checkout(tmp_path, "test")


def test_the_lambda_beside_a_string_stands_for_one_that_cannot_be_read(checkout: Checkout) -> None:
    kernel = read_cuda_kernel(checkout, "bend_stub")
    assert [(one.body, one.dtypes) for one in kernel.lambdas] == [("a + T(1)", (FLOAT,))]
    assert (kernel.device, str(kernel.lambdas[0].place)) == ("CUDA", f"{CUDA_KERNELS}/Kernels.cu:13")


def test_integers_accumulate_in_64_bits(checkout: Checkout) -> None:
    kernel = read_cuda_kernel(checkout, "sum_stub")
    found = {dtype: one.body for one in kernel.lambdas for dtype in one.dtypes}
    assert found[LONG] == "a * a"
    assert {body for dtype, body in found.items() if dtype != LONG} == {"static_cast<T>(long(a) * long(a))"}


def test_a_string_that_returns_bool_has_no_complex_result(checkout: Checkout) -> None:
    [one] = read_cuda_kernel(checkout, "both_stub", lambda dtype: BOOL).lambdas
    assert (one.result, one.body) == ("bool", "metal::any(a != T(0)) && metal::any(b != T(0))")


def test_several_outputs_are_named(checkout: Checkout) -> None:
    [untranslated] = read_cuda_kernel(checkout, "split_stub").untranslated
    assert untranslated.error.what == "cannot translate the CUDA kernel: the call to gpu_kernel_multiple_outputs"


@pytest.mark.parametrize("stub", ["lone_stub", "far_stub"])
def test_a_stub_without_a_kernel_is_refused(checkout: Checkout, stub: str) -> None:
    with pytest.raises(PorterError) as caught:
        read_cuda_kernel(checkout, stub)
    assert caught.value.code == "PTR335"


def asked(**changes: object) -> FunctorSpec:
    return replace(subject(LAMBDA), cuda=CUDA, **changes)  # type: ignore[arg-type]


def test_the_cuda_kernel_is_the_only_candidate_where_it_is_asked_for() -> None:
    [body] = list_candidates(asked(source=Source.CUDA), Kind.FLOATING)
    assert (body.statements, str(body.origin)) == (("return x * 2;",), "ATen's CUDA kernel (Kernel.cpp:1)")


def test_the_cuda_kernel_is_the_last_candidate_where_the_cpu_kernel_is_not_read() -> None:
    assert [body.statements for body in list_candidates(asked(), Kind.FLOATING)] == [("return x;",)]
    unread = replace(subject(), cuda=CUDA)
    assert list_candidates(unread, Kind.FLOATING)[-1].statements == ("return x * 2;",)


def test_kinds_that_the_cuda_kernel_lacks_are_said_with_their_source() -> None:
    spec = asked(source=Source.CUDA)
    [note, *_] = note_other_sources(spec, build_functor(spec, {}).origins)
    assert note.endswith(
        "elements are not those of the CUDA kernel (it does not compute them), but of: ATen's CPU kernel (Kernel.cpp:1)"
    )


def test_a_cuda_kernel_of_which_nothing_is_read_is_refused() -> None:
    error = PorterError("PTR079", "the thing has no Metal equivalent", PLACE)
    spec = asked(source=Source.CUDA)
    spec = replace(spec, cuda=replace(CUDA, lambdas=(), untranslated=(Untranslated((FLOAT,), error),)))
    with pytest.raises(PorterError) as caught:
        list(note_other_sources(spec, build_functor(spec, {}).origins))
    assert (caught.value.code, caught.value.what) == (
        "PTR336",
        "the CUDA kernel of bend cannot be translated: the thing has no Metal equivalent",
    )
