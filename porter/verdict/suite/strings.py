"""The strings that an operator may take: the defaults of its schema, and what its documentation quotes.

No sample of an OpInfo has to give all of them; which of them the operator refuses, the CPU tells.
"""

from __future__ import annotations

import re
from functools import lru_cache

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.derivatives import list_derived_with
from porter.verdict.suite.context import aten_names

_QUOTED = re.compile(r"""[`'"]+(\w+)['"`]+""")
_MOST = 16
_PLACES = (torch, torch.nn.functional, torch.linalg, torch.special, torch.Tensor, torch._C._nn)


def list_strings(op: OpInfo) -> tuple[str, ...]:
    """Words that may be values of string arguments, the defaults of the schema first; none without such an argument."""
    names = tuple(sorted(aten_names(op)))
    return _list_quoted(names, getattr(op.op, "__doc__", None) or "")


@lru_cache(maxsize=64)
def _list_quoted(names: tuple[str, ...], text: str) -> tuple[str, ...]:
    schemas = [s for name in names for s in torch._C._jit_get_schemas_for_operator(f"aten::{name}")]
    strings = [a for schema in schemas for a in schema.arguments if str(a.type).startswith(("str", "Optional[str"))]
    if schemas and not strings:
        return ()
    defaults = [a.default_value for a in strings if isinstance(a.default_value, str)]
    forwards = (*names, *(forward for name in names for forward in list_derived_with(name)))
    documented = (getattr(place, name, None) for place in _PLACES for name in dict.fromkeys(forwards))
    texts = [text, *(getattr(function, "__doc__", None) or "" for function in documented)]
    quoted = [word for each in texts for word in _QUOTED.findall(each)]
    return tuple(dict.fromkeys([*defaults, *quoted]))[:_MOST]
