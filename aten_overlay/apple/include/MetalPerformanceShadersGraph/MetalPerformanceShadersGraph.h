// MPSGraph, as much as PyTorch's MPS backend uses. Part of porter's stand-in for Apple's frameworks.
#pragma once
#include <MetalPerformanceShadersGraph/MPSGraphTypes.h>
#include <MetalPerformanceShadersGraph/MPSGraphDescriptors.h>
#include <MetalPerformanceShadersGraph/MPSGraph.h>
#include <MetalPerformanceShadersGraph/MPSGraphArithmeticOps.h>
#include <MetalPerformanceShadersGraph/MPSGraphTensorOps.h>
#include <MetalPerformanceShadersGraph/MPSGraphReductionOps.h>
#include <MetalPerformanceShadersGraph/MPSGraphNetworkOps.h>
