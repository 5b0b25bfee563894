"""Ports of the embedded fork's operators, written by hand, for the tests to verify and to break."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import COMMON_MPS, KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.verdict.result import Verdict, VerifyTarget
from porter.verdict.verify import target_of, verify

METAL = f"{KERNELS}/BinaryKernel.metal"
HOST_CODE = f"{OPERATIONS}/BinaryKernel.mm"
OLD_CODE = f"{OPERATIONS}/BinaryOps.mm"
LISTS = COMMON_MPS
FLOATS = ("float", "half", "bfloat")
INTEGERS = ("long", "int", "short", "uchar", "char")

ATAN2 = """\
struct atan2_functor {
  template <typename T>
  inline enable_if_t<is_scalar_floating_point_v<T>, T> operator()(const T a, const T b) {
    return static_cast<T>(precise::atan2(float(a), float(b)));
  }
  template <typename T>
  inline enable_if_t<is_scalar_integral_v<T>, float> operator()(const T a, const T b) {
    return precise::atan2(float(a), float(b));
  }
};
"""
HYPOT = """\
struct hypot_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    const float x = ::metal::abs(float(a)), y = ::metal::abs(float(b));
    if (isinf(x) || isinf(y)) {
      return static_cast<T>(INFINITY);
    }
    const float high = ::metal::max(x, y), low = ::metal::min(x, y);
    if (isnan(x) || isnan(y) || high == 0) {
      return static_cast<T>(x + y);
    }
    const float ratio = low / high;
    return static_cast<T>(high * precise::sqrt(1 + ratio * ratio));
  }
};
"""
REMAINDER = """\
struct remainder_functor {
  template <typename T>
  inline enable_if_t<is_scalar_floating_point_v<T>, T> operator()(const T a, const T b) {
    const float rest = precise::fmod(float(a), float(b));
    return static_cast<T>(rest != 0 && (rest < 0) != (float(b) < 0) ? rest + float(b) : rest);
  }
  template <typename T>
  inline enable_if_t<is_scalar_integral_v<T>, T> operator()(const T a, const T b) {
    const T rest = b == 0 ? T(0) : T(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
  }
};
"""


@dataclass(frozen=True)
class Port:
    """A plan: the texts of the files it edits, and what verify has to know."""

    target: VerifyTarget
    texts: Mapping[str, str]

    def edited(self, path: str, old: str, new: str) -> Port:
        """The same plan with a fault: `old`, which must be there, replaced."""
        text = self.texts.get(path) or (EMBEDDED_FORK / path).read_text()
        assert old in text, f"{path} has no {old!r}"
        return replace(self, texts={**self.texts, path: text.replace(old, new)})

    def restored(self, path: str) -> Port:
        """The same plan without its edits of a file."""
        return replace(self, texts={each: text for each, text in self.texts.items() if each != path})

    def verdict(self, expr: str | None = None, arithmetic: str = "default") -> Verdict:
        return verify(EMBEDDED_FORK, self.texts, self.target, expr, arithmetic=arithmetic)


def port(name: str, functor: str, pairs: tuple[tuple[str, str], ...]) -> Port:
    """A complete port of a structured binary operator that `<name>_stub` computes."""
    read = {p: (EMBEDDED_FORK / p).read_text() for p in (NATIVE_FUNCTIONS, METAL, HOST_CODE, OLD_CODE)}
    lines = "".join(f"REGISTER_BINARY_OP({name}, {given}, {made});\n" for given, made in pairs)
    host = (
        f"static void {name}_mps_kernel(TensorIteratorBase& iter) {{\n"
        f'  lib.exec_binary_kernel(iter, "{name}");\n}}\n\n'
        f"REGISTER_DISPATCH({name}_stub, &{name}_mps_kernel)\n\n"
    )
    shared, times = re.subn(rf"(: {name}_out)\n    MPS: {name}_out_mps\n", r", MPS\1\n", read[NATIVE_FUNCTIONS])
    old, removed = re.subn(rf"^TORCH_IMPL_FUNC\({name}_out_mps\).*?^\}}\n\n", "", read[OLD_CODE], flags=re.M | re.S)
    assert times == removed == 1
    texts = {
        OLD_CODE: old,
        NATIVE_FUNCTIONS: shared,
        METAL: read[METAL] + functor + lines,
        HOST_CODE: read[HOST_CODE].replace("} // namespace at::native", host + "} // namespace at::native"),
    }
    return Port(VerifyTarget(name, kernels=(name,), stubs=(f"{name}_stub",), pairs=pairs), texts)


def planned(op: str, old: str, new: str) -> Port:
    """The port of an operator that porter plans, with a fault in its functor: `old`, which must be there, replaced."""
    plan = plan_operator(Checkout(EMBEDDED_FORK, "embedded"), op)
    [functor] = [each for each in plan.functors if old in each.source]
    made = Port(target_of(plan, op), plan.changes.apply())
    return made.edited(functor.file, functor.source, functor.source.replace(old, new))
