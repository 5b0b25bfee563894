// Precompiled before a fork's host code: what nearly every file of it includes from the wheel and the frameworks.
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <ATen/Dispatch.h>
#include <ATen/NamedTensorUtils.h>
#include <ATen/Tensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorUtils.h>
#include <ATen/Utils.h>
#include <ATen/core/TensorBase.h>
#include <ATen/native/DispatchStub.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/library.h>

#include "numbers.h"
