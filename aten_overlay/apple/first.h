// What most of the stand-in's sources read, precompiled: to read it took half the time of each.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
#ifdef __OBJC__
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>
#endif
