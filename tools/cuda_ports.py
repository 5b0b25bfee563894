"""Compiles the kernels that `porter verify OP --backend cuda` calls to PTX, into the cache: another machine runs them.

    python tools/cuda_ports.py FORK OP ...

One line an operator: its kernels, native or of the first candidate of its port. Ends with 1 where one has none.
"""

from __future__ import annotations

import sys

from aten_overlay.cuda.compile import SCHEDULED
from porter.core import cache
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.plan.plan import Draft
from porter.plan.planner import plan_operator
from porter.verdict.backends.cuda_shaders import compile_functor
from porter.verdict.backends.kernels import find_functor, read_rows
from porter.verdict.build.tree import Tree, materialise, metal_include
from porter.verdict.errors import NotNative, raising_porter_errors
from porter.verdict.native import native_target
from porter.verdict.result import VerifyTarget
from porter.verdict.verify import find_target
from shared.arguments import fork_parser


def find_tree(checkout: Checkout, op: str) -> tuple[Tree, VerifyTarget]:
    """The tree of an operator, with its port if it is not native, and what is verified there."""
    try:
        return materialise(checkout.root, {}, cache.root()), native_target(checkout, op)
    except NotNative:
        plan = plan_operator(checkout, op)
        after = Draft(checkout).follow(plan.changes)
        texts = after.changes.apply()
        return materialise(checkout.root, texts, cache.root()), find_target(plan, op.split(".")[0], after.fork)


def compile_operator(checkout: Checkout, op: str) -> int:
    """Compiles an operator's kernels. How many there are."""
    tree, target = find_tree(checkout, op)
    read_rows(tree, target)
    files = [tree.root / path for path in tree.kernel_files()]
    with raising_porter_errors():
        compile_functor(files, find_functor(target), metal_include(tree.root), SCHEDULED)
        return len(compile_functor(files, find_functor(target), metal_include(tree.root)).entries)


def main() -> int:
    arguments = fork_parser(__doc__)
    arguments.add_argument("ops", nargs="+", metavar="op", help="an operator")
    given = arguments.parse_args()
    checkout, failed = Checkout(given.fork.resolve(), "named"), 0
    for op in given.ops:
        try:
            print(f"{op}: {compile_operator(checkout, op)} kernels", flush=True)
        except PorterError as error:
            failed += 1
            print(f"{op}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
