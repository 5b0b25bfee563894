"""Kernels by name: what registers them, for which types, and what names them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.aten.declarations import MPS_KEY
from porter.aten.meta import read_type_rules
from porter.aten.native_functions import NativeFunction
from porter.aten.operator import Operator, find_served
from porter.core.dtypes import TESTED, DType
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.cpu.kernels import read_cpu_kernel
from porter.languages.source import MacroUse
from porter.review.change import Change, ChangedFile, Remark
from porter.review.metal_facts import (
    NamedKernel,
    find_named_kernels,
    list_functors,
    list_instances,
    list_registered,
    list_words,
)
from porter.review.operators import list_stubs
from porter.review.rule import Case, Severity, edit_case, host_case, metal_case, rule

_UNARY_KERNELS = f"{KERNELS}/UnaryKernel.metal"
_LAST = "REGISTER_UNARY_OP(exp, float2, float2);\n"


@rule(
    Severity.ERROR,
    "A functor is registered for a type twice.",
    bad=(
        edit_case((_UNARY_KERNELS, _LAST, _LAST + _LAST)),
        edit_case((_UNARY_KERNELS, _LAST, _LAST + "REGISTER_UNARY_OP(exp, half, float);\n")),
    ),
    good=(edit_case((_UNARY_KERNELS, _LAST, _LAST + "REGISTER_UNARY_OP(exp, half2, half2);\n")),),
)
def duplicate_registration(change: Change) -> Iterator[Remark]:
    """Each functor and type is registered once: the second makes a kernel of a name that is there."""
    for file in change.metal:
        seen: dict[tuple[str, str, str], str] = {}
        for instance in list_instances(change, file.path):
            key = (instance.functor, instance.family, instance.input)
            if key in seen and file.is_added(instance.use.start):
                what = f"`{instance.functor}` is registered for {instance.input} twice"
                yield file.remark(instance.use.start, what, "Remove one of them.")
            seen.setdefault(key, instance.output)


_COPIES_PATH = f"{KERNELS}/Copies.metal"
_COPIES = """template <typename T>
kernel void copy(constant T* x [[buffer(0)]], device T* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = x[i];
}
#define INSTANTIATE_COPY(T) \\
  template [[host_name("copy_" #T)]] kernel void copy<T>(constant T*, device T*, uint)
INSTANTIATE_COPY(float);
INSTANTIATE_COPY(half);
"""
_SIZED_COPIES = _COPIES.replace("COPY(T)", "COPY(T, N)").replace("float)", "float, 4)").replace("half)", "half, 4)")
_NAMED_COPIES = (
    _COPIES.replace("COPY(T)", "COPY(NAME, T)")
    .replace("(float)", "(copy, float)")
    .replace("(half)", "(copy, half)")
    .replace('"copy_" #T', '#NAME "_" #T')
)
_ALIASES = {
    "int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int",
    "uint32_t": "uint", "unsigned": "uint", "int64_t": "long", "uint64_t": "ulong", "size_t": "ulong",
}  # fmt: skip
_TYPE = re.compile(r"(?:bool|u?char|u?short|u?int|u?long|half|float|bfloat)[234]?")


@rule(
    Severity.ERROR,
    "A functor loses a type that it had a kernel for.",
    bad=(
        edit_case((_UNARY_KERNELS, "REGISTER_UNARY_OP(exp, bool, float);\n", "")),
        Case({_COPIES_PATH: _COPIES.replace("INSTANTIATE_COPY(half);\n", "")}, before={_COPIES_PATH: _COPIES}),
    ),
    good=(
        edit_case((_UNARY_KERNELS, "REGISTER_UNARY_OP(exp, half, half);\n", "REGISTER_UNARY_OP(exp, half,  half);\n")),
        Case({_COPIES_PATH: _COPIES.replace("(half)", "( half )")}, before={_COPIES_PATH: _COPIES}),
        Case(
            {_COPIES_PATH: _COPIES.replace("(half)", "(int32_t)")},
            before={_COPIES_PATH: _COPIES.replace("(half)", "(int)")},
        ),
        Case({_COPIES_PATH: _COPIES}, before={_COPIES_PATH: _SIZED_COPIES}),
        Case({_COPIES_PATH: _NAMED_COPIES.replace("(copy,", "(clone,")}, before={_COPIES_PATH: _NAMED_COPIES}),
    ),
)
def lost_dtype(change: Change) -> Iterator[Remark]:
    """A type for which a functor had a kernel, and has none after the change, though host code names it still."""
    if not any(file.is_metal for file in change.files):
        return
    now = {(i.functor, i.input) for i in list_registered(change)}
    before = {(i.functor, i.input) for i in list_registered(Change(change.before, change.before, ()))}
    kept = {functor for functor, _ in now}
    for file in change.files:
        if not file.is_metal:
            continue
        for functor in sorted(kept):
            lost = sorted(kind for name, kind in before - now if name == functor and functor in file.before)
            if lost and any(functor in line for line in file.removed):
                line = next((n for n, text in enumerate(file.after.splitlines(), 1) if f"({functor}" in text), 0)
                what = f"`{functor}` has no kernel for {', '.join(lost)} any more"
                yield Remark(file.path, line, what, "Keep the type, or say in the text that MPS loses it.")
        yield from _find_lost_instances(file)


def _find_lost_instances(file: ChangedFile) -> Iterator[Remark]:
    """Uses of a macro that names a kernel by its arguments, which are gone while the macro makes others still."""
    if not (file.is_readable and file.earlier.is_readable and file.after):
        return
    before = {macro.name: macro.params for macro in file.earlier.macros() if "host_name" in macro.body}
    making = {macro.name for macro in file.source.macros() if before.get(macro.name) == macro.params}
    now = [(use, *_part_types(use)) for use in file.source.macro_uses()]
    for use in file.earlier.macro_uses():
        types, others = _part_types(use)
        rest = [other for other, _, names in now if other.name == use.name and names == others]
        is_there = any({*types, *others} <= {*kinds, *names} for _, kinds, names in now)
        if types and rest and use.name in making and not is_there:
            what = f"`{use.name}` makes no kernel of {', '.join(use.arguments)} any more"
            yield file.remark(rest[0].start, what, "Keep the type, or say in the text that MPS loses it.")


def _part_types(use: MacroUse) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The types among the arguments of a macro, by one name each, and the other arguments."""
    words = [_ALIASES.get(argument, argument) for argument in map(str.strip, use.arguments)]
    types = tuple(word for word in words if _TYPE.fullmatch(word))
    return types, tuple(word for word in words if not _TYPE.fullmatch(word))


_REGISTERING = ("REGISTER_DISPATCH", "REGISTER_MPS_DISPATCH")
_REFUSING = ("TORCH_CHECK", "is_integral", "isIntegralType", "isFloatingType", "isComplexType", "scalar_type()")


@rule(
    Severity.ERROR,
    "A stub is called for a type for which its functor has no kernel, and host code does not refuse it.",
    bad=(edit_case((f"{KERNELS}/BinaryKernel.metal", "REGISTER_FLOAT_BINARY_OP(copysign);\n", "")),),
    good=(
        edit_case(
            (
                f"{KERNELS}/BinaryKernel.metal",
                "REGISTER_FLOAT_BINARY_OP(copysign);\n",
                "REGISTER_OPMATH_FLOAT_BINARY_OP(copysign);\n",
            )
        ),
    ),
)
def missing_dtype(change: Change) -> Iterator[Remark]:
    """A dtype that reaches a kernel that nobody registered: an opaque error of Metal's (188129, 188386, 188026).

    The types are those for which ATen's own code calls the stub. Where the host function says itself which types it
    refuses, they are not looked for.
    """
    functors = {i.functor for file in change.metal for i in list_instances(change, file.path)}
    paths = {file.path for file in change.host}
    for path, text in change.host_texts.items():
        if "REGISTER_DISPATCH" not in text and "REGISTER_MPS_DISPATCH" not in text:
            continue
        file = change.host_file(path)
        if not file.is_readable:
            continue
        for use in file.source.macro_uses():
            if use.name in _REGISTERING and len(use.arguments) == 2:
                yield from _check_stub(change, file, use, functors, path in paths)


def _check_stub(
    change: Change, file: ChangedFile, use: MacroUse, functors: set[str], is_changed: bool
) -> Iterator[Remark]:
    """The types for which a stub is called, and its functor has no kernel."""
    stub, name = use.arguments[0], use.arguments[1].lstrip("& ")
    for function in file.source.functions_by_name.get(name, ()):
        text = file.text_of(function)
        named = tuple(find_named_kernels(file, function.start, function.end))
        if len(named) != 1 or not named[0].family or any(word in text for word in _REFUSING):
            continue
        functor = named[0].prefix
        touched = is_changed and (file.touches(function.start, function.end) or file.is_added(use.start))
        if not (touched or functor in functors):
            continue
        registered = {i.input for i in list_registered(change) if i.functor == functor}
        wanted = _find_types(change, stub)
        missing = [dtype for dtype in wanted if dtype.metal not in registered]
        if registered and missing:
            place = named[0].token.start
            names = ", ".join(dtype.torch for dtype in missing)
            what = f"`{stub}` is called for {names}, and `{functor}` has no kernel for it"
            hint = "Register the type, or refuse it in host code by TORCH_CHECK_NOT_IMPLEMENTED."
            yield Remark(file.path, file.line_at(place), what, hint)


def _find_types(change: Change, stub: str) -> list[DType]:
    """The types of inputs for which a row that MPS shares calls a stub, as its CPU kernel and its meta function tell.

    None where one of them cannot be read: then nothing is said.
    """
    for row in change.rows.all:
        entry = row.entry_for(MPS_KEY)
        if entry is None or "CPU" not in entry.keys or stub not in list_stubs(change.after, entry.kernel):
            continue
        try:
            kernel = read_cpu_kernel(change.after, stub)
            operator = Operator.read(change.after, row.base)
            rules = read_type_rules(change.after, operator.functional_name(row), entry.kernel)
        except PorterError:
            continue
        if len(rules) == 1:
            accepted = (dtype for dtype in TESTED if rules[0].result(dtype) is not None)
            return [dtype for dtype in accepted if rules[0].compute(dtype) in kernel.dtypes]
    return []


_NO_CODE = "PTR032"
UNARY = f"{OPERATIONS}/UnaryOps.mm"
ERF = "CREATE_MPS_STRUCTURED_UNARY_TORCH_IMPL_FUNC(erf_out_mps, erf)\n"
ERF_ROW = "    CPU, CUDA, MTIA: erf_out\n    MPS: erf_out_mps\n"
_SHARED = (NATIVE_FUNCTIONS, ERF_ROW, "    CPU, CUDA, MPS, MTIA: erf_out\n")


@rule(
    Severity.ERROR,
    "A row dispatches on MPS to a function that no file defines, or to shared code whose stub has no MPS kernel.",
    bad=(
        edit_case((NATIVE_FUNCTIONS, "MPS: erf_out_mps", "MPS: erff_out_mps")),
        edit_case(_SHARED, (UNARY, ERF, "")),
        edit_case((UNARY, ERF, "")),
        edit_case(
            (
                f"{OPERATIONS}/BinaryKernel.mm",
                "REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)\n",
                "",
            )
        ),
    ),
    good=(edit_case((UNARY, ERF, ERF + "\n")),),
)
def row_without_code(change: Change) -> Iterator[Remark]:
    """A row that dispatches to what no file defines, or shares code whose stub MPS registers nothing for."""
    for row in _find_touched(change):
        now, before = find_served(change.after, row), None
        earlier = change.earlier_rows.by_name.get(row.name)
        if earlier is not None:
            before = find_served(change.before, earlier)
        if now and now.error and now.error.code == _NO_CODE and not (before and before.error):
            what = f"{row.name} has no code on MPS: {now.error.what}"
            yield Remark(NATIVE_FUNCTIONS, now.entry.place.line, what, now.error.hint)


def _find_touched(change: Change) -> Iterator[NativeFunction]:
    """The rows that are others now, and those whose code, or a stub of it, a removed line names."""
    changed = {row.name for row in change.changed_rows}
    removed = "\n".join(line for file in change.files if file.is_host for line in file.removed)
    for row in change.rows.all:
        entry = row.entry_for(MPS_KEY)
        if entry is None:
            continue
        stem = entry.kernel.rsplit("::", 1)[-1]
        if row.name in changed or stem in removed or (removed and f"{row.base}_stub" in removed):
            yield row


_UNKNOWN = """static void planted_kernel(TensorIteratorBase& iter) {
  lib.exec_unary_kernel(iter, "exq");
}
"""


@rule(
    Severity.ERROR,
    "Host code names a kernel that no kernel file has, or the change removes one that host code names.",
    bad=(
        edit_case((f"{OPERATIONS}/BinaryKernel.mm", '"copysign"', '"copysgn"')),
        host_case(_UNKNOWN),
        host_case('void f() {\n  auto state = lib.getPipelineStateForFunc(fmt::format("cumsum_{}", t));\n}\n'),
        Case(files={f"{KERNELS}/UnaryKernel.metal": ""}),
    ),
    good=(
        host_case(_UNKNOWN.replace("exq", "exp")),
        host_case(
            _UNKNOWN.replace('exec_unary_kernel(iter, "exq")', 'getMTLFunction("bloom")'), "kernel void bloom() {}\n"
        ),
    ),
)
def unknown_kernel(change: Change) -> Iterator[Remark]:
    """A kernel name that no library has fails when it is called: "Failed to create function state object" (188129)."""
    touched = any(file.is_metal for file in change.files)
    for file in change.host:
        for named in find_named_kernels(file):
            relevant = file.is_added(named.token.start) or touched
            if relevant and named.prefix and not _exists(change, named, file.after):
                what = f"no kernel file has a kernel of the name {named.token.text}"
                yield file.remark(named.token.start, what, "Register it, or name one that is there.")
    yield from _check_removed(change)


def _check_removed(change: Change) -> Iterator[Remark]:
    """Names in host files that the change leaves as they are, of kernels that it takes away."""
    gone = set[str]()
    for file in change.files:
        if file.is_metal:
            gone |= list_words(file.before) - list_words(file.after)
    changed = {file.path for file in change.host}
    for path, text in change.host_texts.items():
        if path in changed or not any(word in text for word in gone):
            continue
        for named in find_named_kernels(file := change.host_file(path)):
            lost = any(word == named.prefix or word.startswith(named.prefix) for word in gone)
            if named.prefix and lost and not _exists(change, named, text):
                what = f"the change removes the kernel {named.token.text}, which this still names"
                yield file.remark(named.token.start, what, "Keep the kernel, or change what calls it.")


def _exists(change: Change, named: NamedKernel, host: str) -> bool:
    """Whether a functor is registered by a name, or a kernel of a name is made: outright, or of the parts of one.

    A file of host code may have its kernels in a string.
    """
    functors = list_functors(change)
    if named.family:
        return named.prefix in functors if named.is_whole else any(f.startswith(named.prefix) for f in functors)
    stem = named.prefix.rstrip("_")
    if not stem or any(stem == f or stem.startswith(f"{f}_") for f in functors):
        return True
    inline = host[host.index('R"') :] if 'R"' in host else ""
    texts = (inline, *(text for path, text in change.kernel_texts.items() if path.endswith(".metal")))
    return any(_matches(stem, word) for text in texts for word in list_words(text))


def _matches(stem: str, word: str) -> bool:
    """Whether a word is a kernel's name, begins as it, or is what a macro makes the beginning of a name of."""
    return (
        word == stem or word.startswith(f"{stem}_") or (word.endswith("_") and len(word) > 2 and stem.startswith(word))
    )


_UNNAMED = """struct bloom_functor {
  template <typename T>
  inline T operator()(const T x) {
    return x;
  }
};
REGISTER_UNARY_OP(bloom, float, float);
"""


@rule(
    Severity.WARNING,
    "A change registers a functor that no host code names.",
    bad=(metal_case(_UNNAMED),),
    good=(
        Case({**metal_case(_UNNAMED).files, **host_case('void f() {\n  lib.exec_unary_kernel(i, "bloom");\n}').files}),
    ),
)
def unused_kernel(change: Change) -> Iterator[Remark]:
    """A functor that is registered and that no host code names: dead code, or a name that differs."""
    for file in change.metal:
        seen = set[str]()
        for instance in list_instances(change, file.path):
            name = instance.functor
            if name in seen or not file.is_added(instance.use.start):
                continue
            seen.add(name)
            if not any(_names(text, name) for text in change.host_texts.values()):
                what = f"`{name}` is registered, and no host code names it"
                yield file.remark(instance.use.start, what, "Launch it, or leave it out.")


def _names(text: str, functor: str) -> bool:
    """Whether host code has a literal of a functor, or of its stem where a suffix is added to it."""
    if f'"{functor}"' in text:
        return True
    stem = functor
    while "_" in stem:
        stem = stem.rpartition("_")[0]
        if any(f'"{stem}{joint}' in text for joint in ("_{", '_"', '"')):
            return True
    return False
