"""Whether two texts of a kernel file compute the same: their dense kernels run on the same bit patterns.

    python tools/equivalence.py FIRST.metal SECOND.metal FUNCTOR --root FORK

Not a proof, but a far harder test than any of verify's: 2^22 rows for each kernel, in which half of the 16-bit words
are random and half are those of special values (both zeros, denormals, ones, extremes, infinities, NaNs of both signs),
so that floats and halves of all kinds meet; results are compared bit by bit. Ends with 1 where they differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from aten_overlay.metal.build import Argument, Options, arguments, compile_kernels, host_names
from aten_overlay.metal.launch import Library
from shared.arguments import parser

ROWS = 1 << 22
SCALARS = 8  # values tried of an argument that all threads share
_SPECIAL = (1, 0x3FF, 0x400, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0x7E00, 0x7F7F, 0x7F80, 0x7FC0, 0x7FFF)
_WORDS = np.array([*_SPECIAL, *(s | 0x8000 for s in _SPECIAL), 0x8000, *[0] * 24], np.uint16)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("first", type=Path)
    options.add_argument("second", type=Path)
    options.add_argument("functor", help="the functor whose dense kernels run")
    options.add_argument("--root", type=Path, required=True, help="the folder that holds c10/metal")
    same = same_results(**vars(options.parse_args()))
    print("the same bits" if same else "not the same")
    return int(not same)


def same_results(
    first: Path | str,
    second: Path | str,
    functor: str,
    root: Path,
    second_root: Path | None = None,
    rows: int | None = None,
) -> bool:
    """Whether every dense kernel of `functor` gives the same bits in both, for `rows` inputs.

        The names of the kernels must be the same. The second may have headers of its own, below `second_root`. Raises
    ValueError if the first has no dense kernel.
    """
    options, others = Options(include=(root,)), Options(include=(second_root or root,))
    names = [n for n in host_names(first, options) if _is_dense(n, functor)]
    if not names:
        raise ValueError(f"{functor} has no dense kernel to compare")
    if names != [n for n in host_names(second, others) if _is_dense(n, functor)]:
        return False
    sides = ((first, options), (second, others))
    libraries = [Library(compile_kernels(text, names, own)) for text, own in sides]
    return all(_agree(libraries, name, arguments(first, name, options), rows or ROWS) for name in names)


def _is_dense(name: str, functor: str) -> bool:
    return name.startswith(f"{functor}_dense_") and "cast" not in name and "dense_scalar" not in name


def _agree(libraries: list[Library], name: str, declared: tuple[Argument, ...], rows: int) -> bool:
    rng = np.random.default_rng(0)
    bound = [a for a in declared if a.kind == "buffer"]
    sizes = libraries[0].argument_sizes(name)
    mask = 0x0101 if "bool" in name else 0xFFFF
    for _ in range(SCALARS if any(_is_shared(a) for a in bound) else 1):
        inputs: list[np.ndarray] = []
        for argument in bound[1:]:
            size = sizes[argument.name]
            if argument.type == "constant uint &":
                inputs.append(np.array([rows], np.uint32))
            else:
                inputs.append(_patterns(rng, 1 if _is_shared(argument) else rows, size, mask))
        results = []
        for library in libraries:
            out = np.zeros(rows * sizes[bound[0].name], np.uint8)
            library.run(name, [out, *inputs], [rows])
            results.append(out)
        if not np.array_equal(results[0], results[1]):
            return False
    return True


def _is_shared(argument: Argument) -> bool:
    return "&" in argument.type and argument.type != "constant uint &"


def _patterns(rng: np.random.Generator, rows: int, size: int, mask: int) -> np.ndarray:
    words = rng.integers(0, 1 << 16, rows * max(size // 2, 1), np.uint16)
    chosen = rng.random(words.size) < 0.5
    words[chosen] = rng.choice(_WORDS, int(chosen.sum()))
    return (words & np.uint16(mask)).view(np.uint8)[: rows * size].copy()


if __name__ == "__main__":
    sys.exit(main())
