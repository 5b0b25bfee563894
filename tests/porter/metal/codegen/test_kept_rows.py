"""What threads keep of rows is named in the order of the text, whatever an expression's digest is."""

from __future__ import annotations

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, call, intern
from porter.loops.fusion import Store
from porter.loops.host_values import Constant, Size, SizeProduct
from porter.metal.codegen.kernel import write_kernel
from tests.porter.metal.codegen.test_kernel_values import STYLES
from tests.porter.plan.recorded import fork


def write_quotients(number: int) -> str:
    """Elements plus a number, divided by elements minus it and by the sum of the products of both."""
    width = fork.named("width", Size("self", Constant(-1)), 7)
    row, column, reduced = Loop("i0", 6), Loop("i1", 7, width), Loop("r1.0", 7, width)
    start = intern(Op.PRODUCT, (fork.index(row), fork.integer(width)))

    def shift(loop: Loop, by: float) -> Expr:
        element = fork.read(intern(Op.SUM, (start, fork.index(loop))))
        return call("addition", (element, intern(Op.NUMBER, (), FLOAT, by)), FLOAT)

    product = call("multiplication", (shift(reduced, number), shift(reduced, -number)), FLOAT)
    total = intern(Op.REDUCE, (product,), FLOAT, Reduction(ReductionKind.SUM, (reduced,)))
    quotient = call("division", (shift(column, number), shift(column, -number)), FLOAT)
    value = call("multiplication", (quotient, total), FLOAT)
    store = Store(fork.OUTPUT, FLOAT, 42, (row, column), intern(Op.SUM, (start, fork.index(column))), value)
    programs = fork.program("quotients", store, (row,), SizeProduct("self", None, Constant(-1)), (6, 7))
    [program] = programs.cases
    kernel = write_kernel(program, program.nests[0], "tested", {0: "output"}, STYLES[0])
    return kernel.source.replace(str(number), "NUMBER")


def test_arrays_have_names_in_the_order_of_the_text() -> None:
    texts = {write_quotients(number) for number in range(50, 60)}
    assert len(texts) == 1
    [text] = texts
    assert text.index("kept[") < text.index("kept2[")
