"""The operator's rows in native_functions.yaml."""

from __future__ import annotations

from porter.plan.promotion.promotion import Parameter, Promotion


def write_rows(promotion: Promotion) -> str:
    """The functional form, and the one that writes to `out=`, whose structured kernels both use."""
    op = promotion.op
    parameters = ", ".join(map(_write_parameter, promotion.parameters))
    outputs = [f"Tensor({chr(ord('a') + at)}!)" for at in range(len(promotion.results))]
    arguments = ", ".join(f"{type_} {name}" for type_, name in zip(outputs, promotion.results, strict=True))
    if len(outputs) == 1:
        functional, out = "Tensor", outputs[0]
    else:
        listed = (f"{type_} {name}" for type_, name in zip(outputs, promotion.results, strict=True))
        functional = f"({', '.join(f'Tensor {name}' for name in promotion.results)})"
        out = f"({', '.join(listed)})"
    cpu = f"    CPU: {op}_out_cpu\n" if promotion.cpu else ""
    return (
        f"- func: {op}({parameters}) -> {functional}\n"
        f"  structured_delegate: {op}.out\n\n"
        f"- func: {op}.out({parameters}, *, {arguments}) -> {out}\n"
        f"  structured: True\n  dispatch:\n{cpu}    MPS: {op}_out_mps\n"
    )


def write_schema(promotion: Promotion) -> str:
    """The functional form's schema."""
    return write_rows(promotion).split("\n", 1)[0].removeprefix("- func: ")


def _write_parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f"={parameter.default}"
    return f"{parameter.type} {parameter.name}{default}"
