"""Runs host code of MPS that no row names, because composite C++ in libtorch calls it: composites/ gives each a row.

    python tools/composites.py FORK [-k EXPR]

One verdict for each file `composites/<op>.mm`, which defines `<op>_on_mps_symint`: the fork as it would be with that
file among its operations and with that MPS line in the operator's row, over the operator's OpInfo tests.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.report.verdict import table
from porter.verdict.native import named_kernels
from porter.verdict.result import VerifyTarget
from porter.verdict.verify import verify
from shared.arguments import fork_parser

FOLDER = Path(__file__).resolve().parent / "composites"
KERNEL = "{op}_on_mps_symint"
FLOATING = "test_output_match and float"  # bfloat16, float16 and float32: what the composite code hands on


def main() -> int:
    parser = fork_parser(__doc__)
    parser.add_argument("-k", dest="expr", default=FLOATING)
    options = parser.parse_args()
    checkout = Checkout(options.fork.resolve(), "named")
    failed, files = 0, sorted(FOLDER.glob("*.mm"))
    if not files:
        sys.exit(f"{FOLDER.name}/ holds no host code")
    for path in files:
        texts = _with_a_row(checkout, path)
        file = f"{OPERATIONS}/Row_{path.stem}.mm"
        kernels = named_kernels(checkout.layer(texts), file, texts[file])
        target = VerifyTarget(path.stem, kernels=kernels, as_is=True)
        found = verify(checkout.root, texts, target, options.expr)
        print(table(found), flush=True)
        failed += not found.ok
    return int(failed > 0)


def _with_a_row(checkout: Checkout, path: Path) -> dict[str, str]:
    """The files that give an operator its row: the yaml with an MPS line, and the file that the line leads to."""
    kernel = KERNEL.format(op=path.stem)
    row = re.compile(rf"(?P<row>^- func: {re.escape(path.stem)}\([^\n]*\n(?:  [^\n]*\n)*?  dispatch:\n)", re.M)
    yaml, times = row.subn(rf"\g<row>    MPS: {kernel}\n", checkout.read(NATIVE_FUNCTIONS))
    if times != 1:
        sys.exit(f"{path.stem} has no one row with a dispatch table")
    return {NATIVE_FUNCTIONS: yaml, f"{OPERATIONS}/Row_{path.stem}.mm": path.read_text()}


if __name__ == "__main__":
    sys.exit(main())
