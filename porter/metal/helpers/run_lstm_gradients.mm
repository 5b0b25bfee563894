// Computes the gradients of LSTM layers: of their input, of the states and cells that they begin with, and of parameters.
static std::tuple<Tensor, std::vector<Tensor>, std::vector<Tensor>> run_lstm_gradients(
    const std::string& kernel,
    const std::optional<Tensor>& output_gradient,
    const std::optional<Tensor>& state_gradient,
    const std::optional<Tensor>& cell_gradient,
    const Tensor& all_gates_,
    const Tensor& all_cells_,
    const Tensor& input,
    const Tensor& layer_inputs,
    TensorList hx,
    TensorList params,
    bool has_biases,
    int64_t num_layers,
    double dropout,
    bool train,
    bool bidirectional,
    bool batch_first) {
  using namespace mps;
  const auto sizes = check_recurrent(input, hx, params, has_biases, num_layers, bidirectional, batch_first);
  const int64_t steps = sizes[0], rows = sizes[1], states = sizes[2], directions = sizes[3];
  const auto dtype = input.scalar_type();
  const auto order = [&](const Tensor& tensor) { return batch_first ? tensor.transpose(0, 1) : tensor; };
  const auto all_gates = all_gates_.to(kFloat).contiguous(), all_cells = all_cells_.to(kFloat).contiguous();
  const auto first_states = hx[0].to(kFloat).contiguous(), first_cells = hx[1].to(kFloat).contiguous();
  // They become those of the first ones
  const auto begin = [&](const std::optional<Tensor>& gradient) {
    const auto begun = first_states.new_zeros(first_states.sizes());
    return gradient && gradient->defined() ? begun.copy_(*gradient) : begun;
  };
  const auto state_gradients = begin(state_gradient), cell_gradients = begin(cell_gradient);
  auto gradient = all_cells.new_zeros({steps, rows, directions * states});
  if (output_gradient && output_gradient->defined()) {
    gradient.copy_(order(*output_gradient));
  }
  std::vector<Tensor> param_gradients(params.size());
  MPSStream* stream = getCurrentMPSStream();
  for (int64_t layer = num_layers - 1; layer >= 0; layer--) {
    const int64_t first = layer * directions, parts = has_biases ? 4 : 2;
    const auto layer_input = (layer > 0 ? layer_inputs[layer - 1] : order(input)).to(kFloat);
    const auto gates = all_gates[layer], cells = all_cells[layer];
    const auto gate_gradients = gates.new_empty(gates.sizes()), begun_states = cells.new_empty(cells.sizes());
    const auto old_states = first_states.narrow(0, first, directions);
    const auto old_cells = first_cells.narrow(0, first, directions);
    const auto new_state_gradients = state_gradients.narrow(0, first, directions);
    const auto new_cell_gradients = cell_gradients.narrow(0, first, directions);
    const auto weights = params[first * parts + 1].to(kFloat).contiguous();
    const auto reverse_weights = params[(first + directions - 1) * parts + 1].to(kFloat).contiguous();
    const auto type = canUse32BitIndexMath(gates) && canUse32BitIndexMath(weights) ? "_float_int" : "_float_long";
    const auto output_gradients = gradient;
    if (cells.numel() > 0) {
      dispatch_sync_with_rethrow(stream->queue(), ^() {
        @autoreleasepool {
          auto computeEncoder = stream->commandEncoder();
          auto statesPSO = lib.getPipelineStateForFunc(kernel + "_begun_states" + type);
          // this function call is a no-op if MPS Profiler is not enabled
          getMPSProfiler().beginProfileKernel(statesPSO, kernel + "_begun_states", {gates});
          [computeEncoder setComputePipelineState:statesPSO];
          mtl_setArgs(computeEncoder, begun_states, cells, gates, old_states, sizes);
          [computeEncoder dispatchThreads:MTLSizeMake(states, steps * rows, directions)
                    threadsPerThreadgroup:MTLSizeMake(32, 8, 1)];
          getMPSProfiler().endProfileKernel(statesPSO);
          auto stepPSO = lib.getPipelineStateForFunc(kernel + "_step_gradients" + type);
          getMPSProfiler().beginProfileKernel(stepPSO, kernel + "_step_gradients", {gates});
          [computeEncoder setComputePipelineState:stepPSO];
          for (int64_t done = 0; done <= steps; done++) {
            mtl_setArgs(computeEncoder,
                        gate_gradients,
                        new_state_gradients,
                        new_cell_gradients,
                        output_gradients,
                        cells,
                        gates,
                        old_cells,
                        weights,
                        reverse_weights,
                        sizes,
                        done);
            [computeEncoder dispatchThreadgroups:MTLSizeMake(at::ceil_div<int64_t>(states, 32), rows, directions)
                           threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
          }
          getMPSProfiler().endProfileKernel(stepPSO);
        }
      });
    }
    gradient = layer_input.new_empty(layer_input.sizes());
    const auto flat_input = layer_input.flatten(0, 1), flat_gradient = gradient.flatten(0, 1);
    for (const auto direction : c10::irange(directions)) {
      const auto own = gate_gradients.flatten(0, 1).narrow(1, direction * 4 * states, 4 * states);
      const auto own_states = begun_states.flatten(0, 1).narrow(1, direction * states, states);
      const int64_t at = (first + direction) * parts;
      for (const auto& [place, operand] : {std::make_pair(at, flat_input), std::make_pair(at + 1, own_states)}) {
        param_gradients[place] = own.new_empty({4 * states, operand.size(1)});
        multiply_matrices(kernel, param_gradients[place], own.t(), operand);
      }
      if (has_biases) {
        param_gradients[at + 2] = param_gradients[at + 3] = own.sum(0);
      }
      multiply_matrices(
          kernel, flat_gradient, own, params[at].to(kFloat), direction > 0 ? flat_gradient : Tensor());
    }
    if (layer > 0 && dropout > 0 && train) {
      // What was dropped is zero in the layer's input
      gradient.mul_(layer_input.ne(0)).mul_(dropout < 1 ? 1 / (1 - dropout) : 0);
    }
  }
  for (auto& each : param_gradients) {
    each = each.to(dtype);
  }
  return {order(gradient).to(dtype), {state_gradients.to(dtype), cell_gradients.to(dtype)}, param_gradients};
}
