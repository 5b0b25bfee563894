"""The kernel file: the script's body as a template, and its instantiations."""

from __future__ import annotations

from collections.abc import Iterator

from porter.plan.promotion.promotion import Promotion
from porter.plan.promotion.style import Style

_BFLOAT = "bfloat"


def write_kernel_file(promotion: Promotion, style: Style) -> str:
    """The text of `kernels/NAME.metal`."""
    before = f"{promotion.kernel.before}\n" if promotion.kernel.before else ""
    return (
        "#include <metal_stdlib>\nusing namespace metal;\n\n"
        f"{before}{promotion.kernel.definition}{''.join(_instantiations(promotion, style))}"
    )


def _instantiations(promotion: Promotion, style: Style) -> Iterator[str]:
    kernel, op = promotion.kernel, promotion.op
    if not kernel.parameters:
        return
    words = [*(each.word for each in kernel.types), *kernel.numbers]
    macro = f"INSTANTIATE_{op.upper()}"
    # The macro's own names: one that is a template parameter's too would say the same of two things.
    values = {word: f"{word.upper()}_" if not word.isupper() or len(word) == 1 else f"{word}_" for word in words}
    host_name = ' "_" '.join(f"#{values[word]}" for word in words)
    instance = f"{op}<{', '.join(values[word] for word in kernel.parameters)}>"
    yield (
        f"\n#define {macro}({', '.join(values[word] for word in words)}) \\\n"
        f'  template [[host_name("{op}_" {host_name})]] [[kernel]] decltype({instance}) {instance};\n\n'
    )
    plain = [each for each in kernel.instances if not (style.bfloat_guard and _BFLOAT in each)]
    guarded = [each for each in kernel.instances if each not in plain]
    yield from (f"{macro}({', '.join(each)})\n" for each in plain)
    if guarded:
        yield "#if __METAL_VERSION__ >= 310\n"
        yield from (f"{macro}({', '.join(each)})\n" for each in guarded)
        yield "#endif\n"
