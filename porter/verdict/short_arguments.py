"""Arguments for which host code binds fewer bytes than a kernel takes, where all that lacks is padding.

A `uint3` takes 16 bytes, and host code that gives three numbers binds 12: Metal's API validation refuses that, and a
Mac without it computes the same, for no kernel reads the fourth number. `exec_ternary_kernel` of PyTorch 2.14 does so
(aten/src/ATen/native/mps/OperationUtils.mm). A port that only calls such a function does not touch the fault. One that
writes the function or the kernel's parameter does; so does an operator of the fork itself that binds the bytes in a
file of its own, not in code that operators share. What lacks is filled with 0xa5 in each byte: a kernel that reads it
after all computes what no test takes.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aten_overlay.metal.build import Options
from porter.core.errors import Place
from porter.core.layout import KERNELS, METAL_HEADERS, OPERATIONS
from porter.languages.patterns import find_code
from porter.verdict.build.kernel_files import list_kernels, read_kernel_arguments
from porter.verdict.build.sources import find_definitions
from porter.verdict.build.tree import Tree
from porter.verdict.result import ForkFinding

CODE = "PTR126"
_VECTOR = re.compile(r"\b(\w*?[a-z])3\b")  # of three elements, with the storage of four
_ALLOW = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_size_t, ctypes.c_char_p
)


@dataclass(frozen=True)
class ShortArgument:
    """An argument of a kernel at a buffer index that takes more bytes than `function` (as C++ spells it) binds."""

    kernel: str
    argument: str
    index: int
    takes: int
    bound: int
    function: str


@dataclass
class ShortArguments:
    """Decides which short arguments a run of a tree goes on with, and tells them afterwards."""

    tree: Tree
    options: Options
    _answers: dict[ShortArgument, Place | None] = field(default_factory=dict)
    _files: dict[str, Path] | None = None
    _callback: object = None

    def install(self, frameworks: ctypes.CDLL) -> None:
        """Makes the frameworks ask this from now on. The object has to live as long as they do."""

        def answer(kernel: bytes, argument: bytes, index: int, takes: int, bound: int, function: bytes) -> int:
            asked = ShortArgument(kernel.decode(), argument.decode(), index, takes, bound, function.decode())
            return int(self.allows(asked))

        self._callback = _ALLOW(answer)
        frameworks.porter_set_short(self._callback)

    def allows(self, asked: ShortArgument) -> bool:
        """Whether only padding lacks, in what neither the tree's plan nor the operator itself writes."""
        if asked not in self._answers:
            self._answers[asked] = self._find_place(asked) if self._lacks_padding(asked) else None
        return self._answers[asked] is not None

    def list_findings(self) -> tuple[ForkFinding, ...]:
        """What runs went on with: one finding for each function and argument, whatever kernels it launches."""
        kernels: dict[tuple[str, str, str, int, int, int], list[str]] = {}
        for short, place in self._answers.items():
            if place is not None:
                name = _name_function(short.function)
                key = str(place), name, short.argument, short.index, short.takes, short.bound
                kernels.setdefault(key, []).append(short.kernel)
        return tuple(
            ForkFinding(
                f"{CODE} {function} binds {bound} bytes for argument `{argument}` (buffer {index}) of {_tell(names)}, "
                f"which takes {takes}: only padding lacks, but Metal's API validation refuses it",
                place,
            )
            for (place, function, argument, index, takes, bound), names in kernels.items()
        )

    def _lacks_padding(self, asked: ShortArgument) -> bool:
        """Whether the argument is a vector of three elements, all of which are bound."""
        return asked.bound * 4 == asked.takes * 3 and bool(_VECTOR.search(self._find_type(asked)))

    def _find_type(self, asked: ShortArgument) -> str:
        """The type of a kernel's parameter as the fork writes it; empty if no file of the fork has the kernel."""
        if self._files is None:
            self._files = dict(list_kernels(self.tree, self.options))
        if asked.kernel not in self._files:
            return ""
        parameters = read_kernel_arguments(self._files[asked.kernel], asked.kernel, self.options)
        return next((parameter.type for parameter in parameters if parameter.name == asked.argument), "")

    def _find_place(self, asked: ShortArgument) -> Place | None:
        """Where the fork defines the function that binds the bytes; None if this is no fault of the fork alone."""
        name = _name_function(asked.function)
        definitions = find_definitions(self.tree, name)
        if self.tree.texts:
            before = {text for _, _, text in find_definitions(self.tree, name, before=True)}
            is_touched = any(text not in before for _, _, text in definitions) or self._writes_parameter(asked.argument)
        else:
            is_touched = any(path.startswith(f"{OPERATIONS}/") for path, _, _ in definitions)
        return None if is_touched or not definitions else Place(*definitions[0][:2])

    def _writes_parameter(self, name: str) -> bool:
        """Whether a plan writes a parameter of this name, of three elements, in a kernel."""
        for path, text in self.tree.texts.items():
            if path.startswith((KERNELS, METAL_HEADERS)):
                before = self.tree.before(path) if self.tree.in_checkout(path) else ""
                if _count_of_three(text, name) > _count_of_three(before, name):
                    return True
        return False


def _count_of_three(text: str, name: str) -> int:
    return sum(code["type"].endswith("3") for code in find_code(text, f"constant $type& {name}"))


def _name_function(function: str) -> str:
    """`exec_ternary_kernel` for a function with its namespaces, class and parameters."""
    return function.partition("(")[0].rpartition("::")[2].partition("[abi:")[0]


def _tell(kernels: Sequence[str]) -> str:
    first, *others = dict.fromkeys(kernels)
    return f"kernel `{first}`" + (f" and {len(others)} more" if others else "")
