"""What a slip of the pen makes of code: small changes of operators, constants, casts, order and conditions.

Each kind of code has its slips: Metal functions, REGISTER lines, host code and rows of native_functions.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from porter.languages.slips import Slip, SlipTable, slip_by_table, slip_in_arguments

Slips = Callable[[str], Iterator[Slip]]

# What is written, and what it becomes. Spaces keep templates, pointers and includes out of reach.
HOST: SlipTable = {
    "line": {
        r"^REGISTER_DISPATCH[^\n]*\n": ("",),
        r"^  lib\.exec_[^;]*;\n": ("",),
        r"^ +(?!getMPSProfiler|return\b)[\w.:]+\([^;{}]*\);\n": ("",),
    },
    # The name after a pipeline state is one for the profiler.
    "name": {r'(?<!PSO, )"(\w+)"': (r'"\1_"', '"nothing"'), r"_stub\b": ("_stb",)},
    "argument": {
        r", at::toOpMathType\((\S*common_dtype\(\))\)": ("", r", \1", ", kInt"),
        r", (?:/\*\w+=\*/)?kBool\b": ("", ", kInt"),
    },
    "constant": {
        r"(?<=, )(alpha|eps|weight)(?=,)": ("Scalar(1)", r"Scalar(-\1.toDouble())", r"Scalar(\1.toInt())"),
        r"(?<=[(, ])1(?=[,); ])": ("0", "2"),
        r"(?<=[(, ])0(?=[,); ])": ("1",),
        r"\b(32|256|1024)\b": ("1", r"2 * \1"),
    },
    "operator": {
        r"exec_binary_kernel": ("exec_unary_kernel",),
        r"exec_unary_kernel": ("exec_binary_kernel",),
        r" == ": (" != ",),
        r" != ": (" == ",),
        r" && ": (" || ",),
        r" \|\| ": (" && ",),
        r" < (?!.*=)": (" <= ", " > "),
        r" > (?!.*=)": (" >= ", " < "),
        r" \* (?=[\w(])": (" + ",),
        r" / (?=[\w(])": (" * ",),
        r" - (?=[\w(])": (" + ",),
    },
    "layout": {
        r"\.contiguous\(\)": ("",),
        r"\.is_contiguous\(\)": (".is_non_overlapping_and_dense()",),
        r"\.strides\(\)": (".sizes()",),
        r"\.sizes\(\)": (".strides()",),
    },
    "index type": {r'"int" : "long"': ('"int" : "int"',)},
    "dtype": {
        r"\bint64_t (?=\w+ =)": ("short ",),
        r"\b(?:at::)?kLong\b": ("kInt",),
        r"\bscalarToMetalTypeString\(([^()]*)\)": ('std::string("float")',),
    },
    "return": {r"^( +)if \(([^;{}]*)\) \{\n(?:[^\n{}]*\n){0,3} +return[^\n;]*;\n\1\}\n": ("",)},
}
YAML: SlipTable = {
    "key": {r", MPS(?=[,:])": ("", ", XPU"), r"^    MPS: \w+\n": ("",)},
    "name": {r"(?<=: )(\w+)(?=\n)": (r"\1_", r"\1_mps")},
    "line": {r"^    [^\n]*\bMPS\b[^\n]*\n": ("",)},
}
_TYPES = ("float", "half", "bfloat", "long", "int", "short", "uchar", "char", "bool", "float2", "half2")
_COMPLEX = ("float2", "half2")
_NARROWER = {"float": "half", "half": "float", "bfloat": "half", "long": "int", "int": "short", "short": "char"}


def slip_in_registrations(code: str) -> Iterator[Slip]:
    """The slips of REGISTER lines: lines left out, other types, complex where one is, and other kernels."""
    types = [metal for metal in _TYPES if metal not in _COMPLEX or metal in code]
    for line in re.finditer(r"^REGISTER_\w+\((\w+(?:, \w+)*)\);\n", code, re.M):
        yield Slip("line", line.start(), line.end(), "")
        for word in re.finditer(r"\w+", line[1]):
            start, end = line.start(1) + word.start(), line.start(1) + word.end()
            if word[0] not in _TYPES:
                yield Slip("name", start, end, "other")
                continue
            yield Slip("dtype", start, end, _NARROWER.get(word[0], "float"))
            yield Slip("dtype", start, end, types[(types.index(word[0]) + 4) % len(types)])


def slip_in_host_code(code: str) -> Iterator[Slip]:
    """The slips of host code: those of the table, and arguments in another order."""
    yield from slip_by_table(HOST, code)
    yield from slip_in_arguments(code)


def slip_in_rows(code: str) -> Iterator[Slip]:
    yield from slip_by_table(YAML, code)
