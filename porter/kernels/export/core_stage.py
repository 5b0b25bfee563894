"""What a stage of a script computes around its kernel, for Core AI: numbers from extents, checks, and the call."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import torch

from porter.core.errors import Place, PorterError
from porter.kernels.export.forms import Source
from porter.kernels.kernel import Kernel
from porter.kernels.loading import StageUse
from porter.kernels.promotion.test_text import write_reference
from porter.kernels.tracing.tracer import trace
from porter.loops import host_values as host
from porter.loops.host_algebra import TRUE, ZERO, apply, is_never_negative, type_of
from porter.plan.promotion.promotion import Launch, Unlike, merge

_METAL = {"and": "&&", "or": "||", "//": "/"}
_INFIX = frozenset(("+", "-", "*", "//", "%", "/", "==", "!=", "<", "<=", ">", ">=", "and", "or"))
_MATH = frozenset(("sqrt", "log", "log2", "exp", "floor", "ceil"))
_TYPES = frozenset(("int", "float"))


class NotWritten(Exception):
    """A number cannot be written down. Holds what it is."""


def resolve(node: host.Node, ranks: Mapping[str, int], numbers: Mapping[str, host.Number]) -> host.HostValue:
    """A number by sizes of inputs alone, which are dense: arguments have the values of `numbers`.

    Raises NotWritten for what else a number may depend on.
    """
    match node:
        case host.Constant():
            return node
        case host.Scalar(name):
            return host.Constant(numbers[name])
        case host.Rank(tensor):
            return host.Constant(ranks[_input(tensor)])
        case host.SizeProduct(tensor):
            return _join("*", host.Constant(1), resolve_sizes(host.Sizes(tensor), ranks, numbers))
        case host.Property(_, "is_contiguous"):
            return TRUE
        case host.Property(_, "storage_offset"):
            return ZERO
        case host.Size(tensor, host.Constant(int(dim))):
            name = _input(tensor)
            return host.Size(name, host.Constant(dim % ranks[name]))
        case host.Apply(function, arguments):
            return apply(function, *(resolve(each, ranks, numbers) for each in arguments))
        case host.SameSizes(left, right):
            ours, theirs = (resolve_sizes(each, ranks, numbers) for each in (left, right))
            if len(ours) != len(theirs):
                return host.Constant(False)
            return _join("and", TRUE, (apply("==", *pair) for pair in zip(ours, theirs, strict=True)))
        case host.Select(condition, yes, no):
            chosen = resolve(condition, ranks, numbers)
            if isinstance(chosen, host.Constant):
                return resolve(yes if chosen.value else no, ranks, numbers)
            return host.Select(chosen, resolve(yes, ranks, numbers), resolve(no, ranks, numbers))
    raise NotWritten(f"a tensor's {getattr(node, 'name', type(node).__name__.lower())}")


def resolve_sizes(
    node: host.Node, ranks: Mapping[str, int], numbers: Mapping[str, host.Number]
) -> tuple[host.HostValue, ...]:
    """Sizes one by one. Raises NotWritten."""
    match node:
        case host.Listed(sizes):
            return tuple(resolve(each, ranks, numbers) for each in sizes)
        case host.Sizes(tensor, start, stop):
            name = _input(tensor)
            return tuple(host.Size(name, host.Constant(each)) for each in range(ranks[name])[start:stop])
        case host.Select(condition, yes, no):
            chosen = resolve(condition, ranks, numbers)
            if isinstance(chosen, host.Constant):
                return resolve_sizes(yes if chosen.value else no, ranks, numbers)
    raise NotWritten("sizes that depend on sizes")


def _input(tensor: host.Node) -> str:
    """The argument that a tensor is, or is a dense copy of."""
    while isinstance(tensor, host.Method) and tensor.name == "contiguous":
        tensor = tensor.tensor
    if not isinstance(tensor, str):
        raise NotWritten("a view of a tensor")
    return tensor


def _join(function: str, start: host.HostValue, values: Iterable[host.HostValue]) -> host.HostValue:
    return reduce(partial(apply, function), values, start)


def to_python(node: host.HostValue) -> str:
    """A resolved number as a Python expression of the inputs."""
    match node:
        case host.Constant(value):
            return repr(value)
        case host.Size(str(name), host.Constant(int(dim))):
            return f"{name}.shape[{dim}]"
        case host.Apply("neg", (inner,)):
            return f"(-{to_python(inner)})"
        case host.Apply("not", (inner,)):
            return f"(not {to_python(inner)})"
        case host.Apply("ceil_div", (left, right)):
            return f"(-(-{to_python(left)} // {to_python(right)}))"
        case host.Apply("pow", (left, right)):
            return f"({to_python(left)} ** {to_python(right)})"
        case host.Apply(function, (left, right)) if function in _INFIX:
            return f"({to_python(left)} {function} {to_python(right)})"
        case host.Apply(function, arguments):
            module = "math." if function in _MATH else ""
            return f"{module}{function}({', '.join(map(to_python, arguments))})"
        case host.Select(condition, yes, no):
            return f"({to_python(yes)} if {to_python(condition)} else {to_python(no)})"  # type: ignore[arg-type]
    raise NotWritten(type(node).__name__.lower())


def to_metal(node: host.HostValue, tensors: Mapping[str, str], ranks: Mapping[str, int]) -> str:
    """A resolved number as Metal. `tensors` has the kernel's name of each input, whose extents count from the end."""

    def write(node: host.HostValue) -> str:
        match node:
            case host.Constant(bool(value)):
                return str(value).lower()
            case host.Constant(float(value)):
                return f"{value!r}f"
            case host.Constant(value):
                return str(value)
            case host.Size(str(name), host.Constant(int(dim))):
                return f"int({tensors[name]}.get_extent({ranks[name] - 1 - dim}))"
            case host.Apply("neg", (inner,)):
                return f"(-{write(inner)})"
            case host.Apply("not", (inner,)):
                return f"(!{write(inner)})"
            case host.Apply("ceil_div", (left, right)) if is_never_negative(left):
                return f"(({write(left)} + {write(right)} - 1) / {write(right)})"
            case host.Apply("/", (left, right)):
                return f"(float({write(left)}) / float({write(right)}))"
            case host.Apply("//" | "%", (left, _)) if type_of(left) != "int" or not is_never_negative(left):
                raise NotWritten("a quotient that may be negative")
            case host.Apply(function, (left, right)) if function in _INFIX:
                return f"({write(left)} {_METAL.get(function, function)} {write(right)})"
            case host.Apply("min" | "max" as function, arguments):
                return f"{function}({', '.join(map(write, arguments))})"
            case host.Apply(function, (inner,)) if function in _TYPES:
                return f"{function}({write(inner)})"
            case host.Apply(function, (inner,)) if function in _MATH:
                return f"{function}(float({write(inner)}))"
            case host.Select(condition, yes, no):
                return f"({write(condition)} ? {write(yes)} : {write(no)})"  # type: ignore[arg-type]
        raise NotWritten(node.function if isinstance(node, host.Apply) else type(node).__name__.lower())

    return write(node)


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
    numbers: Mapping[str, host.HostValue]
    open_template: tuple[tuple[host.HostValue, str], ...]

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

    def write_call(self, function: str) -> str:
        """A function of the stage's tensors that calls the kernel."""
        sizes = [resolve_sizes(each.sizes, self.ranks, self.use.numbers) for each in self.launch.kernel_outputs]
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

    def _three(self, sizes: Sequence[host.HostValue]) -> str:
        return ", ".join(_write(resolve(each, self.ranks, self.use.numbers)) for each in sizes)


def read_stage(source: Source) -> StageForm:
    """The stage that launches a kernel. Raises PTR231 for one that is more than a launch whose results it returns."""
    kernel, use = source.kernel, source.use
    assert use is not None
    try:
        form = _read(kernel, use, _trace(kernel, use), {a.name: a.value for a in source.call.template})
        form.declare_numbers({name: name for name in form.tensors})
        form.write_call(kernel.name)
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
            if not isinstance(number, host.Constant):
                found.append((number, {"true": "True", "false": "False"}.get(template[each.name], template[each.name])))
    return StageForm(use, launch, tensors, numbers, tuple(found))


def _argument_of(kernel: Kernel, name: str, argument: host.Node) -> str:
    while isinstance(argument, host.Method) and argument.name == "contiguous":
        argument = argument.tensor
    if not isinstance(argument, str):
        raise _refuse(kernel, f"gets `{name}` from its stage in another form", "Pass the tensor as it is.")
    return argument


def _refuse(kernel: Kernel, what: str, hint: str) -> PorterError:
    return PorterError("PTR231", f"kernel `{kernel.name}` cannot be written in the form {_FORM}: it {what}", hint=hint)


def _write(number: host.HostValue) -> str:
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
