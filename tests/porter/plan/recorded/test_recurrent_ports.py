"""The ports of layers of long short-term memory and of their gradients, which share kernels and helpers of host code."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from expecttest import assert_expected_inline

from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.layout import KERNELS, NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import AnyForm, FormProgram
from porter.metal.forms.recurrent import Recurrent, RecurrentGradients
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

FLAGS = "bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
ROWS = f"""
- func: remembered(Tensor input, Tensor[] hx, Tensor[] params, {FLAGS}) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)
  dispatch:
    MPS: remembered_mps

- func: remembered_backward(Tensor? grad_y, Tensor? grad_hy, Tensor? grad_cy, Tensor z_state, Tensor cell_state_fwd, Tensor input, Tensor layersOutputs, Tensor[] hx, Tensor[] params, {FLAGS}) -> (Tensor, Tensor[], Tensor[])
  dispatch:
    MPS: remembered_backward_mps
"""
GIVEN = "bool has_biases, int64_t num_layers, double dropout_p, bool train, bool bidirectional, bool batch_first"
HOST = f"""#include <ATen/native/mps/OperationUtils.h>
#import <MetalPerformanceShadersGraph/MPSGraphRNNOps.h>

namespace at::native {{

static std::vector<long long> getTensorShape(MPSGraphTensor* mpsTensor) {{
  return list(mpsTensor.shape);
}}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> remembered_mps(const Tensor& input, TensorList hx, TensorList params, {GIVEN}) {{
  using namespace mps;
  if (hx[0].size(2) != hx[1].size(2)) {{
    TORCH_CHECK(false, "LSTM with projections is not currently supported with MPS.");
  }}
  std::vector<Tensor> kernel_weights;
  for (const auto i : c10::irange(num_layers)) {{
    kernel_weights.push_back(params[i]);
  }}
  MPSStream* stream = getCurrentMPSStream();
  @autoreleasepool {{
    auto graph = makeGraph(kernel_weights);
    Tensor output = at::empty(getTensorShape(graph->output), input.options());
    Placeholder outputPlaceholder = Placeholder(graph->output, output);
    runMPSGraph(stream, graph, feeds, results);
    return std::make_tuple(output, hy, cy, zState, cellStateFwd, layerOutputs);
  }}
}}

std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>> remembered_backward_mps(const std::optional<Tensor>& grad_y_opt, const std::optional<Tensor>& grad_hy_opt, const std::optional<Tensor>& grad_cy_opt, const Tensor& z_state, const Tensor& cell_state_fwd, const Tensor& input, const Tensor& layersOutputs, TensorList hx, TensorList params, {GIVEN}) {{
  using namespace mps;
  const Tensor& grad_y_r = grad_y_opt.value_or(Tensor());
  const auto grad_y = grad_y_r.defined() ? grad_y_r : at::zeros({{1}}, input.options());
  std::vector<Tensor> weights;
  MPSStream* stream = getCurrentMPSStream();
  @autoreleasepool {{
    auto graph = makeGraph(grad_y);
    runMPSGraph(stream, graph, feeds, results);
    return std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>>(output_out, grad_hx, weights);
  }}
}}

}} // namespace at::native
"""


def _give(program: FormProgram, row: ServedFunction) -> FormProgram:
    return program


def plan(path: Path, operators: Sequence[str]) -> tuple[str, str]:
    """The kernels and the host code after the ports of some operators, one after the other."""
    copy = fork.copy_fork(path)
    (copy.root / OPERATIONS / "Remembers.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    forms: dict[str, AnyForm] = {"remembered": Recurrent(), "remembered_backward": RecurrentGradients()}
    for operator in operators:
        program = FormProgram(operator, forms[operator])
        planned = plan_operator(Checkout(copy.root, "named"), operator, programs=partial(_give, program))
        for file, text in planned.changes.apply().items():
            (copy.root / file).write_text(text)
    return (copy.root / KERNELS / "Remembers.metal").read_text(), (copy.root / OPERATIONS / "Remembers.mm").read_text()


def test_the_graph_goes_with_what_served_it(tmp_path: Path) -> None:
    _, host = plan(tmp_path, ["remembered", "remembered_backward"])
    assert_expected_inline(
        host[host.index("\nstd::tuple<Tensor, Tensor, Tensor") :],
        """\

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> remembered_mps(const Tensor& input,
                                                                          TensorList hx,
                                                                          TensorList params,
                                                                          bool has_biases,
                                                                          int64_t num_layers,
                                                                          double dropout_p,
                                                                          bool train,
                                                                          bool bidirectional,
                                                                          bool batch_first) {
  using namespace mps;
  if (hx[0].size(2) != hx[1].size(2)) {
    TORCH_CHECK(false, "LSTM with projections is not currently supported with MPS.");
  }
  return run_lstm(
      "remembered", input, hx, params, has_biases, num_layers, dropout_p, train, bidirectional, batch_first);
}

std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>> remembered_backward_mps(
    const std::optional<Tensor>& grad_y_opt,
    const std::optional<Tensor>& grad_hy_opt,
    const std::optional<Tensor>& grad_cy_opt,
    const Tensor& z_state,
    const Tensor& cell_state_fwd,
    const Tensor& input,
    const Tensor& layersOutputs,
    TensorList hx,
    TensorList params,
    bool has_biases,
    int64_t num_layers,
    double dropout_p,
    bool train,
    bool bidirectional,
    bool batch_first) {
  using namespace mps;
  return run_lstm_gradients("remembered",
                            grad_y_opt,
                            grad_hy_opt,
                            grad_cy_opt,
                            z_state,
                            cell_state_fwd,
                            input,
                            layersOutputs,
                            hx,
                            params,
                            has_biases,
                            num_layers,
                            dropout_p,
                            train,
                            bidirectional,
                            batch_first);
}

} // namespace at::native
""",
    )


def test_both_share_kernels_and_helpers(tmp_path: Path) -> None:
    """In either order, each is there once, before its first use."""
    for at, order in enumerate((["remembered", "remembered_backward"], ["remembered_backward", "remembered"])):
        kernels, host = plan(tmp_path / str(at), order)
        assert kernels.count("kernel void remembered") == 5 and kernels.count("inline float logistic(") == 1
        places = [
            host.index(f" {name}(")
            for name in ("check_recurrent", "multiply_matrices", "run_lstm", "run_lstm_gradients")
        ]
        assert places[:2] == sorted(places[:2]) and max(places[:2]) < min(places[2:])
        assert all(host.count(f"> {name}(") == 1 for name in ("run_lstm", "run_lstm_gradients"))
