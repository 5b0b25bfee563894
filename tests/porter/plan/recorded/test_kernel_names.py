"""Host code finds the kernel that it names: no other of the library has a name that it can make."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNELS
from porter.languages.directives import read_macros
from porter.plan.recorded.blocked import check_names, list_kernel_names
from porter.plan.recorded.port import WrittenKernel

FILE = f"{KERNELS}/Made.metal"
OWN = """\
#define REGISTER_PAIRS(NAME, A) \\
  template [[host_name(#NAME "_" #A)]] kernel void pairs<A>(device A* x)
#define make_pairs(A) REGISTER_PAIRS(sum_bool, A); REGISTER_PAIRS(plus, A)

make_pairs(half);
// kernel void sum_float(uint i)
kernel void sum_long_times(uint i [[thread_position_in_grid]]) {}
"""


def write(name: str, types: str) -> WrittenKernel:
    """A kernel that is instantiated for one choice of types."""
    words = types.split()
    params = [f"T{i}" for i, _ in enumerate(words)]
    host_name = "".join(f' "_" #{each}' for each in params).replace('" "', "")
    macro = f"REGISTER_{name.upper()}"
    source = (
        f"template <typename T>\nkernel void {name}(device T* x) {{}}\n\n#define {macro}({', '.join(params)}) \\\n"
        f'  template [[host_name("{name}"{host_name})]] kernel void {name}<{", ".join(params)}>(device T0* x)\n\n'
        f"{macro}({', '.join(words)});\n"
    )
    return WrittenKernel(FILE, name, source, ((FLOAT,),), ((name, len(words)),))


def check(own: str, *kernels: WrittenKernel) -> None:
    text = own + "".join(each.source for each in kernels)
    check_names(Checkout(Path("/nowhere"), "test").layer({FILE: text}), kernels)


def test_names_are_those_of_the_macros_and_of_plain_kernels() -> None:
    assert list_kernel_names(OWN) == ("sum_bool_half", "plus_half", "sum_long_times")
    assert list_kernel_names(write("sum", "bool float").source) == ("sum_bool_float",)


def test_convenience_macros_of_the_fork_are_expanded() -> None:
    shared = read_macros(Checkout(EMBEDDED_FORK, "test").read(INDEXING))
    unary = list_kernel_names("REGISTER_UNARY_OP(abs, float, half);\n", shared)
    assert {"abs_dense_half_float", "abs_strided_half_float"} <= set(unary)


def test_kernels_of_other_names_and_counts_of_types_pass() -> None:
    check(OWN, write("sum", "float half int"), write("sum_of_bool", "float int"), write("mean", "float"))
    check(OWN, write("sum_bool", "half long"))


@pytest.mark.parametrize(
    ("own", "kernels", "name"),
    [
        ("", (write("sum", "long float"), write("sum_bool", "float")), "sum_bool_float of sum and"),
        ("", (write("sum_bool", "float"), write("sum", "long float")), "sum_bool_float of sum and"),
        (OWN, (write("sum", "float float"),), "sum_bool_half of sum and"),
        (OWN, (write("plus", "float"),), "plus_half of plus and"),
        (write("sum", "float").source, (write("sum", "float"),), "sum_float of sum and"),
    ],
)
def test_a_name_that_host_code_makes_of_another_kernel_is_refused(
    own: str, kernels: tuple[WrittenKernel, ...], name: str
) -> None:
    with pytest.raises(PorterError, match=f"PTR490 .*{name}"):
        check(own, *kernels)
