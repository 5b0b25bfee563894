"""The functors of a stub with several results: one for each, launched one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from porter.aten.meta import Promotion, TypeRule
from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import StubCall
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.cpu.kernels import CpuKernel, read_result_kernels
from porter.languages.identifiers import rename_identifiers
from porter.metal.kernel import KernelResult
from porter.metal.launchers import SPLIT

_PROMOTIONS = {"T": Promotion.SAME, dtypes.INT.metal: Promotion.INT, dtypes.BOOL.metal: Promotion.BOOL}


def read_results(
    checkout: Checkout, function: NativeFunction, call: StubCall, rule: TypeRule
) -> tuple[KernelResult, ...]:
    """Returns the kernel of each result. Raises PTR018 for one that no functor computes."""

    def output(dtype: DType) -> DType:
        return dtype if rule.promotion is Promotion.OUTPUT else rule.result(dtype) or dtype

    kernels = read_result_kernels(checkout, call.stub.name, function.results, output)
    return tuple(KernelResult(name, cpu, replace(rule, promotion=_promote(cpu, call))) for name, cpu in kernels)


def _promote(cpu: CpuKernel, call: StubCall) -> Promotion:
    """The result type that a kernel's functions return."""
    types = {each.result for each in cpu.lambdas}
    if len(types) == 1 and (found := _PROMOTIONS.get(next(iter(types)))):
        return found
    why = "; ".join(each.error.what for each in cpu.untranslated) or f"it is {' or '.join(sorted(types))}"
    raise PorterError(
        "PTR018", f"a result of {call.stub.name} has no known type: {why}", call.place, "Port it by hand."
    )


def write_results(bodies: Sequence[str]) -> str:
    """Returns the statements of a host function that launches the kernel of each result, given those of `iter`."""
    launches = (rename_identifiers(body, {"iter": f"results[{at}]"}) for at, body in enumerate(bodies))
    return "\n".join((f"auto results = {SPLIT}(iter);", *launches))
