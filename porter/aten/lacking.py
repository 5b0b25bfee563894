"""What MPS lacks in a fork, and the family of kernels that an operator without a stub needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from porter.aten.declarations import MPS_KEY
from porter.aten.implementations import read_reachable
from porter.aten.meta import find_meta_function, is_builder
from porter.aten.native_functions import SHARING_KEYS, NativeFunction, NativeFunctions
from porter.aten.operator import Operator, ServedFunction, is_redispatched
from porter.aten.stubs import StubCall, find_native_definitions, find_stubs
from porter.core.checkout import Checkout
from porter.core.errors import Place, PorterError
from porter.languages.identifiers import contains_identifier

_CPU_KEY = SHARING_KEYS[0]
_CALLED = re.compile(r"\bat::(?:native::)?(_?\w+?)(?:_outf?|_)?\(")


class Family(Enum):
    """A way in which kernels compute."""

    ELEMENTWISE = "elementwise"
    RANDOM = "random"
    QUANTIZED = "quantized"
    SPARSE = "sparse"
    NESTED = "nested"
    ATTENTION = "attention"
    SEVERAL_TENSORS = "several tensors at once"
    LINEAR_ALGEBRA = "linear algebra"
    WINDOW = "window"
    SEGMENTED = "segmented"
    INDEXED = "indexed"
    SCAN = "scan"
    ROW_WISE = "row-wise"
    UNKNOWN = "unknown"


# By a function's name and arguments; the first that matches counts.
_SIGNS: tuple[tuple[Family, str], ...] = (
    (Family.ATTENTION, r"\b(?:query|qkv|embed_dim)\b"),
    (Family.RANDOM, r"\bGenerator\?|\bbool\? train\b"),
    (Family.QUANTIZED, r"quant|zero_point|int4|int8|\b_int_"),
    (Family.SEGMENTED, r"\b(?:lengths|offsets|input_lengths|bag_size)\b"),
    (Family.SPARSE, r"^\w*(?:spars|coo|csr|csc|bsr|bsc|mkldnn)"),
    (Family.NESTED, r"^\w*(?:nested|jagged)"),
    (Family.SEVERAL_TENSORS, r"Tensor(?:\(\w!\))?\[\] self"),
    (Family.WINDOW, r"\b(?:kernel_size|output_size|interpolation_mode|dilation)\b|pool\d|\[\d\] padding"),
    (Family.LINEAR_ALGEBRA, r"linalg_|\b(?:upper|tau|pivots|hermitian|UPLO|compute_uv|mat\d)\b"),
    (Family.SCAN, r"^_?(?:log)?cum\w*\("),
    (Family.INDEXED, r"\bTensor(?:\?\[\])? (?:index|indices)\b"),
)
_ROW_WISE = r"\b(?:dim|reduction|group|mask|keepdim|momentum)\b|\b(?:float|Scalar) p\b"


@dataclass(frozen=True)
class Lack:
    """An operator that MPS lacks, the family of kernels that it needs, and the stubs that its CPU code calls with a
    TensorIterator.
    """

    name: str
    family: Family
    stubs: tuple[str, ...]


class NeedsFamily(PorterError):
    """An operator needs a kernel of a family (PTR310); `cause` is how its CPU code shows that."""

    def __init__(self, lack: Lack, place: Place) -> None:
        family = "a family that is unknown" if lack.family is Family.UNKNOWN else f"the {lack.family.value} family"
        calls = f"calls {' and '.join(lack.stubs)}" if lack.stubs else "calls no stub with a TensorIterator"
        self.cause = f"its CPU code {calls}"
        super().__init__(
            "PTR310",
            f"{lack.name} needs a kernel of {family}: {self.cause}",
            place,
            "porter adds elementwise operators whose CPU and CUDA rows are one; `porter kernel new` helps with others.",
        )


def find_lacks(checkout: Checkout) -> tuple[Lack, ...]:
    """The operators that have a CPU kernel and no MPS kernel in any row, in file order."""
    functions = NativeFunctions.read(checkout)
    bases = dict.fromkeys(each.base for each in functions.all)
    return tuple(_describe(checkout, base, functions.find_overloads(base)) for base in bases if _lacks(functions, base))


def explain_lack(checkout: Checkout, operator: Operator) -> PorterError:
    """Returns why no row of an operator can join a stub: PTR310 to PTR313."""
    name, place = operator.name, operator.functions[0].place
    if operator.served:
        return PorterError("PTR311", f"MPS has {name} already", place, "`porter status` shows what it is written in.")
    if operator.is_composite:
        return _explain_composite(checkout, operator)
    if not any(each.entry_for(_CPU_KEY) for each in operator.functions):
        return PorterError(
            "PTR312", f"{name} has no CPU kernel to read", place, "Write its kernel, then use `porter kernel promote`."
        )
    return NeedsFamily(replace(_describe(checkout, operator.base, operator.functions), name=name), place)


def find_family(checkout: Checkout, operator: Operator) -> Family:
    """Returns the family of kernels that an operator needs."""
    return _describe(checkout, operator.base, operator.functions).family


def find_missing(checkout: Checkout, operator: Operator) -> tuple[Lack, ...]:
    """What MPS lacks of an operator: itself, or those that it calls if it is composite."""
    functions = NativeFunctions.read(checkout)
    bases = find_called(checkout, operator) if operator.is_composite else (operator.base,)
    return tuple(_describe(checkout, e, functions.find_overloads(e)) for e in bases if _lacks(functions, e))


def find_called(checkout: Checkout, operator: Operator) -> tuple[str, ...]:
    """The operators with CPU kernels, but none for MPS, that a composite operator calls."""
    functions = NativeFunctions.read(checkout)
    called = dict.fromkeys(name for text in _read_composite(checkout, operator) for name in _CALLED.findall(text))
    return tuple(name for name in called if functions.has(name) and _lacks(functions, name))


def _lacks(functions: NativeFunctions, base: str) -> bool:
    rows = functions.find_overloads(base)
    return any(each.entry_for(_CPU_KEY) for each in rows) and not any(each.entry_for(MPS_KEY) for each in rows)


def _explain_composite(checkout: Checkout, operator: Operator) -> PorterError:
    place, missing = operator.functions[0].place, find_called(checkout, operator)
    needs = "; ".join(str(explain_lack(checkout, Operator.read(checkout, each)).what) for each in missing)
    what = f"{operator.name} is composite, and computes with {', '.join(missing)}: {needs}"
    if not missing:
        what = f"{operator.name} is composite: it computes with other operators, and has no kernel of its own"
    return PorterError("PTR313", what, place, "Add the operators that it calls.")


def _read_composite(checkout: Checkout, operator: Operator) -> Iterator[str]:
    for function in operator.functions:
        kernels = [entry.kernel for entry in function.dispatch] or [function.base]
        for kernel in kernels:
            try:
                yield from (found.text for found in find_native_definitions(checkout, kernel.removesuffix("_symint")))
            except PorterError:  # what it calls stays unknown
                continue


def _describe(checkout: Checkout, base: str, rows: tuple[NativeFunction, ...]) -> Lack:
    kernels = dict.fromkeys(entry.kernel for each in rows if (entry := each.entry_for(_CPU_KEY)))
    calls = [call for kernel in kernels for call in _find_calls(checkout, kernel)]
    iterated = [call for call in calls if "TensorIterator" in call.stub.signature[0][0]]
    return Lack(base, _find_family(rows, iterated), tuple(dict.fromkeys(call.stub.name for call in iterated)))


def _find_calls(checkout: Checkout, kernel: str) -> tuple[StubCall, ...]:
    try:
        return find_stubs(checkout, kernel)
    except PorterError:  # it calls none, or is defined where porter does not look
        return ()


def _find_family(rows: tuple[NativeFunction, ...], iterated: Sequence[StubCall]) -> Family:
    schemas = [each.schema.rpartition(" -> ")[0] for each in rows]
    found = next((family for family, sign in _SIGNS if _has(schemas, sign)), None)
    if found is not None:
        return found
    if iterated:
        return Family.ELEMENTWISE
    return Family.ROW_WISE if _has(schemas, _ROW_WISE) else Family.UNKNOWN


def _has(schemas: Iterable[str], sign: str) -> bool:
    return any(re.search(sign, schema) for schema in schemas)


_BUILDS = re.compile(r"\bbuild_\w*_op\s*\(|\bTensorIterator(?:Base)?::(?!borrowing_nullary_op)\w*_op\s*\(")
_WRITES = re.compile(r"\.add_(?:owned_|borrowed_)?output\(|\bset_output_\w+\(")
_OTHER_SHAPES = re.compile(
    r"\bdeclare_static_shape\b|\bmake_reduction|\bresize_reduction|\breduce_op\b|\bunsafe_replace_operand\b"
    r"|\bas_strided\(|\benforce_linear_iteration\b"
)


def is_elementwise(checkout: Checkout, operator: Operator, function: NativeFunction) -> bool:
    """Whether a row of an operator is elementwise, as far as its code can be read."""
    if not any(argument.is_tensor for argument in function.inputs):
        return False
    texts = tuple(_read_texts(checkout, operator, function))
    if any(map(_OTHER_SHAPES.search, texts)):
        return False
    return any(map(_builds, texts)) or _builds_in_helper(checkout, function)


def _builds(text: str) -> bool:
    return bool(_BUILDS.search(text) or (contains_identifier(text, "TensorIteratorConfig") and _WRITES.search(text)))


def _read_texts(checkout: Checkout, operator: Operator, function: NativeFunction) -> Iterator[str]:
    meta = find_meta_function(checkout, operator.functional_name(function))
    if meta:
        yield meta.text
    for kernel in _list_kernels(function):
        try:
            yield from (found.text for found in find_native_definitions(checkout, kernel))
        except PorterError:  # generated, or in a folder of its own: the meta function alone decides
            continue


def _builds_in_helper(checkout: Checkout, function: NativeFunction) -> bool:
    """Whether the function serving the CPU calls a stub on an iterator that a helper builds in a known way."""
    for kernel in _list_kernels(function):
        try:
            calls = find_stubs(checkout, kernel)
        except PorterError:
            continue
        if any(_builds_of_call(call.builder) and not is_redispatched(call) for call in calls):
            return True
    return False


def _builds_of_call(builder: str) -> bool:
    if is_builder(builder):
        return True
    return _builds(builder) and not (_OTHER_SHAPES.search(builder) or "set_check_mem_overlap(false)" in builder)


def _list_kernels(function: NativeFunction) -> Iterator[str]:
    return (entry.kernel for entry in function.dispatch if any(key in entry.keys for key in SHARING_KEYS))


# Operations of MPSGraph, and kernels of MetalPerformanceShaders, that ports leave as they are.
_LIBRARY_CALL = re.compile(r"\b(?:MPSMatrix(?:Decomposition|Solve)|scaledDotProductAttention\w*With)\w*")


class LibraryCall(PorterError):
    """A row's code calls a library that computes what a kernel would have to (PTR020)."""


def find_library_call(checkout: Checkout, served: ServedFunction) -> LibraryCall | None:
    """The first call of a library in a row's code, or in functions that it calls; None if there is none."""
    found = served.implementation
    if found is None:
        return None
    called = next(filter(None, map(_find_call, read_reachable(checkout, found))), "")
    if not called:
        return None
    hint = "Nothing is to be ported: the call stays. `porter migrate OP --scaffold` writes the frame of a kernel."
    return LibraryCall("PTR020", f"{served.function.name} calls `{called}`: a library computes it", found.place, hint)


@lru_cache(maxsize=4096)
def _find_call(text: str) -> str:
    """The call of a library in a function, or nothing: functions that many rows call are asked about as often."""
    found = _LIBRARY_CALL.search(text)
    return found[0] if found else ""
