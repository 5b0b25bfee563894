"""Results that a graph wrote to other memory than theirs: a launch writes them where they are.

That memory is the function's own where a result was strided. An output of the caller is replaced by a new tensor, which
the caller never sees, in `median_out_mps` (ATen/native/mps/operations/ReduceOps.mm of 2.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from porter.aten.implementations import Implementation
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.languages.brackets import split_at_commas
from porter.languages.inlining import read_parameters
from porter.languages.source import parse_source
from porter.languages.statements import Statement, read_statements
from porter.metal.insertion import insert_includes
from porter.plan.native.target import Target

_CHOSEN = re.compile(r"\bPlaceholder\(\s*\w+->\w+\s*,\s*(?P<when>\w+)\s*\?\s*(?P<own>\w+)\s*:\s*(?P<result>\w+)\b")

_REPLACED = re.compile(r"(?P<output>\w+)\s*=\s*(?:at::)?(?P<how>empty|empty_mps|zeros)\((?P<arguments>.*)\);", re.S)
_OUTPUT = re.compile(r"(?:at::)?Tensor\s*&")
_RESIZE = "ATen/native/Resize.h"


def resize_outputs(checkout: Checkout, implementation: Implementation | None) -> Iterator[Edit]:
    """Edits by which a row's function resizes outputs of its caller that it replaced by new tensors."""
    if implementation is None or implementation.function is None:
        return
    source = parse_source(implementation.file, checkout.read(implementation.file))
    function = source.find_again(implementation.function)
    if function is None:
        return
    outputs = {parameter.name for parameter in read_parameters(function) if _OUTPUT.fullmatch(parameter.type)}
    edits = list[Edit]()
    for outer in read_statements(source.text[function.body_start : function.end]) if outputs else ():
        for statement in outer.walk():
            start, end = function.body_start + statement.start, function.body_start + statement.end
            match = _REPLACED.fullmatch(source.text[start:end])
            if match and match["output"] in outputs:
                sizes = split_at_commas(match["arguments"])[0].strip()
                resized = f"at::native::resize_output({match['output']}, {sizes});"
                zero = f" {match['output']}.zero_();" if match["how"] == "zeros" else ""
                edits.append(Edit(implementation.file, start, end, f"{resized}{zero}"))
    if edits:
        yield from insert_includes(implementation.file, source.text, (_RESIZE,))
        yield from edits


def with_direct_results(target: Target) -> Target:
    """The target without the copies to its results of what the graph wrote elsewhere, under the condition of both."""
    body = target.body
    for match in _CHOSEN.finditer(target.body):
        if match["result"] in target.variables.values():
            for each in reversed([inner for outer in read_statements(body) for inner in outer.walk()]):
                if _copies(each, body, match):
                    body = body[: each.start] + body[each.end :]
    return replace(target, body=body)


def _copies(statement: Statement, body: str, match: re.Match[str]) -> bool:
    """Whether a statement only copies to the result, where the graph did not write it."""
    if statement.keyword != "if" or statement.head is None or statement.otherwise or len(statement.body) != 1:
        return False
    copy = body[statement.body[0].start : statement.body[0].end]
    is_same = body[slice(*statement.head)].strip() == match["when"]
    return is_same and re.fullmatch(rf"{match['result']}\.copy_\({match['own']}\);", copy) is not None
