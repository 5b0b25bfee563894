// at::mps::MPSGuardImpl, which host code that includes its header registers in the place of the device's own guard: what it
// does itself follows the streams of at::mps, and the rest is asked of that guard.
#ifdef PORTER_GUARD
#include <c10/core/impl/DeviceGuardImplInterface.h>

// The header registers the guard wherever it is included. The device has registered its own.
#undef C10_REGISTER_GUARD_IMPL
#define C10_REGISTER_GUARD_IMPL(...)
#include <ATen/mps/MPSGuardImpl.h>

#include "device/device.h"

namespace at::mps {

// An event is made when it is recorded.
void MPSGuardImpl::createEvent(mpsEvent_t*, const EventFlag) const {}

void MPSGuardImpl::destroyEvent(void* event, const DeviceIndex index) const noexcept {
  porter::device_guard().destroyEvent(event, index);
}

void MPSGuardImpl::record(void** event, const Stream& stream, const DeviceIndex index, const EventFlag flag) const {
  porter::device_guard().record(event, stream, index, flag);
}

void MPSGuardImpl::block(void* event, const Stream& stream) const {
  porter::device_guard().block(event, stream);
}

bool MPSGuardImpl::queryEvent(void* event) const {
  return porter::device_guard().queryEvent(event);
}

void MPSGuardImpl::synchronizeEvent(void* event) const {
  porter::device_guard().synchronizeEvent(event);
}

double MPSGuardImpl::elapsedTime(void* start, void* end, const DeviceIndex index) const {
  return porter::device_guard().elapsedTime(start, end, index);
}

void MPSGuardImpl::synchronizeDevice(const DeviceIndex index) const {
  porter::device_guard().synchronizeDevice(index);
}

#ifdef PORTER_DATA_STREAMS
void MPSGuardImpl::recordDataPtrOnStream(const c10::DataPtr& data, const Stream& stream) const {
  porter::device_guard().recordDataPtrOnStream(data, stream);
}
#endif

}  // namespace at::mps
#endif
