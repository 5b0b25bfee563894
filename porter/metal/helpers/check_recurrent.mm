// The steps, rows, states and directions of a recurrent layer, all of whose tensors have to go with each other.
static std::array<int64_t, 4> check_recurrent(const Tensor& input,
                                              TensorList hx,
                                              TensorList params,
                                              bool has_biases,
                                              int64_t num_layers,
                                              bool bidirectional,
                                              bool batch_first) {
  TORCH_CHECK(input.dim() == 3 && hx.size() == 2 && hx[0].dim() == 3,
              "Expected an input of 3 dimensions, and two tensors of states with as many");
  const int64_t directions = bidirectional ? 2 : 1, states = hx[0].size(2), parts = has_biases ? 4 : 2;
  const int64_t steps = input.size(batch_first ? 1 : 0), rows = input.size(batch_first ? 0 : 1);
  TORCH_CHECK(steps > 0, "Expected sequence length to be larger than 0 in RNN");
  const auto check = [&](const Tensor& tensor, IntArrayRef expected) {
    TORCH_CHECK(isFloatingType(input.scalar_type()) && tensor.scalar_type() == input.scalar_type(),
                "Expected all tensors of a recurrent layer to have one floating dtype, but got ",
                input.scalar_type(),
                " and ",
                tensor.scalar_type());
    TORCH_CHECK(tensor.sizes() == expected, "Expected a tensor of ", expected, ", but got ", tensor.sizes());
  };
  for (const auto& tensor : hx) {
    check(tensor, {num_layers * directions, rows, states});
  }
  TORCH_CHECK(static_cast<int64_t>(params.size()) == num_layers * directions * parts,
              "Expected ",
              num_layers * directions * parts,
              " parameters, but got ",
              params.size());
  for (const auto i : c10::irange(static_cast<int64_t>(params.size()))) {
    const int64_t features = i < directions * parts ? input.size(2) : directions * states;
    if (i % parts < 2) {
      check(params[i], {4 * states, i % parts == 0 ? features : states});
    } else {
      check(params[i], {4 * states});
    }
  }
  return {steps, rows, states, directions};
}
