// The hooks through which ATen and torch._C._mps_* reach the device, and the events behind torch.mps.Event.
#include "device.h"
#include "memory/memory.h"
#include "stream.h"

#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSGeneratorImpl.h>
#include <c10/core/GeneratorImpl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

namespace porter {
namespace {

using Clock = std::chrono::steady_clock;

// Events by number, with the moment each was last recorded.
class Events {
 public:
  uint32_t acquire(bool timed) {
    std::lock_guard<std::mutex> lock(mutex_);
    events_[++last_] = {timed, std::nullopt};
    return last_;
  }
  void release(uint32_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    events_.erase(id);
  }
  void record(uint32_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    at(id).recorded = Clock::now();
  }
  void check(uint32_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    at(id);
  }
  bool recorded(uint32_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    return at(id).recorded.has_value();
  }
  double elapsed(uint32_t start, uint32_t end) {
    std::lock_guard<std::mutex> lock(mutex_);
    const Event &first = at(start), &second = at(end);
    TORCH_CHECK(first.timed && second.timed, "Events were not created with argument 'enable_timing=True'");
    TORCH_CHECK(first.recorded && second.recorded, "Events were not recorded before their elapsed time was asked for");
    TORCH_CHECK(*second.recorded >= *first.recorded, "End event ", end, " was not recorded after start event ", start);
    return std::chrono::duration<double, std::milli>(*second.recorded - *first.recorded).count();
  }

 private:
  struct Event {
    bool timed = false;
    std::optional<Clock::time_point> recorded;
  };
  Event& at(uint32_t id) {
    auto found = events_.find(id);
    TORCH_CHECK(found != events_.end(), "Invalid Event ID ", id);
    return found->second;
  }

  std::mutex mutex_;
  std::map<uint32_t, Event> events_;
  uint32_t last_ = 0;
};

Events& events() {
  static auto* instance = new Events();
  return *instance;
}

const porter_streams& require_streams() {
  const auto* streams = loaded_streams();
  TORCH_CHECK(streams, "PTR250: this process has the mps device without Apple's frameworks, and so no command buffer; run "
              "the program with python -m aten_overlay, or call aten_overlay.start_frameworks() first");
  return *streams;
}

// The state of torch.mps.profiler: what it is asked for is checked as on Apple, and there is nowhere to write it.
class Tracing {
 public:
  void start(const std::string& modes) {
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!started_, "Tracing Signposts is already enabled");
    std::stringstream words(modes);
    for (std::string mode; std::getline(words, mode, ',');) {
      TORCH_CHECK(mode.empty() || mode == "interval" || mode == "event", "Invalid Signpost trace mode: ", mode);
      started_ |= !mode.empty();
    }
    TORCH_WARN_ONCE("torch.mps.profiler writes OS signposts for Xcode Instruments. The stand-in device has neither, so "
        "nothing is recorded; torch.profiler records operators here too.");
  }
  void stop() {
    std::lock_guard<std::mutex> lock(mutex_);
    started_ = false;
  }

 private:
  std::mutex mutex_;
  bool started_ = false;
};

Tracing& tracing() {
  static auto* instance = new Tracing();
  return *instance;
}

struct Hooks final : at::MPSHooksInterface {
  void init() const override {}
  bool hasMPS() const override {
    return true;
  }
  bool isBuilt() const override {
    return true;
  }
  bool isAvailable() const override {
    return true;
  }
  bool isOnMacOSorNewer(unsigned, unsigned) const override {
    return true;
  }
  bool hasPrimaryContext(c10::DeviceIndex) const override {
    return true;
  }
  c10::DeviceIndex deviceCount() const override {
    return 1;
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return 0;
  }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override {
    return 0;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override {
    return 0;
  }
  c10::Device getDeviceFromPtr(void* address) const override {
    TORCH_CHECK(porter_is_device(address), "the address does not belong to the mps device");
    return kDevice;
  }

  c10::Allocator* getMPSDeviceAllocator() const override {
    return allocator();
  }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    return pinned_allocator();
  }
  bool isPinnedPtr(const void* address) const override {
    return find_pinned(address) != nullptr || porter_is_device(address);
  }
  void emptyCache() const override {
    porter_memory_trim();
  }
  size_t getCurrentAllocatedMemory() const override {
    return porter_memory_use().allocated;
  }
  size_t getDriverAllocatedMemory() const override {
    return porter_memory_use().reserved;
  }
  size_t getRecommendedMaxMemory() const override {
    return porter_memory_use().capacity;
  }
  size_t getMaxBufferLength() const override {
    return porter_memory_use().capacity / 2;
  }
  void setMemoryFraction(double ratio) const override {
    TORCH_CHECK(ratio >= 0.0 && ratio <= 2.0, "invalid value for memory fraction: ", ratio);
    const auto capacity = static_cast<double>(porter_memory_use().capacity);
    porter_memory_limit(static_cast<uint64_t>((ratio == 0.0 ? 1.0 : std::min(ratio, 1.0)) * capacity));
  }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::mps::detail::getDefaultMPSGenerator();
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override {
    return at::mps::detail::createMPSGenerator();
  }

  void deviceSynchronize() const override {
    device_guard().synchronizeDevice(0);
  }
  void commitStream() const override {
    require_streams().commit(porter_current_stream());
  }
  void* getCommandBuffer() const override {
    return require_streams().command_buffer(porter_current_stream());
  }
  void* getDispatchQueue() const override {
    return require_streams().dispatch_queue(porter_current_stream());
  }
  void profilerStartTrace(const std::string& modes, bool) const override {
    tracing().start(modes);
  }
  void profilerStopTrace() const override {
    tracing().stop();
  }

  uint32_t acquireEvent(bool timed) const override {
    return events().acquire(timed);
  }
  void releaseEvent(uint32_t id) const override {
    events().release(id);
  }
  void recordEvent(uint32_t id) const override {
    commit_stream(porter_current_stream());
    events().record(id);
  }
  void waitForEvent(uint32_t id) const override {
    events().check(id);
  }
  void synchronizeEvent(uint32_t id) const override {
    events().check(id);
  }
  bool queryEvent(uint32_t id) const override {
    return events().recorded(id);
  }
  double elapsedTimeOfEvents(uint32_t start, uint32_t end) const override {
    return events().elapsed(start, end);
  }
};

}  // namespace
}  // namespace porter

namespace at {
C10_REGISTER_TYPED_CLASS(MPSHooksRegistry, "MPSHooks", porter::Hooks);
}  // namespace at
