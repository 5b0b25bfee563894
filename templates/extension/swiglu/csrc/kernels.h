// The kernels of $name, compiled when the first of them is called.
#pragma once

static constexpr const char* kKernels = R"METAL(
#include <metal_stdlib>
using namespace metal;

static float sigmoid(float x) {
  return 1.0f / (1.0f + precise::exp(-x));
}

template <typename T>
kernel void swiglu(device const T* gate [[buffer(0)]],
                   device const T* up [[buffer(1)]],
                   device T* out [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  const float x = float(gate[i]);
  out[i] = T(x * sigmoid(x) * float(up[i]));
}

template <typename T>
kernel void swiglu_backward(device const T* grad [[buffer(0)]],
                            device const T* gate [[buffer(1)]],
                            device const T* up [[buffer(2)]],
                            device T* grad_gate [[buffer(3)]],
                            device T* grad_up [[buffer(4)]],
                            uint i [[thread_position_in_grid]]) {
  const float g = float(grad[i]);
  const float x = float(gate[i]);
  const float s = sigmoid(x);
  grad_gate[i] = T(g * float(up[i]) * s * (1.0f + x * (1.0f - s)));
  grad_up[i] = T(g * x * s);
}

#define FOR_TYPE(T)                                                                                             \
  template [[host_name("swiglu_" #T)]] kernel void swiglu<T>(device const T*, device const T*, device T*, uint); \
  template [[host_name("swiglu_backward_" #T)]] kernel void swiglu_backward<T>(                                 \
      device const T*, device const T*, device const T*, device T*, device T*, uint);

FOR_TYPE(float)
FOR_TYPE(half)
FOR_TYPE(bfloat)
)METAL";
