"""The kernel file of a host file, and what both need: a library of kernels, includes, and the namespace of helpers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from porter.aten.implementations import list_host_sources
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.formatting import format_block
from porter.core.layout import KERNELS, METAL_HEADERS, RANDOM, SPECIAL_MATH
from porter.languages.directives import read_includes
from porter.languages.identifiers import contains_identifier
from porter.languages.patterns import find_code, has_code
from porter.metal.codegen.host_code import Launch
from porter.metal.codegen.host_values import NON_EMPTY
from porter.metal.codegen.kernel import KernelStyle
from porter.metal.codegen.launch import REDUCE_UTILS
from porter.metal.codegen.slice_launch import write_helper
from porter.metal.helpers import read_helper
from porter.metal.insertion import insert_includes
from porter.metal.kernel_files import qualify_library
from porter.plan.recorded.helpers import define_missing, find_helper

# A library of kernels: with what stands for it where shaders are compiled at run time, or the bundled one alone.
_BUNDLED = r"(?:static )?auto& lib = (?:mps::)?MetalShaderLibrary::\w+\(\);\n"
_LIBRARY = re.compile(
    rf"^(?:#ifndef.*\n{_BUNDLED}#else\n#include <.*/(\w+)_metallib\.h>\n#endif\n|(?<!SHADERS\n){_BUNDLED})", re.M
)
_OTHER_LIBRARY = re.compile(r"\blib = (?:mps::)?MetalShaderLibrary\b[\s\S]*?^#endif\n", re.M)
# A library of another kernel file's, which is none for the kernels of this one.
_SCOPED = re.compile(r"^namespace \w+_metal \{\n(?:.*\n)*?\} // namespace \w+_metal\n", re.M)
_NAMESPACE = re.compile(
    r"^namespace at(?:::native(?:::\w+)* \{| \{\nnamespace native \{)\n(?:using namespace [\w:]+;\n)*", re.M
)
# What includes NON_EMPTY, a header that cannot be included twice.
_NON_EMPTY_IN = {REDUCE_UTILS, "ATen/native/ScatterGatherChecks.h", "ATen/native/UnfoldBackward.h"}
_REDUCTIONS = f"{METAL_HEADERS}/reduction_utils.h"
_ATOMIC = f"{METAL_HEADERS}/atomic.h"
_THREADGROUP_SUM = "threadgroup_sum(threadgroup $$shared, $T $value, $a $thread, $b $threads)"
_WELFORD = "threadgroup_welford_combine(threadgroup $$shared, $a $thread, $b $threads)"
_USED = "lib.getPipelineStateForFunc"
_METAL = "c10::metal::"
_SPECIAL = ("erf", "log_gamma", "digamma", "i0", "sinc", "polygamma", "zeta", "expm1", "log1p")
_SIMDGROUP_MATRIX = "metal_simdgroup_matrix"  # Metal's own, which <metal_stdlib> does not include
# What a kernel names, and the header of c10 or of Metal that declares it.
_DECLARED_IN = (
    (("AtomicType",), _ATOMIC),
    (tuple(f"{_METAL}{each}" for each in ("threadgroup_", "simd_", "welford_")), _REDUCTIONS),
    (tuple(f"{_METAL}{each}" for each in _SPECIAL), SPECIAL_MATH),
    (("simdgroup_matrix", "simdgroup_float8x8"), _SIMDGROUP_MATRIX),
    ((f"{_METAL}philox4",), RANDOM),
    ((_METAL,), f"{METAL_HEADERS}/utils.h"),
)
# Those of host code, by what they return, and those of kernels.
_HOST_HELPERS = {
    "merge_dims": "MergedDims",
    "count_neighbors": "int64_t",
    "run_convolution": "void",
    "run_fft": "void",
    "run_attention": "std::tuple<Tensor, Tensor>",
    "draw_categories": "void",
    "draw_permutation": "void",
    "check_recurrent": "std::array<int64_t, 4>",
    "multiply_matrices": "void",
    "run_lstm": "std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>",
    "run_lstm_gradients": "std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>>",
    "share_rows": "RowThreads",
}
_HELPERS = (
    "strided_offset",
    "neighbors",
    "acc_t",
    "sum_t",
    "combined_t",
    "least_value",
    "greatest_value",
    "ProductTile",
    "SourceSteps",
    "find_root",
    "shuffle_up",
    "draw_words",
    "logistic",
)


def read_style(checkout: Checkout) -> KernelStyle:
    """How the fork's kernels reduce, and whether those of bfloat need a newer Metal, by its own files."""
    reductions = checkout.read(_REDUCTIONS) if checkout.exists(_REDUCTIONS) else ""
    guarded = any("__METAL_VERSION__ >= 310" in checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
    return KernelStyle(has_code(reductions, _THREADGROUP_SUM), guarded, welford=has_code(reductions, _WELFORD))


def read_atomic_types(checkout: Checkout) -> tuple[str, ...]:
    """The element types that the fork's kernels can add to atomically, by its own header or by what stands for it."""
    helper = find_helper("AtomicType")
    assert helper is not None
    text = checkout.read(_ATOMIC) if checkout.exists(_ATOMIC) else helper.read_text()
    return tuple(each["type"] for each in find_code(text, "struct AtomicType<$type>"))


def find_kernel_file(checkout: Checkout, host: str) -> str:
    """The kernel file whose library a host file uses; one of the same name where it uses none yet."""
    found = _LIBRARY.search(_blank_scopes(checkout.read(host)))
    return f"{KERNELS}/{found[1] if found and found[1] else PurePosixPath(host).stem}.metal"


def edit_kernel_file(checkout: Checkout, file: str, text: str) -> Iterator[Edit]:
    """Adds kernels at the end of a kernel file, which is created if there is none. Raises PTR349."""
    known = checkout.read(file) if checkout.exists(file) else ""
    for helper in _HELPERS:
        if contains_identifier(text, helper) and not contains_identifier(known, helper):
            text = format_block(checkout, file, read_helper(f"{helper}.metal")) + text
    named = (header for names, header in _DECLARED_IN if any(each in text for each in names))
    headers = tuple(each for each in dict.fromkeys(named) if each == _SIMDGROUP_MATRIX or checkout.exists(each))
    text = f"{define_missing(checkout, file, text)}{text}".rstrip("\n") + "\n"
    if not checkout.exists(file):
        includes = "".join(f"#include <{header}>\n" for header in sorted((*headers, "metal_stdlib")))
        yield Edit(file, 0, 0, f"{includes}\nusing namespace metal;\n\n{text}")
        return
    old = checkout.read(file)
    yield from insert_includes(file, old, headers)
    yield Edit(file, len(old), len(old), ("" if old.endswith("\n") else "\n") + "\n" + text)


def edit_host_file(checkout: Checkout, file: str, kernel_file: str, launch: Launch) -> Iterator[Edit]:
    """Adds the includes and helpers of a launch to a host file, and a library of kernels if it has none.

    Raises PTR374 where none can be added.
    """
    text = checkout.read(file)
    included = {include.path: include for include in read_includes(text)}
    missing = launch.headers - included.keys()
    if _NON_EMPTY_IN & (included.keys() | missing):
        missing -= {NON_EMPTY}
        if NON_EMPTY in included:  # an earlier port's
            yield Edit(file, included[NON_EMPTY].start, text.index("\n", included[NON_EMPTY].end) + 1, "")
    yield from insert_includes(file, text, tuple(sorted(missing)))
    unscoped = _blank_scopes(text)
    found = _LIBRARY.search(unscoped) or _OTHER_LIBRARY.search(unscoped)
    helper = ""
    texts = _read_helpers(checkout, launch)
    for name, written in texts.items():
        declared = f"{_HOST_HELPERS[name]} {name}("
        at = text.find(written) if declared in text else -1
        if declared not in text or text.find(f"{name}(") < at:
            helper += written
            if at >= 0:  # an earlier port's, which stands after its first use now
                start = at + (found is not None and found.end() == at)  # the empty line goes with the library
                yield Edit(file, start, at + len(written), "")
    if found:
        behind = found.end()  # what is added may call helpers of earlier ports
        for written in texts.values():
            behind += len(written) if text.startswith(written, behind) else 0
        here = (Edit(file, behind, behind, _set_apart(text, behind, helper)),) if helper else ()
        yield from _move_library_up(file, text, helper) or here
        return
    others = [found for path in list_host_sources(checkout) if (found := _LIBRARY.search(checkout.read(path)))]
    model = next((found for found in others if found[1]), next(iter(others), None))
    place = _NAMESPACE.search(text)
    if model is None or place is None:
        raise PorterError("PTR374", "the file has no library of kernels to launch", Place(file), "Add one by hand.")
    library = model[0].replace(f"/{model[1]}_metallib.h", f"/{PurePosixPath(kernel_file).stem}_metallib.h")
    yield Edit(file, place.end(), place.end(), _set_apart(text, place.end(), f"\n{qualify_library(library)}{helper}"))


def _read_helpers(checkout: Checkout, launch: Launch) -> dict[str, str]:
    """The helpers of a launch and those that they call, in the order of their definitions."""
    texts = {}
    for name in _HOST_HELPERS:
        shares = name == "share_rows"
        texts[name] = write_helper(read_style(checkout).threadgroup_reductions) if shares else read_helper(f"{name}.mm")
    called = {name for each in launch.helpers for name in texts if contains_identifier(texts[each], name)}
    return {name: text for name, text in texts.items() if name in called}


def _set_apart(text: str, offset: int, added: str) -> str:
    """What is added at an offset, with an empty line before what follows there."""
    return added if text.startswith("\n", offset) else f"{added}\n"


def _move_library_up(file: str, text: str, helper: str) -> tuple[Edit, ...]:
    """Moves a file's library of kernels to the start of its namespace, if a function before it uses it."""
    found, place, used = _LIBRARY.search(_blank_scopes(text)), _NAMESPACE.search(text), text.find(f"{_USED}(")
    if found is None or place is None or not 0 <= used < found.start():
        return ()
    end = found.end() + text[found.end() :].startswith("\n")
    moved = Edit(
        file, place.end(), place.end(), _set_apart(text, place.end(), f"\n{qualify_library(found[0])}{helper}")
    )
    return moved, Edit(file, found.start(), end, "")


def _blank_scopes(text: str) -> str:
    """A host file with blanks for the libraries of other kernel files, of the same length."""
    return _SCOPED.sub(lambda scope: f"{' ' * (len(scope[0]) - 1)}\n", text)
