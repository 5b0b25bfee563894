"""How kernels compute: precision, rounding and NaN."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from porter.core.layout import KERNELS
from porter.languages.identifiers import find_words
from porter.languages.lexer import Token, TokenKind
from porter.languages.source import Function
from porter.metal.lint_checks import find_qualifier, parameters
from porter.review.change import Change, ChangedFile, Remark
from porter.review.metal_facts import find_functors, find_kernels, list_instances
from porter.review.rule import Case, Severity, host_case, metal_case, rule


@rule(
    Severity.WARNING,
    "A literal of a kernel has no `f`, and says double, which Metal lacks.",
    bad=(metal_case("constant float e = 0.5;\n"), metal_case("float f(float x) { return x * 1e-5; }\n")),
    good=(metal_case("constant float e = 0.5f;\nconstant half h = 1.0h;\nconstant int i = 0x1e5;\n"),),
)
def double_literal(change: Change) -> Iterator[Remark]:
    """Kernels compute in float at most: a literal without a suffix says double."""
    for file in change.metal:
        for _, token in file.added_tokens():
            text = token.text.lower()
            decimal = token.kind is TokenKind.NUMBER and not text.startswith("0x") and not {".", "e"}.isdisjoint(text)
            if decimal and text[-1] not in "fhl":
                what = f"`{token.text}` is a double literal"
                yield file.remark(token.start, what, f"Write `{token.text}f`.", token.text, f"{token.text}f")


_PRECISE_PATH = f"{KERNELS}/Planted.metal"
_PRECISE = "inline float f(float x) {\n  return precise::exp(x);\n}\n"


@rule(
    Severity.WARNING,
    "A kernel calls a function of `metal::fast`, which is less accurate than the CPU's.",
    bad=(
        metal_case("float f(float x) { return metal::fast::exp(x); }\n"),
        metal_case("float f(float x) { return fast::log(x); }\n"),
        Case({_PRECISE_PATH: _PRECISE.replace("precise::", "fast::")}, before={_PRECISE_PATH: _PRECISE}),
    ),
    good=(
        metal_case("float f(float x) { return precise::exp(x); }\nfloat fast(float x) { return x; }\n"),
        Case({_PRECISE_PATH: _PRECISE.replace("precise::", "")}, before={_PRECISE_PATH: _PRECISE}),
        Case({_PRECISE_PATH: _PRECISE.replace("precise::", "metal::")}, before={_PRECISE_PATH: _PRECISE}),
    ),
)
def fast_math(change: Change) -> Iterator[Remark]:
    """`metal::fast` trades accuracy for speed: reviewers refuse it where results are compared with the CPU's."""
    for file in change.metal:
        code = file.unit.code
        for at, token in file.added_tokens():
            if token.text == "fast" and at + 2 < len(code) and code[at + 1].text == "::":
                name = code[at + 2].text
                yield file.remark(token.start, f"`fast::{name}` is less accurate than the CPU's {name}",
                                  f"Write `precise::{name}`.", "fast", "precise")  # fmt: skip


_WIDENING = frozenset({"float", "float2", "opmath_t", "om_t", "static_cast", "OpMathType", "accum_t", "acc_t"})
_INTEGRAL = frozenset({"is_scalar_integral_v", "is_integral_v", "is_integral"})
_ARITHMETIC = frozenset("+-*/")
_STEPS = 2
_BLEND = """struct blend_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return a + a * b;
  }
};
REGISTER_BINARY_OP(blend, half, half);
"""


_SUMMING = """template <typename T>
kernel void sums(device const T* x [[buffer(0)]], device T* out [[buffer(1)]], constant uint& count [[buffer(2)]],
    uint row [[thread_position_in_grid]]) {
  T sum = 0;
  for (uint i = 0; i < count; i++) {
    sum += x[ulong(row) * count + i];
  }
  out[row] = T(sum);
}
REGISTER_SUMS(half);
"""


@rule(
    Severity.ERROR,
    "What is registered for half computes in several steps, or adds up many elements, without `opmath_t`.",
    bad=(
        metal_case(_BLEND),
        metal_case(_SUMMING),
        metal_case(
            _SUMMING.replace("T sum", "float sum")
            .replace("sum += x[", "T v = x[")
            .replace("i];", "i];\n    sum += v * v;")
        ),
    ),
    good=(
        metal_case(_SUMMING.replace("T sum", "float sum")),
        metal_case(
            _SUMMING.replace("T sum", "float sum")
            .replace("sum += x[", "float v = x[")
            .replace("i];", "i];\n    sum += v * v;")
        ),
        metal_case(_SUMMING.replace("(half)", "(float)")),
        metal_case(_BLEND.replace("a + a * b", "static_cast<T>(float(a) + float(a) * float(b))")),
        metal_case(_BLEND.replace("a + a * b", "a * b")),
        metal_case(_BLEND.replace("REGISTER_BINARY_OP", "REGISTER_OPMATH_BINARY_OP")),
        metal_case(_BLEND.replace("half, half", "float, float")),
    ),
)
def half_arithmetic(change: Change) -> Iterator[Remark]:
    """Each step of arithmetic in half rounds: a functor of several computes in `opmath_t` (PyTorch 195585)."""
    for file in change.metal:
        halves = {
            i.functor for i in list_instances(change, file.path) if i.input in ("half", "bfloat") and not i.opmath
        }
        for functor in find_functors(file):
            if functor.name not in halves:
                continue
            for function in functor.calls:
                token = _find_steps(file, function.start, function.body_start, function.body_end,
                                    {p.name for p in parameters(file.unit, function) if p.name})  # fmt: skip
                if token and file.touches(functor.start, functor.end):
                    yield file.remark(
                        token.start,
                        f"`{functor.name}_functor` computes in half: each step rounds to 11 or 8 digits",
                        "Compute in `opmath_t<T>` and cast the result, or register it with the OPMATH macro.",
                    )
        yield from _find_narrow_sums(file)


_TYPENAMES = re.compile(r"\btypename\s+(\w+)")


def _find_narrow_sums(file: ChangedFile) -> Iterator[Remark]:
    """Sums over a loop in the type of the elements, in a kernel that is instantiated for half."""
    for kernel in find_kernels(file):
        start, end = kernel.function.start, kernel.function.end
        pointed = [{token.text for token in buffer.tokens} for buffer in kernel.buffers]
        types = {name for name in _TYPENAMES.findall(file.after) if any({name, "*"} <= words for words in pointed)}
        has_half = re.search(r"\b(?:half|bfloat)\b", file.after[:start] + file.after[end:])
        if not (types and has_half and file.touches(start, end)):
            continue
        texts = [token.text for token in kernel.body]
        for at in range(1, len(texts) - 2):
            name, rest = texts[at + 1], texts[at + 2 :]
            is_local = texts[at] in types and texts[at - 1] in ("{", ";", "}") and rest[0] in ("=", ";")
            is_added = any(one == name and two == "+=" for one, two in pairwise(rest))
            if is_local and is_added and not {"for", "while"}.isdisjoint(rest):
                what = f"`{name}` of kernel `{kernel.name}` adds up in the elements' type: half has 11 digits"
                hint = "Add up in `opmath_t<T>`, or in float, and cast the result."
                yield file.remark(kernel.body[at].start, what, hint)
        narrow = {texts[at + 1] for at in range(len(texts) - 2) if texts[at] in types and texts[at + 2] == "="}
        for at in range(1, len(texts) - 4):
            factors = {texts[at + 1], texts[at + 3]}
            if texts[at] == "+=" and texts[at + 2] == "*" and texts[at + 4] == ";" and factors <= narrow:
                what = (
                    f"`{texts[at - 1]}` of kernel `{kernel.name}` adds up products that are made in the elements' type"
                )
                hint = "Convert a factor to `opmath_t<T>`, or float, before it is multiplied."
                yield file.remark(kernel.body[at].start, what, hint)


def _find_steps(file: ChangedFile, start: int, body: int, end: int, operands: set[str]) -> Token | None:
    """The second operator of arithmetic on parameters in a function that widens nothing."""
    words = {token.text for token in file.unit.within(start, end)}
    if words & (_WIDENING | _INTEGRAL):
        return None
    tokens = file.unit.within(body, end)
    steps = [
        token
        for at, token in enumerate(tokens[1:-1], 1)
        if token.text in _ARITHMETIC
        and (tokens[at - 1].kind is not TokenKind.PUNCTUATION or tokens[at - 1].text in ")]")
    ]
    named = any(token.text in operands for token in tokens)
    return steps[_STEPS - 1] if named and len(steps) >= _STEPS else None


@rule(
    Severity.ERROR,
    "A kernel calls `tanh` without `precise::`, which is NaN for large numbers.",
    bad=(
        metal_case("float f(float x) { return tanh(x); }\n"),
        metal_case("float f(float x) { return 0.5f * metal::tanh(x); }\n"),
    ),
    good=(metal_case("float f(float x) { return precise::tanh(x) + metal::precise::tanh(x); }\n"),),
)
def imprecise_tanh(change: Change) -> Iterator[Remark]:
    """Without `precise::`, tanh of a large number is NaN on some GPUs (PyTorch 186278): its exponent overflows."""
    for file in change.metal:
        code = file.unit.code
        for at, token in file.added_tokens():
            called = token.text == "tanh" and at + 1 < len(code) and code[at + 1].text == "("
            if called and find_qualifier(code, at) in ("metal::", "::metal::", ""):
                if at and code[at - 1].text not in ("::", "(", "=", "return", "*", "+", "-", "/", ",", "?", ":"):
                    continue  # a declaration
                yield file.remark(
                    token.start, "`tanh` without `precise::` is NaN for large numbers", "Write `precise::tanh`."
                )


_WIDE_INTEGERS = frozenset({"int", "long", "uint", "ulong"})
_FLOATING = frozenset({"is_scalar_floating_point_v", "is_floating_point_v"})
_MODULO = """struct modulo_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return static_cast<T>(fmod(static_cast<float>(a), static_cast<float>(b)));
  }
};
REGISTER_BINARY_OP(modulo, long, long);
"""
_TYPED_MODULO = """struct modulo_functor {
  template <typename T>
  inline enable_if_t<is_scalar_integral_v<T>, T> operator()(const T a, const T b) {
    return a % b;
  }
  template <typename T>
  inline enable_if_t<is_scalar_floating_point_v<T>, T> operator()(const T a, const T b) {
    return static_cast<T>(fmod(static_cast<float>(a), static_cast<float>(b)));
  }
};
REGISTER_BINARY_OP(modulo, long, long);
"""


_THIRDS = """template <typename T>
kernel void thirds(device const T* x [[buffer(0)]], device T* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = static_cast<T>(metal::floor(float(x[i]) / 3.0f));
}
REGISTER_THIRDS(long);
"""


@rule(
    Severity.ERROR,
    "What is registered for 32-bit or 64-bit integers computes them in float.",
    bad=(
        metal_case(_MODULO),
        metal_case(_THIRDS),
        metal_case(_TYPED_MODULO.replace("a % b", "T(fmod(float(a), float(b)))")),
    ),
    good=(
        metal_case(_TYPED_MODULO),
        metal_case(_MODULO.replace("long, long", "float, float")),
        metal_case(_THIRDS.replace("(long)", "(half)")),
        metal_case(_THIRDS.replace("device T*", "device float*").replace("static_cast<T>", "")),
    ),
)
def integer_through_float(change: Change) -> Iterator[Remark]:
    """float has 24 digits: integers above 2^24 that go through it come out as others (PyTorch 154171, 190052)."""
    for file in change.metal:
        wide = {
            i.functor for i in list_instances(change, file.path) if i.input in _WIDE_INTEGERS and i.output == i.input
        }
        for functor in find_functors(file):
            if functor.name not in wide or not file.touches(functor.start, functor.end):
                continue
            takes_integers = [call for call in functor.calls if _takes(file, call, _INTEGRAL)]
            general = [
                call for call in functor.calls if not _takes(file, call, _FLOATING | _INTEGRAL | {"is_complex_v"})
            ]
            for call in takes_integers or general:
                cast = _find_cast(file, call)
                if cast is not None:
                    what = f"`{functor.name}_functor` computes integers in float, which is wrong above 2^24"
                    yield file.remark(cast, what, "Give integers an overload that computes in their own type.")
        yield from _find_rounded_integers(file)


_OF_INTEGERS = re.compile(r"^ *[A-Z][A-Z0-9_]*\([^)\n]*\b(?:int|long)\b[^)\n]*\)", re.M)


def _find_rounded_integers(file: ChangedFile) -> Iterator[Remark]:
    """Elements that a kernel casts to float and stores in their own type, where one is instantiated for integers."""
    for kernel in find_kernels(file):
        start, end = kernel.function.start, kernel.function.end
        outside = file.after[:start] + file.after[end:]
        if not (_OF_INTEGERS.search(outside) and file.touches(start, end)):
            continue
        texts = [token.text for token in kernel.body]
        types = set(_TYPENAMES.findall(file.after))
        read = {p.name: types & {t.text for t in p.tokens} for p in kernel.buffers if not kernel.writes(p.name)}
        for at, text in enumerate(texts):
            opens = at + 1 if texts[at + 1 : at + 2] == ["("] else at + 2
            if text != "float" or texts[opens : opens + 1] != ["("]:
                continue
            before = max((k for k in range(at) if texts[k] in (";", "{", "}")), default=0)
            after = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
            operands = [name for name in read if name in texts[opens:after]]
            kinds = set[str]().union(*(read[name] for name in operands))
            is_back = any(one in kinds and two in ("(", ">") for one, two in pairwise(texts[before:at]))
            if is_back and not {"is_integral_v", "constexpr"} & set(texts):
                what = f"kernel `{kernel.name}` computes integers in float, which is wrong above 2^24"
                yield file.remark(kernel.body[at].start, what, "Compute integers in their own type.")


def _takes(file: ChangedFile, call: Function, traits: frozenset[str] | set[str]) -> bool:
    return any(token.text in traits for token in file.unit.within(call.start, call.body_start))


def _find_cast(file: ChangedFile, call: Function) -> int | None:
    """Where a function casts what it computes with to float: `float(x)`, `static_cast<float>(x)`."""
    tokens = file.unit.within(call.body_start, call.body_end)
    if any(token.text in ("is_integral_v", "is_scalar_integral_v", "constexpr") for token in tokens):
        return None
    for at, token in enumerate(tokens[:-1]):
        after, before = tokens[at + 1].text, tokens[at - 1].text if at else ""
        if token.text == "float" and (after == "(" or (before == "<" and after == ">")):
            return token.start
    return None


# A table of formulas: their texts without spaces, what goes wrong, and what to write.
_OPERAND = r"(?:(?:static_cast<\w+>|float|om_t|opmath_t<T>)\()?(\w+(?:\.\w+)?)\)?"
_NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*?"  # text in which brackets pair, two deep
_ONE = r"1(?:\.0*f?)?"
_FORMULAS = (
    (
        re.compile(rf"\bsqrt\({_OPERAND}\*{_OPERAND}\+{_OPERAND}\*{_OPERAND}\)"),
        ((1, 2), (3, 4)),
        "the squares overflow and underflow where the result does not, and an infinity beside a NaN is lost",
        "Scale by the larger operand, and look for infinities first.",
    ),
    (
        re.compile(rf"\bfloor\({_OPERAND}/{_OPERAND}\)"),
        (),
        "the quotient rounds before floor does: a result off by one, and a sign of zero that is lost",
        "Correct the quotient by the remainder, as c10::metal::floor_divide and the CPU do.",
    ),
    (
        re.compile(rf"\blog\((?:{_ONE}\+{_NESTED}|{_NESTED}\+{_ONE})\)"),
        (),
        "1 + x rounds a small x away",
        "Write `c10::metal::log1p`.",
    ),
    (
        re.compile(rf"\bexp\({_NESTED}\)-{_ONE}(?![\w.])"),
        (),
        "the difference cancels for a small x",
        "Write `c10::metal::expm1`.",
    ),
)


@rule(
    Severity.WARNING,
    "A formula of a kernel loses values: a naive hypot, floor of a quotient, log(1 + x) or exp(x) - 1.",
    bad=(
        metal_case("float f(float a, float b) { return precise::sqrt(a * a + b * b); }\n"),
        metal_case("float f(float a, float b) { return floor(a / b); }\n"),
        metal_case("float f(float x) { return precise::log(1.0f + x); }\n"),
        metal_case("float f(float x) { return precise::log(float(x) + 1.0f); }\n"),
        metal_case("float f(float x) { return precise::exp(x) - 1; }\n"),
        metal_case("float f(float x) { return metal::exp(float(x * 2)) - 1.0f; }\n"),
    ),
    good=(
        metal_case("float f(float a, float b) { return precise::sqrt(a * b + b * b); }\n"),
        metal_case("float f(float a, float b) { return floor(a) / b + precise::log(2.0f + a); }\n"),
        metal_case(
            "float f(float a, float b) { return log(a + 1e-5f) + log(a + 10) + (exp(a) - 1.5f) + (exp(a) - 10); }\n"
        ),
    ),
)
def naive_formula(change: Change) -> Iterator[Remark]:
    """Formulas that are right on paper and lose values: a hypot that overflows, a floor of a quotient."""
    for file in change.metal:
        tokens = [token for _, token in file.added_tokens()]
        joined, starts = "", dict[int, int]()
        for token in tokens:
            joined += " " if joined[-1:].isalnum() and token.text[0].isalnum() else ""
            starts[len(joined)] = token.start
            joined += token.text
        for pattern, same, what, hint in _FORMULAS:
            for match in pattern.finditer(joined):
                if match.start() in starts and all(match[a] == match[b] for a, b in same):
                    yield file.remark(starts[match.start()], f"`{match[0]}`: {what}", hint)


_SHORTCUT = re.compile(
    r"if\s*\(\s*(?P<name>alpha|value|weight|scale)(?:_value|_scalar|_val)?(?:\.\w+(?:<\w+>)?\(\))?\s*==\s*0(?:\.0?f?)?\s*\)"
    r"\s*\{?[^{};]*(?:zero_|fill_|copy_|return|memset|clone)\b"
)
_ZERO_SHORTCUT = """void f(const Tensor& self, const Scalar& alpha, Tensor& out) {
  if (alpha.toDouble() == 0.0) {
    out.copy_(self);
    return;
  }
}
"""


@rule(
    Severity.WARNING,
    "A shortcut for a factor of 0 drops NaN and infinities.",
    bad=(host_case(_ZERO_SHORTCUT), host_case("void f() {\n  if (value == 0) return out.zero_();\n}\n")),
    good=(
        host_case(_ZERO_SHORTCUT.replace("== 0.0", "!= 0.0")),
        host_case(_ZERO_SHORTCUT.replace("alpha.toDouble()", "self.numel()")),
    ),
)
def zero_shortcut(change: Change) -> Iterator[Remark]:
    """0 * NaN is NaN: a shortcut for alpha == 0 drops it, unless the CPU takes it too (196661, 196924)."""
    for file in (*change.host, *change.metal):
        for match in file.find_new(_SHORTCUT):
            what = f"a shortcut for `{match['name']} == 0` drops the NaN of 0 * NaN and of 0 * infinity"
            yield file.remark(match.start(), what, "Compute it, or say where the CPU takes the same shortcut.")


_FLOATS = frozenset({"float", "half", "bfloat"})
_EXCHANGING = """inline void store_most(device atomic_float* where, float value) {
  float old = atomic_load_explicit(where, memory_order_relaxed);
  float seen;
  do {
    seen = old;
    atomic_compare_exchange_weak_explicit(
        where, &old, metal::max(seen, value), memory_order_relaxed, memory_order_relaxed);
  } while (seen != old);
}
"""


@rule(
    Severity.ERROR,
    "A loop around a compare-and-exchange compares floats, and never ends where memory holds NaN.",
    bad=(metal_case(_EXCHANGING), metal_case(_EXCHANGING.replace("while (seen != old)", "while (!(old == seen))"))),
    good=(
        metal_case(_EXCHANGING.replace("float seen", "uint seen").replace("float old", "uint old")),
        metal_case(
            _EXCHANGING.replace("    atomic_compare", "    done = atomic_compare")
            .replace("float seen;", "float seen;\n  bool done;")
            .replace("while (seen != old)", "while (!done)")
        ),
    ),
)
def endless_exchange(change: Change) -> Iterator[Remark]:
    """NaN differs from itself: a loop that waits for two floats to be equal goes on for ever (196203)."""
    for file in change.metal:
        for function in file.functions():
            body = file.unit.within(function.body_start, function.body_end)
            texts = [token.text for token in body]
            floats = {texts[at + 1] for at, text in enumerate(texts[:-1]) if text in _FLOATS}
            expected = {
                name for at, text in enumerate(texts) if text.startswith("atomic_compare_exchange")
                for before, name in zip(texts[at:], texts[at + 1 :], strict=False) if before == "&" and name in floats
            }  # fmt: skip
            for at, text in enumerate(texts):
                if text in ("==", "!=") and expected & {texts[at - 1], *texts[at + 1 : at + 2]}:
                    what = f"`{texts[at - 1]} {text} {texts[at + 1]}` is never what the loop waits for where it is NaN"
                    hint = "Compare the bits, by `as_type<uint>`, or take what the exchange returns."
                    yield file.remark(body[at].start, what, hint)


_EXTREME = """kernel void most(device const float* x [[buffer(0)]], device float* out [[buffer(1)]],
    constant uint& count [[buffer(2)]], uint row [[thread_position_in_grid]]) {
  float most = -INFINITY;
  for (uint i = 0; i < count; i++) {
    const float value = x[ulong(row) * count + i];
    most = value > most ? value : most;
  }
  out[row] = most;
}
"""
_BISECTING = "inline int f(constant float* x, float value) {\n  return !(x[1] >= value) ? 1 : 0;\n}\n"
_NEGATED = tuple(
    (re.compile(rf"!\(([^()]+) {operator} ([^()]+)\)"), rf"\1 {inverse} \2")
    for operator, inverse in ((">=", "<"), (">", "<="), ("<=", ">"), ("<", ">="))
)
_DECLARING = r"\b(?:float|half|bfloat|T)\s*[&*]?\s*"
_STARTS = frozenset({"INFINITY", "FLT_MAX", "infinity", "lowest", "max", "min", "FLT_MIN"})
_PICKS = frozenset({"?", "max", "min", "fmax", "fmin"})


@rule(
    Severity.WARNING,
    "A kernel stores the largest or least of many floats, and passes over NaN.",
    bad=(
        metal_case(_EXTREME),
        metal_case(_EXTREME.replace("value > most ? value : most", "metal::max(most, value)")),
        metal_case(_EXTREME.replace("most = value > most ? value : most", "if (value > most) most = value")),
        Case(
            {_PRECISE_PATH: _BISECTING.replace("!(x[1] >= value)", "x[1] < value")}, before={_PRECISE_PATH: _BISECTING}
        ),
    ),
    good=(
        metal_case(_EXTREME.replace("value > most", "value > most || isnan(value)")),
        metal_case(_EXTREME.replace("out[row] = most", "out[row] = x[row] / most")),
        metal_case(_EXTREME.replace("float most = -INFINITY", "int most = -INFINITY")),
        Case(
            {_PRECISE_PATH: _BISECTING.replace("float", "uint").replace("!(x[1] >= value)", "x[1] < value")},
            before={_PRECISE_PATH: _BISECTING.replace("float", "uint")},
        ),
    ),
)
def lost_nan(change: Change) -> Iterator[Remark]:
    """The CPU's extreme of what holds a NaN is NaN; a comparison with NaN is false, and passes over it (177747)."""
    for file in change.metal:
        for kernel in find_kernels(file):
            texts = [token.text for token in kernel.body]
            if {"isnan", "isunordered"} & set(texts) or not file.touches(kernel.function.start, kernel.function.end):
                continue
            for at in range(2, len(texts) - 1):
                name = texts[at]
                end = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
                is_start = texts[at - 1] in ("float", "half", "bfloat") and _STARTS & set(texts[at:end])
                if is_start and _picks(texts[end:], name) and _stores(texts[end:], name):
                    what = f"`{name}` of kernel `{kernel.name}` passes over NaN, which the CPU's result keeps"
                    yield file.remark(kernel.body[at].start, what, "Keep a NaN: `isnan(value) || value > most`.")
        for pattern, inverse in _NEGATED:
            for line, earlier in file.find_rewritten(pattern, inverse):
                text, compared = file.text_around(line), pattern.search(earlier)
                names = find_words(f"{compared[1]} {compared[2]}") if compared else ()
                if not any(re.search(rf"{_DECLARING}{name}\b", text) for name in names):
                    continue
                what = f"`{earlier}` was true of a NaN"
                yield Remark(file.path, line, what, "Keep the negation: a comparison with NaN is false.")


def _picks(texts: list[str], name: str) -> bool:
    """Whether the larger or the lesser of a local and another value is assigned to it."""
    for at in range(1, len(texts) - 1):
        if texts[at] == name and texts[at + 1] == "=":
            end = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
            start = max((k for k in range(at) if texts[k] in (";", "{", "}")), default=0)
            compares = "if" in texts[start:at] and {"<", ">"} & set(texts[start:at])
            if _PICKS & set(texts[at:end]) or compares:
                return True
    return False


def _stores(texts: list[str], name: str) -> bool:
    """Whether a local is stored in memory as it is, or cast."""
    for at in range(1, len(texts) - 2):
        if texts[at : at + 2] == ["]", "="]:
            end = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
            value = [text for text in texts[at + 2 : end] if text.isidentifier()]
            if value[-1:] == [name] and not set("+-*/[") & set(texts[at + 2 : end]):
                return True
    return False


@rule(
    Severity.WARNING,
    "A kernel starts an extreme of floats from the largest finite number, and loses infinities.",
    bad=(metal_case(_EXTREME.replace("-INFINITY", "-FLT_MAX")),),
    good=(
        metal_case(_EXTREME),
        metal_case(_EXTREME.replace("-INFINITY", "-FLT_MAX").replace("value > most ? value : most", "value * 2")),
    ),
)
def finite_start(change: Change) -> Iterator[Remark]:
    """The largest of elements that are all -infinity is -infinity: what it starts from is no greater."""
    for file in change.metal:
        for kernel in find_kernels(file):
            texts = [token.text for token in kernel.body]
            if not file.touches(kernel.function.start, kernel.function.end):
                continue
            for at in range(2, len(texts) - 1):
                end = next((k for k in range(at, len(texts)) if texts[k] == ";"), len(texts))
                is_start = texts[at - 1] in ("float", "half", "bfloat") and {"FLT_MAX", "lowest"} & set(texts[at:end])
                if is_start and _picks(texts[end:], texts[at]) and _stores(texts[end:], texts[at]):
                    what = f"`{texts[at]}` of kernel `{kernel.name}` starts from a finite number: infinities are lost"
                    yield file.remark(kernel.body[at].start, what, "Start from `-INFINITY`, or from `INFINITY`.")
