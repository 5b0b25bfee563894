"""A promotion as an operator that is new to PyTorch: its files, its OpInfo, and its test in test_mps.py."""

from __future__ import annotations

from porter.core.layout import KERNELS, NATIVE, OPERATIONS
from porter.plan.new_operator.operator import NewOperator
from porter.plan.new_operator.tests import OperatorTests, write_case, write_opinfo, write_sample_function
from porter.plan.promotion.host_file import write_host_file, write_meta_file
from porter.plan.promotion.kernel_file import write_kernel_file
from porter.plan.promotion.promotion import Promotion
from porter.plan.promotion.style import Style

_FLOATS = frozenset(("float32", "float16", "bfloat16"))
_RELATIVE = {"float32": 1.3e-6, "float16": 1e-3, "bfloat16": 1.6e-2}


def write_operator(promotion: Promotion, style: Style) -> NewOperator:
    """The operator with all its texts, in the style of a fork."""
    op, stem = promotion.op, promotion.schema.file
    cpu = {"CPU": f"{op}_out_cpu"} if promotion.cpu else {}
    files = {
        f"{KERNELS}/{stem}.metal": write_kernel_file(promotion, style),
        f"{OPERATIONS}/{stem}.mm": write_host_file(promotion, style),
        f"{NATIVE}/{stem}.cpp": write_meta_file(promotion),
    }
    return NewOperator(promotion.schema, {**cpu, "MPS": f"{op}_out_mps"}, files, _write_tests(promotion))


def _write_tests(promotion: Promotion) -> OperatorTests:
    """A result is compared with the reference in double precision where that is wider.

    OpInfo's tests compare with the CPU: there is an entry for an operator that has an implementation there.
    """
    op, dtypes = promotion.op, sample_dtypes(promotion)
    parameters = ", dtype=dtype, requires_grad=requires_grad, **bounds"
    samples = write_sample_function(op, promotion.tests.samples, parameters)
    listed = ", ".join(f"torch.{dtype}" for dtype in dtypes)
    floats = "floating_types_and(torch.half, torch.bfloat16)"
    statements = (
        f"expected = reference_{op}(*[widen(a) for a in args])",
        f"actual = torch.{op}(*[a.to('mps') if isinstance(a, torch.Tensor) else a for a in args])",
        *(("for a, e in zip(actual, expected):", "    self.check(a.cpu(), e.to(a.dtype))")
          if len(promotion.schema.results) > 1 else ("self.check(actual.cpu(), expected.to(actual.dtype))",)),
    )  # fmt: skip
    helper = (
        "        def widen(a):\n"
        "            return a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a\n"
    )
    check = f"    def check(self, actual, expected):\n{_write_check(promotion)}\n"
    opinfo = write_opinfo(
        op, "*args", "torch.from_numpy(a) if hasattr(a, 'shape') else a",
        floats if set(dtypes) == _FLOATS else f"torch.testing._internal.common_dtype.custom_types({listed})",
        "           supports_autograd=False,\n",
    )  # fmt: skip
    return OperatorTests(
        functions=f"{samples}\n\n{promotion.tests.reference}",
        opinfo=opinfo if promotion.has_opinfo else "",
        case=write_case(
            promotion.schema, check, helper, f"({listed})" if len(dtypes) > 1 else f"({listed},)", statements
        ),
    )


def sample_dtypes(promotion: Promotion) -> tuple[str, ...]:
    """The element types that the samples are made in: those of the first argument whose type varies."""
    return next((d for d in promotion.dtypes.values() if len(set(d)) > 1), next(iter(promotion.dtypes.values())))


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
