"""Every function of c10/metal/special_math.h on the host, against float64: prints the error of float32 results in ULP.

    python tools/special_math.py [--headers DIR]

A function of the header that has no reference here is listed as such, with the reason if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mpmath
import numpy as np
import torch

from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root
from porter.core.layout import SPECIAL_MATH
from shared.arguments import parser

SAMPLES = 20_000
# What cannot be measured, and why.
NOT_MEASURED = {
    "chbevl": "takes its coefficients from its callers, which are measured",
    "getHermitianLimit": "a constant",
}
special = torch.special
Reference = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Case:
    """A function's float64 reference, and the interval each argument is drawn from.

    `order` is the position of an integer argument, drawn from 0 to 8 (-1: none). `samples` limits slow references.
    `is_complex` draws both parts of complex arguments from the interval.
    """

    reference: Reference
    low: float
    high: float
    arguments: int = 1
    order: int = -1
    samples: int = SAMPLES
    is_complex: bool = False


def _by_mpmath(function: Callable[[mpmath.mpf], mpmath.mpf]) -> Reference:
    return lambda x: torch.tensor([float(function(mpmath.mpf(v))) for v in x.tolist()], dtype=torch.float64)


def _complex_sinc(z: torch.Tensor) -> torch.Tensor:
    return torch.sin(torch.pi * z) / (torch.pi * z)


def _complex_logaddexp(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As the function is defined: the larger plus log1p(exp(smaller - larger)), whose imaginary part does not wrap."""
    larger, smaller = torch.where(a.real > b.real, a, b), torch.where(a.real > b.real, b, a)
    return larger + torch.log(1 + torch.exp(smaller - larger))


def _spherical(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x == 0, 1.0, torch.sin(x) / x)


# By function; what follows a comma tells cases of one function apart.
CASES: dict[str, Case] = {
    "erf": Case(special.erf, -4, 4),
    "erfc": Case(special.erfc, -4, 9),
    "erfinv": Case(special.erfinv, -1, 1),
    "erfcx": Case(special.erfcx, -8, 60),
    "erfcx_y100": Case(lambda y: special.erfcx(400 / y - 4), 0.01, 100),
    "i0": Case(special.i0, -60, 60),
    "i0e": Case(special.i0e, -60, 60),
    "i1": Case(special.i1, -60, 60),
    "i1e": Case(special.i1e, -60, 60),
    "gamma": Case(_by_mpmath(mpmath.gamma), 0.05, 30, samples=2000),
    "log_gamma, x < 0": Case(special.gammaln, -20, -0.05),
    "log_gamma": Case(special.gammaln, 0.05, 60),
    "digamma": Case(special.digamma, 0.05, 60),
    "digamma, x < 0": Case(special.digamma, -20, -0.05),
    "calc_digamma_positive_domain": Case(special.digamma, 0.05, 60),
    "trigamma, x < 0": Case(_by_mpmath(lambda v: mpmath.psi(1, v)), -20, -0.05, samples=2000),
    "trigamma": Case(lambda x: special.polygamma(1, x), 0.05, 60),
    "polygamma": Case(
        lambda n, x: special.zeta(n + 1.0, x) * (-1) ** (n + 1) * torch.exp(special.gammaln(n + 1.0)), 0.05, 30, 2, 0
    ),
    "zeta": Case(special.zeta, 1.1, 20, 2),
    "sinc": Case(special.sinc, -8, 8),
    "sinc, complex": Case(_complex_sinc, -5, 5, is_complex=True),
    "spherical_bessel_j0": Case(_spherical, -30, 30),
    "logaddexp": Case(torch.logaddexp, -50, 50, 2),
    "logaddexp, complex": Case(_complex_logaddexp, -20, 20, 2, is_complex=True),
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
    text = re.sub(r"//.*|/\*.*?\*/", "", (headers / SPECIAL_MATH).read_text())
    pattern = r"\n(?:template[^;{}]*?>\s*)?(?:inline |static |constexpr )*[\w:<>, &!|]+?\s(\w+)\(([^;{}()]*)\)\s*\{"
    names = (m.group(1) for m in re.finditer(pattern, text))
    return tuple(dict.fromkeys(n for n in names if n not in ("if", "for", "while", "switch")))


def source(cases: Sequence[str]) -> str:
    """One kernel a case, k_0 the first."""
    lines = [f"#include <{SPECIAL_MATH}>", "#include <metal_stdlib>", "using namespace metal;"]
    for number, label in enumerate(cases):
        case = CASES[label]
        real = "float2" if case.is_complex else "float"
        types = ["long" if k == case.order else real for k in range(case.arguments)]
        inputs = "".join(f"constant {t}* a{k} [[buffer({k + 1})]], " for k, t in enumerate(types))
        given = ", ".join(f"a{k}[i]" for k in range(case.arguments))
        lines.append(
            f"kernel void k_{number}(device {real}* out [[buffer(0)]], {inputs}uint i [[thread_position_in_grid]]) "
            f"{{ out[i] = c10::metal::{_function(label)}({given}); }}"
        )
    return "\n".join(lines)


def _function(label: str) -> str:
    return label.split(",")[0]


def _drawn(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    columns = 2 if case.is_complex else 1
    return [
        rng.integers(1 if case.order == 0 else 0, 9, case.samples)
        if k == case.order
        else rng.uniform(case.low, case.high, (case.samples, columns)).astype(np.float32).squeeze()
        for k in range(case.arguments)
    ]


def _wide(values: np.ndarray, case: Case) -> torch.Tensor:
    wide = torch.from_numpy(np.ascontiguousarray(values.astype(np.float64)))
    return torch.view_as_complex(wide) if case.is_complex else wide


def measure(library: Library, kernel: str, case: Case) -> Error:
    """The error of one kernel over its interval. Of complex results, the distance relative to the magnitude."""
    drawn = _drawn(case)
    out = np.empty((case.samples, 2) if case.is_complex else case.samples, np.float32)
    library.run(kernel, [out, *drawn], [case.samples])
    expected = case.reference(*(_wide(d, case) for d in drawn)).numpy()
    got = _wide(out, case).numpy()
    finite = np.isfinite(expected) & (np.abs(expected) < np.finfo(np.float32).max)
    unit = np.spacing(np.abs(expected[finite]).astype(np.float32)).astype(np.float64)
    distance = np.nan_to_num(np.abs(got[finite] - expected[finite]), nan=np.inf)
    worst = int(np.argmax(distance / unit))
    scale = np.spacing(np.float32(np.sqrt(np.mean(np.minimum(np.abs(expected[finite]), 1e18) ** 2))))
    at = tuple(float(v) for d in drawn for v in np.atleast_1d(d[finite][worst]))
    return Error(
        float((distance / unit).max()),
        float((distance / unit).mean()),
        float((distance / np.maximum(unit, scale)).max()),
        at,
    )


def table(headers: Path) -> tuple[dict[str, Error], tuple[str, ...]]:
    """The error of each case of the functions the header defines, and the names of functions that have none."""
    names = defined(headers)
    cases = [label for label in CASES if _function(label) in names]
    if not cases:
        raise ValueError(f"{headers / SPECIAL_MATH} defines no function that has a reference")
    library = Library(
        compile_kernels(source(cases), [f"k_{n}" for n in range(len(cases))], Options(include=(headers,)))
    )
    errors = {label: measure(library, f"k_{n}", CASES[label]) for n, label in enumerate(cases)}
    return errors, tuple(n for n in names if n not in {_function(label) for label in cases})


def main() -> None:
    """Prints the table."""
    options = parser(__doc__)
    options.add_argument("--headers", type=Path, default=torch_root() / "include", help="a folder with c10/metal")
    headers = options.parse_args().headers
    errors, unknown = table(headers)
    print(f"{'function':40} {'max ULP':>12} {'mean ULP':>10} {'max, of scale':>14}  worst at")
    for name, error in errors.items():
        at = ", ".join(f"{v:.6g}" for v in error.at)
        print(f"{name:40} {error.largest:12.2f} {error.mean:10.3f} {error.scaled:14.2f}  {at}")
    for name in sorted({_function(label) for label in CASES} - {*defined(headers)}):
        print(f"{name:40} is not in this header")
    for name in unknown:
        print(f"{name:40} is not measured: {NOT_MEASURED.get(name, 'it has no reference')}")


if __name__ == "__main__":
    main()
