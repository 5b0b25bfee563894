"""Metal source to a shared object that the host can launch: see `include/porter_metal_abi.h` for what it exports.

`host_names` and `arguments` preprocess but do not compile. `compile_kernels` compiles the kernels asked for and no
others. Results are cached under a key of the preprocessed text, the names, the options, the compiler, the machine and
this package's own headers and generator, so a stale result cannot be used.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from aten_overlay import cache
from aten_overlay.errors import OverlayError
from aten_overlay.metal import compiler, language
from aten_overlay.metal.family import naming, select, write_flags
from aten_overlay.metal.features import refuse_lacking
from aten_overlay.metal.language import METAL_4
from aten_overlay.metal.passes.lines import FLAGS
from aten_overlay.metal.passes.wide import CALLED
from aten_overlay.metal.pipeline import Kind, Stage, run_passes
from aten_overlay.metal.sanitizer.checks import mask
from aten_overlay.metal.sanitizer.copies import ALIASING
from aten_overlay.metal.sanitizer.marks import FOR_PRIVATE
from aten_overlay.metal.sanitizer.meetings import SHUFFLED, shuffles, watches_accesses
from aten_overlay.metal.sanitizer.values import OPENED, WEIGHED
from aten_overlay.metal.sanitizer.widths import FLAGS as WIDTH_FLAGS
from aten_overlay.metal.sanitizer.widths import MEASURED
from aten_overlay.metal.source.arguments import Argument
from aten_overlay.metal.source.bound_variables import pass_bound_variables
from aten_overlay.metal.source.choices import AMBIGUOUS, convert_sides, wrap_literals
from aten_overlay.metal.source.declarations import (
    FunctionConstant,
    Instance,
    Unit,
    find_definition,
    kernel_arguments,
    parse,
)
from aten_overlay.metal.source.generate import generate
from aten_overlay.metal.source.lexer import read
from aten_overlay.metal.source.reach import find_reached, shares_state
from aten_overlay.metal.source.refusals import refuse
from aten_overlay.metal.source.swizzles import choose_library
from aten_overlay.metal.source.table import Value
from aten_overlay.metal.source.targets import HOST_FLAGS, host

__all__ = ["ARITHMETICS", "Argument", "Options", "arguments", "compile_kernels", "host_names"]

_RELAXED = (
    "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros", "-freciprocal-math", "-fapprox-func",
)  # fmt: skip
_FINITE = (*_RELAXED, "-fno-honor-nans", "-fno-honor-infinities")
# What Apple's compiler or GPU may do that the source does not say. `default` contracts within one expression. Pragmas
# and compile options ask for `finite`, with functions as exact as ever; in `fast` they err as much as Metal allows.
ARITHMETICS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "default": (("-ffp-contract=on",), "0"),
    "strict": (("-ffp-contract=off",), "0"),
    "fused": (("-ffp-contract=fast",), "0"),
    "flush": (("-ffp-contract=on",), "PM_FLUSH_DENORMALS"),
    "reorder": (("-ffp-contract=on",), "PM_REORDER_REDUCTIONS"),
    "relaxed": (_RELAXED, "0"),
    "finite": (_FINITE, "0"),
    "fast": ((*_FINITE, "-DPM_MATH_ERRORS"), "0"),
}
VARIABLE = "PORTER_ARITHMETIC"  # of kernels whose source and caller name none
_FAST_IN_TORCH = "PYTORCH_MPS_FAST_MATH"  # compileLibrary in OperationUtils.mm asks for `safe` without it
_MODES = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+METAL[ \t]+fp[ \t]+((?:math_mode|contract)\(\w+\))", re.MULTILINE)
# What a pragma of a source makes of the arithmetic that was asked for.
_ASKED = {
    "math_mode(fast)": {"default": "finite"},
    "math_mode(relaxed)": {"default": "relaxed", "finite": "relaxed", "fast": "relaxed"},
    "math_mode(safe)": {"finite": "default", "fast": "default", "relaxed": "default"},
    "contract(off)": {"default": "strict", "fused": "strict"}, "contract(fast)": {"default": "fused"},
}  # fmt: skip
_STANDARD = "gnu++17"
# Of sources with tensors: a descriptor is a template's argument, and `x[i, j]` has two indices.
TENSOR_STANDARD = "gnu++23"
# Without TLS descriptors (-mtls-dialect=gnu2), whose calls may overwrite vector registers before glibc 2.40 (BZ 31372).
_CODE = (
    "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv",
    "-Xclang", "-ffloat16-excess-precision=none", "-march=native",
    "-mprefer-vector-width=512",
)  # fmt: skip
# Kernels are few and hot. What is compiled quickly does with clang's own threshold.
_INLINED = ("-mllvm", "-inline-threshold=1000")
_CHECKED = (
    "-fsanitize=kernel-address", "-mllvm", "-asan-instrumentation-with-call-threshold=0", "-mllvm", "-asan-stack=0",
    "-mllvm", "-asan-globals=0", "-mllvm", "-asan-kernel-mem-intrinsic-prefix=1", "-fno-vectorize",
    "-fno-slp-vectorize",
)  # fmt: skip
# The alignment that types have in Metal.
# No pass may make two of a barrier, nor of the call of a function that has one.
_SANITIZED = ("-DPM_SANITIZE", "-fmax-type-align=32", "-Xclang", "-fconvergent-functions")

# Kernels run on small stacks: a frame too large has to fail here.
_FRAME = ("-Wframe-larger-than=49152", "-Werror=frame-larger-than")
# What `undefined` reads.
_UNOPTIMIZED = (
    "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "-fno-discard-value-names", *_FRAME,
)  # fmt: skip
# A library that `completion` completes is compiled in two more steps: this leaves loops as they are for the second,
# but for those that unroll to nothing.
_HALF_WAY = (
    "-S", "-emit-llvm", "-fno-discard-value-names", "-fno-vectorize", "-fno-slp-vectorize",
    "-mllvm", "-unroll-runtime=0", "-mllvm", "-unroll-allow-partial=0", "-mllvm", "-unroll-allow-peeling=0",
)  # fmt: skip
# A pass over registers that gains nothing here and takes half the time of large kernels.
_SECOND_STEP = ("-mllvm", "-disable-x86-domain-reassignment") if os.uname().machine == "x86_64" else ()
# Soon compiled rather than fast: a threadgroup's threads run one by one only, and the second step makes machine code.
QUICK = "-O1"
# What simplifies functions, without what prepares their loops for the machine.
_SIMPLIFIED = ("-flto=thin",)
# Passes over machine code that pay in loops that run for long.
_PLAIN = (
    "-mllvm", "-disable-lsr", "-mllvm", "-enable-misched=false", "-mllvm", "-disable-machine-licm",
)  # fmt: skip
_TENSORS = "metal_tensor"
NAMELESS = "program_source"  # the file that Apple's compiler says a library made of a string is


@dataclass(frozen=True)
class Options:
    """How to compile.

    `arithmetic` is a key of ARITHMETICS; `checked` catches out-of-bounds accesses (slow); `traced`, with it,
    tells of lines (see tracing.py); `sanitize` names checks (see sanitizer/checks.py); `constants` are the function
    constants' values by index or name; `metal_version` as `__METAL_VERSION__` has it (310 = 3.1); `optimization` is
    clang's, and QUICK takes a third of the time; `standard` is of C++, later where a source includes <metal_tensor>.
    """

    include: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    arithmetic: str = "default"
    checked: bool = False
    traced: bool = False
    sanitize: tuple[str, ...] = ()
    constants: tuple[tuple[int | str, Value], ...] = ()
    metal_version: int = 310
    optimization: str = "-O2"
    extra: tuple[str, ...] = field(default=())
    standard: str = _STANDARD


DEFAULT = Options()


def host_names(source: Path | str, options: Options = DEFAULT) -> tuple[str, ...]:
    """The name of every kernel in `source` (a file, or the text itself), in its order.

    Raises PTR100 (no compiler), PTR101 (preprocessing fails, or Apple's compiler refuses it), PTR103, PTR108 (one name
    twice) or PTR109.
    """
    return tuple(i.host_name for i in read_unit(preprocess(source, options)).instances)


def arguments(source: Path | str, name: str, options: Options = DEFAULT) -> tuple[Argument, ...]:
    """The parameters of kernel `name`, in order, thread positions included. Raises PTR102 for an unknown name."""
    unit = read_unit(preprocess(source, options))
    return kernel_arguments(unit, find_definition(unit, find_instance(unit, name)))


def function_constants(source: Path | str, options: Options = DEFAULT) -> tuple[FunctionConstant, ...]:
    """The function constants of `source`, with or without a value."""
    return tuple(read_unit(preprocess(source, options)).constants)


def compile_kernels(source: Path | str, names: Iterable[str], options: Options = DEFAULT) -> Path:
    """The path of a shared object with kernels `names` of `source`.

    Raises PTR100 (no compiler), PTR101 (does not compile), PTR102 (unknown name), PTR103-PTR105, PTR108 or PTR109.
    """
    return compile_text(preprocess(source, options), names, options)


def compile_text(text: str, names: Iterable[str], options: Options) -> Path:
    """`compile_kernels` for source that is preprocessed already. Raises what it raises."""
    wanted = tuple(dict.fromkeys(names))
    options = replace(options, arithmetic=_choose_arithmetic(text, options.arithmetic))
    options = replace(options, standard=TENSOR_STANDARD) if has_tensors(text) else options
    runtime = compiler.runtime_library()
    key = _key(text, wanted, options, runtime)
    path = compiler.cache_root() / f"{key}.so"
    if cache.is_intact(path):
        return path
    unit = read_unit(text)
    instances = [find_instance(unit, name) for name in wanted]
    watched = watches_accesses(options.sanitize)
    mode = _runtime_flags(options, any(shuffles(find_reached(unit, instance)) for instance in instances))
    code = generate(
        unit, wanted, dict(options.constants), host(mode), options.checked or watched, watched, _is_fast(options)
    )
    shared = watched or any(shares_state(unit, instance) for instance in instances)
    module = _lower_either(key, code, wanted, options, shared, lambda lowered: refuse_lacking(lowered, unit, instances))
    is_checked_soon = _is_quick(options) and options.checked  # before plain code is made, which adds no checks
    completed = _complete(key, module, options) if shared or is_checked_soon else module
    if _is_quick(options):
        contraction, _ = ARITHMETICS[options.arithmetic]
        plain = ["-x", "ir", "-Wno-everything", *_CODE, "-O0", *contraction, *_FRAME]
        try:
            return compiler.build_library(key, plain, str(completed), str(runtime))
        except OverlayError as error:
            if compiler.TOO_LARGE not in error.what:
                raise
    build = _flags_for_second_step(options) if shared else _flags_for_module(options)
    return compiler.build_library(key, build, str(completed if shared else module), str(runtime))


def _choose_arithmetic(text: str, asked: str) -> str:
    """The arithmetic of a source: what its caller asks for, or else the environment, as far as its pragmas allow."""
    if asked == "default":
        is_fast = os.environ.get(_FAST_IN_TORCH, "0") not in ("", "0")
        asked = os.environ.get(VARIABLE) or ("finite" if is_fast else asked)
    for pragma in _MODES.findall(text):
        asked = _ASKED.get(pragma, {}).get(asked, asked)
    return asked


def has_tensors(text: str) -> bool:
    """Whether preprocessed source includes <metal_tensor>."""
    return f'"{METAL_4 / _TENSORS}"' in text


def _key(text: str, names: Iterable[str], options: Options, runtime: Path) -> str:
    return cache.digest(
        "kernels", text, *names, "--", *_flags(options), repr(options.constants), _runtime_flags(options),
        compiler.library_digest(), generator_digest(),
        compiler.version(compiler.find_clang()), compiler.machine(), str(runtime),
    )  # fmt: skip


def _lower_either(
    key: str, code: str, wanted: Sequence[str], options: Options, shared: bool, refuse: Callable[[str], None]
) -> Path:
    """`_lower`; again where the type of a `?:` is ambiguous, each time with one less that is."""
    while True:
        try:
            return _lower(key, code, wanted, options, shared, refuse)
        except OverlayError as error:
            before = code
            if AMBIGUOUS in error.what.partition("\n")[0] and (code := wrap_literals(before)) == before:
                code = convert_sides(before, error.place)
            if code == before:
                raise


def _lower(
    key: str, code: str, wanted: Sequence[str], options: Options, shared: bool, refuse: Callable[[str], None]
) -> Path:
    """The file with what clang makes of C++ with no pass run, in which every operation has a value."""
    generated = compiler.cache_root() / f"{key}.cpp"
    cache.write(generated, code.encode(errors="surrogateescape"))
    header = ["-include-pch", str(_precompile_library(options, code))]
    with naming(wanted):
        lowered = compiler.run([*_flags(options), *_UNOPTIMIZED, *header, "-o", "-", str(generated)])
        refuse(lowered)
    module = compiler.cache_root() / f"{key}.ll"
    rewritten = run_passes(lowered, Stage.LOWERED, _classify(options, shared))
    cache.write(module, rewritten.encode(errors="surrogateescape"))
    return module


def _complete(key: str, module: Path, options: Options) -> Path:
    """The file with what `completion` makes of a module."""
    simplified = _SIMPLIFIED if _is_quick(options) else ()
    flags = [*_flags_for_module(options), *_HALF_WAY, *simplified]
    simplified_module = compiler.run([*flags, "-o", "-", str(module)])
    rewritten = run_passes(simplified_module, Stage.SIMPLIFIED, _classify(options, shared=True))
    completed = compiler.cache_root() / f"{key}.complete.ll"
    cache.write(completed, rewritten.encode(errors="surrogateescape"))
    return completed


def _is_fast(options: Options) -> bool:
    """Whether kernels have to run fast: neither watched nor soon compiled."""
    return not (options.checked or options.sanitize or _is_quick(options))


def _is_quick(options: Options) -> bool:
    return options.optimization in ("-O0", QUICK)


def _flags_for_second_step(options: Options) -> list[str]:
    contraction, _ = ARITHMETICS[options.arithmetic]
    # Watched code is optimized before it is watched.
    is_ready = _is_quick(options) or watches_accesses(options.sanitize)
    passes = ["-Xclang", "-disable-llvm-passes", *_PLAIN] if is_ready else _INLINED
    return ["-x", "ir", "-Wno-everything", *_CODE, *_SECOND_STEP, options.optimization, *contraction, *passes]


def _classify(options: Options, shared: bool) -> Kind:
    return Kind(
        sanitized=bool(options.sanitize),
        watched=watches_accesses(options.sanitize),
        measured=MEASURED in options.sanitize,
        opened=OPENED in options.sanitize,
        weighed=WEIGHED in options.sanitize,
        traced=options.traced,
        quick=_is_quick(options),
        fast=_is_fast(options),
        shared=shared,
    )


def _flags_for_module(options: Options) -> list[str]:
    """How what clang wrote of the C++ is compiled."""
    contraction, _ = ARITHMETICS[options.arithmetic]
    checks = _CHECKED if options.checked and not options.sanitize else ()
    plain = _PLAIN if _is_quick(options) else _INLINED
    return [
        "-x", "ir", "-Wno-everything", *_CODE, options.optimization, *plain, *contraction, *checks, *_FRAME,
        *options.extra,
    ]  # fmt: skip


def preprocess(source: Path | str, options: Options) -> str:
    """The text of `source`, a file or the text itself, with its headers and without macros."""
    include = [f"-I{path}" for path in (*language.include_folders(), *options.include)]
    flags = [*HOST_FLAGS, f"-std={options.standard}", *write_definitions(options), *include, "-DPM_FRONT_END", "-E"]
    with language.naming_headers():
        if isinstance(source, Path):
            return compiler.run([*flags, str(source)])
        return compiler.run([*flags, "-"], f'#line 1 "{NAMELESS}"\n{source}')


def write_definitions(options: Options) -> list[str]:
    """The flags of the macros that a compiler of Metal defines."""
    target = language.select()
    return [
        "-D__METAL__=1",
        "-D__METAL_MACOS__=1",
        f"-D__METAL_VERSION__={target.number if target else options.metal_version}",
        *(f"-D{d}" for d in options.defines),
    ]


def _flags(options: Options) -> list[str]:
    if options.arithmetic not in ARITHMETICS:
        raise ValueError(f"arithmetic must be one of {', '.join(ARITHMETICS)}, not {options.arithmetic!r}")
    contraction, _ = ARITHMETICS[options.arithmetic]
    checks = _CHECKED if options.checked and not options.sanitize else ()
    private = (FOR_PRIVATE,) if "private" in options.sanitize else ()
    watched = (*_SANITIZED, *private) if options.sanitize else ()
    traces = FLAGS if options.traced or options.sanitize else ()
    wide = (CALLED,) if _is_fast(options) else ()
    widths = WIDTH_FLAGS if MEASURED in options.sanitize else ()
    aliasing = (ALIASING,) if watches_accesses(options.sanitize) else ()
    return [
        *HOST_FLAGS, f"-std={options.standard}", *write_flags(select()), *language.write_flags(), *watched,
        *_CODE, *widths, *aliasing, compiler.BY_CONTENT, options.optimization, *contraction,
        *checks, *traces, *wide, *options.extra,
    ]  # fmt: skip


def _runtime_flags(options: Options, shuffled: bool = True) -> str:
    _, mode = ARITHMETICS[options.arithmetic]
    if options.sanitize:
        checks = [name for name in options.sanitize if shuffled or name != SHUFFLED]
        return f"{mode} | PM_SANITIZED | {mask(checks)} << PM_SANITIZER_SHIFT"
    return f"{mode} | PM_CHECKED" if options.checked else mode


def _precompile_library(options: Options, code: str) -> Path:
    flags = [f for f in _flags(options) if f not in ("c++",)]
    flags[flags.index("-x") + 1 : flags.index("-x") + 1] = ["c++-header"]
    flags += (*compiler.TIMELESS, compiler.INSTANTIATED)
    header = choose_library(code) if options.standard == _STANDARD else METAL_4 / _TENSORS
    # A precompiled header names the files it was made of by their paths.
    key = cache.digest(
        "header", *flags, str(header), compiler.library_digest(), compiler.version(compiler.find_clang()),
        compiler.machine(),
    )  # fmt: skip
    return compiler.build_cached(key, ".pch", flags, [str(header)])


def read_unit(text: str) -> Unit:
    """What preprocessed source declares. Raises PTR101 (Apple's compiler refuses it), PTR103, PTR108 or PTR281."""
    unit = _read_unit(text)
    language.refuse_newer(unit.source)
    return unit


@lru_cache(maxsize=8)
def _read_unit(text: str) -> Unit:
    unit = parse(read(text))
    refuse(unit)
    if (bound := pass_bound_variables(unit)) != text:
        unit = parse(read(bound))
    seen: dict[str, Instance] = {}
    for instance in unit.instances:
        if instance.host_name in seen:
            raise OverlayError(
                "PTR108",
                f"two kernels are named `{instance.host_name}`",
                unit.source.place(instance.declaration.start),
                "Register each host name once.",
            )
        seen[instance.host_name] = instance
    return unit


def find_instance(unit: Unit, name: str) -> Instance:
    """The kernel with this host name. Raises PTR102."""
    for instance in unit.instances:
        if instance.host_name == name:
            return instance
    near = difflib.get_close_matches(name, [i.host_name for i in unit.instances], n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "host_names() lists the kernels."
    raise OverlayError("PTR102", f"there is no kernel named `{name}` in this source", hint=hint)


@lru_cache(maxsize=1)
def generator_digest() -> str:
    """A hash of this package."""
    here = Path(__file__).resolve().parent
    return cache.digest(*(p.read_bytes() for p in sorted(here.rglob("*.py"))))
