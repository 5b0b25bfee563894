"""A view starts somewhere in its buffer: a tensor that is bound at offset 0 reads another's elements (187229)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, host_case

_BOUND = re.compile(
    r"setBuffer\s*:\s*(?:mps::)?getMTLBufferStorage\(\s*(?P<tensor>[\w.()]+?)\s*\)\s*offset\s*:\s*0\s+atIndex", re.S
)


def _check(change: Change) -> Iterator[Remark]:
    for file in change.host:
        for match in _BOUND.finditer(file.after):
            if file.touches(match.start(), match.end()):
                tensor = match["tensor"]
                what = f"`{tensor}` is bound at offset 0: a view of it starts elsewhere"
                hint = f"Write `mtl_setArgs`, or `offset:{tensor}.storage_offset() * {tensor}.element_size()`."
                yield file.remark(match.start(), what, hint)


_BAD = """void f(const Tensor& self) {
  [encoder setBuffer:getMTLBufferStorage(self) offset:0 atIndex:0];
}
"""
RULE = Rule(
    "storage-offset",
    Severity.ERROR,
    "Host code binds a tensor's buffer at offset 0, which drops its storage offset.",
    _check,
    bad=(host_case(_BAD),),
    good=(
        host_case(_BAD.replace("offset:0", "offset:self.storage_offset() * self.element_size()")),
        host_case(
            _BAD.replace(
                "[encoder setBuffer:getMTLBufferStorage(self) offset:0 atIndex:0]", "mtl_setBuffer(encoder, self, 0)"
            )
        ),
    ),
)
