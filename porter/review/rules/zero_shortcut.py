"""0 * NaN is NaN: a shortcut for alpha == 0 drops it, unless the CPU takes it too (196661, 196924)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, host_case

_SHORTCUT = re.compile(
    r"if\s*\(\s*(?P<name>alpha|value|weight|scale)(?:_value|_scalar|_val)?(?:\.\w+(?:<\w+>)?\(\))?\s*==\s*0(?:\.0?f?)?\s*\)"
    r"\s*\{?[^{};]*(?:zero_|fill_|copy_|return|memset|clone)\b"
)


def _check(change: Change) -> Iterator[Remark]:
    for file in (*change.host, *change.metal):
        for match in _SHORTCUT.finditer(file.after):
            if file.touches(match.start(), match.end()):
                what = f"a shortcut for `{match['name']} == 0` drops the NaN of 0 * NaN and of 0 * infinity"
                yield file.remark(match.start(), what, "Compute it, or say where the CPU takes the same shortcut.")


_BAD = """void f(const Tensor& self, const Scalar& alpha, Tensor& out) {
  if (alpha.toDouble() == 0.0) {
    out.copy_(self);
    return;
  }
}
"""
RULE = Rule(
    "zero-shortcut",
    Severity.WARNING,
    "A shortcut for a factor of 0 drops NaN and infinities.",
    _check,
    bad=(host_case(_BAD), host_case("void f() {\n  if (value == 0) return out.zero_();\n}\n")),
    good=(host_case(_BAD.replace("== 0.0", "!= 0.0")), host_case(_BAD.replace("alpha.toDouble()", "self.numel()"))),
)
