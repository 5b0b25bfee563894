"""Whether an operator draws by weights is found from the random numbers that its graphs drew."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import GraphRun, Node, RecordedGraph
from porter.core.dtypes import FLOAT
from porter.metal.forms.categorical import Categorical
from porter.recording.calls import OpCall
from porter.recording.forms.order import find_categorical
from porter.recording.runs import RecordedRun

OPERATOR = torch.ops.aten.multinomial.default


def list_calls(shift: int = 0, graphs: int = 1) -> Iterator[RecordedRun]:
    """Calls whose graph drew what `read_uniform` gives, as far as they run one graph."""
    for at, shape in enumerate(((7,), (3, 5), (2, 9), (4,), (5, 3), (1, 6))):
        weights = torch.rand(shape, generator=torch.Generator().manual_seed(at)) + 0.1
        points = draw(at, shape)
        ends = weights.double().cumsum(-1).reshape(-1, shape[-1])
        drawn = torch.searchsorted(ends, points.double() * ends[:, -1:], right=True)
        result = (drawn.reshape(*shape[:-1], -1) + shift) % shape[-1]
        node = Node("randomTensorWithShape:descriptor:stateTensor", (), (points,), (points.dtype,))
        run = GraphRun(RecordedGraph([node]), {}, {Ref(0, 0): points}, {})
        arguments = {"self": weights, "num_samples": 20, "replacement": True, "generator": None}
        yield RecordedRun(OpCall(OPERATOR, arguments), {"self": weights}, (run,) * graphs, (result,), False)


def draw(seed: int, shape: tuple[int, ...]) -> torch.Tensor:
    rows = shape[0] if len(shape) > 1 else 1
    return torch.rand((rows, 20), generator=torch.Generator().manual_seed(seed + 100))


def test_draws_are_found() -> None:
    assert find_categorical(list(list_calls())) == Categorical("self", "generator", (FLOAT,))
    assert find_categorical(list(list_calls(shift=1))) is None


def test_calls_of_other_operators_say_nothing() -> None:
    """Those that run several graphs leave what they compute to these."""
    assert find_categorical([*list_calls(), *list_calls(shift=1, graphs=2)]) is not None
    assert find_categorical(list(list_calls(graphs=2))) is None


def test_what_is_printed() -> None:
    first, second = Categorical("self", "generator").describe()
    assert first == "result[n, s] = the first i with sum over j <= i of self[n, j] > u * sum over j of all"
    assert second == "for a uniform random number u of generator, another one for each element"
