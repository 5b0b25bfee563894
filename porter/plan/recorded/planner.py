"""Plans ports that keep the row's function for MPS: kernels of the recorded programs, launched where the graph ran."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from porter.aten.lacking import LibraryCall
from porter.aten.native_functions import NativeFunction
from porter.aten.operator import Blocked, Operator, ServedFunction, find_served
from porter.aten.opinfo import find_opinfos
from porter.aten.skip_lists import ListKind, find_entries, read_lists
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.edits import replace_spans
from porter.core.errors import Place, PorterError, explained
from porter.core.formatting import format_block
from porter.core.layout import RANDOM
from porter.languages.identifiers import contains_identifier
from porter.languages.inlining import (
    complete_call,
    find_call_site,
    find_free_name,
    inline_call,
    list_locals,
    read_parameters,
    rename,
    specialize,
)
from porter.languages.lexer import TokenKind
from porter.languages.liveness import read_assignments
from porter.languages.patterns import find_code
from porter.languages.source import Source, parse_source
from porter.languages.statements import read_statements
from porter.loops.optional import allow_unasked, name_flags
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram, no_graph
from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.cases import join_cases
from porter.metal.codegen.elements import Complex
from porter.metal.codegen.host_code import Launch
from porter.metal.codegen.host_values import Names, list_results
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import KernelStyle, NativeKernel, write_kernel
from porter.metal.codegen.launch import write_launch
from porter.metal.codegen.result_types import write_as_read, write_expanded
from porter.metal.distributions import with_own_words
from porter.metal.forms import Computation, FormProgram
from porter.metal.forms.form import Form, FormKernels, Site
from porter.plan.plan import Draft
from porter.plan.recorded.case_choice import list_suffixes, write_cases
from porter.plan.recorded.corrections import create_results, find_expanded, find_own_target, resize_outputs
from porter.plan.recorded.files import (
    edit_host_file,
    edit_kernel_file,
    find_kernel_file,
    read_atomic_types,
    read_style,
)
from porter.plan.recorded.host_function import HostFunction, replace_graph
from porter.plan.recorded.port import NativePort, ReadPrograms, WrittenKernel, also_without_stub
from porter.plan.recorded.result_functions import find_result_target
from porter.plan.recorded.returns import find_mask, list_counted, may_lack
from porter.plan.recorded.stages import Launched, Row, edit_function, make_function, write_frame
from porter.plan.recorded.target import (
    RUN,
    Target,
    calls_one,
    find_target,
    list_enumerators,
    list_leads,
    reaches_graph,
    read_body,
    read_returned,
)
from porter.plan.recorded.unsupported_inputs import check_case_shapes, refuse_searches, refuse_tables, refuse_unseen

_REFUSED = ("TORCH_CHECK(!$$test,", "TORCH_CHECK_NOT_IMPLEMENTED(!$$test,", "TORCH_CHECK_TYPE(!$$test,")
_RANK = re.compile(r"\d+d(?=_|$)")  # in the name of an operator
_NAMESPACES = ("std", "metal", "c10")  # which no kernel can be called as


def port_rows(
    draft: Draft,
    operator: Operator,
    blocked: Sequence[Blocked],
    programs: ReadPrograms,
    scaffold: bool = False,
    apart: bool = False,
) -> NativePort:
    """Ports rows that build graphs, each in its function, or in the helper that only they call unless it is `apart`.

    Where another row's function runs the graph, that row is ported: its runs have all that the function is called with.
    A row of which nothing is recorded stays blocked as it was, unless a helper is ported that it calls too. With
    `scaffold`, it is an error if nothing may be recorded now: its old code may give a port.
    """
    port = NativePort(draft)
    read = {each: _read_lead(draft.fork, each, programs) for each in blocked}
    symbols = frozenset(
        lead.entry.kernel.rsplit("::", 1)[-1] for each in blocked for lead in (each.served, read[each][0])
    )
    done: dict[tuple[str, str], str] = {}  # the functions that were ported, and their names
    for each in sorted(blocked, key=lambda each: isinstance(read[each][1], PorterError)):
        row, (lead, found) = each.served, read[each]
        if _find_key(lead) in done or calls_one(port.draft.fork, row, done.values()):
            port = replace(port, ported=(*port.ported, row))
            continue
        try:
            resized = replace(port, draft=port.draft.apply(resize_outputs(port.draft.fork, lead.implementation)))
            if isinstance(found, FormProgram) and found.form.BY_RESULT:
                port = _port_results(resized, operator, lead, found)
                port = replace(port, ported=(*port.ported, row))
                continue
            target = find_own_target(resized.draft.fork, lead, found, None if apart else symbols)
            key = (target.file, target.function.signature)
            if key not in done:
                if isinstance(found, PorterError):
                    raise found
                port = _port_row(resized, operator, lead, target, found)
                done[key] = target.function.name
            port = replace(port, ported=(*port.ported, row))
        except PorterError as error:
            why = found if isinstance(found, PorterError) else error
            port = replace(port, blocked=(*port.blocked, Blocked(row, why)))
            if scaffold:
                if why.code == "PTR395":
                    raise why from None  # its old code may have to run, not a person to write what it computes
                port = _add_frame(port, row, symbols, why)
    late = [each.served for each in port.blocked if _find_key(each.served) in done]  # ported for an overload after them
    blocked = tuple(each for each in port.blocked if each.served not in late)
    return replace(port, ported=(*port.ported, *late), blocked=blocked)


def _find_key(row: ServedFunction) -> tuple[str, str] | None:
    """What `done` has of a row's own function."""
    found = row.implementation
    return (found.file, found.function.signature) if found and found.function else None


def _read_lead(
    fork: Checkout, blocked: Blocked, programs: ReadPrograms
) -> tuple[ServedFunction, Computation | PorterError]:
    """The row that a row is ported with, and what is recorded of it: the nearest to the graph of which anything is."""
    if isinstance(blocked.error, LibraryCall):
        return blocked.served, blocked.error
    first = None
    for lead in list_leads(fork, blocked.served):
        found = lead, _read_programs(programs, replace(blocked, served=lead))
        if not isinstance(found[1], PorterError):
            return found
        first = first or found
    assert first is not None
    return first


def _read_programs(programs: ReadPrograms, blocked: Blocked) -> Computation | PorterError:
    """What is recorded of a row; where nothing is, why the row stays blocked."""
    try:
        return programs(blocked.served) or blocked.error
    except PorterError as error:
        return also_without_stub(error, blocked.error)


def _add_frame(port: NativePort, row: ServedFunction, symbols: frozenset[str], error: PorterError) -> NativePort:
    """Adds the frame of a row, where it has a function for one."""
    fork = port.draft.fork
    try:
        edits = tuple(write_frame(fork, row.function, find_target(fork, row, symbols), error))
    except PorterError:
        return port
    return replace(port, draft=port.draft.apply(edits))


def _port_row(
    port: NativePort, operator: Operator, row: ServedFunction, target: Target, programs: Computation
) -> NativePort:
    """Writes a row's kernels and its new body. Raises PTR359 to PTR361, and PTR370 to PTR377."""
    if isinstance(programs, FormProgram):
        return _port_form(port, operator, row, target, programs)
    if programs.left:
        raise programs.left[0]
    if not programs.cases:
        raise no_graph(row.function.name, row.function.place)
    refuse_tables(programs)
    refuse_searches(programs)
    refuse_unseen(programs, row.function)
    fork = port.draft.fork
    style = replace(read_style(fork), complex_numbers=_read_complex(fork, operator, target))
    names = _read_names(row.function, target)
    if mask := find_mask(names):
        unasked = [name for name, variable in names.variables.items() if may_lack(target.body, variable)]
        programs = replace(programs, cases=tuple(allow_unasked(case, unasked, mask) for case in programs.cases))
    programs = prepare(programs)
    results = {name: variable.strip("_") for name, variable in names.variables.items()}
    named = [name_flags(each, results) for each in programs.cases]
    programs = replace(programs, cases=join_cases(named, style))
    kernel_file = find_kernel_file(fork, target.file)
    bases = _list_bases(row)
    for base in bases:
        cases, written = _write_kernels(fork, kernel_file, programs, base, names, style)
        taken = any(kernel.name.startswith(base) for kernel in port.kernels)
        if not taken or base == bases[-1] or set(written) <= set(port.kernels):
            break
    refuse_differing(target, set(names.variables.values()))
    body = create_results(make_results(fork, target, programs, names), programs, names)
    has_complex = style.complex_numbers is Complex.REFUSES or any(each.elements.has_complex for each in chain(*cases))
    launch = partial(_write_launches, programs, cases, names.code, has_meta=row.function.structured)
    stages = Row(fork, row.function, target, programs, names, list_counted(programs), launch, has_complex)
    new = tuple(kernel for kernel in written if kernel not in port.kernels)
    return _edit_files(port, stages, body, kernel_file, new, [kernel.source for kernel in new])


def _port_results(port: NativePort, operator: Operator, row: ServedFunction, program: FormProgram) -> NativePort:
    """Writes kernels of a row to the functions that make its results, but those that no longer run a graph.

    Raises PTR043 and PTR368 too.
    """
    lost: PorterError | None = None
    for place, part in enumerate(program.list_parts()):
        try:
            target = find_result_target(port.draft.fork, row, place)
        except PorterError as error:
            if error.code != "PTR368":
                raise
            lost = lost or error
            continue
        port = _port_form(port, operator, row, target, part)
    rest = find_served(port.draft.fork, row.function)
    if lost and (rest is None or rest.builds_graph):
        raise lost
    return port


def _edit_files(
    port: NativePort, row: Row, body: str, kernel_file: str, kernels: Sequence[WrittenKernel], texts: Iterable[str]
) -> NativePort:
    """Gives a row's function its new body, and the files what that needs: headers, a library and texts of kernels."""
    target = row.target
    host = make_function(replace_graph(body, target.place, row.written, target.before), row)
    draft = port.draft.apply([edit_function(row.fork, target, host)])
    draft = draft.apply(edit_host_file(draft.fork, target.file, kernel_file, host.launch))
    for text in texts:
        draft = draft.apply(edit_kernel_file(draft.fork, kernel_file, text))
    listed = tuple(dict.fromkeys((*port.kernels, *kernels)))
    return replace(port, draft=draft, kernels=listed, notes=(*port.notes, *host.notes))


def _write_launches(
    programs: Programs, cases: Sequence[Sequence[NativeKernel]], old: KeptCode, names: Names, *, has_meta: bool
) -> Launched:
    """The launches of all cases, of which each is checked, in the place of the graph of the `old` code; a meta function
    has refused what the CPU does, if there is one.
    """
    names, read = write_as_read(old, names)
    names, setup = write_expanded(programs, names)
    has_long = any(kernel.elements.has_long for kernels in cases for kernel in kernels)
    launches = [
        write_launch(program, kernels, [nest.rows for nest in program.nests], names, has_long)
        for program, kernels in zip(programs.cases, cases, strict=True)
    ]
    launches, limits = check_case_shapes(programs, names, launches, has_meta=has_meta)
    headers = frozenset[str]().union(*(each.headers for each in launches))
    return Launched(Launch(write_cases(programs, launches, names), headers), names, (*read, *setup), limits)


def _read_complex(fork: Checkout, operator: Operator, target: Target) -> Complex:
    """What a function does with complex numbers: by its own check, and by what the fork's tests give it."""
    if any("omplex" in check["test"] for check in find_code(target.body, *_REFUSED)):
        return Complex.REFUSES
    tests = {call.key for call in find_opinfos(fork, operator.base)} | {operator.base}
    listed = find_entries((each for each in read_lists(fork) if each.kind is ListKind.ALLOW), tests)
    return Complex.TAKES if listed else Complex.UNKNOWN


def _port_form(
    port: NativePort, operator: Operator, row: ServedFunction, target: Target, program: FormProgram
) -> NativePort:
    """Writes the kernels of a row that a form computes, and its new body. Raises PTR359, PTR370 and PTR371."""
    fork, form = port.draft.fork, program.form
    reading = target if form.READS_FED else replace(target, variables=target.arguments)
    names = form.choose_names(_read_names(row.function, reading))
    style = replace(read_style(fork), complex_numbers=_read_complex(fork, operator, target))
    kernel_file = find_kernel_file(fork, target.file)
    types = form.list_types(lambda: read_atomic_types(fork), style.complex_numbers is Complex.REFUSES)
    kernels, source = _write_form_kernels(port, kernel_file, row, form, types, style)
    views = {} if form.READS_FED else find_expanded(target, names.variables)

    def write(names: Names) -> Launched:
        return Launched(form.write_launch(kernels, Site(names, views)), names)

    stages = Row(fork, row.function, target, program, names, form.list_counted(), write, views=views)
    entries = tuple(kernels.entries.items())
    written = WrittenKernel(kernel_file, kernels.name, source, kernels.elements.instances, entries)
    text = fork.read(kernel_file) if fork.exists(kernel_file) else ""
    parts = (*(format_block(fork, kernel_file, helper) for helper in kernels.helpers), source)
    added = "".join(part for part in parts if part not in text)
    return _edit_files(port, stages, target.body, kernel_file, [written], [added] if added else [])


def _write_form_kernels(
    port: NativePort,
    kernel_file: str,
    row: ServedFunction,
    form: Form,
    types: Sequence[DType],
    style: KernelStyle,
) -> tuple[FormKernels, str]:
    """The kernels of a form by the first name that no others have, or by that which the same have; with their text.

    A file may have the same stages by the name of another operator. A name says how many dimensions there are only if
    the kernels serve no others, or others have the name without.
    """
    fork, bases = port.draft.fork, _list_bases(row)
    text = fork.read(kernel_file) if fork.exists(kernel_file) else ""
    general = _RANK.sub("", bases[0]) if form.ANY_RANK else bases[0]
    kernels, philox = form.write_kernels(general, types, style), fork.read(RANDOM) if fork.exists(RANDOM) else ""
    suffixes = (*kernels.endings, *kernels.plain)
    declared = {kernel["name"] for kernel in find_code(text, "kernel void $name(")}
    others = (name for name in sorted(declared) if declared.issuperset(f"{name}{suffix}" for suffix in suffixes))
    for name in dict.fromkeys((*(others if len(suffixes) > 1 or form.SHARED else ()), general, *bases)):
        kernels = form.write_kernels(name, types, style)
        source = format_block(fork, kernel_file, with_own_words(kernels.source, philox))
        is_free = name in bases or name not in declared
        if source in text or (is_free and not any(kernel.name.startswith(name) for kernel in port.kernels)):
            break
    return kernels, source


def _read_names(function: NativeFunction, target: Target) -> Names:
    types = {each.name: each.type for each in function.arguments}
    outs = [each.name for each in function.arguments if "!" in each.type and each.name != "self"]
    given = frozenset(target.variables[each] for each in outs if each in target.variables and not function.structured)
    return Names(
        target.variables, types, target.optional, target.references, given, KeptCode(target.body, target.before)
    )


def _list_bases(row: ServedFunction) -> tuple[str, str]:
    """The operator's name for kernels; with that of the overload, where another row has other kernels of this name."""
    base = row.function.base.strip("_")
    overload = row.function.name.partition(".")[2].removesuffix("_out") or "all"
    longer = f"{base}_{overload.lower()}"
    return longer if base in _NAMESPACES else base, longer


def _write_kernels(
    fork: Checkout, file: str, programs: Programs, base: str, names: Names, style: KernelStyle
) -> tuple[list[tuple[NativeKernel, ...]], tuple[WrittenKernel, ...]]:
    """The kernels of each case, and all of them as they are written to a file."""
    suffixed = zip(programs.cases, list_suffixes(programs), strict=True)
    cases = [_write_case(each, f"{base}{suffix}", names, style) for each, suffix in suffixed]
    return cases, tuple(_format(fork, file, kernel) for kernels in cases for kernel in kernels)


def _write_case(program: SymbolicProgram, base: str, names: Names, style: KernelStyle) -> tuple[NativeKernel, ...]:
    results = sorted(role.index for role in program.roles.values() if isinstance(role, ResultBuffer))
    outputs = {i: names.variable(f"result{i}") for i in results}
    return tuple(
        write_kernel(program, nest, _name_kernel(base, program, nest, outputs), outputs, style)
        for nest in program.nests
    )


def _name_kernel(base: str, program: SymbolicProgram, nest: SymbolicNest, outputs: Mapping[int, str]) -> str:
    """The operator's name; where several kernels compute it, with the results that this one does."""
    if len(program.nests) == 1:
        return base
    roles = [program.roles[store.buffer] for store in nest.nest.stores]
    results = [outputs[role.index] for role in roles if isinstance(role, ResultBuffer)]
    return "_".join((base, *(results or [f"partial{program.nests.index(nest) or ''}"])))


def _format(fork: Checkout, file: str, kernel: NativeKernel) -> WrittenKernel:
    source = format_block(fork, file, kernel.source)
    entries = tuple(kernel.entries.items())
    return WrittenKernel(file, kernel.name, source, kernel.elements.instances, entries, kernel.schedule)


def make_results(checkout: Checkout, target: Target, programs: Programs, names: Names) -> str:
    """The body of a target with the code of functions that make its results, but for their graphs. Raises PTR406."""
    source = parse_source(target.file, checkout.read(target.file))
    results, body = list_results(names.variables).values(), target.body
    for each in reversed(read_assignments(body)):
        called = each.value.partition("(")[0].rpartition("::")[2]
        if each.name in results and each.type in ("auto", "Tensor") and _runs_graph(source, called):
            text = _rename_returned(_inline(source, each.value, target), each.name, target.place)
            text = create_results(text, programs, names)
            host = replace_graph(text, target.place, {*names.variables.values(), each.name})
            text = _without_returns(host, each.name, target.place)
            before, behind = body[: each.statement.start], body[each.statement.end :]
            # Code whose variables do not hide, or collide with, those of the rest of the body
            rest = before + behind
            taken = (list_locals(text) & list_locals(rest)) - set({each.name})
            body = before + rename(text, {name: find_free_name(name, text + rest) for name in taken}).strip() + behind
    return body


def _runs_graph(source: Source, name: str) -> bool:
    return any(reaches_graph(source, function) for function in source.functions_by_name.get(name, ()))


def _inline(source: Source, call: str, target: Target) -> str:
    """The code that a call runs, as far as the graph."""
    text = f"return {call};"
    for _ in source.functions_by_name:
        if contains_identifier(text, RUN):
            return text
        made = next(filter(None, (_inline_one(source, text, name) for name in source.functions_by_name)), None)
        if made is None:
            break
        text = made
    raise _refuse(call, target.place)


def _inline_one(source: Source, text: str, name: str) -> str | None:
    """A text with a function in the place of its call, if what is returned is what that returns, of a graph."""
    site = find_call_site(text, name) if contains_identifier(text, name) else None
    for function in source.functions_by_name[name] if site and site.is_returned else ():
        assert site is not None
        call = complete_call(site, read_parameters(function))
        special = specialize(function, read_body(source, function), call) if call else None
        if call and special and reaches_graph(source, function):
            return inline_call(text, call, *special, list_enumerators(source.text), function.name)
    return None


def _rename_returned(text: str, result: str, place: Place) -> str:
    """Code with the variable that it returns at its end called as the result. Raises PTR406."""
    returned = read_returned(text)
    if len(returned) != 1 or result in list_locals(text):
        raise _refuse(result, place)
    return rename(text, {returned[0]: result})


def _without_returns(host: HostFunction, result: str, place: Place) -> str:
    """Code that goes on where it returned its result, at its end or, filled, for no elements. Raises PTR406."""
    leave = f"return {result};"
    early = (each.kept for each in host.exits if each.leave == leave and "" not in each.empty)
    last = read_statements(host.text)[-1]
    spans = {(host.at, host.at + 1)}
    spans |= {(kept.start, kept.end) if kept.is_alone else kept.leave for kept in early if kept}
    spans |= {(last.start, last.end)} if host.text[last.start : last.end] == leave else set()
    text = replace_spans(host.text, ((start, end, "") for start, end in sorted(spans)))
    if contains_identifier(text, "return"):
        raise _refuse(result, place)
    return text


def _refuse(what: str, place: Place) -> PorterError:
    message = f"what makes `{what}` cannot be put in its place"
    return explained("PTR406", message, place)


_RESULT = "RESULT"  # in the place of all names of results
_COMMON = ("numel", "dim", "sizes", "scalar_type")  # what results have in common


def refuse_differing(target: Target, needed: Collection[str]) -> None:
    """Raises PTR405 for a helper whose code besides the graph depends on the result that it is called for."""
    bodies = (target.body, *target.alternatives)
    plain = {_normalize(replace_graph(each, target.place, needed).text, target) for each in bodies}
    if target.alternatives and (len(plain) > 1 or any(map(_asks_more, plain))):
        what = f"{target.function.name} calls a helper for each result, which does more than to run a graph"
        raise explained("PTR405", what, target.place)


def _normalize(body: str, target: Target) -> tuple[str, ...]:
    """The tokens of a body with one name for all results, and without what it returns and the words of its messages."""
    results, tokens = list_results(target.variables).values(), list[str]()
    for token in Source.parse("", body).code:
        if token.text == ";" or "return" not in tokens[-1:]:
            text = '""' if token.kind is TokenKind.STRING else token.text
            tokens.append(_RESULT if text in results else text)
    return tuple(tokens)


def _asks_more(tokens: tuple[str, ...]) -> bool:
    """Whether tokens say more of a result than what all of them have in common."""
    plain = [(".", member, "(", ")") for member in _COMMON]
    return any(token == _RESULT and tokens[at + 1 : at + 5] not in plain for at, token in enumerate(tokens))
