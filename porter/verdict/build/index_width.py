"""The switch in a library of host code that has it take small tensors for ones whose offsets need 64 bits.

Host code asks `at::native::canUse32BitIndexMath` which kernel to launch, and no test has a tensor of gigabytes: with
the switch on, this library's own answer is no.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

from porter.core.cache import digest, put_if_changed
from porter.verdict.build import objects
from porter.verdict.build.objects import Recipe

_SWITCH = "porter_widens_indices"
_ASKED = "_ZN2at6native20canUse32BitIndexMathERKNS_10TensorBaseEl"
# Hidden, the function is that of this library alone; torch's own stands behind it.
_SOURCE = f"""#include <dlfcn.h>
#include <cstdint>
using Fits = bool (*)(const void*, int64_t);
extern "C" {{
__attribute__((visibility("default"))) int {_SWITCH} = 0;
__attribute__((visibility("hidden"))) bool porter_fits_32_bits(const void*, int64_t) __asm__("{_ASKED}");
bool porter_fits_32_bits(const void* tensor, int64_t most) {{
  static const auto torchs = (Fits)dlsym(dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD), "{_ASKED}");
  return !{_SWITCH} && torchs(tensor, most);
}}
}}
"""


def compile_switch(recipe: Recipe, cache: Path) -> Path:
    """The object that puts the switch into a library."""
    source = put_if_changed(cache / "generated" / "index_width" / f"{digest(_SOURCE)}.cpp", _SOURCE)
    return objects.compile_object(source, source.name, (), {"generated": source.parent}, recipe, cache)[0]


def widen_indices(library: ctypes.CDLL, is_wide: bool) -> None:
    """Turns the switch of a loaded library on or off."""
    ctypes.c_int.in_dll(library, _SWITCH).value = int(is_wide)
