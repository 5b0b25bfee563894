"""`porter kernel bench --emit`: a script that times a script's kernels on a Mac, and needs torch alone."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import torch

from porter.core.dtypes import name_torch
from porter.kernels.export.forms import list_globals, quoted
from porter.kernels.script import Case, Script, Stage, moved, on_cpu
from porter.witness.recording import list_sizes

_FEW_TYPES = 2  # of a script's element types, as `porter kernel bench` times
_ALLOWED = ("torch", "math")
_PLAIN = (int, float, str, bool, type(None), torch.dtype)


@dataclass
class Launches:
    """What a block launches: the sources, each once, and the launches as the script holds them."""

    sources: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def launch(self, kernel: Any, name: str, source: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Describes a launch, and runs it: later ones read what it writes."""
        if source not in self.sources:
            self.sources.append(source)
        casts = options.get("arg_casts") or {}
        casts = dict.fromkeys(range(len(arguments)), casts) if isinstance(casts, str) else casts
        self.rows.append({
            "source": self.sources.index(source), "kernel": name,
            "arguments": [describe(value) for value in arguments],
            "threads": list_sizes(options.get("threads")), "group_size": list_sizes(options.get("group_size")),
            "arg_casts": {str(at): cast for at, cast in casts.items()},
        })  # fmt: skip
        kernel(*arguments, **options)


@dataclass(frozen=True)
class Benchmark:
    """What the script holds: sources, cases, the code of references, and the stages of which torch's time is left out,
    with the reason.
    """

    sources: tuple[str, ...]
    cases: tuple[dict[str, Any], ...]
    references: Mapping[str, str]
    code: tuple[str, ...]
    left_out: Mapping[str, str]

    def fill(self, template: str) -> str:
        """The text of the script, of the template with none."""
        named = "".join(f'    "{stage}": {name},\n' for stage, name in self.references.items())
        sources = "".join(f"    {quoted(source)},\n" for source in self.sources)
        cases = "".join(f"    {json.dumps(case)},\n" for case in self.cases)
        imports = "\n".join(text for text in self.code if text.startswith(("from ", "import ")))
        defined = "\n\n\n".join(text for text in self.code if not text.startswith(("from ", "import ")))
        code = f"\n\n\n{defined}\n\n\n" if defined else ""
        texts = {
            "SOURCES: list[str] = []": f"SOURCES: list[str] = [\n{sources}]",
            "CASES: list[dict[str, Any]] = []": f"CASES: list[dict[str, Any]] = [\n{cases}]",
            "REFERENCES: dict[str, Callable[..., Any]] = {}":
                f"{code}REFERENCES: dict[str, Callable[..., Any]] = {{\n{named}}}",
            "import torch\n\n#": f"import torch\n{imports}\n\n#",
        }  # fmt: skip
        for old, new in texts.items():
            assert template.count(old) == 1
            template = template.replace(old, new)
        return template


def describe_benchmark(script: Script, launches: Launches, steps: Callable[[str], None]) -> Benchmark:
    """Runs each size that a script times, and describes what is launched meanwhile, into `launches`."""
    cases, references, code, left_out = list[dict[str, Any]](), dict[str, str](), dict[str, str](), dict[str, str]()
    for stage in script.stages:
        try:
            references[stage.name], needed = find_reference(stage.reference)
            code |= needed
        except _NotAlone as reason:
            left_out[stage.name] = str(reason)
    for size in script.benchmark:
        for dtype in script.dtypes[:_FEW_TYPES]:
            case = Case(size, dtype)
            steps(str(case))
            values = script.values(case)
            for stage in script.stages:
                cases.append(_describe_case(stage, case, values, launches))
                values |= moved(stage.results(stage.reference, on_cpu(values)), case.device)
    return Benchmark(tuple(launches.sources), tuple(cases), references, tuple(code.values()), left_out)


def _describe_case(stage: Stage, case: Case, values: Mapping[str, Any], launches: Launches) -> dict[str, Any]:
    launches.rows.clear()
    stage.results(stage.run, values)
    return {
        "stage": stage.name, "case": str(case), "launches": list(launches.rows), "reference": stage.name,
        "values": [describe(values[name]) for name in stage.takes],
    }  # fmt: skip


def describe(value: Any) -> Any:
    """What the script makes a tensor of; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    low, high = _find_range(value)
    return {
        "dtype": name_torch(value.dtype), "shape": list(value.shape), "stride": list(value.stride()),
        "offset": value.storage_offset(), "low": low, "high": high,
    }  # fmt: skip


def _find_range(tensor: torch.Tensor) -> tuple[float, float]:
    """The least and the greatest of what a tensor holds: an index stays one."""
    values = tensor.cpu()
    if values.is_complex():
        values = torch.view_as_real(values)
    if values.is_floating_point():
        values = values[values.isfinite()].float()
    if not values.numel():
        return 0, 0
    values = values.long() if not values.is_floating_point() else values
    return values.min().item(), values.max().item()


class _NotAlone(Exception):
    """A function needs more than torch."""


def find_reference(function: Any) -> tuple[str, dict[str, str]]:
    """How the script calls a function, and the definitions that it needs. Raises `_NotAlone`."""
    name = getattr(function, "__name__", "")
    module = next((each for each in (torch, torch.nn.functional) if getattr(each, name, None) is function), None)
    return (f"{module.__name__}.{name}", {}) if module else (name, find_code(function))


def find_code(function: Any) -> dict[str, str]:
    """The definitions that a function needs to run beside torch, by name, its own last. Raises `_NotAlone`."""
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>" or function.__closure__:
        raise _NotAlone("its reference is no function of the script")
    code: dict[str, str] = {}
    for name in sorted(list_globals(function.__code__) & function.__globals__.keys()):
        value = function.__globals__[name]
        if value is function or value is torch.Tensor:
            continue
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _ALLOWED:
            code[name] = f"import {value.__name__} as {name}"
        elif isinstance(value, _PLAIN):
            code[name] = f"{name} = {value!r}"
        elif isinstance(value, FunctionType) and value.__module__ == function.__module__:
            code |= find_code(value)
        elif getattr(value, "__module__", "").partition(".")[0] in _ALLOWED and hasattr(value, "__qualname__"):
            code[name] = f"from {value.__module__} import {value.__qualname__} as {name}"
        else:
            raise _NotAlone(f"its reference uses {name}")
    try:
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError) as error:
        raise _NotAlone("the text of its reference is not known") from error
    return {"Tensor": "from torch import Tensor", **code, function.__name__: source}
