// at::mps::Profiler: nothing is profiled, so every profile has the number 0.
#include <ATen/mps/MPSProfiler.h>

namespace at::mps {
namespace Profiler {

MPSProfiler::MPSProfiler() : m_os_log_events(nullptr), m_os_log_intervals(nullptr) {}

MPSProfiler::~MPSProfiler() = default;

const std::string BaseInfo::toString(double, double) const {
  return "";
}

std::string BaseInfo::buildTensorString(const Tensor&, bool) {
  return "";
}

uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, bool) {
  return 0;
}

uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, const TensorList&) {
  return 0;
}

uint64_t MPSProfiler::beginProfileCopy(
    const void*, const void*, const OptionalTensorRef, const OptionalTensorRef, size_t, bool, bool) {
  return 0;
}

uint64_t MPSProfiler::beginProfileCPUFallback(const std::string&, const TensorList&) {
  return 0;
}

void MPSProfiler::beginProfileGPUInterval(const void*) {}
void MPSProfiler::endProfileCopy(uint64_t, SyncType) {}
void MPSProfiler::endProfileKernel(const void*, SyncType) {}
void MPSProfiler::endProfileCPUFallback(const std::string&) {}

bool MPSProfiler::isCaptureEnabled() const {
  return false;
}

bool MPSProfiler::isCapturing() const {
  return false;
}

void MPSProfiler::startCapture(const std::string&, MPSStream*) {}
void MPSProfiler::stopCapture(MPSStream*) {}

}  // namespace Profiler

Profiler::MPSProfiler& getMPSProfiler() {
  static auto* profiler = new Profiler::MPSProfiler();
  return *profiler;
}

}  // namespace at::mps
