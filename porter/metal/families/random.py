"""Kernels that fill a tensor with random numbers, drawn by the fork's Philox (c10/metal/random.h).

The words of an element are those at the generator's offset plus its index; host code advances the offset by the number
of elements, so that no two calls share words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import StubCall
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.formatting import format_block
from porter.core.layout import KERNELS, OPERATIONS, RANDOM
from porter.languages.identifiers import find_words
from porter.metal import launchers
from porter.metal.distributions import Distribution, distributions, draws_numbers, with_own_words
from porter.metal.functor import Origin, Provenance
from porter.metal.helpers import read_helper
from porter.metal.host import find_function_anchor, find_registration_anchor, has_registrations, write_kernel_function
from porter.metal.insertion import insert_includes
from porter.metal.kernel import CandidateChoice, Kernel, KernelSpec
from porter.metal.kernel_files import create_pair, read_host_style
from porter.metal.macros import Instance
from porter.metal.registration import Line

FUNCTORS = False
_STEM = "RandomKernel"
_FILE, _HOST = f"{KERNELS}/{_STEM}.metal", f"{OPERATIONS}/{_STEM}.mm"
_HEADERS = (
    "ATen/core/Generator.h", "ATen/mps/MPSGeneratorImpl.h", "ATen/native/mps/OperationUtils.h", "fmt/format.h",
)  # fmt: skip


def refusal(function: NativeFunction, call: StubCall) -> PorterError | None:
    """Returns PTR018 for a stub that draws no numbers, or those of a distribution that the table lacks."""
    if call.stub.name in distributions() and draws_numbers(call.stub):
        return None
    what = f"{call.stub.name} of {function.name} draws no random numbers that the table knows"
    return PorterError("PTR018", what, call.place, "Port it by hand.")


def write(fork: Checkout, spec: KernelSpec, choice: CandidateChoice) -> tuple[Kernel, ...]:
    """Returns the kernel. Raises PTR351 if the fork has no Philox for Metal."""
    if not fork.exists(RANDOM):
        what = f"this fork has no {RANDOM}, which draws random numbers in Metal"
        raise PorterError("PTR351", what, Place(RANDOM), "Update it from upstream first.")
    row, stub = distributions()[spec.call.stub.name], spec.call.stub
    name = stub.name.removesuffix("_stub")
    created = create_pair(fork, _STEM)
    host = read_host_style(fork.layer(dict(created)) if created else fork, _HOST)
    source = format_block(fork.layer(dict(created)), _FILE, write_functor(name, row))
    lines = tuple(_register(name, row, dtype) for dtype in row.dtypes)
    function = host.function(name)
    types = spec.call.stub.types
    first = "iter" if "TensorIterator" in types[0] else "self"
    # The parameters that the table's expressions are made of
    operands = (row.operand,) if row.operand else tuple(find_words(each)[-1] for each in row.params)
    parameters = list(zip(types, (first, *operands, "generator"), strict=True))
    body = write_kernel_function(function, parameters, _write_launch(name, spec.call, row))
    kernel = Kernel(
        name=name,
        stub=stub,
        source=source,
        origins=(Origin((), Provenance("the table of distributions"), 0, 1),),
        registrations=lines,
        dtypes=row.dtypes,
        kernel_file=_FILE,
        host_file=_HOST,
        function=function,
        notes=spec.notes,
        steps=(
            lambda fork: (Edit(path, 0, 0, text) for path, text in created if not fork.exists(path)),
            lambda fork: _edit_kernels(fork, source, lines),
            lambda fork: insert_includes(_HOST, fork.read(_HOST), tuple(sorted({*_HEADERS, stub.header}))),
            lambda fork: _edit_host(fork, body, host.registration(name, stub.name)),
        ),
    )
    return (kernel,)


def write_launcher(header: str) -> str:
    """Returns the kernels that draw words by a fork's Philox, or by one of their own if that has a wrong round."""
    text = (launchers.FOLDER / "random.metal").read_text()
    written = with_own_words(text, header)
    return text if written == text else f"{read_helper('draw_words.metal')}{written}"


def write_functor(name: str, row: Distribution) -> str:
    """Returns the functor of a row, not yet formatted."""
    parameter = "float p" if row.operand else f"constant {row.param}* {'params' if row.params else '/*params*/'}"
    operation = f"inline {row.result} operator()(const uint4 words, {parameter}) {{\nreturn {row.value};\n}}"
    return f"struct {name}_functor {{\ntemplate <typename T>\n{operation}\n}};\n"


def _register(name: str, row: Distribution, dtype: DType) -> Line:
    instance = (Instance(dtype.metal, dtype.metal, None),)
    if row.operand:
        return Line("REGISTER_RANDOM_OP_OF", (name, dtype.metal), instance)
    return Line("REGISTER_RANDOM_OP", (name, dtype.metal, row.param), instance)


def _write_launch(name: str, call: StubCall, row: Distribution) -> str:
    output = "iter.output()" if "TensorIterator" in call.stub.signature[0][0] else "Tensor(self)"
    refused = _refuse_types(name, call, {dtype.kind for dtype in row.dtypes})
    if row.operand:
        given = f"Tensor({row.operand}).expand(self.sizes()).to(self.device(), kFloat).contiguous()"
    else:
        element = "int64_t" if row.whole else "float"
        values = ", ".join(f"static_cast<{element}>({each})" for each in row.params or ("0",))
        given = f"std::array<{element}, {max(len(row.params), 1)}>{{{values}}}"
    return f'{refused}fill_random({output}, "{name}", generator, {given});'


def _refuse_types(name: str, call: StubCall, kinds: Collection[Kind]) -> str:
    """The check of a distribution that fills no integers, or no bools; "" for one that fills both."""
    dtype = "iter.dtype()" if "TensorIterator" in call.stub.signature[0][0] else "self.scalar_type()"
    if Kind.INTEGRAL not in kinds:
        fills = f"isFloatingType({dtype})"
    elif Kind.BOOL not in kinds:
        fills = f"{dtype} != kBool"
    else:
        return ""
    return f'TORCH_CHECK_TYPE({fills}, "{name} on MPS fills no ", {dtype});\n'


def _edit_kernels(fork: Checkout, source: str, lines: tuple[Line, ...]) -> Iterator[Edit]:
    text = fork.read(_FILE)
    start = "" if "fill_random(" in text else format_block(fork, _FILE, write_launcher(fork.read(RANDOM)))
    if start:
        yield from insert_includes(_FILE, text, (RANDOM, "c10/metal/utils.h"))
    registered = "".join(f"{line}\n" for line in lines)
    yield Edit(_FILE, len(text), len(text), f"{start and chr(10)}{start}\n{source}\n{registered}")


def _edit_host(fork: Checkout, function: str, registration: str) -> Iterator[Edit]:
    text = fork.read(_HOST)
    at = find_function_anchor(text)
    launcher = "" if " fill_random(" in text else (launchers.FOLDER / "random.mm").read_text()
    for block in (launcher, function):
        if block:
            yield Edit(_HOST, at, at, "\n" + format_block(fork, _HOST, block))
    at = find_registration_anchor(text, registration)
    yield Edit(_HOST, at, at, f"{registration}\n" if has_registrations(text) else f"\n{registration}\n\n")
