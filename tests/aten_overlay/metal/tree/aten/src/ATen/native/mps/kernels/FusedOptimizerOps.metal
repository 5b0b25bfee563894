#include <metal_stdlib>
using namespace metal;

// Tensors by their addresses: those of the parameters, then those of their gradients.
struct Tensors {
  array<device float*, 32> parameters [[id(0)]];
  array<device float*, 32> gradients [[id(32)]];
};
struct Chunks {
  uint numels[32];
  uint tensor[32];
  uint chunk[32];
};

kernel void fused_sgd_float(
    constant Tensors& tensors [[buffer(0)]],
    constant Chunks& chunks [[buffer(1)]],
    constant float& weight_decay [[buffer(2)]],
    constant float& lr [[buffer(3)]],
    constant uchar& maximize [[buffer(4)]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint threads [[threads_per_threadgroup]]) {
  constexpr uint size = 65536;
  uint which = chunks.tensor[group], start = chunks.chunk[group] * size;
  device float* parameter = tensors.parameters[which];
  device float* gradient = tensors.gradients[which];
  for (uint i = start + thread_id; i < min(start + size, chunks.numels[which]); i += threads) {
    float slope = maximize ? -gradient[i] : gradient[i];
    parameter[i] -= lr * (slope + weight_decay * parameter[i]);
  }
}
