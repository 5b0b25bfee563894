"""Metal source to PTX. Results are cached as those for the host are (see ../build.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from aten_overlay import cache
from aten_overlay.errors import OverlayError
from aten_overlay.metal import build, compiler, language
from aten_overlay.metal.build import Options
from aten_overlay.metal.cuda.libdevice import find_libdevice, libdevice_digest
from aten_overlay.metal.cuda.module import PtxModule, read_module
from aten_overlay.metal.cuda.target import DEFAULT, FORMS, CudaOptions, make_target
from aten_overlay.metal.source.generate import generate
from aten_overlay.metal.source.swizzles import choose_library

OLDEST = 80  # what has cvt of bfloat, and redux
_CODE = (
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fwrapv", "--cuda-feature=+ptx78",
    "-mllvm", "-inline-threshold=1000",
    # It makes of a vector's load those of its elements.
    "-mllvm", "-disable-vector-combine",
)  # fmt: skip
# Metal's fast math but for NaN and infinities, which kernels test for.
_FAST = (
    "-DPM_FAST", "-ffp-contract=fast", "-fapprox-func", "-freciprocal-math", "-fassociative-math", "-fno-signed-zeros",
    "-fgpu-flush-denormals-to-zero", "-mllvm", "-nvptx-prec-divf32=1",
    "-mllvm", "-nvptx-prec-sqrtf32=0",
)  # fmt: skip
_FLUSH = ("-fgpu-flush-denormals-to-zero",)


def compile_ptx(
    source: Path | str, names: Iterable[str], options: Options = build.DEFAULT, cuda: CudaOptions = DEFAULT
) -> PtxModule:
    """The PTX of kernels `names` of `source`, a file or the text itself.

    Raises what `compile_kernels` raises, PTR380 (no libdevice), PTR381 (not for such a GPU) or PTR382 (too old).
    """
    _check(options, cuda)
    text = build.preprocess(source, options)
    wanted = tuple(dict.fromkeys(names))
    if build.has_tensors(text):
        options = replace(options, standard=build.TENSOR_STANDARD)
    flags = write_flags(options, cuda)
    key = cache.digest(
        "ptx", text, *wanted, "--", *flags, repr(options.constants), repr(cuda), libdevice_digest(),
        compiler.library_digest(), build.generator_digest(), compiler.version(compiler.find_clang()),
    )  # fmt: skip
    path = compiler.cache_root() / f"{key}.ptx"
    if not cache.is_intact(path):
        _compile(key, text, wanted, options, cuda, flags)
    unit = build.read_unit(text)
    return read_module(path.read_text(), unit, wanted, options, cuda)


def write_flags(options: Options, cuda: CudaOptions) -> list[str]:
    """How clang compiles the C++ of kernels."""
    contraction, _ = build.ARITHMETICS[options.arithmetic]
    target = make_target((), cuda)
    return [
        *target.flags, f"-std={options.standard}", f"--cuda-gpu-arch={cuda.arch}", *_CODE, *contraction,
        *(_FLUSH if options.arithmetic == "flush" else ()), *(_FAST if cuda.fast else ()),
        *language.write_flags(), *(("-DPM_SCHEDULED",) if cuda.scheduled else ()),
        *(("-DPM_TENSOR_CORES",) if cuda.tensor_cores else ()), *(("-gline-directives-only",) if cuda.lines else ()),
        "-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(find_libdevice()),
        compiler.BY_CONTENT, "-S",
    ]  # fmt: skip


def _check(options: Options, cuda: CudaOptions) -> None:
    if options.checked or options.traced or options.sanitize:
        raise ValueError("checked, traced and sanitize are the host's; a GPU has compute-sanitizer")
    unknown = sorted({*cuda.forms} - {*FORMS})
    if unknown:
        raise ValueError(f"forms are some of {', '.join(FORMS)}, not {unknown[0]!r}")
    number = cuda.arch.removeprefix("sm_").rstrip("af")
    if not number.isdigit() or int(number) < OLDEST:
        raise OverlayError(
            "PTR382",
            f"kernels cannot be compiled for {cuda.arch}: the oldest architecture is sm_{OLDEST}",
            hint=f"Use a GPU of compute capability {OLDEST // 10}.{OLDEST % 10} or newer.",
        )


def _compile(key: str, text: str, names: Sequence[str], options: Options, cuda: CudaOptions, flags: list[str]) -> None:
    unit = build.read_unit(text)
    for name in names:
        build.find_instance(unit, name)
    code = generate(unit, names, dict(options.constants), make_target(names, cuda))
    generated = compiler.cache_root() / f"{key}.cu"
    cache.write(generated, code.encode(errors="surrogateescape"))
    compiler.build_cached(
        key, ".ptx", [*flags, "-include-pch", str(_precompile_library(flags, code))], [str(generated)]
    )


def _precompile_library(flags: Sequence[str], code: str) -> Path:
    """Metal's library, precompiled: to read it takes longer than most kernels do. The driver has no language for it."""
    header = choose_library(code)
    key = cache.digest(
        "ptx header", *flags, str(header), compiler.library_digest(), compiler.version(compiler.find_clang())
    )
    more = (*compiler.TIMELESS, compiler.INSTANTIATED, "-Xclang", "-emit-pch")
    return compiler.build_cached(key, ".pch", [*flags, *more], [str(header)])
