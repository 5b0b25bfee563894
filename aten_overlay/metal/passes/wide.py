"""Offers loops the functions of `runtime/wide.cpp` for many lanes at once, in LLVM's intermediate representation.

A C++ compiler has no way to say that a function has such forms: LLVM's attribute for it names them (LLVM Language
Reference, "Call Site Attributes": `vector-function-abi-variant`), and the loop vectorizer calls them.
"""

from __future__ import annotations

import re

# The macro by which kernels call them.
CALLED = "-DPM_CALL_WIDE"
WIDE_FUNCTIONS = ("@pm_exp", "@pm_tanh")
_LANES = (16, 8)
_DECLARED = re.compile(rf"^declare [^\n]*\bfloat ({'|'.join(WIDE_FUNCTIONS)})\(float[^\n]*$", re.M)


def offer_wide_functions(module: str) -> str:
    """`module`, in which what it declares of these functions names their forms, which are declared too."""
    names = [found[1][1:] for found in _DECLARED.finditer(module)]
    if not names:
        return module
    forms = [(f"{name}_{lanes}", f"<{lanes} x float>") for name in names for lanes in _LANES]
    declared = "".join(f"declare {kind} @{form}({kind})\n" for form, kind in forms)
    # Only what is referred to is still there when loops are vectorized.
    kept = ", ".join(f"ptr @{form}" for form, _ in forms)
    offered = _DECLARED.sub(lambda found: f"{found[0]} {_write_attribute(found[1][1:])}", module)
    return f"{offered}\n{declared}@pm_wide = hidden constant [{len(forms)} x ptr] [{kept}]\n"


def _write_attribute(name: str) -> str:
    forms = ",".join(f"_ZGV_LLVM_N{lanes}v_{name}({name}_{lanes})" for lanes in _LANES)
    return f'"vector-function-abi-variant"="{forms}"'
