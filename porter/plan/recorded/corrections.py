"""What is corrected of the function that a launch goes to: the names that it has, and memory that stands for results.

A graph wrote memory of its own where a result was strided, and the function copied that. An output of the caller is
replaced by a new tensor, which the caller never sees, in `median_out_mps` (ATen/native/mps/operations/ReduceOps.mm of
2.7). Results of reductions get the shapes that ATen's helper gives them (ATen/native/ReduceOpsUtils.h,
`create_reduction_result`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from porter.aten.implementations import Implementation, open_function
from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.languages.brackets import split_at_commas
from porter.languages.inlining import read_parameters, rename
from porter.languages.liveness import Assignment, list_values, read_assignments
from porter.languages.patterns import find_code, has_code, match_code
from porter.languages.source import parse_source
from porter.languages.statements import POOL, Statement, read_statements, walk_statements
from porter.loops.program import Programs, ResultBuffer, list_read
from porter.metal.codegen.host_values import Names, list_results
from porter.metal.codegen.reduced import find_strided
from porter.metal.forms import Computation, FormProgram
from porter.metal.insertion import insert_includes
from porter.plan.recorded.target import RUN, Target, find_structured_target, find_target, read_returned

# What a graph was given to write: under a condition memory of its own, else the result.
_PLACED = "Placeholder($graph->$tensor, $when ? $memory : $result"
_MADE = ("empty($$arguments)", "empty_mps($$arguments)", "zeros($$arguments)")
_OUTPUTS = ("Tensor&", "at::Tensor&", "Tensor &", "at::Tensor &")
_FED = "Placeholder($graph->$tensor, $fed"
_RESIZE = "ATen/native/Resize.h"
_KEEP = "keepdim"
_COMMENTS = re.compile(r"(?:[ \t]*//[^\n]*\n)+[ \t]*\Z")


def resize_outputs(checkout: Checkout, implementation: Implementation | None) -> Iterator[Edit]:
    """Edits by which a row's function resizes outputs of its caller that it replaced by new tensors."""
    opened = open_function(checkout, implementation)
    if opened is None:
        return
    source, function = opened
    outputs = {parameter.name for parameter in read_parameters(function) if parameter.type in _OUTPUTS}
    edits = list[Edit]()
    for output in read_assignments(source.text[function.body_start : function.end]) if outputs else ():
        match = match_code(output.value, *_MADE)
        if match and output.name in outputs and not output.type:
            sizes = split_at_commas(match["arguments"])[0].strip()
            zero = f" {output.name}.zero_();" if has_code(output.value, "zeros(") else ""
            start, end = function.body_start + output.statement.start, function.body_start + output.statement.end
            resized = f"at::native::resize_output({output.name}, {sizes});{zero}"
            edits.append(Edit(source.path, start, end, resized))
    if edits:
        yield from insert_includes(source.path, source.text, (_RESIZE,))
        yield from edits


def without_scratch(target: Target) -> Target:
    """The target with the result where its graph wrote other memory, that was copied to it.

    That is a tensor which is made only for a result whose elements have gaps, and is copied there: one that is declared
    empty, or the result itself for other results.
    """
    body, results = target.body, set(list_results(target.variables).values())
    for name in dict.fromkeys(each.name for each in read_assignments(body) if each.type == "Tensor"):
        assignments = [each for each in read_assignments(body) if each.name == name]
        match [each for each in assignments if each.value]:
            case [only] if only.type == "Tensor":
                body = _replace_chosen(body, only, results)
            case [only] if not only.type and len(assignments) == 2:
                body = _replace_needed(body, assignments[0], only)
    return replace(target, body=body)


def _replace_chosen(body: str, chosen: Assignment, results: set[str]) -> str:
    """A body with a result where the graph wrote that or memory like it."""
    choice = match_code(chosen.value, "$$test ? $$one : $$other")
    values = dict.fromkeys((choice["one"], choice["other"]) if choice else ())
    for result in (each for each in values if each in results):
        copies = [statement for statement, _ in _list_copies(body, result, chosen.name)]
        if len(values) == 2 and len(copies) == 1 and all(_is_like(each, result) for each in values.keys() - {result}):
            return rename(remove_statements(body, (chosen.statement, *copies)), {chosen.name: result})
    return body


def _replace_needed(body: str, declared: Assignment, only: Assignment) -> str:
    """A body with a result where the graph wrote that, or memory that was allocated for one with gaps."""
    memory = declared.name
    needed = next(
        (each for each in walk_statements(body) if each.keyword == "if" and each.body == (only.statement,)), None
    )
    if needed is None or needed.head is None:
        return body
    name, _, argument = body[slice(*needed.head)].strip().partition("(")
    result, tests = argument.removesuffix(")"), (f"{memory}.has_storage()", f"{memory}.defined()")
    copies = [statement for statement, test in _list_copies(body, result, memory) if test in tests]
    if name.removeprefix("mps::") != "needsGather" or not copies or not _is_like(only.value, result):
        return body
    body = remove_statements(body, (declared.statement, needed, *copies))
    for test in tests:
        body = body.replace(f"{test} ? {memory} : {result}", result)
    return body


def _is_like(value: str, result: str) -> bool:
    """Whether a value is memory of a result's shape."""
    return value.startswith((f"at::empty_like({result},", f"at::empty_like({result})", f"{result}.contiguous()"))


def with_direct_results(target: Target) -> Target:
    """The target without the copies to its results of what the graph wrote elsewhere, under the condition of both."""
    body = target.body
    for placed in find_code(target.body, _PLACED):
        if placed["result"] in target.variables.values():
            copies = _list_copies(body, placed["result"], placed["memory"])
            body = remove_statements(body, [statement for statement, test in copies if test == placed["when"]])
    return replace(target, body=body)


def _list_copies(body: str, result: str, memory: str) -> Iterator[tuple[Statement, str]]:
    """The statements that only copy memory to a result under a condition, each with that."""
    for branch in walk_statements(body):
        if branch.keyword == "if" and branch.head and len(branch.body) == 1 and not branch.otherwise:
            [copy] = branch.body
            if body[copy.start : copy.end] == f"{result}.copy_({memory});":
                yield branch, body[slice(*branch.head)].strip()


def remove_statements(body: str, statements: Iterable[Statement]) -> str:
    """A body without some of its statements."""
    for statement in sorted(statements, key=lambda each: -each.start):
        body = body[: statement.start].rstrip(" ") + body[statement.end :].removeprefix("\n")
    return body


def create_results(body: str, programs: Programs, names: Names) -> str:
    """A body whose results have the shape that a reduction gives them by ATen's helper.

    Only those are changed that are allocated for a shape and an element type of the body's own.
    """
    for case in programs.cases:
        strided = find_strided(case)
        if strided and _KEEP in names.types and names.types.get(strided.dims, "").startswith("int["):
            passed = ", ".join(map(names.variable, (strided.name, strided.dims, _KEEP)))
            for role in case.roles.values():
                if isinstance(role, ResultBuffer):
                    body = _create(body, names.variable(f"result{role.index}"), passed)
    return body


def _create(body: str, variable: str, passed: str) -> str:
    for allocated in read_assignments(body):
        is_made = allocated.name == variable and allocated.type == "Tensor" and allocated.value.startswith("at::empty(")
        dtypes = list(_find_dtypes(allocated.value[len("at::empty(") : -1])) if is_made else []
        if len(dtypes) == 1:
            start, end = allocated.statement.start, allocated.statement.end
            return f"{body[:start]}Tensor {variable} = create_reduction_result({passed}, {dtypes[0]});{body[end:]}"
    return body


def _find_dtypes(arguments: str) -> Iterator[str]:
    shape, *rest = split_at_commas(arguments)
    if shape.strip().startswith("IntArrayRef("):
        for argument in map(str.strip, rest):
            if options := match_code(argument, "$tensor.options().dtype($$dtype)"):
                yield options["dtype"]
            elif argument.endswith(".scalar_type()"):
                yield argument


def with_returned(target: Target) -> Target:
    """The target with its results named, where only the code that was put into it returns them."""
    if "result0" in target.variables:
        return target
    results = {f"result{i}": name for i, name in enumerate(read_returned(target.body))}
    return replace(target, variables={**target.variables, **results})


def without_ending(target: Target) -> Target:
    """The target without what follows its graph, in its pool or behind that, for a launch that returns the results."""
    body = target.body
    for run in (each for each in read_statements(body) if RUN in body[each.start : each.end]):
        inner = (each for each in run.body if RUN in body[each.start : each.end])
        stop = next((each.end for each in inner), run.end) if run.keyword == POOL else run.end
        return replace(target, body=body[:stop] + ("\n}" if stop < run.end else ""))
    return target


def with_fed(target: Target) -> Target:
    """The target with the variables that the graph was fed in the place of arguments that they are, or have views of.

    Such a variable has the sizes of the argument, but for a tensor without dimensions, of which it is a view with one.
    A result is the variable that the graph wrote, if that is copied to it.
    """
    fed = dict.fromkeys(each["fed"] for each in find_code(target.body, _FED))
    variables = dict(target.variables)
    for name, variable in target.variables.items():
        choices = (each for each in read_assignments(target.body) if each.type == "auto")
        converted = [each.name for each in choices if f"? {variable}.to(" in " ".join(each.value.split())]
        named = [*fed, *(converted if variable not in fed else ())]
        views = [each for each in named if each != variable and _is_view(target.body, each, variable)]
        written = [each for each in fed if has_code(target.body, f"{variable}.copy_({each})")]
        if len(views) == 1 and not name.startswith("result"):
            variables[name] = views[0]
        elif len(written) == 1 and name.startswith("result") and written[0] not in target.variables.values():
            variables[name] = written[0]
    return replace(target, variables=variables, arguments=target.variables)


def find_expanded(target: Target, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that the graph was fed in the place of arguments which they are expanded from, by these."""
    fed = dict.fromkeys(each["fed"] for each in find_code(target.body, _FED))
    expanded = {each: [value for value in list_values(target.body, each) if ".expand(" in value] for each in fed}
    sources = {each: values[0].partition(".expand(")[0] for each, values in expanded.items() if len(values) == 1}
    return {name: each for name, variable in variables.items() for each, of in sources.items() if of == variable}


def without_helpers(target: Target, functions: Collection[str]) -> Target:
    """The target without its early returns of what one of some functions computes, with the comments on these."""
    results = set(list_results(target.variables).values())
    body = target.body
    for branch in reversed([each for each in walk_statements(target.body) if each.keyword == "if"]):
        if branch.otherwise or not branch.body or not body.startswith("return", branch.body[-1].start):
            continue
        inner = body[branch.body[0].start : branch.end]
        calls = (found for name in functions if name in inner for found in find_code(inner, f"{name}($$arguments)"))
        if any(results.intersection(split_at_commas(found["arguments"])) for found in calls):
            start = len(_COMMENTS.sub("", body[: branch.start]))
            body = f"{body[:start]}{body[branch.end :].lstrip()}"
    return replace(target, body=body)


def _is_view(body: str, variable: str, argument: str) -> bool:
    """Whether all that a local variable is set to is an argument, or that converted, or with a dimension more."""
    values = list_values(body, variable)
    forms = (f"{argument}{ending}" for ending in ("", ".view({1})", ".view(1)"))
    patterns = [f"{before}{form}" for form in forms for before in ("", f"$$test ? {argument}.to($$type) : ")]
    return bool(values) and all(match_code(value, *patterns) for value in values)


# What is corrected of the function that is found, in order.
CORRECTIONS: tuple[Callable[[Target], Target], ...] = (
    without_scratch,  # the memory that stands for a result has its name from here on
    with_returned,  # results that only a helper's code returns have names
    with_fed,  # arguments and results that have names are what the graph was fed and wrote
    with_direct_results,  # last, as it asks what is a result
)


def find_own_target(
    checkout: Checkout, served: ServedFunction, computation: Computation | PorterError, ported: frozenset[str] | None
) -> Target:
    """The function that a row's launch goes to, with the names that it has. Raises PTR368, PTR369 and PTR371."""
    read = frozenset[str]()
    if isinstance(computation, FormProgram):
        target = find_structured_target(checkout, served) if computation.form.WHOLE_BODY else None
        if target is not None:
            return target
        read = computation.named
    elif not isinstance(computation, PorterError):
        read = list_read(computation)
    target = find_target(checkout, served, ported, read)
    for correct in CORRECTIONS:
        target = correct(target)
    if isinstance(computation, FormProgram) and computation.form.RETURNS:
        return without_ending(target)
    if isinstance(computation, FormProgram) and computation.form.ALL_CALLS:
        functions = parse_source(target.file, checkout.read(target.file)).functions_by_name
        return without_helpers(target, functions.keys())
    return target
