"""One case on the device and on the CPU: five steps of training, then a state_dict saved, loaded and used."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves, tree_map

from training.case import Case, ModuleCase, OptimizerCase
from training.compare import Difference, differences, identical, same_layout, to_host
from training.seeds import NotingSeeds, ReplayingSeeds

STEPS = 5
RATE, INPUT_RATE = 0.02, 1e-4
SEED = 20
# How a case ended. What both sides refuse in the same way is no difference: half precision on the CPU, for example.
EQUAL, DIFFERENT, REFUSED, FAILED = "equal", "differs", "refused alike", "fails"
# The CPU itself gets another result when fresh memory holds other bytes: it read what nobody had written.
UNSTABLE = "unstable on the CPU"


@dataclass(frozen=True)
class Outcome:
    """How a case ended, what was random in it, and the differences if there are some."""

    case: Case
    kind: str
    random: int = 0
    same_bits: bool = False
    same_layout: bool = True
    told: tuple[str, ...] = ()


def try_case(case: Case) -> Outcome:
    """Trains a case on both sides and compares all that came of it."""
    torch.manual_seed(SEED)
    noting = NotingSeeds()
    got, failed = _attempt(case, "mps", noting)
    replaying = ReplayingSeeds(noting.seeds)
    expected, refused = _attempt(case, "cpu", replaying)
    if failed or refused:
        return _judge_errors(case, failed, refused)
    found = tuple(str(each) for each in _differences(got, expected, case.dtype))
    if not replaying.matched:
        found += (str(Difference("random numbers", "the CPU ran other random operators than the device")),)
    seen = got["seen"], expected["seen"]
    kind = (DIFFERENT if _cpu_repeats(case, expected, noting.seeds) else UNSTABLE) if found else EQUAL
    return Outcome(case, kind, len(noting.seeds), identical(*seen), same_layout(*seen), found)


def _attempt(case: Case, device: str, mode: Any) -> tuple[dict[str, Any], Exception | None]:
    # The device has PyTorch's plain attention; the CPU would take a fused one, which rounds 16-bit types elsewhere.
    with warnings.catch_warnings(), sdpa_kernel(SDPBackend.MATH):
        warnings.simplefilter("ignore")
        try:
            run = _module_run(case, device) if isinstance(case, ModuleCase) else _optimizer_run(case, device)
            with mode:
                return run(), None
        except Exception as error:
            return {}, error


def _judge_errors(case: Case, failed: Exception | None, refused: Exception | None) -> Outcome:
    told = tuple(
        f"{side}: {type(error).__name__}: {(str(error) or type(error).__name__).splitlines()[0][:200]}"
        for side, error in (("mps", failed), ("cpu", refused))
        if error
    )
    if failed and refused and type(failed) is type(refused):
        return Outcome(case, REFUSED, told=told)
    return Outcome(case, FAILED, told=told)


def _differences(got: Mapping[str, Any], expected: Mapping[str, Any], dtype: torch.dtype) -> Iterator[Difference]:
    """Where the runs differ, and whether a state_dict that brings everything back on the CPU does so on the device."""
    yield from differences(got["seen"], expected["seen"], dtype)
    yield from differences(got["loaded"], expected["loaded"], dtype)
    if identical(expected["saved"], expected["loaded"]) and not identical(got["saved"], got["loaded"]):
        yield Difference("state_dict", "what was loaded is not what was saved")


def _cpu_repeats(case: Case, expected: Mapping[str, Any], seeds: Sequence[int]) -> bool:
    """Whether the CPU gets the same where fresh memory is filled, which PyTorch does for deterministic algorithms."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        again, failed = _attempt(case, "cpu", ReplayingSeeds(seeds))
    finally:
        torch.use_deterministic_algorithms(False)
    return not failed and not any(differences(again["seen"], expected["seen"], case.dtype))


def _module_run(case: ModuleCase, device: str) -> Callable[[], dict[str, Any]]:
    module = case.make().train(case.training).to(device)
    args, kwargs = tree_map(lambda value: _leaf(value, device), case.inputs())
    untouched = case.make().train(case.training).to(device)
    return lambda: _train_module(module, untouched, args, kwargs)


def _optimizer_run(case: OptimizerCase, device: str) -> Callable[[], dict[str, Any]]:
    model = case.model().to(device, case.dtype)
    example = model.example(case.dtype).to(device)  # type: ignore[operator]
    return lambda: _train_with(case, model, example)


def _train_module(module: torch.nn.Module, untouched: torch.nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """Trains a module and its inputs, which are parameters too: a module without parameters trains as well."""
    for made in (module, untouched):
        if any(isinstance(p, torch.nn.UninitializedParameter) for p in made.parameters()):
            made(*_fresh(args), **_fresh(kwargs))
    groups = (
        {"params": [t for t in tensors if isinstance(t, torch.Tensor) and t.requires_grad], "lr": rate}
        for tensors, rate in ((module.parameters(), RATE), (tree_leaves((args, kwargs)), INPUT_RATE))
    )
    optimizer = torch.optim.SGD([group for group in groups if group["params"]] or [torch.zeros(())])
    trained = [t for group in optimizer.param_groups for t in group["params"]]
    seen = [_step(lambda: module(*_fresh(args), **_fresh(kwargs)), optimizer, trained) for _ in range(STEPS)]
    state = _read(module.state_dict())
    untouched.load_state_dict(_saved_and_loaded(module.state_dict()))
    again = _read(untouched.state_dict())
    with torch.no_grad():
        used, used_again = _with_the_same_numbers(
            lambda: module(*_fresh(args), **_fresh(kwargs)), lambda: untouched(*_fresh(args), **_fresh(kwargs))
        )
    return {"seen": [seen, state], "saved": [state, used], "loaded": [again, used_again]}


def _train_with(case: OptimizerCase, model: torch.nn.Module, example: torch.Tensor) -> dict[str, Any]:
    """Trains a small model with an optimizer, saves both, and goes on with what was loaded."""
    untouched = copy.deepcopy(model)
    optimizer = case.make(_params(model), **case.options())
    seen = [_step_of(model, optimizer, example) for _ in range(STEPS)]
    state = _read(model.state_dict())
    untouched.load_state_dict(_saved_and_loaded(model.state_dict()))
    other = case.make(_params(untouched), **case.options())
    other.load_state_dict(_saved_and_loaded(optimizer.state_dict()))
    kept, loaded = (_step_of(m, o, example) for m, o in ((model, optimizer), (untouched, other)))
    return {
        "seen": [seen, state, _read(optimizer.state_dict()["state"])],
        "saved": [kept, _read(model.state_dict()), _read(optimizer.state_dict()["state"])],
        "loaded": [loaded, _read(untouched.state_dict()), _read(other.state_dict()["state"])],
    }


def _step_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer, example: torch.Tensor) -> Any:
    """One step; the loss is evaluated in a closure, which some optimizers need."""
    losses = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = _loss(model(example))
        losses.append(loss.detach())
        loss.backward()
        return loss

    optimizer.step(closure)  # type: ignore[arg-type]
    return _read([losses, [p.grad for p in _params(model)]])


def _step(forward: Callable[[], Any], optimizer: torch.optim.Optimizer, trained: Sequence[torch.Tensor]) -> Any:
    optimizer.zero_grad()
    result = forward()
    loss = _loss(result)
    if not loss.requires_grad:
        return _read([result, loss])
    loss.backward()
    read = _read([result, loss, [t.grad for t in trained]])
    optimizer.step()
    return read


def _loss(result: Any) -> torch.Tensor:
    """The mean of all outputs with different weights: a plain sum has no gradient behind a normalization."""
    outputs = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.is_floating_point()]
    total = torch.zeros(())
    for output in outputs:
        weights = torch.cos(torch.arange(output.numel(), dtype=torch.float32)).reshape(output.shape) + 0.5
        total = total.to(output.device) + (output.float() * weights.to(output.device)).sum() / max(1, output.numel())
    return total


def _params(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    return list(model.parameters())


def _leaf(value: Any, device: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    moved = value.detach().to(device, copy=True)
    return moved.requires_grad_(value.requires_grad)


def _fresh(value: Any) -> Any:
    """Copies of tensors, which a module that works in place may change."""
    return tree_map(lambda t: t.clone() if isinstance(t, torch.Tensor) else t, value)


def _read(value: Any) -> Any:
    """The same result on the CPU, as it is now."""
    return tree_map(lambda t: to_host(t) if isinstance(t, torch.Tensor) else t, value)


def _saved_and_loaded(state: Mapping[str, Any]) -> Any:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def _with_the_same_numbers(*calls: Callable[[], Any]) -> Iterator[Any]:
    """The results of calls that each begin with the random streams as they are now."""
    device, host = torch.mps.get_rng_state(), torch.get_rng_state()
    for call in calls:
        torch.mps.set_rng_state(device)
        torch.set_rng_state(host)
        yield _read(call())


def try_all(cases: Iterable[Case]) -> Iterator[Outcome]:
    """Tries cases one by one."""
    for case in cases:
        yield try_case(case)
