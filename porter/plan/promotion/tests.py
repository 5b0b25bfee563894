"""The operator's OpInfo, and its test in test_mps.py."""

from __future__ import annotations

from porter.plan.promotion.promotion import Promotion, Sample

_FLOATS = frozenset(("float32", "float16", "bfloat16"))
_RELATIVE = {"float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}


def write_functions(promotion: Promotion) -> str:
    """The functions that make samples and compute what the operator should give."""
    op = promotion.op
    yields = "".join(map(_write_sample, promotion.tests.samples))
    return (
        f"def sample_inputs_{op}(op_info, device, dtype, requires_grad, **kwargs):\n"
        "    def make_arg(shape, dtype=dtype, requires_grad=requires_grad, **bounds):\n"
        "        return torch.testing.make_tensor(\n"
        "            shape, device=device, dtype=dtype, requires_grad=requires_grad, **bounds)\n\n"
        f"{yields}\n\n{promotion.tests.reference}"
    )


def _write_sample(sample: Sample) -> str:
    before = "".join(f"    {line}\n" for line in sample.before)
    return f"{before}    yield SampleInput({_spell_sample(sample)})\n"


def _spell_sample(sample: Sample) -> str:
    first, *rest = sample.arguments
    return f"{first}, args=({', '.join(rest)}{',' if len(rest) == 1 else ''})" if rest else first


def write_opinfo(promotion: Promotion) -> str:
    """The entry of `op_db`, for an operator that has an implementation on the CPU."""
    op = promotion.op
    return (
        f"    OpInfo('{op}',\n"
        f"           ref=lambda *args: {promotion.tests.reference_name}(\n"
        "               *(torch.from_numpy(a) if hasattr(a, 'shape') else a for a in args)).numpy(),\n"
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
    """A test case that compares the operator on MPS with the reference, in double precision where that is wider."""
    op, reference = promotion.op, promotion.tests.reference_name
    several = len(promotion.results) > 1
    dtypes = ", ".join(f"torch.{each}" for each in first_dtypes(promotion))
    listed = f"({dtypes},)" if "," not in dtypes else f"({dtypes})"
    body = [
        f"for sample in sample_inputs_{op}(None, 'cpu', dtype, False):",
        "    args = (sample.input, *sample.args)",
        f"    expected = {reference}(*[widen(a) for a in args])",
        f"    actual = torch.{op}(*[a.to('mps') if isinstance(a, torch.Tensor) else a for a in args])",
        *(["    for a, e in zip(actual, expected):", "        self.check(a.cpu(), e.to(a.dtype))"] if several else
          ["    self.check(actual.cpu(), expected.to(actual.dtype))"]),
    ]  # fmt: skip
    return (
        f"class Test{promotion.file}(TestCase):\n"
        "    def check(self, actual, expected):\n"
        f"{_write_check(promotion)}\n"
        f"    def test_{op}(self):\n"
        "        from torch.testing._internal.common_methods_invocations import (\n"
        f"            {reference},\n            sample_inputs_{op},\n        )\n\n"
        "        def widen(a):\n"
        "            return a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a\n\n"
        f"        for dtype in {listed}:\n" + "".join(f"            {line}\n" for line in body)
    )


def _write_check(promotion: Promotion) -> str:
    """The comparison of one result, with the script's tolerance or the usual one for its type."""
    relative, absolute = promotion.tests.tolerance
    exact = "" if relative is not None and absolute is not None else (
        "        if not actual.is_floating_point():\n"
        "            return self.assertEqual(actual, expected, atol=0, rtol=0)\n"
    )  # fmt: skip
    usual = ", ".join(f"torch.{name}: {value!r}" for name, value in _RELATIVE.items())
    rtol = f"        rtol = {relative!r}\n" if relative is not None else f"        rtol = {{{usual}}}[actual.dtype]\n"
    atol = (
        f"        atol = {absolute!r}\n"
        if absolute is not None
        else "        # Rounding errors of sums grow with what is summed, not with the sum\n"
        "        largest = expected.abs().max().item() if expected.numel() else 0\n"
        "        atol = max(1e-5, 4 * torch.finfo(actual.dtype).eps * largest)\n"
    )
    return f"{exact}{atol}{rtol}        self.assertEqual(actual, expected, atol=atol, rtol=rtol)\n"
