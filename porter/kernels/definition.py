"""What is wrong with a kernel, told when it is made."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from porter.core.errors import Place, PorterError
from porter.core.names import C_WORDS
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.signature import (
    ATTRIBUTES,
    MOST_BUFFERS,
    Content,
    blank_comments,
    is_declared,
    nearest_attributes,
    resembles_attribute,
    words,
)
from porter.metal.lint import find_foreign

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:if|define)", re.MULTILINE)
_WHOLE_KERNEL = re.compile(r"\bkernel\s+void\b|\[\[\s*kernel\b")


def check_texts(name: str, lists: Mapping[str, object], texts: Mapping[str, object]) -> None:
    """Raises PTR200 and PTR201 for names that are no texts, and PTR202 for source that is none."""
    if not isinstance(name, str):
        raise PorterError("PTR200", f"the name of a kernel is {name!r}", hint='Give a text: "add".')
    for what, given in lists.items():
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(n, str) for n in given):
            raise PorterError(
                "PTR201", f"`{what}` of kernel `{name}` is {given!r}, not a list of names", hint='Give a list: ["x"].'
            )
    for what, given in texts.items():
        if not isinstance(given, str):
            raise PorterError(
                "PTR202", f"`{what}` of kernel `{name}` is a {type(given).__name__}, not text",
                hint="Check the order of the arguments, or name them.",
            )  # fmt: skip


def check_kernel(kernel: Kernel) -> None:
    """Raises PTR200-PTR204, PTR213 and PTR407 for a kernel that cannot be written as Metal."""
    if not is_name(kernel.name):
        raise PorterError(
            "PTR200", f"`{kernel.name}` cannot name a Metal function", hint="Use letters, digits and underscores."
        )
    if not kernel.outputs:
        raise PorterError("PTR202", f"kernel `{kernel.name}` has no outputs", hint="Name at least one output.")
    if not words(kernel.body):
        raise PorterError(
            "PTR202", f"kernel `{kernel.name}` has an empty body", hint="Write the statements between the braces."
        )
    if _WHOLE_KERNEL.search(blank_comments(kernel.body)):
        raise PorterError(
            "PTR202", f"the source of kernel `{kernel.name}` is a whole kernel, not a body",
            hint="Leave out the signature and its braces, or run it with torch.mps.compile_shader.",
        )  # fmt: skip
    if (buffers := len(kernel.inputs) + len(kernel.outputs)) > MOST_BUFFERS:
        raise PorterError(
            "PTR213", f"kernel `{kernel.name}` takes {buffers} buffers; Metal binds {MOST_BUFFERS}",
            hint="Join inputs into one tensor.",
        )  # fmt: skip
    _check_braces(kernel)
    for parameter in kernel.parameters:
        _check_parameter(parameter)
    _check_names(kernel)
    _check_attributes(kernel)
    # Raises PTR407 for what a compiler of C++ takes, and Apple's does not
    for part, text in (("header", kernel.header), ("body", kernel.body)):
        found = find_foreign(f"{kernel.name} {part}", text)
        if found is not None:
            place = Place(found.file, found.line)
            raise PorterError("PTR407", f"the kernel is not Metal: {found.text}", place, "Write it without.")
    for name, word in kernel.placeholders:
        if name not in kernel.inputs:
            raise PorterError(
                "PTR201", f"template_dtypes names `{name}`, which is not an input of kernel `{kernel.name}`",
                hint=f"The inputs are {', '.join(kernel.inputs)}.",
            )  # fmt: skip
        _check_identifier(word, "placeholder")


def is_name(name: object) -> bool:
    """Whether something can be a name in Metal, and means nothing there yet."""
    return isinstance(name, str) and name.isascii() and name.isidentifier() and name not in C_WORDS


def _check_identifier(name: object, what: str) -> None:
    if not is_name(name):
        raise PorterError(
            "PTR201", f"{what} `{name}` is not a name in Metal", hint="Use letters, digits and underscores, no keyword."
        )


def _check_names(kernel: Kernel) -> None:
    named = list(_named(kernel))
    for name, what in named:
        _check_identifier(name, what)
    counts = Counter(name for name, _ in named)
    twice = next((name for name, _ in named if counts[name] > 1), None)
    if twice is not None:
        places = " and as ".join(what for name, what in named if name == twice)
        raise PorterError("PTR201", f"`{twice}` is used as {places}", hint="Give each argument a name of its own.")
    for name, what in named:
        if name in ATTRIBUTES and what in ("input", "output"):
            raise PorterError(
                "PTR201", f"{what} `{name}` has the name of a Metal attribute", hint="Give it another name."
            )


def _named(kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Every argument's name and what it is, those included that the body asks for by the name of a tensor."""
    yield from ((name, "input") for name in kernel.inputs)
    yield from ((name, "output") for name in kernel.outputs)
    yield from ((p.name, "Metal parameter") for p in kernel.parameters)
    asked = words(kernel.body)
    for name in (*kernel.inputs, *kernel.outputs):
        for content in Content:
            if content not in (Content.DATA, Content.EXTENTS) and name + content.value in asked:
                yield name + content.value, f"what `{name}` is described by"


def _check_parameter(parameter: object) -> None:
    if not isinstance(parameter, MetalParameter):
        raise PorterError(
            "PTR204", f"`metal_params` holds {parameter!r}",
            hint='Give a list: [MetalParameter("id", "uint", "thread_position_in_grid")].',
        )  # fmt: skip
    if not isinstance(parameter.attribute, str):
        _refuse_attribute(repr(parameter.attribute), f"Metal parameter `{parameter.name}`")
    attribute = ATTRIBUTES.get(parameter.attribute)
    if attribute is None:
        _refuse_attribute(parameter.attribute, f"Metal parameter `{parameter.name}`")
    elif parameter.dtype not in attribute.types:
        raise PorterError(
            "PTR204",
            f"Metal parameter `{parameter.name}` is a `{parameter.dtype}`, which [[{attribute.name}]] cannot be",
            hint=f"Use one of {', '.join(attribute.types)}.",
        )


def _check_attributes(kernel: Kernel) -> None:
    """Raises PTR203 for a word of the body that looks like an attribute and is none."""
    known = {name for name, _ in _named(kernel)} | ATTRIBUTES.keys()
    for word in sorted(words(kernel.body) - known):
        if resembles_attribute(word) and not is_declared(kernel.body, word) and word not in words(kernel.header):
            _refuse_attribute(word, f"the body of kernel `{kernel.name}`")


def _check_braces(kernel: Kernel) -> None:
    """Raises PTR202 for a body that ends its function, or leaves something in it open."""
    code = blank_comments(kernel.body)
    if _DIRECTIVE.search(code):  # the preprocessor may leave braces out, or add some
        return
    opened: list[int] = []
    for at, brace in enumerate(code):
        if brace == "{":
            opened.append(at)
        elif brace == "}" and opened:
            opened.pop()
        elif brace == "}":
            raise _unbalanced(kernel, at, "closes a brace that it does not open", "Remove the brace")
    if opened:
        raise _unbalanced(kernel, opened[-1], "does not close this brace", "Close it")


def _unbalanced(kernel: Kernel, at: int, what: str, remedy: str) -> PorterError:
    place = Place(f"{kernel.name} body", kernel.body.count("\n", 0, at) + 1)
    hint = f"{remedy}: the function's own are generated, and functions belong in the header."
    return PorterError("PTR202", f"the body of kernel `{kernel.name}` {what}", place, hint)


def _refuse_attribute(name: str, where: str) -> None:
    near = nearest_attributes(name)
    hint = f"Did you mean {' or '.join(near)}?" if near else "See the Metal specification's table of input attributes."
    raise PorterError("PTR203", f"{where} names `{name}`, which is not a Metal attribute", hint=hint)
