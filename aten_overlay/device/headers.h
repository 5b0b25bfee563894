// Precompiled before every source of the stand-in device.
#include <ATen/core/Tensor.h>
#include <torch/library.h>
