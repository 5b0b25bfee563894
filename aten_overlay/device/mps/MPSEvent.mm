// at::mps::MPSEvent over the stand-in's shared events, and the pool that lends them. In headers up to 2.14 an event stays with
// its stream and tells its time through a listener; later ones name a stream for each wait and time the command buffer.
#ifdef PORTER_EVENTS
#include <ATen/mps/MPSEvent.h>

namespace at::mps {

MPSEvent::MPSEvent(id_t id, MPSStream* stream, bool timed)
    : m_id(id), m_enable_timing(timed), m_stream(stream), m_event([stream->device() newSharedEvent]) {}

// Runs `work` on the stream's queue, unless the caller is on it.
static void run_on(MPSStream* stream, bool enter, void (^work)()) {
  if (enter) {
    dispatch_sync(stream->queue(), ^() {
      @autoreleasepool {
        work();
      }
    });
  } else {
    work();
  }
}

void MPSEvent::record(bool needs_lock, bool commits) {
  run_on(m_stream, needs_lock, ^() {
    recordLocked(commits);
  });
}

#ifdef PORTER_EVENT_STREAMS

MPSEvent::~MPSEvent() {
  [m_event release];
}

void MPSEvent::recordLocked(bool commits) {
  TORCH_CHECK(commits || !m_enable_timing, "an event with timing is recorded with a commit");
  m_stream->endKernelCoalescing();
  MPSCommandBuffer_t buffer = m_stream->commandBuffer();
  if (m_enable_timing) {
    std::unique_lock lock(m_cpu_sync_mutex);
    const uint64_t generation = ++m_timing_generation;
    lock.unlock();
    [buffer addCompletedHandler:^(id<MTLCommandBuffer> completed) {
      notifyCpuSync(generation, completed.GPUEndTime);
    }];
  }
  [buffer encodeSignalEvent:m_event value:++m_signalCounter];
  m_signal_stream = m_stream;
  m_recorded = true;
  if (commits) {
    m_stream->synchronize(SyncType::COMMIT);
  }
}

void MPSEvent::notifyCpuSync(uint64_t generation, double seconds) {
  std::lock_guard lock(m_cpu_sync_mutex);
  if (generation > m_completed_timing_generation) {
    m_completed_timing_generation = generation;
    m_completion_time = seconds;
  }
  m_cpu_sync_cv.notify_all();
}

// Nothing runs beside the host here, so a time that is not there yet never comes.
double MPSEvent::waitForTiming() {
  std::lock_guard lock(m_cpu_sync_mutex);
  TORCH_CHECK(m_completed_timing_generation == m_timing_generation, "PTR122: the work before an event has not completed");
  return m_completion_time;
}

bool MPSEvent::wait(bool needs_lock, bool commits, MPSStream* stream) {
  __block bool waits = false;
  MPSStream* waiting = stream ? stream : m_stream;
  run_on(waiting, needs_lock, ^() {
    waits = waitLocked(commits, waiting);
  });
  return waits;
}

bool MPSEvent::waitLocked(bool commits, MPSStream* stream) {
  if (!m_recorded || query()) {
    return false;
  }
  stream->endKernelCoalescing();
  [stream->commandBuffer() encodeWaitForEvent:m_event value:m_signalCounter];
  if (commits) {
    stream->synchronize(SyncType::COMMIT);
  }
  return true;
}

bool MPSEvent::synchronize() {
  if (!m_recorded || query()) {
    return false;
  }
  return [m_event waitUntilSignaledValue:m_signalCounter timeoutMS:0];
}

bool MPSEvent::query() const {
  return m_recorded && m_event.signaledValue >= m_signalCounter;
}

// A signal that an earlier owner recorded on another stream may still come, and must not count for the next one.
void MPSEvent::reset(MPSStream* stream, bool timed) {
  if (m_signal_stream && m_signal_stream != stream) {
    [m_event release];
    m_event = [stream->device() newSharedEvent];
    m_signalCounter = 0;
    m_signal_stream = nullptr;
  }
  m_stream = stream;
  m_enable_timing = timed;
  m_recorded = false;
}

MPSEventPtrTarget::~MPSEventPtrTarget() {
  m_pool->returnEventToPool(m_event);
}

static MPSEventPtr lend(MPSEventPool* pool, MPSEvent* event) {
  return c10::make_intrusive<MPSEventPtrTarget>(event, pool);
}

void MPSEventPool::returnEventToPool(MPSEvent* event) {
  std::lock_guard lock(m_mutex);
  m_pool.emplace(event);
}

MPSEventPool::MPSEventPool(MPSStream* stream) : m_default_stream(stream) {}

void MPSEventPool::resetEvent(id_t id, MPSStream* stream, bool timed) {
  getInUseEvent(id)->reset(stream ? stream : m_default_stream, timed);
}

void MPSEventPool::waitForEvent(id_t id, bool commits, MPSStream* stream) {
  getInUseEvent(id)->wait(/*needsLock=*/true, commits, stream);
}

#else

MPSEvent::~MPSEvent() {
  [m_event release];
  [m_listener release];
}

void MPSEvent::recordLocked(bool commits) {
  m_stream->endKernelCoalescing();
  ++m_signalCounter;
  if (m_enable_timing) {
    {
      std::lock_guard lock(m_cpu_sync_mutex);
      m_cpu_sync_completed = false;
    }
    if (!m_listener) {
      m_listener = [MTLSharedEventListener new];
    }
  }
  [m_stream->commandBuffer() encodeSignalEvent:m_event value:m_signalCounter];
  if (m_enable_timing) {
    notifyLocked(^(id<MTLSharedEvent>, uint64_t) {
      m_completion_time = getTime();
      notifyCpuSync();
    });
  }
  if (commits) {
    m_stream->synchronize(SyncType::COMMIT);
  }
}

void MPSEvent::notifyCpuSync() {
  std::lock_guard lock(m_cpu_sync_mutex);
  m_cpu_sync_completed = true;
  m_cpu_sync_cv.notify_all();
}

// Nothing runs beside the host here, so a time that is not there yet never comes.
void MPSEvent::waitForCpuSync() {
  std::lock_guard lock(m_cpu_sync_mutex);
  TORCH_CHECK(m_cpu_sync_completed, "PTR122: the work before an event has not completed");
}

bool MPSEvent::notify(bool needs_lock, MTLSharedEventNotificationBlock block) {
  __block bool notifies = false;
  run_on(m_stream, needs_lock, ^() {
    notifies = notifyLocked(block);
  });
  return notifies;
}

bool MPSEvent::notifyLocked(MTLSharedEventNotificationBlock block) {
  if (m_signalCounter == 0) {
    return false;
  }
  [m_event notifyListener:m_listener atValue:m_signalCounter block:block];
  return true;
}

bool MPSEvent::wait(bool needs_lock, bool commits) {
  __block bool waits = false;
  run_on(m_stream, needs_lock, ^() {
    waits = waitLocked(commits);
  });
  return waits;
}

bool MPSEvent::waitLocked(bool commits) {
  if (query()) {
    return false;
  }
  m_stream->endKernelCoalescing();
  [m_stream->commandBuffer() encodeWaitForEvent:m_event value:m_signalCounter];
  if (commits) {
    m_stream->synchronize(SyncType::COMMIT);
  }
  return true;
}

bool MPSEvent::synchronize() {
  if (query()) {
    return false;
  }
  return [m_event waitUntilSignaledValue:m_signalCounter timeoutMS:0];
}

// An event that was never recorded has nothing to wait for.
bool MPSEvent::query() const {
  return m_event.signaledValue >= m_signalCounter;
}

void MPSEvent::reset(MPSStream* stream, bool timed) {
  if (stream != m_stream || m_signalCounter != 0) {
    [m_event release];
    m_event = [stream->device() newSharedEvent];
    m_signalCounter = 0;
  }
  m_stream = stream;
  m_enable_timing = timed;
  m_cpu_sync_completed = false;
  m_completion_time = 0;
}

static MPSEventPtr lend(const std::function<void(MPSEvent*)>& give_back, MPSEvent* event) {
  return {event, give_back};
}

MPSEventPool::MPSEventPool(MPSStream* stream)
    : m_default_stream(stream), m_default_deleter([this](MPSEvent* event) {
        std::lock_guard lock(m_mutex);
        m_pool.emplace(event);
      }) {}

void MPSEventPool::waitForEvent(id_t id, bool commits) {
  getInUseEvent(id)->wait(/*needsLock=*/true, commits);
}

#endif

MPSEventPool::~MPSEventPool() {
  emptyCache();
}

void MPSEventPool::emptyCache() {
  std::lock_guard lock(m_mutex);
  m_pool = {};
}

MPSEventPtr MPSEventPool::acquireEvent(bool timed, MPSStream* stream) {
  std::lock_guard lock(m_mutex);
  MPSStream* owner = stream ? stream : m_default_stream;
  std::unique_ptr<MPSEvent> event;
  if (m_pool.empty()) {
    event = std::make_unique<MPSEvent>(++m_event_counter, owner, timed);
  } else {
    event = std::move(m_pool.top());
    m_pool.pop();
    event->reset(owner, timed);
  }
#ifdef PORTER_EVENT_STREAMS
  return lend(this, event.release());
#else
  return lend(m_default_deleter, event.release());
#endif
}

id_t MPSEventPool::acquireEvent(bool timed) {
  std::lock_guard lock(m_mutex);
  MPSEventPtr event = acquireEvent(timed, nullptr);
  const id_t id = event->getID();
  m_in_use_events.emplace(id, std::move(event));
  return id;
}

void MPSEventPool::releaseEvent(id_t id) {
  std::lock_guard lock(m_mutex);
  TORCH_CHECK(m_in_use_events.erase(id) != 0, "Invalid Event ID: ", id);
}

void MPSEventPool::recordEvent(id_t id, bool commits) {
  getInUseEvent(id)->record(/*needsLock=*/true, commits);
}

void MPSEventPool::synchronizeEvent(id_t id) {
  getInUseEvent(id)->synchronize();
}

bool MPSEventPool::queryEvent(id_t id) {
  return getInUseEvent(id)->query();
}

double MPSEventPool::elapsedTime(id_t start_id, id_t end_id) {
  std::lock_guard lock(m_mutex);
  MPSEvent* start = getInUseEvent(start_id);
  MPSEvent* end = getInUseEvent(end_id);
#ifdef PORTER_EVENT_STREAMS
  TORCH_CHECK(start->isTimingEnabled() && end->isTimingEnabled(),
              "Events were not created with argument 'enable_timing=True'");
  TORCH_CHECK(start->isRecorded() && end->isRecorded(), "Both events must be recorded before calculating elapsed time");
  start->synchronize();
  end->synchronize();
  const double milliseconds = (end->waitForTiming() - start->waitForTiming()) * 1e3;
#else
  start->synchronize();
  end->synchronize();
  TORCH_CHECK(start->getCompletionTime() != 0 && end->getCompletionTime() != 0,
              "Events were not created with argument 'enable_timing=True', or were not recorded");
  const double milliseconds =
      (static_cast<double>(end->getCompletionTime()) - static_cast<double>(start->getCompletionTime())) * 1e-6;
#endif
  TORCH_CHECK(milliseconds >= 0, "End event ", end_id, " was not recorded after start event ", start_id);
  return milliseconds;
}

MPSEvent* MPSEventPool::getInUseEvent(id_t id, bool locked) {
  std::unique_lock lock(m_mutex, std::defer_lock);
  if (locked) {
    lock.lock();
  }
  const auto in_use = m_in_use_events.find(id);
  TORCH_CHECK(in_use != m_in_use_events.end(), "Invalid Event ID: ", id);
  return in_use->second.get()
#ifdef PORTER_EVENT_STREAMS
      ->get()
#endif
      ;
}

std::shared_ptr<MPSEventPool> getMPSEventPool() {
  static const auto pool = std::make_shared<MPSEventPool>(getDefaultMPSStream());
  return pool;
}

}  // namespace at::mps
#endif
