"""What a stage of a script computes around its kernel, for Core AI: numbers from extents, checks, and the call."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from porter.core.errors import Place, PorterError
from porter.kernels.export.forms import Source
from porter.kernels.export.sizes import NotWritten, resolve, resolve_sizes, to_metal, to_python
from porter.kernels.kernel import Kernel
from porter.kernels.promotion.test_text import write_reference
from porter.kernels.tracing.tracer import trace
from porter.kernels.uses import StageUse
from porter.plan.promotion.expressions import Constant, Expression, Input, Method, Node
from porter.plan.promotion.program import Launch, Unlike, merge

_FORM = "coreai"


@dataclass(frozen=True)
class StageForm:
    """A stage around one launch of a kernel.

    `tensors` pairs each tensor input of the kernel with the argument of the stage that it is. `numbers` are the others,
    `open_template` the template numbers that depend on sizes, with their values in this export.
    """

    use: StageUse
    launch: Launch
    tensors: Mapping[str, str]
    numbers: Mapping[str, Expression]
    open_template: tuple[tuple[Expression, str], ...]

    @property
    def ranks(self) -> dict[str, int]:
        """The number of dimensions of each tensor that the stage takes."""
        return {name: v.dim() for name, v in self.use.values.items() if isinstance(v, torch.Tensor)}

    def declare_numbers(self, names: Mapping[str, str]) -> list[str]:
        """Declarations of the numbers that the body gets; `names` has what the body calls the inputs of the kernel."""
        given = {argument: names[name] for name, argument in self.tensors.items()}
        kinds = {bool: "bool", int: "int", float: "float"}
        found = []
        for name, number in self.numbers.items():
            value = self.use.call_numbers[name]
            found.append(f"const {kinds[type(value)]} {name} = {_strip(to_metal(number, given, self.ranks))};\n")
        return found

    def write_reference(self, name: str) -> str:
        """The torch definition: a function of the kernel's tensors that checks them, then calls the reference."""
        stage = self.use.stage
        text = write_reference(stage.reference, f"{name}_of_stage", Place(self.use.file))
        numbers = {n: v for n, v in self.use.values.items() if not isinstance(v, torch.Tensor)}
        given = ", ".join(repr(numbers[each]) if each in numbers else each for each in stage.takes)
        checks = "".join(self._checks())
        return (
            f"{text}\n\ndef {name}({', '.join(self.tensors.values())}):\n{checks}    return {name}_of_stage({given})\n"
        )

    def _checks(self) -> list[str]:
        ranks = self.ranks
        found = []
        for argument in self.tensors.values():
            found.append(f"    if {argument}.dim() != {ranks[argument]}:\n")
            found.append(f'        raise ValueError("{argument} has to be of rank {ranks[argument]}")\n')
        for number, value in self.open_template:
            holds = _plain(f"{to_python(number)} == {value}")
            found.append(f"    if not ({holds}):\n")
            found.append(f'        raise ValueError("export the kernel again: here {holds} has to hold")\n')
        return found

    def write_call(self, kernel: Kernel, function: str) -> str:
        """A function of the stage's tensors that calls the kernel."""
        sizes = [self._resolve_sizes(each.sizes) for each in self.launch.kernel_outputs]
        shapes = ", ".join(f"[{', '.join(map(_write, each))}]" for each in sizes)
        arguments = ", ".join(self.tensors.values())
        return f"""

def {function}({arguments}):
    return kernel(
        {arguments},
        threads_per_grid=({self._three(self.launch.grid)}),
        threads_per_thread_group=({self._three(self.launch.group)}),
        result_shapes=[{shapes}],
    )
"""

    def _three(self, sizes: Sequence[Expression]) -> str:
        return ", ".join(_write(resolve(each, self.ranks, self.use.numbers)) for each in sizes)

    def _resolve_sizes(self, sizes: Node) -> tuple[Expression, ...]:
        return resolve_sizes(sizes, self.ranks, self.use.numbers)


def read_stage(source: Source) -> StageForm:
    """The stage that launches a kernel. Raises PTR231 for one that is more than a launch whose results it returns."""
    kernel, use = source.kernel, source.use
    assert use is not None
    try:
        form = _read(kernel, use, _trace(kernel, use), {a.name: a.value for a in source.call.template})
        form.declare_numbers({name: name for name in form.tensors})
        form.write_call(kernel, kernel.name)
        form.write_reference(kernel.name)
    except NotWritten as error:
        raise _refuse(kernel, f"is launched with {error}", "Launch it with sizes of its inputs.") from error
    return form


def _trace(kernel: Kernel, use: StageUse) -> Launch:
    values = (use.values[name] for name in use.stage.takes)
    kinds = {
        name: value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
        for name, value in zip(use.stage.takes, values, strict=True)
    }
    try:
        merged = merge(trace(use.function, kinds, inspect.getsourcefile(use.function) or use.file).tree)
    except Unlike as error:
        raise _refuse(kernel, f"is launched in several ways: {error}", "Launch it in one.") from error
    except PorterError as error:
        hint = "Export a kernel whose stage launches it with its own arguments, and returns what it writes."
        what = f"kernel `{kernel.name}` cannot be written in the form {_FORM}: {error.what}"
        raise PorterError("PTR231", what, error.place, hint) from error
    assert not isinstance(merged, Launch) and hasattr(merged, "launch")
    return merged.launch


def _read(kernel: Kernel, use: StageUse, launch: Launch, template: Mapping[str, str]) -> StageForm:
    ranks = {name: v.dim() for name, v in use.values.items() if isinstance(v, torch.Tensor)}
    tensors, numbers = {}, {}
    for name, argument in zip(kernel.inputs, launch.arguments, strict=True):
        if name in use.call_numbers:
            numbers[name] = resolve(argument, ranks, use.numbers)
        else:
            tensors[name] = _argument_of(kernel, name, argument)
    missing = [n for n in use.stage.takes if n in ranks and n not in tensors.values()]
    if missing or not tensors:
        what = f"does not get `{missing[0]}`, which its torch definition takes" if missing else "takes no tensor"
        raise _refuse(kernel, what, "Give the kernel every tensor of its stage.")
    if len(set(tensors.values())) < len(tensors):
        raise _refuse(kernel, "gets an argument of its stage twice", "Pass each once.")
    left = [each.sizes for each in launch.kernel_outputs]
    if launch.returned != tuple(range(len(left))) or [each.sizes for each in launch.outputs] != left:
        raise _refuse(kernel, "writes other results than its stage returns", "Return them as the kernel does.")
    found = []
    for each in launch.template:
        if each.kind != "typename" and not isinstance(each.value, str):
            number = resolve(each.value, ranks, use.numbers)
            if not isinstance(number, Constant):
                found.append((number, {"true": "True", "false": "False"}.get(template[each.name], template[each.name])))
    return StageForm(use, launch, tensors, numbers, tuple(found))


def _argument_of(kernel: Kernel, name: str, argument: Node) -> str:
    while isinstance(argument, Method) and argument.name == "contiguous":
        argument = argument.tensor
    if not isinstance(argument, Input):
        raise _refuse(kernel, f"gets `{name}` from its stage in another form", "Pass the tensor as it is.")
    return argument.name


def _refuse(kernel: Kernel, what: str, hint: str) -> PorterError:
    return PorterError("PTR231", f"kernel `{kernel.name}` cannot be written in the form {_FORM}: it {what}", hint=hint)


def _write(number: Expression) -> str:
    return _plain(to_python(number))


def _plain(text: str) -> str:
    """A Python expression without needless brackets."""
    return ast.unparse(ast.parse(text, mode="eval"))


def _strip(text: str) -> str:
    """Metal without the brackets around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 else text
    return text
