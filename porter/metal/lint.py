"""Finds code that Apple's Metal compiler or a reviewer would reject, though a host C++ compiler accepts it.

Rules work on tokens and need no compiler. Each rule has good and bad example sources, all of which are tested. A rule
only reports what the tokens alone decide, not what depends on types.
Source of the rules: Metal Shading Language Specification, sections 1.4 to 1.6, 2.1, 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from porter.core.errors import PorterError
from porter.languages.source import Source, UnbalancedBrackets
from porter.metal import lint_checks as checks


@dataclass(frozen=True)
class LintFinding:
    """A violation of `rule` at `file`:`line`; `text` says what is wrong, and what to write instead."""

    file: str
    line: int
    rule: str
    text: str


@dataclass(frozen=True)
class Rule:
    """A check, with one-line example sources that it rejects and accepts."""

    name: str
    check: Callable[[checks.Unit], checks.Objection]
    bad: tuple[str, ...]
    good: tuple[str, ...]


def lint(file: str, text: str) -> tuple[LintFinding, ...]:
    """Returns the findings in a Metal source or header, by line. Raises PTR110 if its brackets do not match."""
    source = Source.parse(file, text)
    try:
        unit = checks.Unit(source, tuple(checks.metal_code(source)))
        found = [(token, rule.name, what) for rule in RULES for token, what in rule.check(unit)]
    except UnbalancedBrackets as error:
        raise PorterError("PTR110", error.what, error.place, error.hint) from error
    findings = {LintFinding(file, source.place(token.start).line, rule, what) for token, rule, what in found}
    return tuple(sorted(findings, key=lambda f: (f.line, f.rule, f.text)))


def find_foreign(file: str, text: str) -> LintFinding | None:
    """The first word of a Metal source, or of a part of one, that is C++ and not Metal: `double`, `goto`, `1.0L`."""
    source = Source.parse(file, text)
    unit = checks.Unit(source, tuple(checks.metal_code(source)))
    found = [
        LintFinding(file, source.place(token.start).line, rule.name, what)
        for rule in RULES
        if rule.name in _FOREIGN
        for token, what in rule.check(unit)
    ]
    return min(found, key=lambda each: each.line, default=None)


_FOREIGN = ("type", "long-double-literal", "language")  # what each word decides by itself

RULES: tuple[Rule, ...] = (
    Rule(
        "type",
        checks.types,
        ("double f();", "long long n = 0;", "float x = (double)y;"),
        ("long n = 0; float doubled;",),
    ),
    Rule(
        "long-double-literal",
        checks.literals,
        ("constant float e = 1.0L;", "float x = 1e-5l;"),
        ("long n = 5L; float x = 0x1p3f;",),
    ),
    Rule(
        "language",
        checks.unsupported_words,
        ("void f() { throw 1; }", "struct S { virtual void f(); };"),
        ("float tryout = 1.0;", "struct S { S() = delete; };"),
    ),
    Rule("std", checks.standard_library, ("float x = std::exp(y);",), ("float x = metal::exp(y);",)),
    Rule(
        "libc",
        checks.c_library,
        (
            "float f(float x) { return expf(x); }",
            "float f(float x) { return ::powf(x, 2); }",
            "float f(float x) { return metal::erf(x); }",
        ),
        (
            "float f(float x) { return c10::metal::erf(x) + precise::exp(x); }",
            "float expm1f(float x) { return x; } float y = expm1f(1);",
        ),
    ),
    Rule(
        "address-space",
        checks.address_spaces,
        ("float f(float* p) { return *p; }", "kernel void f(float* p [[buffer(0)]]) {}", "void f(const float& x) {}"),
        (
            "float f(thread float* p) { return *p; }",
            "void f(float (*op)(float, float)) {}",
            "float f(vec<float, 2> v) { return v.x; }",
        ),
    ),
    Rule(
        "kernel",
        checks.kernel_parameters,
        (
            "kernel void f(uint n) {}",
            "kernel float f(device float* x [[buffer(0)]]) { return 1; }",
            "kernel void f(thread float* x [[buffer(0)]]) {}",
            "kernel void f(device float* x [[threadgroup(0)]]) {}",
        ),
        ("kernel void f(device float* x [[buffer(0)]], constant uint& n, uint i [[thread_position_in_grid]]) {}",),
    ),
    Rule(
        "address-space-mismatch",
        checks.mismatches,
        (
            "void f(constant float* x) { x[0] = 1; }",
            "void f(constant float* x) { *x += 1; }",
            "void f(constant void* x) { float y = *static_cast<device float*>(x); }",
            "void f(device const float* x) { constant float* y = (constant float*)x; }",
            "float g(thread float* p) { return *p; } float f(device float* x) { return g(x); }",
            "float g(device float* p) { return *p; } kernel void f() { threadgroup vec<float, 2> x[4]; g(x); }",
            "float g(thread float* p) { return *p; } void f(device float* x) { const device float* y = x + 1; g(y); }",
        ),
        (
            "void f(device float* x, constant float* y) { x[0] = y[0]; }",
            "float g(device float* p) { return *p; } float f(device float* x) { return g(x); }",
            "float f(constant void* x) { return *static_cast<constant float*>(x); }",
            "float f(device const char* x) { return *(device const float*)x + ((device float*)(x + 4))[0]; }",
            "float g(threadgroup float* p, float v) { return v; } void f() { threadgroup float x[4], y = 1; g(x, y); }",
            "float g(device int* p) { return 0; } void f() { { threadgroup int x[4]; } { device int* x = 0; g(x); } }",
            "template <class P> float g(P p) { return *p; } void f() { threadgroup float x[4]; g(x); g(*x); g(x[0]); }",
            "void f(constant float* a) { const constant float* rows[2] = {a, a}; rows[0] = a; }",
            "float g(thread float* p) { return *p; } void f() { threadgroup float x[4]; { float x[2] = {}; g(x); } }",
            "float g(thread float* p); void f() { threadgroup float x[4]; auto h = [](thread float* x) { g(x); }; }",
        ),
    ),
    Rule(
        "recursion",
        checks.recursion,
        (
            "int f(int n) { return n ? f(n - 1) : 0; }",
            "int g(int); int f(int n) { return g(n); } int g(int n) { return f(n); }",
        ),
        (
            "float exp(float x) { return metal::exp(x); }",
            "int f(int n) { return 0; } int f(float n) { return f(int(n)); }",
        ),
    ),
    Rule(
        "attribute",
        checks.attributes,
        ("[[gnu::hot]] void f() {}",),
        ("[[kernel]] void f(uint i [[thread_position_in_grid]]) {}",),
    ),
    Rule(
        "nan",
        checks.lost_nans,
        (
            "struct f { template <typename T> T operator()(T a, T b) { return max(a, b); } };",
            "struct f { float operator()(float a, float b) { return ::metal::min(a, b); } };",
        ),
        (
            "struct f { template <typename T> T operator()(T a, T b) { return c10::metal::max(a, b); } };",
            "struct f { template <class T> enable_if_t<is_integral_v<T>> operator()(T a, T b) { return max(a, b); }};",
            "struct f { float operator()(float a, float b) { return isunordered(a, b) ? NAN : max(a, b); } };",
            "struct f { template <typename T> T operator()(T a) { return metal::numeric_limits<T>::max(); } };",
        ),
    ),
)
