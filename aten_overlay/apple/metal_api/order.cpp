#include "order.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <stdexcept>

namespace porter::metal::order {
namespace {

constexpr size_t kMostCommands = 1024;  // of those before: what comes later is compared with no older ones
constexpr size_t kMostTouches = 1 << 14;  // of one command, which is not watched where it has more

struct Command {
  Place place;
  uint64_t number;  // in its queue
  std::string name;
  std::vector<Touch> touches;
};

struct Log {
  std::mutex mutex;
  std::deque<Command> commands;
  Clock host;
  std::map<const void*, Clock> events;
  std::set<const void*> aliases, untracked;
};

std::atomic<bool> watching{false};
std::atomic<uint32_t> queues{0};
std::atomic<uint64_t> encoders{0};

Log& log() {
  static auto& value = *new Log;
  return value;
}

void join(Clock& into, const Clock& other) {
  for (const auto& [queue, number] : other) {
    into[queue] = std::max(into[queue], number);
  }
}

bool has_ended(const Clock& clock, const Command& command) {
  const auto known = clock.find(command.place.queue->number);
  return known != clock.end() && known->second >= command.number;
}

// Whether a barrier of their common encoder lies between an earlier command's access of a touch's buffers and a later place.
bool is_behind_barrier(const Place& earlier, const Touch& touch, const Place& later) {
  if (earlier.encoder != later.encoder) {
    return false;
  }
  if (later.barriers > earlier.barriers) {
    return true;
  }
  return std::any_of(touch.buffers.begin(), touch.buffers.end(), [&](const void* buffer) {
    const auto now = later.resource_barriers.find(buffer), then = earlier.resource_barriers.find(buffer);
    return now != later.resource_barriers.end() &&
        (then == earlier.resource_barriers.end() || then->second < now->second);
  });
}

// Metal itself orders two commands of a queue through a buffer that it tracks, but within a concurrent encoder.
bool is_tracked(const Log& log, const Place& earlier, const Touch& one, const Place& later, const Touch& other) {
  if (earlier.encoder == later.encoder && later.concurrent) {
    return false;
  }
  return std::any_of(one.buffers.begin(), one.buffers.end(), [&](const void* buffer) {
    return log.untracked.count(buffer) == 0 &&
        std::find(other.buffers.begin(), other.buffers.end(), buffer) != other.buffers.end();
  });
}

const char* verb(const Touch& touch) {
  return touch.writes ? (touch.reads ? "changes" : "writes") : "reads";
}

std::string place_of(const Touch& touch) {
  return touch.where.empty() ? "" : " at " + touch.where;
}

// The way in which Metal may run both at once, and what would order them.
std::string explain(const Place& earlier, const Place& later, bool same_buffer) {
  if (earlier.queue != later.queue) {
    return "on another stream's queue, with no event between";
  }
  if (earlier.encoder == later.encoder && later.concurrent) {
    return "earlier in the same concurrent encoder, with no memoryBarrier between";
  }
  return same_buffer ? "earlier in the queue, through a buffer whose hazards Metal does not track, with no barrier, fence or event between"
                     : "earlier in the queue, through another MTLBuffer over the same memory, with no barrier, fence or event between";
}

const char* advise(const Place& earlier, const Place& later) {
  return earlier.queue != later.queue ? "Record an event on the first stream, and wait for it on the second."
      : earlier.encoder == later.encoder && later.concurrent
      ? "Put memoryBarrierWithScope:MTLBarrierScopeBuffers between the two launches."
      : "Bind one buffer with offsets, which Metal tracks, or update a fence in one encoder and wait for it in the other.";
}

[[noreturn]] void report(const Command& earlier, const Touch& one, const Command& later, const Touch& other) {
  const uintptr_t at = std::max(one.low, other.low);
  const bool same = std::any_of(one.buffers.begin(), one.buffers.end(), [&](const void* buffer) {
    return std::find(other.buffers.begin(), other.buffers.end(), buffer) != other.buffers.end();
  });
  throw std::runtime_error(
      "PTR269: " + later.name + " " + verb(other) + " " + other.what + " at byte " + std::to_string(at - other.start) +
      place_of(other) + ", which " + earlier.name + " " + verb(one) + " as " + one.what + place_of(one) + ", " +
      explain(earlier.place, later.place, same) + "\n  " + advise(earlier.place, later.place));
}

// Both commands' touches are sorted, and none of one command overlap.
void compare(const Log& log, const Command& earlier, const Command& later) {
  const bool same_queue = earlier.place.queue == later.place.queue;
  const bool at_once = earlier.place.encoder == later.place.encoder && later.place.concurrent;
  if (same_queue && !at_once && log.aliases.empty() && log.untracked.empty()) {
    return;
  }
  if (has_ended(later.place.queue->clock, earlier) || later.place.fenced.count(earlier.place.encoder)) {
    return;
  }
  auto other = later.touches.begin();
  for (const Touch& one : earlier.touches) {
    while (other != later.touches.end() && other->high <= one.low) {
      ++other;
    }
    for (auto next = other; next != later.touches.end() && next->low < one.high; ++next) {
      const bool ordered = same_queue && (is_tracked(log, earlier.place, one, later.place, *next) ||
                                          is_behind_barrier(earlier.place, one, later.place));
      if ((one.writes || next->writes) && !ordered) {
        report(earlier, one, later, *next);
      }
    }
  }
}

}  // namespace

Queue::Queue() : number(queues++) {}

bool watched() {
  return watching;
}

void watch() {
  watching = true;
}

uint64_t next_encoder() {
  return ++encoders;
}

void note(const Place& place, const std::string& name, std::vector<Touch> touches) {
  if (!watching || !place.queue) {
    return;
  }
  std::lock_guard lock(log().mutex);
  Queue& queue = *place.queue;
  Command command{place, ++queue.commands, name, std::move(touches)};
  if (command.touches.empty() || command.touches.size() > kMostTouches) {
    return;
  }
  std::sort(command.touches.begin(), command.touches.end(),
            [](const Touch& one, const Touch& other) { return one.low < other.low; });
  for (const Command& earlier : log().commands) {
    compare(log(), earlier, command);
  }
  log().commands.push_back(std::move(command));
  if (log().commands.size() > kMostCommands) {
    log().commands.pop_front();
  }
}

void check_read(const std::shared_ptr<Queue>& queue, uintptr_t low, uintptr_t high) {
  std::lock_guard lock(log().mutex);
  for (const Command& earlier : log().commands) {
    if (earlier.place.queue == queue || has_ended(queue->clock, earlier) || has_ended(log().host, earlier)) {
      continue;
    }
    for (const Touch& touch : earlier.touches) {
      if (touch.writes && touch.low < high && low < touch.high) {
        throw std::runtime_error("PTR269: a tensor is read at byte " + std::to_string(std::max(touch.low, low) - low) +
                                 ", which " + earlier.name + " " + verb(touch) + " as " + touch.what + place_of(touch) +
                                 ", on another queue, and nothing waits for its command buffer\n"
                                 "  Call waitUntilCompleted, or signal an event that the stream waits for, before the tensor is used.");
      }
    }
  }
}

void add_alias(const void* buffer) {
  std::lock_guard lock(log().mutex);
  log().aliases.insert(buffer);
}

void untrack(const void* buffer) {
  std::lock_guard lock(log().mutex);
  log().untracked.insert(buffer);
}

bool is_untracked(const void* buffer) {
  std::lock_guard lock(log().mutex);
  return log().untracked.count(buffer) != 0;
}

// Its address may be another buffer's soon, and its memory too: who frees it knows that its commands have ended.
void forget_buffer(const void* buffer) {
  std::lock_guard lock(log().mutex);
  log().untracked.erase(buffer);
  log().aliases.erase(buffer);
  for (Command& command : log().commands) {
    auto& touches = command.touches;
    for (Touch& touch : touches) {
      touch.buffers.erase(std::remove(touch.buffers.begin(), touch.buffers.end(), buffer), touch.buffers.end());
    }
    touches.erase(std::remove_if(touches.begin(), touches.end(), [](const Touch& touch) { return touch.buffers.empty(); }),
                  touches.end());
  }
}

void signal(const std::shared_ptr<Queue>& queue, const void* event) {
  if (!watching) {
    return;
  }
  std::lock_guard lock(log().mutex);
  Clock& clock = log().events[event];
  join(clock, queue ? queue->clock : log().host);
  if (queue) {
    join(clock, {{queue->number, queue->commands}});
  }
}

void wait(const std::shared_ptr<Queue>& queue, const void* event) {
  if (!watching) {
    return;
  }
  std::lock_guard lock(log().mutex);
  join(queue ? queue->clock : log().host, log().events[event]);
}

Clock completed(const std::shared_ptr<Queue>& queue) {
  std::lock_guard lock(log().mutex);
  Clock clock = queue->clock;
  join(clock, {{queue->number, queue->commands}});
  return clock;
}

void join_host(const Clock& clock) {
  std::lock_guard lock(log().mutex);
  join(log().host, clock);
  auto& commands = log().commands;
  commands.erase(std::remove_if(commands.begin(), commands.end(),
                                [](const Command& command) { return has_ended(log().host, command); }),
                 commands.end());
}

void begin(const std::shared_ptr<Queue>& queue) {
  if (!watching) {
    return;
  }
  std::lock_guard lock(log().mutex);
  join(queue->clock, log().host);
}

}  // namespace porter::metal::order
