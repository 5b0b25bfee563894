// Precompiled before what torchgen writes: what every registration includes.
#include "visible.h"

#include <ATen/Config.h>
#include <ATen/DeviceGuard.h>
#include <ATen/Dispatch.h>
#include <ATen/Tensor.h>
#include <ATen/Utils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/op_registration/adaption.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/ExclusivelyOwned.h>
#include <c10/util/Half.h>
#include <torch/library.h>
