// Which commands a Mac may run at once: what orders them, what they touch, and the first two that nothing orders.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace porter::metal::order {

// By queue, the number of its last command that has ended for whoever holds the clock.
using Clock = std::map<uint32_t, uint64_t>;

// Commands of one queue start in order, and each waits for those before it through resources that Metal tracks.
struct Queue {
  Queue();
  const uint32_t number;
  uint64_t commands = 0;
  Clock clock;
};

// Where a command stands: its encoder, the barriers before it, and the encoders whose fences it waits for.
struct Place {
  std::shared_ptr<Queue> queue;  // null: nobody asks
  uint64_t encoder = 0;
  bool concurrent = false;
  uint64_t barriers = 0;
  std::map<const void*, uint64_t> resource_barriers;  // by buffer: `barriers` when a barrier last named it
  std::set<uint64_t> fenced;
};

// Bytes [low, high) of the host's view that a command accessed, and the MTLBuffers that it reached them through.
struct Touch {
  uintptr_t low, high;
  bool reads, writes;
  std::vector<const void*> buffers;
  std::string what;   // "argument `x` (buffer 0)"
  uintptr_t start;    // where that begins
  std::string where;  // "file:line", or "" for what is no kernel
};

// Whether commands are watched: `watch` starts it, and a command of a program that does not ask costs nothing.
bool watched();
void watch();

uint64_t next_encoder();

// Notes a command that has run. Throws PTR269 where an earlier one touches the same bytes, one of both writes, and nothing
// orders them. `name` reads as "kernel `k`".
void note(const Place& place, const std::string& name, std::vector<Touch> touches);

// Bytes [low, high) are read behind the commands of a queue. Throws PTR269 where a command of another queue writes them, and
// has not ended for this queue or for the host.
void check_read(const std::shared_ptr<Queue>& queue, uintptr_t low, uintptr_t high);

// Marks a second buffer over the same memory; marks a buffer whose hazards Metal does not track; forgets a freed buffer.
void add_alias(const void* buffer);
void untrack(const void* buffer);
bool is_untracked(const void* buffer);
void forget_buffer(const void* buffer);

// An event's signal carries what its queue has done to whoever waits for it. A null queue is the host.
void signal(const std::shared_ptr<Queue>& queue, const void* event);
void wait(const std::shared_ptr<Queue>& queue, const void* event);

// What the host knows to have ended comes before all that it commits from then on.
Clock completed(const std::shared_ptr<Queue>& queue);
void join_host(const Clock& clock);
void begin(const std::shared_ptr<Queue>& queue);

}  // namespace porter::metal::order
