"""The CPU kernel that torchgen generates from a function of one element (`ufunc_inner_loop`), which no file holds.

Source: torchgen/dest/ufunc.py; aten/src/ATen/native/ufunc/*.h.
"""

from __future__ import annotations

from collections.abc import Callable

from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import Place, PorterError
from porter.core.layout import NATIVE
from porter.cpu.kernels import CpuKernel, collect_lambdas, same_type
from porter.cpu.lowering import lower
from porter.languages.definitions import Definition, find_definitions, parse_definition

_LOOP = """void {name}_kernel(TensorIteratorBase& iter{scalars}) {{
{converted}
  cpu_kernel(iter, [=]({elements}) -> scalar_t {{ return {name}({given}); }});
}}"""


def read_generated_kernel(
    checkout: Checkout, stub: str, scalars: tuple[str, ...], output: Callable[[DType], DType] = same_type
) -> CpuKernel:
    """Returns the kernel of a stub that torchgen generates, for a row with these scalars.

    It computes every type that Metal has. Raises PTR077 if the fork has no function of one element for it.
    """
    name = stub.removesuffix("_stub")
    path = f"{NATIVE}/ufunc/{name}.h"
    found = find_definitions(path, checkout.read(path), name) if checkout.exists(path) else ()
    element = next((each for each in found if "Vectorized" not in each.text[: each.text.index("{")]), None)
    if element is None:
        raise PorterError("PTR077", f"no file defines the element of {stub}", Place(path), "Write the functor by hand.")
    loop = Definition(path, _write_loop(name, element, scalars), element.place, expanded=True)
    types = {"scalar_t": "T"}
    return collect_lambdas(stub, loop, name, lambda dtype: lower(checkout, loop, dtype, output(dtype), types=types))


def _write_loop(name: str, element: Definition, scalars: tuple[str, ...]) -> str:
    """Returns the generated function: each parameter that is no scalar of the row is an element."""
    given = [each.name for each in parse_definition(element).parameters]
    elements = [f"scalar_t {each}" for each in given if each not in scalars]
    return _LOOP.format(
        name=name,
        scalars="".join(f", const Scalar& {each}" for each in scalars),
        converted="\n".join(f"  auto {each}_ = {each}.to<scalar_t>();" for each in scalars),
        elements=", ".join(elements),
        given=", ".join(f"{each}_" if each in scalars else each for each in given),
    )
