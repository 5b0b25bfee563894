// Traces streams: host code reports a kernel before and after it runs.
#pragma once
#include <ATen/Tensor.h>
#include <ATen/mps/MPSStream.h>
#include <string>

namespace at::mps {
namespace Profiler {

class MPSProfiler {
 public:
  MPSProfiler();
  ~MPSProfiler();

  // `handle` is the graph, or the pipeline state of a kernel. Without a stream,
  // it is the default one.
  uint64_t beginProfileKernel(
      const void* handle,
      const std::string& key,
      bool isGraph,
      MPSStream* stream);
  uint64_t beginProfileKernel(
      const void* handle,
      const std::string& key,
      bool isGraph);
  uint64_t beginProfileKernel(
      const void* handle,
      const std::string& kernelName,
      const TensorList& tensors,
      MPSStream* stream);
  uint64_t beginProfileKernel(
      const void* handle,
      const std::string& kernelName,
      const TensorList& tensors);
  void endProfileKernel(
      const void* handle,
      MPSStream* stream,
      SyncType syncType = SyncType::NONE);
  void endProfileKernel(const void* handle, SyncType syncType = SyncType::NONE);
};

} // namespace Profiler

Profiler::MPSProfiler& getMPSProfiler();

} // namespace at::mps
