"""Elementwise kernels: a functor next to the fork's own, its REGISTER lines, and a host function that launches it.

Source: c10/metal/indexing.h (the functor dialect), ATen/native/mps/MetalShaderLibrary.h (`exec_*_kernel`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from porter.aten.meta import Promotion
from porter.aten.metal_functions import Library
from porter.aten.native_functions import NativeFunction
from porter.aten.stubs import Stub, StubCall
from porter.core import dtypes
from porter.core.checkout import Checkout
from porter.core.dtypes import DType, Kind
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError, explained
from porter.core.formatting import format_block
from porter.core.layout import INDEXING, OPERATION_UTILS, spell_include
from porter.cpu.kernels import CpuKernel
from porter.languages.directives import read_macros
from porter.languages.identifiers import contains_identifier, to_snake_case
from porter.languages.source import Source, parse_source
from porter.metal.candidates import build_functor, note_other_sources
from porter.metal.distributions import draws_numbers
from porter.metal.functor import Functor, FunctorSpec, Provenance, functor_text
from porter.metal.host import (
    RESULT_TYPE,
    Exec,
    find_function_anchor,
    find_registration_anchor,
    has_registrations,
    write_kernel_function,
)
from porter.metal.insertion import find_used_macros, insert_functor, insert_includes, insert_registrations
from porter.metal.kernel import CandidateChoice, Kernel, KernelSpec, Step
from porter.metal.kernel_files import (
    KernelFiles,
    find_files,
    has_macros,
    name_library_scope,
    read_host_style,
    read_kernel_style,
)
from porter.metal.launchers import (
    CASTOUT,
    LAUNCHER_HEADERS,
    SPLIT,
    SPLIT_HEADERS,
    converts_results,
    define_converted,
    define_launcher,
    define_split,
    find_launcher,
    find_result_launcher,
    write_converted,
)
from porter.metal.macros import Instance, MacroBook, MacroFamily
from porter.metal.params import ParamsStruct, read_fields, write_launch, write_scalar_launch
from porter.metal.registration import Line, Need, find_base_macro, register_lines

FUNCTORS = True
_ARITIES = (MacroFamily.UNARY, MacroFamily.BINARY, MacroFamily.TERNARY)
_OF_PERSON = Provenance("a person's own functor")
_ARITHMETIC = re.compile(r"\b[abc]\w*\)? [-+*/] \(?[abc]")
_TENSORS = ("Tensor", "Tensor(a!)", "Tensor?")


@dataclass(frozen=True)
class _Launch:
    """The files of a kernel, what launches it, and the number of elements and the scalars that its functor takes.

    With `converts`, its results are converted for outputs of other types, which what launches it does not.
    """

    family: MacroFamily
    files: KernelFiles
    launcher: Exec
    arity: int
    scalars: tuple[str, ...]
    struct: ParamsStruct | None
    converts: bool = False

    @property
    def kernel_file(self) -> str:
        return self.files.kernel_file

    @property
    def host_file(self) -> str:
        return self.files.host_file


@dataclass(frozen=True)
class _Planned:
    """A functor with where it goes, its formatted text and its registrations."""

    name: str
    spec: FunctorSpec
    functor: Functor
    launch: _Launch
    source: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def refusal(function: NativeFunction, call: StubCall) -> PorterError | None:
    """Returns PTR018 for a stub with several scalars of which one is not a number, PTR350 for random numbers."""
    if draws_numbers(call.stub):
        return explained("PTR350", f"the distribution of {call.stub.name} is not known", call.place)
    if len(call.stub.signature) <= 2:
        return None
    try:
        read_fields(call, (), [""] * (len(call.stub.signature) - 1))
    except PorterError as error:
        return error
    return None


def write(fork: Checkout, spec: KernelSpec, choice: CandidateChoice) -> tuple[Kernel, ...]:
    """Returns the kernel with this choice of candidates, registered for every dtype that the CPU supports.

    Raises PTR018 (not a functor), PTR090 to PTR093 (the fork lacks something), PTR094 (no source) or PTR096 (it has
    kernels of the name).
    """
    words = to_snake_case(spec.call.stub.name)
    # `atan2` of `atan2_stub`, `lerp_scalar_weight` of `lerp_kernel_scalar_weight`
    base = "_".join(word for word in words.removesuffix("_stub").split("_") if word != "kernel")
    planned = [_plan_functor(fork, each, name, choice) for name, each in _split_cases(spec, base)]
    host = _plan_host(spec, base, planned)
    last = len(planned) - 1
    return tuple(_make_kernel(fork, spec, base, each, host if at == last else None) for at, each in enumerate(planned))


def _split_cases(spec: KernelSpec, base: str) -> Iterator[tuple[str, KernelSpec]]:
    """Yields the functors that a kernel needs: one, one for each result or case, this with none of the arguments."""
    for result in spec.results:
        yield f"{base}_{result.name}", replace(spec, cpu=result.cpu, rule=result.rule)
    if not spec.cases:
        yield from () if spec.results else ((base, spec),)
        return
    call = replace(spec.call, stub=replace(spec.call.stub, signature=spec.call.stub.signature[:1]), arguments=())
    for case in spec.cases:
        name = f"{base}_{case.suffix}" if case.suffix else base
        yield name, replace(spec, call=call, cpu=case.cpu, cases=())


def _plan_functor(fork: Checkout, spec: KernelSpec, name: str, choice: CandidateChoice) -> _Planned:
    stub = spec.call.stub
    inputs, scalars = _read_parameters(spec.function, spec.cpu, spec.call)
    if len(inputs) > 2 and spec.rule.promotion is Promotion.OUTPUT:
        what = f"the inputs of {stub.name} may differ in type, but those of a functor cannot"
        raise PorterError("PTR018", what, spec.call.place, "Port it by hand.")
    struct = _read_struct(spec, name, scalars)
    scalars = tuple(each.name for each in struct.fields) if struct else scalars
    launch = _find_launch(fork, len(inputs), scalars, struct, spec.rule.promotion is Promotion.CHOSEN)
    created = launch.files.created
    fork = fork.layer(dict(created)) if created else fork
    kernels = parse_source(launch.kernel_file, fork.read(launch.kernel_file))
    _require_new(kernels, name, stub)
    style = read_kernel_style(fork, launch.kernel_file)
    names = (name,) if spec.results else _list_known_names(name, spec.function.base, spec.call)
    functor_spec = FunctorSpec(
        names,
        inputs,
        scalars,
        spec.rule,
        spec.cpu,
        spec.graph,
        Library.read(fork),
        style,
        struct,
        spec.cuda,
        spec.source,
        spec.keeps,
    )
    functor = build_functor(functor_spec, {kind: index for (named, kind), index in choice.items() if named == name})
    bools = _returns_bools(functor_spec, launch.family)
    if bools:
        launch = replace(launch, launcher=find_result_launcher(fork, launch.launcher))
    lacks = launch.family is not MacroFamily.UNARY and not converts_results(fork, launch.launcher)
    launch = replace(launch, converts=lacks and spec.rule.promotion in (Promotion.SAME, Promotion.FLOAT))
    book = _read_macros(fork, launch.kernel_file)
    castout = launch.launcher is CASTOUT or (lacks and bools and any(base.castout for base in book.bases.values()))
    needs = tuple(list_needs(functor_spec, functor, launch.family, book, castout))
    lines = register_lines(name, needs, book, find_used_macros(kernels, book))
    text = f"{spec.functor.strip()}\n" if spec.functor else functor_text(functor, style)
    source = format_block(fork, launch.kernel_file, text)
    notes = (
        *spec.notes,
        *(f"{name}: {each}" for each in note_other_sources(functor_spec, functor.origins)),
        *(f"{name}: {each}" for each in _note_kept(functor_spec)),
        *(f"{name}: the CPU kernel raises unless {each}; a GPU kernel cannot" for each in _list_checks(spec.cpu)),
    )
    if spec.functor:
        functor = replace(functor, origins=tuple(replace(each, source=_OF_PERSON, count=1) for each in functor.origins))
    return _Planned(name, functor_spec, functor, launch, source, lines, notes)


def _require_new(kernels: Source, name: str, stub: Stub) -> None:
    """Raises PTR096 if the file has a functor of the name, itself or by a macro: a second would not compile."""
    definitions = [each.start for each in kernels.code if each.text == f"{name}_functor"]
    definitions += [use.start for use in kernels.macro_uses() if use.arguments[:1] == (name,)]
    if definitions:
        what = f"the fork has kernels of {name} already, and registers none of them for {stub.name}"
        hint = "Take the host file that launches them from their release, or remove them."
        raise PorterError("PTR096", what, Place(kernels.path, kernels.text.count("\n", 0, min(definitions)) + 1), hint)


def _plan_host(spec: KernelSpec, base: str, planned: Sequence[_Planned]) -> Step:
    """Returns the step that adds the host function, which launches the kernel of each case."""
    launch, stub = planned[-1].launch, spec.call.stub
    scalars = spec.cpu.parameters if spec.cases else planned[-1].spec.scalars
    if spec.results:
        return lambda fork: _host_edits(fork, launch, base, stub, scalars, partial(_write_results, planned), split=True)

    def write_body(library: str) -> str:
        *others, body = (_write_body(each, _Site(library)) for each in planned)
        for case, other in zip(spec.cases[-2::-1], others[::-1], strict=True):
            body = f"if ({case.test}) {{ {other} }} else {{ {body} }}"
        return body

    return lambda fork: _host_edits(fork, launch, base, stub, scalars, write_body)


def _make_kernel(fork: Checkout, spec: KernelSpec, base: str, planned: _Planned, host: Step | None) -> Kernel:
    launch, stub = planned.launch, spec.call.stub
    alone = not stub.header
    created = dict(launch.files.created)
    return Kernel(
        name=planned.name,
        stub=stub,
        source=planned.source,
        origins=planned.functor.origins,
        registrations=planned.lines,
        dtypes=planned.spec.served,
        kernel_file=launch.kernel_file,
        host_file=launch.host_file,
        function=read_host_style(fork.layer(created) if created else fork, launch.host_file).function(base),
        notes=planned.notes,
        steps=(
            lambda fork: (Edit(path, 0, 0, text) for path, text in launch.files.created if not fork.exists(path)),
            lambda fork: _header_edits(fork, launch),
            lambda fork: _kernel_edits(fork, launch, planned.spec, planned.functor, planned.source, planned.lines),
            lambda fork: _include_edits(fork, planned, stub, SPLIT_HEADERS if spec.results else ()),
            *((host,) if host and not alone else ()),
        ),
        launch=(lambda scope: _write_body(planned, _Site(scope, scope))) if alone else lambda scope: "",
        launcher="\n".join(_define_launchers(launch, "")) if alone else "",
    )


def _list_known_names(name: str, base: str, call: StubCall) -> tuple[str, ...]:
    """Returns the names to look up: the functor's, and the operator's if the stub alone computes the operator."""
    chosen_by_name = any('"' in condition.text for condition in call.when)
    is_negated = any("-" in argument for argument in call.arguments)
    return (name,) if base == name or chosen_by_name or is_negated else (name, base)


def _note_kept(spec: FunctorSpec) -> Iterator[str]:
    """Yields what becomes of dtypes that are to be kept, though the CPU lacks them."""
    if spec.kept:
        names = ", ".join(dtype.torch for dtype in spec.kept)
        yield f"{names} are kept, computed in float, which has 24 bits: no test compares them, as the CPU lacks them"
    if spec.given_up:
        names = ", ".join(dtype.torch for dtype in spec.given_up)
        yield f"{names} cannot be kept: no source defines the functor for them"


def _list_checks(cpu: CpuKernel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(check for found in cpu.lambdas for check in found.checks))


def _read_parameters(
    function: NativeFunction, cpu: CpuKernel, call: StubCall
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the schema's names of the elements and scalars that the kernel takes."""
    arity = len(cpu.lambdas[0].params) if cpu.lambdas else sum(a.is_tensor for a in function.inputs)
    if not 1 <= arity <= len(_ARITIES):
        raise PorterError("PTR018", f"{call.stub.name} takes {arity} inputs", call.place, "Port it by hand.")
    types = _TENSORS if len(call.stub.signature) > 2 else (*_TENSORS, "Scalar")
    names = tuple(a.name for a in function.inputs if a.type in types)[:arity]
    if len(names) != arity and cpu.lambdas:  # the iterator takes an input twice, or its halves
        names = (*names, *cpu.lambdas[0].params[len(names) :])
    if len(names) != arity:
        what = f"{call.stub.name} takes {arity} inputs, but the row has {len(names)}"
        raise PorterError("PTR018", what, call.place, "Port it by hand.")
    others = [a.name for a in function.inputs if a.name not in names]
    given = " ".join(call.arguments)
    others.sort(key=lambda name: not contains_identifier(given, name))  # those passed to the stub come first
    return names, tuple(others[: len(call.stub.signature) - 1])


def _read_struct(spec: KernelSpec, functor: str, scalars: Sequence[str]) -> ParamsStruct | None:
    """Returns the struct of several scalars; its elements are of opmath type if the CPU computes with such scalars."""
    if len(spec.call.stub.signature) <= 2:
        return None
    fields = read_fields(spec.call, scalars, spec.cpu.parameters)
    half = spec.cpu.find_lambda(dtypes.HALF) or spec.cpu.find_lambda(dtypes.BFLOAT)
    opmath = half is not None and any(scalar.type not in ("T", "bool") for scalar in half.scalars)
    return ParamsStruct(f"{functor.title().replace('_', '')}Params", fields, opmath)


def _find_launch(
    fork: Checkout, arity: int, scalars: tuple[str, ...], struct: ParamsStruct | None, chooses: bool
) -> _Launch:
    """Returns where functors with this number of elements go. Raises PTR091 or PTR093 if the fork has no place."""
    plain = _ARITIES[arity - 1]
    family = MacroFamily(f"{plain.value}_alpha") if scalars else plain
    launcher = find_launcher(fork, family, scalars, struct, chooses)
    return _Launch(family, find_files(fork, plain), launcher, arity, scalars, struct)


def _read_macros(checkout: Checkout, kernel_file: str) -> MacroBook:
    files = (INDEXING, kernel_file)
    return MacroBook.read(macro for path in files for macro in read_macros(checkout.read(path)))


def _returns_bools(spec: FunctorSpec, family: MacroFamily) -> bool:
    """Whether a kernel's results have a type of their own, which what launches it has to know."""
    return family is MacroFamily.BINARY and all(spec.result(dtype) is dtypes.BOOL for dtype in spec.served)


def _header_edits(fork: Checkout, launch: _Launch) -> Iterator[Edit]:
    """Adds the struct of several scalars to the header that both sides include."""
    if launch.struct is None:
        return
    file = launch.files.header
    text = fork.read(file) if fork.exists(file) else ""
    before = "" if text else "#pragma once\n"
    yield Edit(file, len(text), len(text), f"{before}\n{format_block(fork, file, launch.struct.text())}")


def _kernel_edits(
    fork: Checkout, launch: _Launch, spec: FunctorSpec, functor: Functor, source: str, lines: Sequence[Line]
) -> Iterator[Edit]:
    file = launch.kernel_file
    kernels = parse_source(file, fork.read(file))
    there = kernels.functions_by_name.keys()
    helpers = [each for each in functor.helpers if not there & parse_source(file, each).functions_by_name.keys()]
    text = "".join(f"{format_block(fork, file, helper)}\n\n" for helper in dict.fromkeys(helpers)) + source
    if launch.struct:
        text = "".join(launch.struct.aliases(spec.served)) + "\n" + text
    yield insert_functor(kernels, text, launch.arity)
    yield insert_registrations(kernels, "".join(f"{line}\n" for line in lines), launch.family, _read_macros(fork, file))


def _include_edits(fork: Checkout, planned: _Planned, stub: Stub, others: tuple[str, ...]) -> Iterator[Edit]:
    launch = planned.launch
    shared = (spell_include(launch.files.header),) if launch.struct else ()
    registers = () if has_macros(fork, launch.kernel_file, planned.lines) else (spell_include(INDEXING),)
    metal = (*shared, *registers, *planned.functor.headers)
    if metal:
        yield from insert_includes(launch.kernel_file, fork.read(launch.kernel_file), metal)
    if not stub.header:
        return
    headers = (stub.header, "ATen/OpMathType.h") if launch.scalars else (stub.header,)
    utilities = spell_include(OPERATION_UTILS).replace(".mm", ".h")
    if launch.scalars and "alpha" not in launch.launcher.params:
        headers = (*headers, utilities)
    if launch.struct:
        used = ("ATen/Dispatch.h", utilities, *shared, "fmt/format.h")
        headers = tuple(sorted({*(headers if launch.struct.opmath else (stub.header,)), *used}))
    if launch.converts or not launch.launcher.owner:
        headers = tuple(sorted({*headers, *LAUNCHER_HEADERS}))
    headers = tuple(sorted({*headers, *others})) if others else headers
    yield from insert_includes(launch.host_file, fork.read(launch.host_file), headers)


def _host_edits(
    fork: Checkout,
    launch: _Launch,
    name: str,
    stub: Stub,
    scalars: Sequence[str],
    write_body: Callable[[str], str],
    split: bool = False,
) -> Iterator[Edit]:
    file = launch.host_file
    text = fork.read(file)
    style = read_host_style(fork, file)
    names = ("iter", *scalars)
    types = stub.types
    params = list(zip(types, names, strict=False))
    at = find_function_anchor(text)
    scope = name_library_scope(parse_source(file, text), at)
    function = write_kernel_function(style.function(name), params, write_body(scope))
    for block in (*_define_launchers(launch, text), define_split(text) if split else "", function):
        yield Edit(file, at, at, "\n" + format_block(fork, file, block) if block else "")
    at = find_registration_anchor(text, name)
    registration = style.registration(name, stub.name)
    yield Edit(file, at, at, registration + "\n" if has_registrations(text) else f"\n{registration}\n\n")


def _define_launchers(launch: _Launch, host: str) -> Iterator[str]:
    """Yields the definitions that the statements of the host function need and the host file lacks."""
    if text := define_launcher(launch.launcher, host):
        yield text
    if launch.converts and (text := define_converted(host)):
        yield text


@dataclass(frozen=True)
class _Site:
    """Where a kernel is launched: the scopes of the library and of the host file's functions, and the iterator."""

    library: str = ""
    functions: str = ""
    iterator: str = "iter"


def _write_results(planned: Sequence[_Planned], library: str) -> str:
    """The statements of a host function that launches the kernel of each result."""
    launches = (_write_body(each, _Site(library, iterator=f"results[{at}]")) for at, each in enumerate(planned))
    return "\n".join((f"auto results = {SPLIT}(iter);", *launches))


def _write_body(planned: _Planned, site: _Site) -> str:
    """Returns the statements of the host function."""
    if not planned.launch.converts:
        return _write_call(planned, site)
    return f"{site.functions}{write_converted(_write_call(planned, replace(site, iterator='same')), site.iterator)}"


def _write_call(planned: _Planned, site: _Site) -> str:
    launch, spec, iterator = planned.launch, planned.spec, site.iterator
    scope = site.library if launch.launcher.owner else site.functions
    launcher = replace(launch.launcher, owner=f"{scope}{launch.launcher.owner}")
    call = partial(launcher.call, planned.name, iterator=iterator)
    if launch.launcher is CASTOUT:
        return call(result="kBool")
    dtype = f"{iterator}.dtype()" if spec.rule.promotion is Promotion.CHOSEN else f"{iterator}.common_dtype()"
    arguments = {} if launch.launcher.owner else {"dtype": dtype}
    if launch.struct:
        return write_launch(launch.struct, partial(call, **arguments), planned.name, spec.served, iterator)
    if spec.scalars and "alpha" not in launch.launcher.params:
        return write_scalar_launch(partial(call, **arguments), spec.scalars[0], iterator)
    if spec.scalars:
        arguments |= {"alpha": spec.scalars[0], "scalar_arg_type": f"at::toOpMathType({iterator}.common_dtype())"}
    if _returns_bools(spec, launch.family):
        arguments[RESULT_TYPE] = "kBool"
    return call(**arguments)


def list_needs(
    spec: FunctorSpec, functor: Functor, family: MacroFamily, book: MacroBook, castout: bool
) -> Iterator[Need]:
    """Yields the instances for every supported dtype; with opmath if the functor computes in the element type, or the
    CPU with a scalar that has more digits than elements have.

    With `castout`, each also from the macro whose kernels write outputs of any type.
    """
    plain: list[Instance] = []
    opmath: list[Instance] = []
    several = family in (MacroFamily.BINARY, MacroFamily.TERNARY)
    has_opmath = several and find_base_macro(book, family, True).opmath
    raw = _find_raw_kinds(functor) if has_opmath else set()
    wide = raw | {Kind.FLOATING} if has_opmath and spec.cpu.keeps_scalars else raw
    for dtype in spec.served:
        result = spec.result(dtype)
        assert result is not None
        instance = Instance(dtype.metal, result.metal, _choose_alpha(spec, dtype, result))
        is_whole = dtype is dtypes.FLOAT2 and Kind.FLOATING not in raw
        (opmath if dtype.kind in wide and not is_whole else plain).append(instance)
    if plain:
        yield Need(family, tuple(plain))
    if opmath:
        yield Need(family, tuple(opmath), opmath=True)
    if castout:
        yield Need(family, (*plain, *opmath), castout=True)


def _find_raw_kinds(functor: Functor) -> set[Kind]:
    """Returns the kinds computed in their own type, so that halves would be rounded between operations."""
    of_elements = [(o.kinds, o.body.statements) for o in functor.overloads if o.body.result == "T"]
    floating = [o.body for o in functor.overloads if Kind.FLOATING in o.kinds and o.body.result == "T"]
    lines = (line for body in floating for line in body.statements)
    if any(map(_ARITHMETIC.search, lines)) and not any(body.rounds for body in floating):
        return {Kind.FLOATING, Kind.COMPLEX}
    bodies = ["".join(lines) for kinds, lines in of_elements if Kind.COMPLEX in kinds]
    as_they_are = any(f"{dtypes.FLOAT2.metal}(" not in body for body in bodies)
    return {Kind.COMPLEX} if as_they_are else set()


def _choose_alpha(spec: FunctorSpec, dtype: DType, result: DType) -> str | None:
    """Returns the type of a scalar, `at::toOpMathType` of the type computed in, or the struct of several."""
    if not spec.scalars or spec.struct:
        return spec.struct.alias(dtype) if spec.struct else None
    if result.kind is Kind.COMPLEX:
        return dtypes.FLOAT2.metal
    return dtypes.FLOAT.metal if result.kind is Kind.FLOATING else dtype.metal
