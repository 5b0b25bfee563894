"""The `host` backend: the fork's own host code and kernels behind the mps device, over the stand-in for Apple."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from aten_overlay.errors import OverlayError
from aten_overlay.metal.sanitizer.checks import IN_VERDICTS, select
from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import DEVICE, KERNELS, NATIVE_FUNCTIONS, spell_include
from porter.verdict.build import switches
from porter.verdict.build.kernel_files import break_kernels, defines_kernel, find_faults, find_namesakes
from porter.verdict.build.libraries import Built, build, build_shared, limit_narrow_indices, list_companions
from porter.verdict.build.objects import Recipe
from porter.verdict.build.tree import Tree, materialise, metal_include
from porter.verdict.errors import NoVerdict, name_in_fork, porter_error, raising_overlay_errors, raising_porter_errors
from porter.verdict.limits import PRINT_KERNEL
from porter.verdict.native import native_target
from porter.verdict.result import FUSED, HOST, ForkFinding, VerifyTarget, finding_of_error
from porter.verdict.suite import counters, cpu_memory, index_width, selection
from porter.verdict.suite.selection import Selection

if TYPE_CHECKING:
    from aten_overlay.apple.compiler import Compiler
    from aten_overlay.apple.mpsgraph.recorder import Recorder
    from aten_overlay.device.frameworks import LoadedFrameworks
    from aten_overlay.device.state import Device
    from aten_overlay.metal.build import Options
    from porter.verdict.short_arguments import ShortArguments

NAME = HOST
ON_HARDWARE = False
RUNS_HOST_CODE = True
FLUSHES = False

# The levels that host code asks for, in the order in which they are counted.
_LEVEL = re.compile(r"\bMACOS_(?:VER_)?(\d+)_(\d+)(?:_PLUS)?\b")
# Suffixes, by input type, of the kernels compiled ahead for a run with bounds checks; others compile on first use.
CHECKED = ("_float", "_int")
# The level at which kernels are as fast as they get.
FULL = "-O2"
# How many operators are registered by one source: many are compiled faster together, and sources side by side.
PART_SIZE = 16

_started: list[tuple[Device, LoadedFrameworks]] = []
_short: list[ShortArguments] = []
_libraries: list[ctypes.CDLL] = []


def available() -> bool:
    """On Linux."""
    return sys.platform.startswith("linux")


def require() -> None:
    """Raises PTR171 elsewhere than on Linux."""
    if not available():
        raise NoVerdict("PTR171", f"the host backend needs Linux, not {sys.platform}", hint="Use kernels or mps.")


def start() -> None:
    """Brings the device up, before torch is imported by anyone else, and the frameworks above it."""
    if _started:
        return
    import aten_overlay
    from aten_overlay.device import frameworks

    device = aten_overlay.start()
    loaded = frameworks.load(device)
    loaded.library.porter_print_kernel_on(PRINT_KERNEL)
    cpu_memory.install(device.watch_cpu_memory, device.has_damaged_cpu_memory)
    index_width.install(_limit_narrow_indices)
    _started.append((device, loaded))


def recipe(fork: Path) -> Recipe:
    """How host code of the fork at this root is compiled and linked: against the frameworks and the wheel."""
    from aten_overlay import toolchain
    from aten_overlay.apple import build
    from aten_overlay.device import libraries

    mps = _build_mps(fork)
    frameworks, device = build.build_frameworks(), libraries.build_device()
    linkable = (*build.build_headers(), frameworks, mps, device)
    linked = (flag for library in linkable for flag in toolchain.link_with(library))
    general = build.general_flags()
    precompiled = build.precompile_headers()
    named = (Path(flag).name for flags in precompiled.values() for flag in flags)  # a cache may lie elsewhere
    inputs = (build.headers_digest(), *named)
    return Recipe(
        compiler=Path(toolchain.clang()),
        flags=(*build.fork_include_flags(fork), *general),
        link=(*toolchain.torch_libraries(), *linked, "-lstdc++"),
        digest=cache.digest(*general, *inputs),
        precompiled=precompiled,
    )


def _build_mps(fork: Path) -> Path:
    """`at::mps` against the fork's headers. Raises PTR150 where they declare something else than it defines."""
    from aten_overlay.device import libraries

    headers = _device_headers(fork)
    try:
        return libraries.build_mps(headers)
    except OverlayError as error:
        if not headers or not error.place or error.code != "PTR143":
            raise
        header = Path(error.place.file).with_suffix(".h").name
        place = Place(f"{DEVICE}/{header}" if (fork / DEVICE / header).is_file() else DEVICE)
        what = f"this fork's headers of at::mps are of no release that porter knows: {error.what}"
        hint = f"Keep what a release of PyTorch declares in {DEVICE} and add to it, or update porter."
        raise PorterError("PTR150", what, place, hint) from error


def _device_headers(fork: Path) -> Path | None:
    """The fork's own `ATen/mps` headers, in a place named by what they say; None if it has none."""
    folder = fork / DEVICE
    if not folder.is_dir():
        return None
    headers = {p.name: read_regular(p) for p in sorted(folder.iterdir()) if p.suffix == ".h" and p.is_file()}
    root = cache.root() / "device_headers" / cache.digest(*(part for item in headers.items() for part in item))
    for name, content in headers.items():
        cache.put_if_changed(root / spell_include(DEVICE) / name, content)
    if headers:
        os.utime(root)  # in use: without one of these the compiler takes the wheel's, of another version
    return root


def prepare(tree: Tree) -> None:
    """Builds the host files that every operator needs, and asks the OpInfos what they dispatch.

    Raises what building raises.
    """
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(lambda: build_shared(tree, recipe(tree.root), cache.root()))
        counters.install(kernel_calls, fallbacks)
        selection.table()
        building.result()


def select_opinfos(base: str) -> Selection:
    """The OpInfos that reach an operator without being named for it, as the running dispatcher sees it."""
    counters.install(kernel_calls, fallbacks)
    return selection.select_opinfos(base)


def load_operator(tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool) -> tuple[ForkFinding, ...]:
    """Builds and loads the operator's host code, and compiles its kernels. Raises what building raises.

    Returns what is wrong with files of the fork that the operator does without.
    """
    built = build_operator(tree, target)
    findings = load_tested(built.library, tree.root, tree, target, arithmetic, checked)
    counters.install(kernel_calls, fallbacks)
    return (*built.findings, *findings)


def build_operator(tree: Tree, target: VerifyTarget) -> Built:
    """Builds the operator's host code. Raises what building raises."""
    return build(tree, _with_called([target]), recipe(tree.root), cache.root())


def build_many(tree: Tree, targets: Sequence[VerifyTarget], missing_ok: bool) -> Built:
    """Builds one library for many operators, whose rows `load_built` registers. Raises what building raises."""
    targets = _with_called(targets)
    yaml_text = tree.read(NATIVE_FUNCTIONS)
    named = [target.base for target in targets]
    bases = list(dict.fromkeys((*named, *(each for base in named for each in list_companions(yaml_text, base)))))
    parts = [bases[i : i + PART_SIZE] for i in range(0, len(bases), PART_SIZE)]
    return build(tree, targets, recipe(tree.root), cache.root(), parts, missing_ok, switched=True)


def _with_called(targets: Sequence[VerifyTarget]) -> list[VerifyTarget]:
    """Targets with those of the operators that their shared code calls, each operator once."""
    called = [VerifyTarget(base) for target in targets for base in target.through]
    return list({each.base: each for each in (*called, *targets)}.values())


def load_built(
    library: Path, fork: Path, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool = False
) -> tuple[ForkFinding, ...]:
    """`load_operator` with the library that `build_many` built from a fork: what else it has stays unregistered."""
    findings = load_tested(library, fork, tree, target, arithmetic, checked)
    for base in dict.fromkeys(
        (*target.through, target.base, *list_companions(tree.read(NATIVE_FUNCTIONS), target.base))
    ):
        switches.register(library, base)
    counters.install(kernel_calls, fallbacks)
    return findings


def load_old_code(tree: Tree, target: VerifyTarget, arithmetic: str, library: Path | None = None) -> None:
    """`load_operator` for an unmodified fork: a function that nothing there defines throws when it is called.

    Takes the `library` of many operators if one was built.
    """
    if library:
        load_built(library, tree.root, tree, target, arithmetic)
        return
    built = build(tree, _with_called([target]), recipe(tree.root), cache.root(), missing_ok=True)
    load_tested(built.library, tree.root, tree, target, arithmetic, checked=False)
    counters.install(kernel_calls, fallbacks)


def load_tested(
    library: Path, fork: Path, tree: Tree, target: VerifyTarget, arithmetic: str, checked: bool
) -> tuple[ForkFinding, ...]:
    """Loads host code whose kernels run a few times on small tensors: to compile them takes longer.

    The sanitizer names what it finds from optimized code, and only the optimizer contracts across expressions. Returns
    the kernel files that do not compile, and that the tree's plan does not touch; raises as `find_faults` does.
    """
    from aten_overlay.metal.build import QUICK

    prefixes = [f"{functor}_" for functor in target.kernels]
    optimization = FULL if checked or arithmetic == FUSED else QUICK
    broken = load(library, fork, prefixes, arithmetic, checked, find_checks(checked), optimization)
    watch_arguments(tree)
    return find_kernel_faults(tree, broken, prefixes, arithmetic)


def watch_arguments(tree: Tree) -> None:
    """From now on launches go on where all that host code binds too little is padding that a tree's plan lets lack."""
    from aten_overlay.metal.build import Options
    from porter.verdict.short_arguments import ShortArguments

    if _started:
        _short.append(ShortArguments(tree, Options(metal_include(tree.root))))
        _short[-1].install(_started[0][1].library)


def list_short_arguments() -> tuple[ForkFinding, ...]:
    """What launches have gone on with since the operator was loaded."""
    return _short[-1].list_findings() if _short else ()


def find_kernel_faults(
    tree: Tree, broken: Mapping[Path, PorterError], prefixes: Sequence[str], arithmetic: str
) -> tuple[ForkFinding, ...]:
    """The findings of kernel files that `load` says do not compile, and of namesakes of kernels with these prefixes in
    the files that the plan writes. Raises as `find_faults` does.
    """
    from aten_overlay.metal.build import QUICK, Options

    def fails_before(path: str, prefixes: Sequence[str] = prefixes) -> bool:
        before = materialise(tree.checkout, {}, cache.root(), tree.earlier).root
        options = Options(metal_include(before), (), arithmetic, optimization=QUICK)
        return _find_error(before / path, prefixes, options) is not None

    options = Options(metal_include(tree.root), (), arithmetic, optimization=QUICK)
    findings = list(find_faults(tree, broken, fails_before))
    for path in (path for path in tree.kernel_files() if path in tree.texts):
        with raising_porter_errors():
            namesakes = tuple(find_namesakes(tree.root / path, prefixes, options))
        for name in namesakes:
            if error := _find_error(tree.root / path, [name], options):
                error = name_in_fork(error, tree.root)
                if not fails_before(path, [name]):
                    raise break_kernels(error)
                findings.append(finding_of_error(error))
    return tuple(findings)


def _find_error(file: Path, prefixes: Sequence[str], options: Options) -> PorterError | None:
    """Why a kernel file, or one of its kernels with these prefixes, does not compile."""
    from aten_overlay.metal.build import compile_kernels, host_names

    try:
        with raising_porter_errors():
            names = [name for name in host_names(file, options) if name.startswith(tuple(prefixes))]
            if names:
                compile_kernels(file, names, options)
    except PorterError as error:
        return error
    return None


def load(
    library: Path,
    fork: Path,
    prefixes: Sequence[str],
    arithmetic: str,
    checked: bool,
    sanitize: tuple[str, ...] = (),
    optimization: str = FULL,
) -> Mapping[Path, PorterError]:
    """Loads host code whose bundled kernels are the fork's; compiles those with these prefixes at once.

    Returns what is wrong with other kernel files, whose kernels cannot run. Raises what is wrong with a file that
    defines one of these.
    """
    from aten_overlay.metal.build import Options
    from aten_overlay.metal.launch import SHUFFLE_LANES

    device, frameworks = _started[0]
    compiler = frameworks.compiler
    if "bounds" in sanitize:
        frameworks.watch_slices(device)
    include = metal_include(fork)
    options = Options(include, (), arithmetic, checked, sanitize=sanitize, optimization=optimization)
    unread = compiler.set_bundle(_kernel_files(fork), options, Tree(fork, fork, {}).headers_digest())
    failed = compiler.compile_ahead(
        lambda name: name.startswith(tuple(prefixes)) and name.endswith(CHECKED if checked else "")
    )
    broken = {path: name_in_fork(porter_error(error), fork) for path, error in (*unread.items(), *failed.items())}
    kernels = [prefix.removesuffix("_") for prefix in prefixes]
    for path, error in broken.items():
        if defines_kernel(read_regular(path).decode("utf-8", "surrogateescape"), kernels):
            raise error
    frameworks.library.porter_launch_options(SHUFFLE_LANES, 0, 1)  # a missing barrier shows in some order
    _libraries.append(ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL))
    return broken


def _limit_narrow_indices(largest: int | None) -> None:
    for library in _libraries:
        limit_narrow_indices(library, largest)


def load_operators(root: Path, bases: Sequence[str]) -> None:
    """Builds and loads operators of a fork that are native, so that a program of this process runs its code for them.

    Raises what `porter.verdict.native.native_target` and `porter.verdict.build.libraries.build` raise.
    """
    checkout = Checkout(root.resolve(), "named")
    targets = [native_target(checkout, base) for base in bases]
    tree = materialise(checkout.root, {}, cache.root())
    start()
    made = build(tree, targets, recipe(tree.root), cache.root())
    prefixes = [f"{kernel}_" for target in targets for kernel in target.kernels]
    broken = load(made.library, tree.root, prefixes, "default", checked=False, sanitize=select())
    for finding in (*made.findings, *find_faults(tree, broken, lambda _: True)):
        print(f"porter: finding about the fork at {finding.place}: {finding.what}", file=sys.stderr)


def find_checks(checked: bool) -> tuple[str, ...]:
    """What the sanitizer watches in a run of a verdict: in that with bounds checks, all unless the user says less."""
    return select(IN_VERDICTS) if checked else ()


def serve_operators(root: Path, bases: Sequence[str]) -> None:
    """`load_operators` for `python -m aten_overlay`, by the entry point `aten_overlay.hosts`. Raises OverlayError."""
    with raising_overlay_errors():
        load_operators(root, bases)


def set_macos_version(fork: Path, macos: str) -> None:
    """Makes host code see a macOS release (`14.4`), by the levels that `ATen/mps/MPSDevice.h` counts, the
    fork's at this root or the wheel's.

    Raises PTR138 for a release that it does not know.
    """
    from aten_overlay import toolchain

    device = (_device_headers(fork) or toolchain.torch_root() / "include") / spell_include(DEVICE) / "MPSDevice.h"
    known = [f"{major}.{minor}" for major, minor in _LEVEL.findall(device.read_text())]
    if macos not in known:
        raise PorterError("PTR138", f"unknown macOS version {macos}", hint=f"Choose one of {', '.join(known)}.")
    ctypes.CDLL(str(_build_mps(fork))).porter_set_macos_version(known.index(macos))


def recorder() -> Recorder:
    """What records MPSGraph in this process, once it is started."""
    return _started[0][1].recorder


def find_recorder() -> Recorder | None:
    """What records MPSGraph in this process; None before it is started."""
    return recorder() if _started else None


def compiler() -> Compiler:
    """What compiles kernels in this process, once it is started."""
    return _started[0][1].compiler


def kernel_calls() -> Mapping[str, int]:
    """Kernel calls by host_name since the start."""
    return _started[0][1].kernel_calls()


def fallbacks() -> Mapping[str, int]:
    """Operators that fell back to the CPU since the start, by name."""
    return _started[0][0].fallbacks()


@lru_cache(maxsize=4)
def _kernel_files(fork: Path) -> tuple[Path, ...]:
    folder = fork / KERNELS
    return tuple(sorted(folder.glob("*.metal")))
