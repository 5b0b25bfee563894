// The device guard: one device, its streams, and events, before which the work of their stream is done.
#include "device.h"
#include "stream.h"

#include <chrono>

namespace porter {
namespace {

using Clock = std::chrono::steady_clock;

// The types that PyTorch names for Apple's GPUs: no 64-bit floats, nothing quantized.
constexpr c10::ScalarTypeIndex kTypes[] = {c10::kIndex_Bool, c10::kIndex_Byte, c10::kIndex_Char, c10::kIndex_Short,
    c10::kIndex_Int, c10::kIndex_Long, c10::kIndex_UInt16, c10::kIndex_UInt32, c10::kIndex_UInt64, c10::kIndex_Half,
    c10::kIndex_BFloat16, c10::kIndex_Float, c10::kIndex_ComplexHalf, c10::kIndex_ComplexFloat};

c10::Stream stream_of(int64_t number) {
  return c10::Stream(c10::Stream::UNSAFE, kDevice, number);
}

void wait_for(int64_t stream) {
  if (const auto* streams = loaded_streams()) {
    streams->synchronize(stream);
  }
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override {
    return kDevice.type();
  }
  c10::Device exchangeDevice(c10::Device) const override {
    return kDevice;
  }
  c10::Device getDevice() const override {
    return kDevice;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.is_mps() && device.index() <= 0, "there is one mps device, not ", device);
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override {
    return 1;
  }

  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability made;
    made.capability_data.capability_bits = 0;
    for (const c10::ScalarTypeIndex type : kTypes) {
      made.capability_data.capability_bits |= uint64_t{1} << type;
    }
    return made;
  }

  c10::Stream getStream(c10::Device) const override {
    return stream_of(porter_current_stream());
  }
  c10::Stream getDefaultStream(c10::Device) const override {
    return stream_of(0);
  }
  // In wheels whose guard asks no pool, torch has one stream alone.
  c10::Stream getNewStream(c10::Device, int) const override {
#ifdef PORTER_GUARD_POOL
    return stream_of(porter_next_stream());
#else
    return stream_of(0);
#endif
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewStream(device, 0);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const int64_t before = porter_current_stream();
    porter_set_current_stream(stream.id());
    return stream_of(before);
  }
  bool queryStream(const c10::Stream& stream) const override {
    commit_stream(stream.id());
    return true;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    wait_for(stream.id());
  }
  void synchronizeDevice(const c10::DeviceIndex) const override {
    if (const auto* streams = loaded_streams()) {
      streams->synchronize_all();
    }
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}  // see porter_memory_hold

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    commit_stream(stream.id());
    if (*event == nullptr) {
      *event = new Clock::time_point();
    }
    *static_cast<Clock::time_point*>(*event) = Clock::now();
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock::time_point*>(event);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override {
    return true;
  }
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
    const auto span = *static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(start);
    return std::chrono::duration<double, std::milli>(span).count();
  }
};

const c10::impl::DeviceGuardImplRegistrar registered(kDevice.type(), &device_guard());

}  // namespace

const c10::impl::DeviceGuardImplInterface& device_guard() {
  static const auto* guard = new Guard();
  return *guard;
}

}  // namespace porter
