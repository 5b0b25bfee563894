"""Plans the change set that adds a promoted kernel to a fork, and the same files for a folder of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from porter.core.change_set import ChangeSet
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import SCALAR_TYPES, Kind
from porter.core.errors import Place
from porter.core.layout import KERNELS, NATIVE, OPERATIONS, OPINFOS
from porter.plan.new_operator.operator import (
    NewOperator,
    OperatorTests,
    write_case,
    write_opinfo,
    write_sample_function,
)
from porter.plan.new_operator.planner import draft_operator, format_files
from porter.plan.promotion.host_file import Style, read_style, write_host_file, write_kernel_file, write_meta_file
from porter.plan.promotion.promotion import Decision, Promotion

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


_KINDS = {scalar_type.torch: scalar_type.kind for scalar_type in SCALAR_TYPES}
_DIFFERENTIABLE = (Kind.FLOATING, Kind.COMPLEX)


@dataclass(frozen=True)
class PromotionPlan:
    """The promotion, the operator that it is, the change set that adds it, and what a person has to decide."""

    promotion: Promotion
    operator: NewOperator
    changes: ChangeSet
    decisions: tuple[Decision, ...]


def plan_promotion(checkout: Checkout, promotion: Promotion) -> PromotionPlan:
    """The change set that adds an operator to a fork.

    Raises PTR242 for an operator or a file that is there already, and what reading and formatting raise.
    """
    operator = write_operator(promotion, read_style(checkout))
    changes = draft_operator(checkout, operator, "PTR242", "Choose another --op.").changes
    decisions = list(_list_decisions(promotion))
    if not checkout.exists(OPINFOS):
        decisions.append(Decision(Place(OPINFOS), "the checkout has no list of OpInfos, so the operator has none"))
    return PromotionPlan(promotion, operator, changes, tuple(dict.fromkeys(decisions)))


def write_files(checkout: Checkout, promotion: Promotion) -> Mapping[str, str]:
    """The same texts as files of a folder: new files by their names, additions to others by what they are added to.

    The embedded fork stands for none: its files lack what PyTorch's do.
    """
    operator = write_operator(promotion, Style() if checkout.root == EMBEDDED_FORK else read_style(checkout))
    entry = f"\n\n# In op_db\n{operator.tests.opinfo}" if operator.tests.opinfo else ""
    decided = "".join(f"- {decision}\n" for decision in _list_decisions(promotion))
    return {
        **{path.rpartition("/")[2]: text for path, text in format_files(checkout, operator).items()},
        "native_functions.yaml": operator.write_rows(),
        "common_methods_invocations.py": operator.tests.functions + entry,
        "test_mps.py": operator.tests.case,
        "README.md": f"# {promotion.op}\n\nTo decide:\n\n{decided}",
    }


def _list_decisions(promotion: Promotion) -> Iterator[Decision]:
    yield from promotion.decisions
    place = promotion.program.launch.place
    if promotion.cpu and not promotion.has_opinfo:
        yield Decision(place, "the first argument is no tensor, as OpInfo's tests want it to be: there is no OpInfo")
    if any(_KINDS[dtype] in _DIFFERENTIABLE for dtypes in promotion.dtypes.values() for dtype in dtypes):
        what = "there is no gradient: add a formula to derivatives.yaml, or leave the operator without one"
        yield Decision(place, what)
