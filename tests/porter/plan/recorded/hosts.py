"""Host functions of made-up bodies, and how they are printed."""

from __future__ import annotations

from dataclasses import replace

from porter.metal.codegen.host_code import Launch, Line
from porter.plan.recorded.host_function import HostFunction, print_body, read_function

LAUNCH = "launch();"


def read(body: str) -> HostFunction:
    """The function of a body that launches at `LAUNCH`, or else at its end."""
    before, _, behind = body.partition(LAUNCH)
    return read_function(f"{before};{behind}", len(before))


def write(host: HostFunction, body: str) -> str:
    """The function as the body that it was read from is written."""
    if LAUNCH not in body:
        return print_body(host).removesuffix("\n")
    return print_body(replace(host, launch=Launch((Line(LAUNCH),)))).replace(f"{LAUNCH}\n", LAUNCH)
