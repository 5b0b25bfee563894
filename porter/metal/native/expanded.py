"""Host code that expands arguments as the graph did, before kernels read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from porter.languages.patterns import replace_code
from porter.languages.statements import name_tokens
from porter.loops.program import Programs, count_own_dims
from porter.metal.native.host_code import Node, change_text
from porter.metal.native.host_values import Names

_RESULT = "result0"


@dataclass(frozen=True)
class Expanded:
    """The statements that expand arguments, and the names of all by which kernels are launched after them.

    `body` is that of the function, where dimensions that stay an argument's own are those of the expanded one.
    """

    names: Names
    lines: tuple[str, ...]
    body: str
    originals: Mapping[str, str]  # by their expanded ones

    def name_arguments(self, nodes: Iterable[Node]) -> list[Node]:
        """What launches, with messages that name the arguments which were given."""
        return [change_text(node, self._name_arguments) for node in nodes]

    def _name_arguments(self, text: str) -> str:
        for made, variable in self.originals.items():
            text = text.replace(f'"Expected {made} to', f'"Expected {variable} to')
        return text


def write_expanded(programs: Programs, names: Names, body: str) -> Expanded:
    """Expands the arguments that the graph expanded: to the sizes of the result, but for dimensions of their own.

    Raises PTR361 where recorded calls do not agree on these, and PTR371 for an argument without a variable.
    """
    lines: list[str] = []
    originals: dict[str, str] = {}
    known = body
    variables = dict(names.variables)
    for name, own in count_own_dims(programs.calls).items():
        variable = names.variable(name)
        made = _name(f"{variable}_expanded", f"{body}{' '.join(names.variables.values())}")
        lines += _expand(variable, made, own, names.variable(_RESULT), body)
        variables[name], originals[made] = made, variable
        for at in range(1, own + 1):
            known = replace_code(known, f"{made}.size(-{at})", f"{variable}.size(-{at})")
    return Expanded(replace(names, variables=variables), tuple(lines), known, originals)


def _name(name: str, text: str) -> str:
    taken = {token.text for token in name_tokens(text)}
    return name if name not in taken else _name(f"{name}_", text)


def _expand(variable: str, made: str, own: int, result: str, body: str) -> Iterator[str]:
    if not own:
        yield f"const auto {made} = {variable}.expand_as({result});"
        return
    if f"{variable}.dim() >= {own}" not in body:
        yield f"TORCH_CHECK({variable}.dim() >= {own});"
    sizes = _name(f"{variable}_sizes", body)
    yield f"auto {sizes} = {result}.sizes().vec();"
    yield f"std::copy({variable}.sizes().end() - {own}, {variable}.sizes().end(), {sizes}.end() - {own});"
    yield f"const auto {made} = {variable}.expand({sizes});"
