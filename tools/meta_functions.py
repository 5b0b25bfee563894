"""Compares what operators return on the device with what the meta functions promise, over all OpInfos.

    python tools/meta_functions.py [-k NAME] [--samples N]

`torch.compile` lays out memory by the meta functions: shapes, strides and types. Prints each operator that returns
something else, the first such call, and why if that is known. Exit code 1 for one of which it is not.
"""

from __future__ import annotations

import re
import sys
import warnings

import aten_overlay
from shared.arguments import parser


def main() -> int:
    options = parser(__doc__)
    options.add_argument("-k", dest="name", default="", help="a regular expression that is found in a name")
    options.add_argument("--samples", type=int, default=12, metavar="N", help="at most so many samples of each")
    arguments = options.parse_args()
    aten_overlay.start()
    warnings.simplefilter("ignore")
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    from shared.meta_functions import EXCUSED, compare_samples

    calls, unexplained = 0, 0
    for op in op_db:
        if not re.search(arguments.name, op.name) or torch.float32 not in op.dtypes:
            continue
        results = list(compare_samples(op, arguments.samples))
        calls += len(results)
        differences = [result for result in results if result is not None]
        if differences:
            reason = EXCUSED.get(op.name, "")
            unexplained += not reason
            first = differences[0]
            print(f"{op.name}: {len(differences)} of {len(results)} calls differ{f' ({reason})' if reason else ''}")
            print(f"  returned {first.returned}\n  promised {first.promised}")
    print(f"{calls} calls compared, {unexplained} operators differ for no known reason")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
