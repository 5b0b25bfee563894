"""What MPS lacks in a fork, and the family of kernels that an operator without a stub needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from porter.aten.declarations import MPS_KEY
from porter.aten.native_definitions import find_native_definitions
from porter.aten.native_functions import SHARING_KEYS, NativeFunction, NativeFunctions
from porter.aten.operator import Operator
from porter.aten.stubs import StubCall, find_stubs
from porter.core.checkout import Checkout
from porter.core.errors import PorterError

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
    lack = _describe(checkout, operator.base, operator.functions)
    needs = f"of the {lack.family.value} family" if lack.family is not Family.UNKNOWN else "of a family that is unknown"
    calls = f"calls {' and '.join(lack.stubs)}" if lack.stubs else "calls no stub with a TensorIterator"
    return PorterError(
        "PTR310",
        f"{name} needs a kernel {needs}: its CPU code {calls}",
        place,
        "porter adds elementwise operators whose CPU and CUDA rows are one; `porter kernel new` helps with others.",
    )


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
