// Metal Performance Shaders, as much as PyTorch's MPS backend uses. Part of porter's stand-in for Apple's frameworks.
#pragma once
#include <MetalPerformanceShaders/MPSTypes.h>
#include <MetalPerformanceShaders/MPSNDArray.h>
#include <MetalPerformanceShaders/MPSMatrix.h>
