// Computes the output and the last states and cells of LSTM layers, with what their gradients are computed from: what
// goes into the gates, the cells, and the inputs of all layers but the first.
static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> run_lstm(const std::string& kernel,
                                                                           const Tensor& input,
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
  // Sums and cells of 16 bits would lose digits from step to step: all is computed in floats
  auto layer_input = (batch_first ? input.transpose(0, 1) : input).to(kFloat);
  const auto first_states = hx[0].to(kFloat).contiguous(), first_cells = hx[1].to(kFloat).contiguous();
  const auto last_states = first_states.new_empty(first_states.sizes());
  const auto last_cells = first_cells.new_empty(first_cells.sizes());
  const auto all_gates = layer_input.new_empty({num_layers, steps, rows, directions * 4 * states});
  const auto all_cells = layer_input.new_empty({num_layers, steps, rows, directions * states});
  std::vector<Tensor> layer_inputs;
  MPSStream* stream = getCurrentMPSStream();
  for (const auto layer : c10::irange(num_layers)) {
    const auto gates = all_gates[layer], cells = all_cells[layer];
    const auto output = cells.new_empty(cells.sizes());
    std::array<Tensor, 2> weights;
    for (const auto direction : c10::irange(directions)) {
      const auto own = params.slice((layer * directions + direction) * (has_biases ? 4 : 2));
      const auto product = gates.flatten(0, 1).narrow(1, direction * 4 * states, 4 * states);
      const auto bias = has_biases ? own[2].to(kFloat).add(own[3]) : Tensor();
      multiply_matrices(kernel, product, layer_input.flatten(0, 1), own[0].to(kFloat).t(), bias);
      weights[direction] = own[1].to(kFloat).contiguous();
    }
    const auto old_states = first_states.narrow(0, layer * directions, directions);
    const auto old_cells = first_cells.narrow(0, layer * directions, directions);
    const auto type = canUse32BitIndexMath(gates) && canUse32BitIndexMath(weights[0]) ? "_float_int" : "_float_long";
    if (output.numel() > 0) {
      dispatch_sync_with_rethrow(stream->queue(), ^() {
        @autoreleasepool {
          auto computeEncoder = stream->commandEncoder();
          auto PSO = lib.getPipelineStateForFunc(kernel + "_step" + type);
          // this function call is a no-op if MPS Profiler is not enabled
          getMPSProfiler().beginProfileKernel(PSO, kernel + "_step", {gates});
          [computeEncoder setComputePipelineState:PSO];
          for (int64_t step = 0; step < steps; step++) {
            mtl_setArgs(computeEncoder,
                        output,
                        cells,
                        gates,
                        old_states,
                        old_cells,
                        weights[0],
                        weights[directions - 1],
                        sizes,
                        step);
            [computeEncoder dispatchThreads:MTLSizeMake(32, rows * states, directions)
                      threadsPerThreadgroup:MTLSizeMake(32, 8, 1)];
          }
          getMPSProfiler().endProfileKernel(PSO);
        }
      });
    }
    for (const auto direction : c10::irange(directions)) {
      const int64_t last = direction == 0 ? steps - 1 : 0, at = layer * directions + direction;
      last_states[at].copy_(output[last].narrow(1, direction * states, states));
      last_cells[at].copy_(cells[last].narrow(1, direction * states, states));
    }
    const bool is_dropped = dropout > 0 && train && layer + 1 < num_layers;
    layer_input = is_dropped ? at::dropout(output, dropout, train) : output;
    if (layer + 1 < num_layers) {
      layer_inputs.push_back(layer_input);
    }
  }
  const auto kept_inputs = layer_inputs.empty() ? input.new_empty({1}) : at::stack(layer_inputs);
  return {(batch_first ? layer_input.transpose(0, 1) : layer_input).to(dtype),
          last_states.to(dtype),
          last_cells.to(dtype),
          all_gates.to(dtype),
          all_cells.to(dtype),
          kept_inputs.to(dtype)};
}
