"""What came of calls on the CPU, kept for later verdicts: the child processes that tell took half of a warm verdict.

Outcomes follow from torch, the elements of samples, and the code of the suite: a fork's code computes none of them.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core import cache
from porter.core.files import read_regular
from porter.verdict.suite import cpu_memory

_MOST = 1 << 14  # batches of an OpInfo: samples of other forks have other elements
_PLAIN = (type(None), bool, int, float, complex, str, torch.dtype, torch.layout, torch.memory_format, torch.device)
_Call = TypeVar("_Call", bound=Callable[..., Any])
_on_cpu: set[Callable[..., Any]] = set()
_kept: dict[Path, dict[str, list[int]]] = {}
_new: set[Path] = set()


def on_cpu(call: _Call) -> _Call:
    """Marks a function that computes on the CPU alone, of its arguments alone."""
    _on_cpu.add(call)
    return call


@dataclass(frozen=True)
class State:
    """What a call depends on besides its arguments."""

    has_gradients: bool
    is_deterministic: bool
    warns: bool  # where there is no deterministic algorithm, and raises no error
    dtype: torch.dtype

    @staticmethod
    def get() -> State:
        """The state of this process."""
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        is_deterministic = torch.are_deterministic_algorithms_enabled()
        return State(torch.is_grad_enabled(), is_deterministic, warns, torch.get_default_dtype())

    def set(self) -> None:
        """Makes it the state of this process."""
        torch.set_grad_enabled(self.has_gradients)
        # Python's function for it imports all of inductor.
        torch._C._set_deterministic_algorithms(self.is_deterministic, warn_only=self.warns)
        torch.set_default_dtype(self.dtype)


class Batch:
    """Calls of one function that a child process runs in turn, and what came of them if that is known."""

    def __init__(self, call: Callable[..., Any], samples: Sequence[SampleInput]) -> None:
        self._count = len(samples)
        # Where nothing watches the memory of the CPU, less is noticed.
        name = _name_call(call) if cpu_memory.is_installed() else None
        self._key = None if name is None else _digest(name, samples)
        self._file = None if name is None or self._key is None else _find_file(name)

    def recall(self) -> bytes | None:
        """The outcome of each call; None if they are not known."""
        if self._file is None or self._key is None:
            return None
        outcomes = _read(self._file).get(self._key)
        return None if outcomes is None else bytes(outcomes)

    def keep(self, outcomes: bytes) -> None:
        """Keeps the outcomes of all calls, until `store`: a process that ended early may have been killed."""
        if self._file is not None and self._key is not None and len(outcomes) == self._count:
            _read(self._file)[self._key] = list(outcomes)
            _new.add(self._file)


def is_nameable(call: Callable[..., Any]) -> bool:
    """Whether a call has a name that tells it from all others, in another process too."""
    return _name_call(call) is not None


def read_memory(memory: torch.UntypedStorage) -> bytes:
    """The bytes of memory on the CPU. What NumPy is shown can be resized no more, and an `out=` may have to be."""
    return ctypes.string_at(memory.data_ptr(), memory.nbytes()) if memory.nbytes() else b""


def store() -> None:
    """Writes what this process has kept. Of two processes that write at once, one may do so in vain."""
    for file in _new:
        every = (json.loads(cache.get(file) or "{}") | _kept[file]).items()
        cache.put(file, json.dumps(dict(list(every)[-_MOST:])))
    _new.clear()


def _read(file: Path) -> dict[str, list[int]]:
    if file not in _kept:
        _kept[file] = json.loads(cache.get(file) or "{}")
    return _kept[file]


def _name_call(call: Callable[..., Any]) -> str | None:
    """What tells a call from all others; None for one that may be of the fork's code, or of a test's."""
    if isinstance(call, partial):
        names = [_name_call(each) for each in (call.func, *call.args)]
        return None if call.keywords or None in names else "-".join(map(str, names))
    if isinstance(call, OpInfo):
        is_known = call.op is list_known().get((call.name, call.variant_test_name)) or call.op in _on_cpu
        return f"{call.full_name}{'.row' * (call.op in _on_cpu)}" if is_known else None
    return call.__name__ if call in _on_cpu else None


@once
def list_known() -> dict[tuple[str, str], Any]:
    """The functions of PyTorch's OpInfos, by name and variant."""
    return {(op.name, op.variant_test_name): op.op for op in op_db}


@once
def _find_file(name: str) -> Path:
    from aten_overlay.device import libraries
    from aten_overlay.toolchain import torch_version

    return cache.key("cpu_outcomes", name, torch_version(), torch.backends.cpu.get_cpu_capability(),
                     libraries.build_device().parent.name, *_list_sources())  # fmt: skip


@once
def _list_sources() -> tuple[str, ...]:
    return tuple(read_regular(path).decode() for path in sorted(Path(__file__).parent.glob("*.py")))


def _digest(name: str, samples: Sequence[SampleInput]) -> str | None:
    """A digest of all that a call gets; None where that has something else than tensors of the CPU and numbers."""
    hashed = hashlib.blake2b(digest_size=16)
    hashed.update(repr((name, State.get(), len(samples))).encode())
    for sample in samples:
        leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        hashed.update(repr(spec).encode())
        for leaf in leaves:
            for part in _describe(leaf):
                if part is None:
                    return None
                hashed.update(part)
    return hashed.hexdigest()


def _describe(leaf: Any) -> Iterator[Any]:
    """What tells an argument from others, as bytes: of a tensor its memory, whole; None for what cannot be told."""
    if isinstance(leaf, torch.Tensor):
        if type(leaf) is not torch.Tensor or leaf.layout is not torch.strided or leaf.device.type != "cpu":
            yield None
            return
        flags = (leaf.requires_grad, leaf.is_conj(), leaf.is_neg())
        yield repr((leaf.dtype, leaf.shape, leaf.stride(), leaf.storage_offset(), flags)).encode()
        yield read_memory(leaf.untyped_storage())
    else:
        yield repr((type(leaf), leaf)).encode() if isinstance(leaf, _PLAIN) else None
