"""Every function of c10/metal/special_math.h on the host, against float64: prints the error of float32 results in ULP.

    python benchmarks/special_math.py [--headers DIR]

A function of the header that has no reference here is listed as such, never left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import mpmath  # type: ignore[import-untyped]
import numpy as np
import torch

from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library

HEADER = "c10/metal/special_math.h"
SAMPLES = 20_000
# Parts of other functions, or about types rather than numbers.
INTERNAL = frozenset(("chbevl", "calc_digamma_positive_domain", "erfcx_y100", "getHermitianLimit"))
special = torch.special
Reference = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Case:
    """A function's float64 reference, and the interval each argument is drawn from.

    `order` is the position of an integer argument, drawn from 0 to 8 (-1: none). `samples` limits slow references.
    """

    reference: Reference
    low: float
    high: float
    arguments: int = 1
    order: int = -1
    samples: int = SAMPLES


def _by_mpmath(function: Callable[[mpmath.mpf], mpmath.mpf]) -> Reference:
    return lambda x: torch.tensor([float(function(mpmath.mpf(v))) for v in x.tolist()], dtype=torch.float64)


def _spherical(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, 1.0, torch.sin(x) / x)


CASES: dict[str, Case] = {
    "erf": Case(special.erf, -4, 4),
    "erfc": Case(special.erfc, -4, 9),
    "erfinv": Case(special.erfinv, -1, 1),
    "erfcx": Case(special.erfcx, -8, 60),
    "i0": Case(special.i0, -60, 60),
    "i0e": Case(special.i0e, -60, 60),
    "i1": Case(special.i1, -60, 60),
    "i1e": Case(special.i1e, -60, 60),
    "gamma": Case(_by_mpmath(mpmath.gamma), 0.05, 30, samples=2000),
    "log_gamma": Case(special.gammaln, 0.05, 60),
    "digamma": Case(special.digamma, 0.05, 60),
    "trigamma": Case(lambda x: special.polygamma(1, x), 0.05, 60),
    "polygamma": Case(
        lambda n, x: special.zeta(n + 1.0, x) * (-1) ** (n + 1) * torch.exp(special.gammaln(n + 1.0)), 0.05, 30, 2, 0
    ),
    "zeta": Case(special.zeta, 1.1, 20, 2),
    "sinc": Case(special.sinc, -8, 8),
    "spherical_bessel_j0": Case(_spherical, -30, 30),
    "logaddexp": Case(torch.logaddexp, -50, 50, 2),
    "logaddexp2": Case(torch.logaddexp2, -50, 50, 2),
    "xlogy": Case(special.xlogy, 0.001, 50, 2),
    "xlog1py": Case(special.xlog1py, -0.9, 50, 2),
    "entr": Case(special.entr, 0.001, 20),
    "bessel_j0_forward": Case(special.bessel_j0, -40, 40),
    "bessel_j1_forward": Case(special.bessel_j1, -40, 40),
    "bessel_y0_forward": Case(special.bessel_y0, 0.01, 40),
    "bessel_y1_forward": Case(special.bessel_y1, 0.01, 40),
    "modified_bessel_i0_forward": Case(special.modified_bessel_i0, -30, 30),
    "modified_bessel_i1_forward": Case(special.modified_bessel_i1, -30, 30),
    "modified_bessel_k0_forward": Case(special.modified_bessel_k0, 0.01, 30),
    "modified_bessel_k1_forward": Case(special.modified_bessel_k1, 0.01, 30),
    "scaled_modified_bessel_k0_forward": Case(special.scaled_modified_bessel_k0, 0.01, 60),
    "scaled_modified_bessel_k1_forward": Case(special.scaled_modified_bessel_k1, 0.01, 60),
    "chebyshev_polynomial_t_forward": Case(special.chebyshev_polynomial_t, -1, 1, 2, 1),
    "chebyshev_polynomial_u_forward": Case(special.chebyshev_polynomial_u, -1, 1, 2, 1),
    "chebyshev_polynomial_v_forward": Case(special.chebyshev_polynomial_v, -1, 1, 2, 1),
    "chebyshev_polynomial_w_forward": Case(special.chebyshev_polynomial_w, -1, 1, 2, 1),
    "shifted_chebyshev_polynomial_t_forward": Case(special.shifted_chebyshev_polynomial_t, 0, 1, 2, 1),
    "shifted_chebyshev_polynomial_u_forward": Case(special.shifted_chebyshev_polynomial_u, 0, 1, 2, 1),
    "shifted_chebyshev_polynomial_v_forward": Case(special.shifted_chebyshev_polynomial_v, 0, 1, 2, 1),
    "shifted_chebyshev_polynomial_w_forward": Case(special.shifted_chebyshev_polynomial_w, 0, 1, 2, 1),
    "hermite_polynomial_h_forward": Case(special.hermite_polynomial_h, -4, 4, 2, 1),
    "hermite_polynomial_he_forward": Case(special.hermite_polynomial_he, -4, 4, 2, 1),
    "laguerre_polynomial_l_forward": Case(special.laguerre_polynomial_l, 0, 10, 2, 1),
    "legendre_polynomial_p_forward": Case(special.legendre_polynomial_p, -1, 1, 2, 1),
}


@dataclass(frozen=True)
class Error:
    """Of one function: the largest and mean distance in ULP, the largest relative to the function's own scale (its root
    mean square), and where the largest is."""

    largest: float
    mean: float
    scaled: float
    at: tuple[float, ...]


def defined(headers: Path) -> tuple[str, ...]:
    """The functions that the header defines, in order."""
    text = re.sub(r"//.*|/\*.*?\*/", "", (headers / HEADER).read_text())
    pattern = r"\n(?:template[^;{}]*?>\s*)?(?:inline |static |constexpr )*[\w:<>, &!|]+?\s(\w+)\(([^;{}()]*)\)\s*\{"
    names = (m.group(1) for m in re.finditer(pattern, text))
    return tuple(dict.fromkeys(n for n in names if n not in INTERNAL and n not in ("if", "for", "while", "switch")))


def source(names: tuple[str, ...]) -> str:
    """One kernel a function."""
    lines = [f"#include <{HEADER}>", "#include <metal_stdlib>", "using namespace metal;"]
    for name in names:
        case = CASES[name]
        types = ["long" if k == case.order else "float" for k in range(case.arguments)]
        inputs = "".join(f"constant {t}* a{k} [[buffer({k + 1})]], " for k, t in enumerate(types))
        given = ", ".join(f"a{k}[i]" for k in range(case.arguments))
        lines.append(
            f"kernel void k_{name}(device float* out [[buffer(0)]], {inputs}uint i [[thread_position_in_grid]]) "
            f"{{ out[i] = c10::metal::{name}({given}); }}"
        )
    return "\n".join(lines)


def measure(library: Library, name: str) -> Error:
    """The error of one function over its interval."""
    case = CASES[name]
    rng = np.random.default_rng(0)
    drawn = [
        rng.integers(1 if case.order == 0 else 0, 9, case.samples)
        if k == case.order
        else rng.uniform(case.low, case.high, case.samples).astype(np.float32)
        for k in range(case.arguments)
    ]
    out = np.empty(case.samples, np.float32)
    library.run(f"k_{name}", [out, *drawn], [case.samples])
    wide = [torch.from_numpy(d.astype(np.float64)) for d in drawn]
    expected = case.reference(*wide).numpy()
    finite = np.isfinite(expected) & (np.abs(expected) < np.finfo(np.float32).max)
    unit = np.spacing(np.abs(expected[finite]).astype(np.float32)).astype(np.float64)
    distance = np.abs(out[finite].astype(np.float64) - expected[finite])
    worst = int(np.argmax(distance / unit))
    scale = np.spacing(np.float32(np.sqrt(np.mean(np.minimum(np.abs(expected[finite]), 1e18) ** 2))))
    at = tuple(float(d[finite][worst]) for d in drawn)
    return Error(
        float((distance / unit).max()),
        float((distance / unit).mean()),
        float((distance / np.maximum(unit, scale)).max()),
        at,
    )


def table(headers: Path) -> tuple[dict[str, Error], tuple[str, ...]]:
    """The error of each function that has a reference, and the names of those that have none."""
    names = defined(headers)
    known = tuple(n for n in names if n in CASES)
    library = Library(compile_kernels(source(known), [f"k_{n}" for n in known], Options(include=(headers,))))
    return {n: measure(library, n) for n in known}, tuple(n for n in names if n not in CASES)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec = find_spec("torch")
    assert spec and spec.origin
    parser.add_argument("--headers", type=Path, default=Path(spec.origin).parent / "include")
    errors, unknown = table(parser.parse_args().headers)
    print(f"{'function':40} {'max ULP':>12} {'mean ULP':>10} {'max, of scale':>14}  worst at")
    for name, error in errors.items():
        at = ", ".join(f"{v:.6g}" for v in error.at)
        print(f"{name:40} {error.largest:12.2f} {error.mean:10.3f} {error.scaled:14.2f}  {at}")
    for name in unknown:
        print(f"{name:40} has no reference")


if __name__ == "__main__":
    main()
