"""The operator's OpInfo, and its test in test_mps.py."""

from __future__ import annotations

from porter.core.dtypes import SCALAR_TYPES
from porter.plan.promotion.promotion import Promotion, Sample

_FLOATS = frozenset(("float32", "float16", "bfloat16"))
_RELATIVE = {"float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}
_KINDS = {each.torch: each.kind.value for each in SCALAR_TYPES}


def write_functions(promotion: Promotion) -> str:
    """The functions that make samples and compute what the operator should give."""
    op = promotion.op
    yields = "".join(f"    yield SampleInput({_spell_sample(each)})\n" for each in promotion.tests.samples)
    return (
        f"def sample_inputs_{op}(op_info, device, dtype, requires_grad, **kwargs):\n"
        "    def make_arg(shape, dtype=dtype, requires_grad=requires_grad, **bounds):\n"
        "        return torch.testing.make_tensor(\n"
        "            shape, device=device, dtype=dtype, requires_grad=requires_grad, **bounds)\n\n"
        f"{yields}\n\n{promotion.tests.reference}"
    )


def _spell_sample(sample: Sample) -> str:
    first, *rest = sample.arguments
    return f"{first}, args=({', '.join(rest)},)" if rest else first


def write_opinfo(promotion: Promotion) -> str:
    """The entry of `op_db`, for an operator that has an implementation on the CPU."""
    op = promotion.op
    return (
        f"    OpInfo('{op}',\n"
        f"           ref=lambda *args: {promotion.tests.reference_name}(\n"
        f"               *(torch.from_numpy(a) if hasattr(a, 'shape') else a for a in args)).numpy(),\n"
        f"           dtypes={_spell_dtypes(promotion)},\n"
        f"           sample_inputs_func=sample_inputs_{op},\n"
        "           supports_autograd=False,\n"
        "           ),\n"
    )


def _spell_dtypes(promotion: Promotion) -> str:
    dtypes = first_dtypes(promotion)
    if set(dtypes) == _FLOATS:
        return "floating_types_and(torch.half, torch.bfloat16)"
    return f"torch.testing._internal.common_dtype.custom_types({', '.join(f'torch.{each}' for each in dtypes)})"


def first_dtypes(promotion: Promotion) -> tuple[str, ...]:
    """The element types that the samples are made in: those of the first argument whose type varies."""
    return next((d for d in promotion.dtypes.values() if len(set(d)) > 1), next(iter(promotion.dtypes.values())))


def write_test(promotion: Promotion) -> str:
    """A test case that compares the operator on MPS with the reference in double precision."""
    op, reference = promotion.op, promotion.tests.reference_name
    dtypes = ", ".join(f"torch.{each}" for each in first_dtypes(promotion))
    several = len(promotion.results) > 1
    floating = _KINDS[first_dtypes(promotion)[0]] == "floating"
    wide = "a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args" if floating else "args"
    expected = f"{reference}(*({wide}))" if floating else f"{reference}(*args)"
    actual = f"torch.{op}(*(a.to('mps') if isinstance(a, torch.Tensor) else a for a in args))"
    pairs = "zip(actual, expected)" if several else "((actual, expected),)"
    relative, absolute = promotion.tests.tolerance[""]
    rtol = f"{relative!r}" if relative is not None else "{" + ", ".join(
        f"torch.{each}: {_RELATIVE[each]!r}" for each in _RELATIVE
    ) + "}.get(a.dtype, 0)"
    return (
        f"class Test{promotion.file}(TestCase):\n"
        f"    def test_{op}(self):\n"
        "        from torch.testing._internal.common_methods_invocations import "
        f"{reference}, sample_inputs_{op}\n\n"
        f"        for dtype in ({dtypes},):\n"
        f"            for sample in sample_inputs_{op}(None, 'cpu', dtype, False):\n"
        f"                args = (sample.input, *sample.args)\n"
        f"                expected = {expected}\n"
        f"                actual = {actual}\n"
        f"                for a, e in {pairs}:\n"
        f"                    e = e.to(a.dtype)\n"
        + (
            f"                    # Rounding errors of sums grow with what is summed, not with the sum\n"
            f"                    largest = e.abs().max().item() if e.numel() else 0\n"
            f"                    atol = max(1e-5, 4 * torch.finfo(a.dtype).eps * largest) if a.is_floating_point() else 0\n"
            if absolute is None
            else f"                    atol = {absolute!r}\n"
        )
        + f"                    self.assertEqual(a.cpu(), e, atol=atol, rtol={rtol})\n"
    )
