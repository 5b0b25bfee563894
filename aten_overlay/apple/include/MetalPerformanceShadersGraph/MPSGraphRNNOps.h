#pragma once
#include <MetalPerformanceShadersGraph/MPSGraphNetworkOps.h>
