"""What `pytest -m quick` selects: of every room what tells most in a minute of two cores.

A room is a folder of tests. Its files are named here, or a test of a file where the rest of it takes long. Nothing is
selected by how long it took: a test that compiles, boots the device or waits for a verdict is not named.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch

MARK = "quick"
EVERYTHING = ("test_*.py",)
ROOMS: Mapping[str, tuple[str, ...]] = {
    "aten_overlay": ("test_cache.py", "test_hosts.py"),
    "aten_overlay/apple": ("test_mpsgraph.py", "test_precision.py", "test_semantics.py", "test_sent_arguments.py"),
    "aten_overlay/cuda": ("test_launch*.py", "test_native.py", "test_repeated.py", "test_schedule.py", "test_store.py"),
    "aten_overlay/device": ("test_start.py::test_other_systems*",),
    "aten_overlay/fork": ("test_fork.py",),
    "aten_overlay/lint": ("test_lint.py",),
    "aten_overlay/metal": ("test_expressions.py", "test_headers.py", "test_streams.py", "test_translated.py"),
    "aten_overlay/runs": EVERYTHING,
    "aten_overlay/sanitizer": ("test_checks.py", "test_copies.py", "test_modules.py"),
    "aten_overlay/sanitizer_lanes": ("test_families.py::test_a_family_is*", "test_families.py::test_the_limits*"),
    "benchmarks": ("test_benchmarks.py",),
    "docs": ("test_coverage_page.py", "test_guide.py"),
    "porter/aten": ("test_call_graph.py", "test_device_rows.py", "test_native_functions.py", "test_stubs.py"),
    "porter/cli": ("test_cli_help.py", "test_cli_sanitize.py", "test_extension.py", "test_several.py", "test_watch.py"),
    "porter/core": ("test_cache*.py", "test_ch*.py", "test_dtypes.py", "test_layout.py", "test_names.py"),
    "porter/cpu": ("test_kernels.py",),
    "porter/cuda": ("test_kernels.py", "test_source.py"),
    "porter/kernels": ("test_body.py", "test_cuda.py", "test_loading.py", "test_script.py", "test_signature.py"),
    "porter/languages": ("test_brackets.py", "test_cpp_declarations.py", "test_liveness.py", "test_statements.py"),
    "porter/loops": ("test_constants.py", "test_host_values.py", "test_numbers.py", "test_optional.py"),
    "porter/metal": ("test_macros.py", "test_tidy.py", "test_graph_body.py"),
    "porter/metal/forms": ("test_forms.py",),
    "porter/metal/codegen": ("test_a*.py", "test_elements.py", "test_host_values.py", "test_result_types.py"),
    "porter/mpsgraph": ("test_agreement.py", "test_conditions.py", "test_leaves.py", "test_operations.py"),
    "porter/plan": ("test_callers.py", "test_removal.py"),
    "porter/plan/recorded": (
        "test_body.py",
        "test_case_choice.py",
        "test_empty_*.py",
        "test_kernel_names.py",
        "test_target.py",
    ),
    "porter/race": ("test_bench.py::test_a_folder*", "test_bench.py::test_the_report*"),
    "porter/recording": (
        "test_ca*.py",
        "test_concrete.py",
        "test_expressions.py",
        "test_flags.py",
        "test_overloads.py",
    ),
    "porter/recording/forms": ("test_bincount.py", "test_unique.py"),
    "porter/report": EVERYTHING,
    "porter/review": EVERYTHING,
    "porter/server": ("test_processor.py",),
    "porter/verdict": ("test_errors.py", "test_judge.py", "test_messages.py"),
    "porter/verdict/build": ("test_companions.py", "test_kernel_names.py", "test_literals.py", "test_switches.py"),
    "porter/verdict/suite": ("test_beyond.py", "test_near_gradients.py", "test_runner.py", "test_seeds.py"),
    "porter/witness": ("test_benchmark.py", "test_log.py"),
    "porter/workflows": ("test_candidates.py", "test_grouping.py", "test_needed.py", "test_shards.py"),
    "templates": ("test_templates.py::test_a_template*",),
    "tools": ("test_added.py", "test_cuda_replay.py", "test_isolation.py", "test_mutants.py", "test_vague_names.py"),
}


def is_quick_file(path: str) -> bool:
    """Returns true if `-m quick` reads a file; `path` is relative to `tests/`."""
    room, _, name = path.rpartition("/")
    return any(fnmatch(name, pattern.partition("::")[0]) for pattern in ROOMS.get(room, ()))


def is_quick(path: str, test: str) -> bool:
    """Returns true if `-m quick` runs a test: a function's name, with or without its parameters."""
    room, _, name = path.rpartition("/")
    patterns = (pattern.partition("::") for pattern in ROOMS.get(room, ()))
    return any(fnmatch(name, file) and fnmatch(test.partition("[")[0], of_file or "*") for file, _, of_file in patterns)
