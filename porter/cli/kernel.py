"""`porter kernel`: the group of commands for kernels of one's own."""

from __future__ import annotations

from porter.cli.kernel_bench import bench
from porter.cli.kernel_check import check
from porter.cli.kernel_compile import compile_kernels
from porter.cli.kernel_export import export, import_
from porter.cli.kernel_list import list_templates
from porter.cli.kernel_new import new
from porter.cli.kernel_promote import promote
from porter.cli.kernel_trace import trace
from porter.cli.options import group

kernel = group(
    "kernel",
    "Start, check, time, trace, export and promote Metal kernels of your own.",
    new,
    list_templates,
    check,
    bench,
    trace,
    compile_kernels,
    export,
    import_,
    promote,
)
