"""What `porter migrate --from FILE.cu` says of a functor and of its values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from porter.verdict.own.result import Comparison, TranslatedKernel


def describe_translation(found: TranslatedKernel) -> str:
    """The registrations to add, and what was compared, or that nothing was."""
    functor = found.functor
    missing = f"not registered: {functor.unregistered}"
    lines = [*(line.rstrip() for line in functor.registrations)] if functor.registrations else [missing]
    if found.not_compared:
        return "\n".join((*lines, f"values: not compared ({found.not_compared}): nothing of {found.file} was run"))
    ran = f"values: {found.own.name} of {found.file} was compiled as C++ and run on this machine, in double"
    return "\n".join((*lines, ran, *(_describe(each) for each in found.comparisons)))


def _describe(each: Comparison) -> str:
    head = f"  {each.dtype.torch}: {each.values} values"
    if each.wrong is None:
        return f"{head}, at most {each.largest:.2g} ULP off beyond what computing in float explains"
    wrong = each.wrong
    given = ", ".join(f"{value:g}" for value in (*wrong.inputs, *wrong.scalars))
    return f"{head}: FAIL at ({given}): the functor has {wrong.found:g}, the kernel {wrong.expected:g}"


def translation_object(found: TranslatedKernel) -> dict[str, Any]:
    """The same as a JSON object."""
    functor = found.functor
    return {
        "function": found.own.name,
        "file": found.file,
        "form": found.own.form.value,
        "functor": functor.text,
        "registrations": [line.rstrip() for line in functor.registrations],
        "unregistered": functor.unregistered or None,
        "ran": not found.not_compared,
        "ok": found.done,
        "values": [
            {
                "dtype": each.dtype.torch,
                "compared": each.values,
                "largest_ulp": each.largest,
                "wrong": asdict(each.wrong) if each.wrong else None,
            }
            for each in found.comparisons
        ],
    }
