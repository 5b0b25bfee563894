"""The kernel file of a host file, and what both need: a library of kernels, includes, and the namespace of helpers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from porter.aten.implementations import list_host_sources
from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import Place, PorterError
from porter.core.formatting import format_block
from porter.core.layout import KERNELS, METAL_HEADERS, SPECIAL_MATH
from porter.languages.directives import read_includes
from porter.languages.source import Source
from porter.metal.forms.sums import SUM_HELPER
from porter.metal.insertion import insert_includes
from porter.metal.native.elements import COMBINED_HELPER
from porter.metal.native.extremes import GREATEST_HELPER, LEAST_HELPER
from porter.metal.native.host_values import NON_EMPTY
from porter.metal.native.kernel import KernelStyle
from porter.metal.native.launch import REDUCE_UTILS  # which includes NON_EMPTY, a header that cannot be included twice
from porter.metal.native.slice_launch import write_helper
from porter.metal.native.typed_scalars import KERNEL_HELPER as ACCUMULATION_HELPER
from porter.plan.native.helpers import define_missing, find_helper

# A library of kernels: with what stands for it where shaders are compiled at run time, or the bundled one alone.
_LIBRARY = re.compile(
    r"^(?:#ifndef.*\n)?(?:static )?auto& lib = (?:mps::)?MetalShaderLibrary::\w+\(\);\n"
    r"(?:#else\n#include <.*/(\w+)_metallib\.h>\n#endif\n)?",
    re.M,
)
_OTHER_LIBRARY = re.compile(r"\blib = (?:mps::)?MetalShaderLibrary\b[\s\S]*?^#endif\n", re.M)
_NAMESPACE = re.compile(r"^namespace at::native(?:::\w+)* \{\n(?:using namespace [\w:]+;\n)*", re.M)
_REDUCTIONS = f"{METAL_HEADERS}/reduction_utils.h"
_ATOMIC = f"{METAL_HEADERS}/atomic.h"
_THREADGROUP_SUM = re.compile(r"\bthreadgroup_sum\(\s*threadgroup[^,]*,\s*\w+ \w+,\s*\w+ \w+,\s*\w+ \w+\)")
_WELFORD = re.compile(r"\bthreadgroup_welford_combine\(\s*threadgroup[^,]*,\s*\w+ \w+,\s*\w+ \w+\)")
_USED = "lib.getPipelineStateForFunc"
# What a kernel's text says, and the header of c10 or of Metal that declares it.
_DECLARED_IN = (
    (re.compile(r"\bAtomicType"), f"{METAL_HEADERS}/atomic.h"),
    (re.compile(r"c10::metal::(?:threadgroup_|simd_|welford_)"), f"{METAL_HEADERS}/reduction_utils.h"),
    (re.compile(r"c10::metal::(?:erf|log_gamma|digamma|i0|sinc|polygamma|zeta|expm1|log1p)"), SPECIAL_MATH),
    (re.compile(r"c10::metal::"), f"{METAL_HEADERS}/utils.h"),
)


# What host files and kernel files need for tensors that are reduced by their strides, each once.
_HOST_HELPER = """
// Some dimensions of a tensor, the innermost first; those that one stride goes over are one.
struct MergedDims {
  DimVector sizes{1};
  DimVector strides{0};
};

static MergedDims merge_dims(const Tensor& tensor, const DimMask& mask) {
  MergedDims dims;
  for (int64_t dim = tensor.dim() - 1; dim >= 0; dim--) {
    if (!mask[dim] || tensor.size(dim) == 1) {
      continue;
    }
    if (dims.sizes.back() == 1) {
      dims.sizes.back() = tensor.size(dim);
      dims.strides.back() = tensor.stride(dim);
    } else if (tensor.stride(dim) == dims.sizes.back() * dims.strides.back()) {
      dims.sizes.back() *= tensor.size(dim);
    } else {
      dims.sizes.push_back(tensor.size(dim));
      dims.strides.push_back(tensor.stride(dim));
    }
  }
  return dims;
}
"""
KERNEL_HELPER = """\
// The offset of an element by its index, which is not divided by the size of
// the last dimension
template <typename index_t>
inline index_t strided_offset(
    index_t index,
    constant long* sizes,
    constant long* strides,
    uint ndim) {
  index_t offset = 0;
  for (uint i = 0; i + 1 < ndim; i++) {
    const index_t outer = index / index_t(sizes[i]);
    offset += (index - outer * index_t(sizes[i])) * index_t(strides[i]);
    index = outer;
  }
  return offset + index * index_t(strides[ndim - 1]);
}

"""


_HELPERS = (
    ("strided_offset(", "strided_offset(", KERNEL_HELPER),
    ("acc_t<", "using acc_t =", ACCUMULATION_HELPER),
    ("sum_t<", "using sum_t =", SUM_HELPER),
    ("combined_t<", "using combined_t =", COMBINED_HELPER),
    ("least_value<", "inline T least_value(", LEAST_HELPER),
    ("greatest_value<", "inline T greatest_value(", GREATEST_HELPER),
)


def read_style(checkout: Checkout) -> KernelStyle:
    """How the fork's kernels reduce, and whether those of bfloat need a newer Metal, by its own files."""
    reductions = checkout.read(_REDUCTIONS) if checkout.exists(_REDUCTIONS) else ""
    guarded = any("__METAL_VERSION__ >= 310" in checkout.read(path) for path in checkout.list(KERNELS, ".metal"))
    welford = _WELFORD.search(reductions) is not None
    return KernelStyle(_THREADGROUP_SUM.search(reductions) is not None, guarded, welford=welford)


def read_atomic_types(checkout: Checkout) -> tuple[str, ...]:
    """The element types that the fork's kernels can add to atomically, by its own header or by what stands for it."""
    helper = find_helper("AtomicType")
    assert helper is not None
    text = checkout.read(_ATOMIC) if checkout.exists(_ATOMIC) else helper.read_text()
    return tuple(re.findall(r"struct AtomicType<(\w+)>", text))


def find_kernel_file(checkout: Checkout, host: str) -> str:
    """The kernel file whose library a host file uses; one of the same name where it uses none yet."""
    found = _LIBRARY.search(checkout.read(host))
    return f"{KERNELS}/{found[1] if found and found[1] else PurePosixPath(host).stem}.metal"


def edit_kernel_file(checkout: Checkout, file: str, text: str) -> Iterator[Edit]:
    """Adds kernels at the end of a kernel file, which is created if there is none. Raises PTR349."""
    known = checkout.read(file) if checkout.exists(file) else ""
    for used, declared, helper in _HELPERS:
        if used in text and declared not in known:
            text = format_block(checkout, file, helper) + text
    named = (header for pattern, header in _DECLARED_IN if pattern.search(text))
    headers = tuple(header for header in dict.fromkeys(named) if checkout.exists(header))
    text = f"{define_missing(checkout, file, text)}{text}".rstrip("\n") + "\n"
    if not checkout.exists(file):
        includes = "".join(f"#include <{header}>\n" for header in sorted((*headers, "metal_stdlib")))
        yield Edit(file, 0, 0, f"{includes}\nusing namespace metal;\n\n{text}")
        return
    old = checkout.read(file)
    yield from insert_includes(file, old, headers)
    yield Edit(file, len(old), len(old), ("" if old.endswith("\n") else "\n") + "\n" + text)


def edit_host_file(checkout: Checkout, file: str, kernel_file: str, headers: Iterable[str]) -> Iterator[Edit]:
    """Adds a host file's includes, and its library of kernels if it has none. Raises PTR374 where none can be added."""
    text = checkout.read(file)
    present = {include.path for include in read_includes(text)}
    missing = set(headers) - present
    if REDUCE_UTILS in present | missing:
        missing.discard(NON_EMPTY)
    yield from insert_includes(file, text, tuple(sorted(missing)))
    found = _LIBRARY.search(text) or _OTHER_LIBRARY.search(text)
    helper = ""
    for used, declared, written in (
        ("merge_dims(", "MergedDims merge_dims(", _HOST_HELPER),
        ("share_rows(", "RowThreads share_rows(", write_helper(read_style(checkout).threadgroup_reductions)),
    ):
        at = text.find(written) if declared in text else -1
        if used in text and (declared not in text or text.find(used) < at):
            helper += written
            if at >= 0:  # an earlier port's, which stands after its first use now
                start = at + (found is not None and found.end() == at)  # the empty line goes with the library
                yield Edit(file, start, at + len(written), "")
    if found:
        here = (Edit(file, found.end(), found.end(), _set_apart(text, found.end(), helper)),) if helper else ()
        yield from _move_library_up(file, text, helper) or here
        return
    others = [found for path in list_host_sources(checkout) if (found := _LIBRARY.search(checkout.read(path)))]
    model = next((found for found in others if found[1]), next(iter(others), None))
    place = _NAMESPACE.search(text)
    if model is None or place is None:
        raise PorterError("PTR374", "the file has no library of kernels to launch", Place(file), "Add one by hand.")
    library = model[0].replace(f"/{model[1]}_metallib.h", f"/{PurePosixPath(kernel_file).stem}_metallib.h")
    yield Edit(file, place.end(), place.end(), _set_apart(text, place.end(), f"\n{_qualify(library)}{helper}"))


def _set_apart(text: str, offset: int, added: str) -> str:
    """What is added at an offset, with an empty line before what follows there."""
    return added if text.startswith("\n", offset) else f"{added}\n"


def _move_library_up(file: str, text: str, helper: str) -> tuple[Edit, ...]:
    """Moves a file's library of kernels to the start of its namespace, if a function before it uses it."""
    found, place, used = _LIBRARY.search(text), _NAMESPACE.search(text), text.find(f"{_USED}(")
    if found is None or place is None or not 0 <= used < found.start():
        return ()
    end = found.end() + text[found.end() :].startswith("\n")
    moved = Edit(file, place.end(), place.end(), _set_apart(text, place.end(), f"\n{_qualify(found[0])}{helper}"))
    return moved, Edit(file, found.start(), end, "")


def _qualify(library: str) -> str:
    return re.sub(r"= (?:mps::)?MetalShaderLibrary", "= mps::MetalShaderLibrary", library)


def sees_helpers(source: Source, offset: int) -> bool:
    """Whether the helpers of `namespace mps` are named without it at a place of a host file."""
    before = source.text[:offset]
    if re.search(r"^using namespace (?:at::native::)?mps;", before, re.M):
        return True
    opened = len(re.findall(r"^namespace (?:at::native::)?mps \{", before, re.M))
    closed = len(re.findall(r"^\} // namespace (?:at::native::)?mps$", before, re.M))
    return opened > closed
