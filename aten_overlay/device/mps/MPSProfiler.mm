// at::mps::Profiler: nothing is profiled, so every profile has the number 0. What is told of one is told all the same.
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSProfiler.h>

namespace at::mps {
namespace Profiler {

#ifdef PORTER_PROFILER_TRACES
MPSProfiler::MPSProfiler() : m_os_log_events(nullptr), m_os_log_intervals(nullptr) {}
#else
MPSProfiler::MPSProfiler() = default;
#endif

MPSProfiler::~MPSProfiler() = default;

uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, bool) {
  return 0;
}

uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, const TensorList&) {
  return 0;
}

void MPSProfiler::endProfileKernel(const void*, SyncType) {}

#ifdef PORTER_PROFILER_STREAMS
uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, bool, MPSStream*) {
  return 0;
}

uint64_t MPSProfiler::beginProfileKernel(const void*, const std::string&, const TensorList&, MPSStream*) {
  return 0;
}

void MPSProfiler::endProfileKernel(const void*, MPSStream*, SyncType) {}
#endif

#ifdef PORTER_PROFILER_TRACES
namespace {

// The times that were measured, in milliseconds: none where they are 0.
std::string print_times(double gpu, double scheduling) {
  std::ostringstream text;
  if (gpu != 0) {
    text << ", gpu=" << gpu << " ms";
  }
  if (scheduling != 0) {
    text << ", scheduling=" << scheduling << " ms";
  }
  return text.str();
}

}  // namespace

const std::string BaseInfo::toString(double gpu, double scheduling) const {
  return "id=" + std::to_string(profileId) + print_times(gpu, scheduling);
}

const std::string OperationInfo::toString(double gpu, double scheduling) const {
  return strKey + ": " + BaseInfo::toString(gpu, scheduling) + ", run=" + std::to_string(runCount);
}

const std::string CpuFbInfo::toString(double gpu, double scheduling) const {
  return opName + ": " + BaseInfo::toString(gpu, scheduling) + ", run=" + std::to_string(runCount) +
      ", copied=" + std::to_string(currentCopyOverhead) + " bytes";
}

const std::string CopyInfo::toString(double gpu, double scheduling) const {
  return srcStrKey + " --> " + dstStrKey + ": " + BaseInfo::toString(gpu, scheduling) +
      ", length=" + std::to_string(length) + " bytes";
}

// Device, element type and sizes, as the header says.
std::string BaseInfo::buildTensorString(const Tensor& tensor, bool with_id) {
  if (!tensor.defined()) {
    return "undefined";
  }
  std::ostringstream text;
  text << c10::DeviceTypeName(tensor.device().type());
  if (with_id && tensor.is_mps()) {
    text << "(buf#" << getIMPSAllocator()->getBufferId(tensor.storage().data()) << ')';
  }
  text << ':' << tensor.scalar_type() << tensor.sizes();
  return text.str();
}

std::string CopyInfo::buildTensorString(const void* buffer, const OptionalTensorRef tensor, bool with_id) {
  if (tensor.has_value()) {
    return BaseInfo::buildTensorString(*tensor, with_id);
  }
  return isStorageOnMPS(buffer, tensor) ? "MPS:buffer" : "CPU:buffer";
}

uint64_t MPSProfiler::beginProfileCopy(
    const void*, const void*, const OptionalTensorRef, const OptionalTensorRef, size_t, bool, bool) {
  return 0;
}

uint64_t MPSProfiler::beginProfileCPUFallback(const std::string&, const TensorList&) {
  return 0;
}

#ifdef PORTER_PROFILER_STREAMS
uint64_t MPSProfiler::beginProfileCopy(
    const void*, const void*, const OptionalTensorRef, const OptionalTensorRef, size_t, MPSStream*, bool, bool) {
  return 0;
}

void MPSProfiler::beginProfileGPUInterval(const void*, MPSStream*) {}
void MPSProfiler::endProfileCopy(uint64_t, SyncType, MPSStream*) {}
#endif

void MPSProfiler::StartTrace(const std::string& modes, bool wait) {
  at::detail::getMPSHooks().profilerStartTrace(modes, wait);
}

void MPSProfiler::StopTrace() {
  at::detail::getMPSHooks().profilerStopTrace();
}

void MPSProfiler::beginProfileGPUInterval(const void*) {}
void MPSProfiler::endProfileCopy(uint64_t, SyncType) {}
void MPSProfiler::endProfileCPUFallback(const std::string&) {}

bool MPSProfiler::isCaptureEnabled() const {
  return false;
}

bool MPSProfiler::isCapturing() const {
  return false;
}

void MPSProfiler::startCapture(const std::string&, MPSStream*) {}
void MPSProfiler::stopCapture(MPSStream*) {}
#endif

}  // namespace Profiler

Profiler::MPSProfiler& getMPSProfiler() {
  static auto* profiler = new Profiler::MPSProfiler();
  return *profiler;
}

}  // namespace at::mps
