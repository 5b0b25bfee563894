// Blocks: copies to the heap, captured variables, and dispatch queues that run them.
// Source: "Block Implementation Specification" (clang).
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "objects.h"

namespace {

enum Flag : int32_t { kReferences = 0xfffe, kHeap = 1 << 24, kHelpers = 1 << 25, kGlobal = 1 << 28 };
enum Field : int { kObject = 3, kBlock = 7, kByref = 8, kWeak = 16, kCaller = 128 };

struct Descriptor {
  unsigned long reserved;
  unsigned long size;
  void (*copy)(void* to, const void* from);
  void (*dispose)(const void*);
};

struct Block {
  void* isa;
  std::atomic<int32_t> flags;
  int32_t reserved;
  void (*invoke)(void*);
  Descriptor* descriptor;
};

// A `__block` variable.
struct Byref {
  void* isa;
  Byref* forwarding;
  std::atomic<int32_t> flags;
  int32_t size;
  void (*keep)(Byref* to, Byref* from);
  void (*dispose)(Byref*);
};

Byref* copy_byref(Byref* from) {
  Byref* home = from->forwarding;
  if (home->flags & kHeap) {
    home->flags += 2;
    return home;
  }
  auto* made = static_cast<Byref*>(std::malloc(static_cast<size_t>(from->size)));
  std::memcpy(static_cast<void*>(made), from, static_cast<size_t>(from->size));
  made->flags = from->flags | kHeap | 4;  // one reference from the stack frame, one from the block
  made->forwarding = made;
  from->forwarding = made;
  if (from->flags & kHelpers) {
    from->keep(made, from);
  }
  return made;
}

void release_byref(Byref* any) {
  Byref* home = any->forwarding;
  if (!(home->flags & kHeap) || ((home->flags -= 2) & kReferences)) {
    return;
  }
  if (home->flags & kHelpers) {
    home->dispose(home);
  }
  std::free(home);
}

}  // namespace

extern "C" {

id objc_retain(id);
void objc_release(id);

void* _NSConcreteStackBlock[32];
void* _NSConcreteGlobalBlock[32];
void* _NSConcreteMallocBlock[32];

void* _Block_copy(const void* value) {
  auto* block = const_cast<Block*>(static_cast<const Block*>(value));
  if (!block || block->flags & kGlobal) {
    return block;
  }
  if (block->flags & kHeap) {
    block->flags += 2;
    return block;
  }
  auto* made = static_cast<Block*>(std::malloc(block->descriptor->size));
  std::memcpy(static_cast<void*>(made), block, block->descriptor->size);
  made->flags = (block->flags & ~kReferences) | kHeap | 2;
  made->isa = _NSConcreteMallocBlock;
  if (made->flags & kHelpers) {
    made->descriptor->copy(made, block);
  }
  return made;
}

void _Block_release(const void* value) {
  auto* block = const_cast<Block*>(static_cast<const Block*>(value));
  if (!block || !(block->flags & kHeap) || ((block->flags -= 2) & kReferences)) {
    return;
  }
  if (block->flags & kHelpers) {
    block->descriptor->dispose(block);
  }
  std::free(block);
}

void _Block_object_assign(void* slot, const void* object, int field) {
  void* captured = const_cast<void*>(object);
  if (field & kCaller) {
    // a __block variable that holds an object: it is not retained
  } else if (field & kByref) {
    captured = copy_byref(static_cast<Byref*>(captured));
  } else if (field == kBlock) {
    captured = _Block_copy(object);
  } else if (field == kObject) {
    objc_retain(static_cast<id>(captured));
  }
  *static_cast<void**>(slot) = captured;
}

void _Block_object_dispose(const void* object, int field) {
  void* captured = const_cast<void*>(object);
  if (field & kCaller) {
    return;
  }
  if (field & kByref) {
    release_byref(static_cast<Byref*>(captured));
  } else if (field == kBlock) {
    _Block_release(object);
  } else if (field == kObject) {
    objc_release(static_cast<id>(captured));
  }
}

// A serial queue is a lock: `dispatch_sync` runs the block where it is called, after all that came before it.
struct dispatch_queue_s {
  std::string label;
  std::mutex mutex;
  std::atomic<std::thread::id> running{};
};

static thread_local uint64_t running_block = 0;

static void run(dispatch_queue_s* queue, void* block) {
  static std::atomic<uint64_t> blocks{0};
  if (queue->running == std::this_thread::get_id()) {
    porter::objc::fail("PTR122: dispatch_sync to queue `" + queue->label + "` from a block running on it: deadlock");
  }
  std::lock_guard lock(queue->mutex);
  struct Running {
    dispatch_queue_s* queue;
    uint64_t outer;
    explicit Running(dispatch_queue_s* q) : queue(q), outer(running_block) {
      queue->running = std::this_thread::get_id();
      running_block = outer ? outer : ++blocks;
    }
    ~Running() {
      queue->running = std::thread::id();
      running_block = outer;
    }
  } running(queue);
  static_cast<Block*>(block)->invoke(block);
}

dispatch_queue_s* dispatch_queue_create(const char* label, void*) {
  auto* queue = new dispatch_queue_s;
  queue->label = label ? label : "";
  return queue;
}

dispatch_queue_s* dispatch_get_main_queue() {
  static auto* queue = dispatch_queue_create("main", nullptr);
  return queue;
}

void dispatch_sync(dispatch_queue_s* queue, void* block) {
  run(queue, block);
}

int porter_runs_on(dispatch_queue_s* queue) {
  return queue->running == std::this_thread::get_id();
}

uint64_t porter_running_block(void) {
  return running_block;
}

// From within the queue the block would wait for its sender: it runs at once, which no sender can tell from soon.
void dispatch_async(dispatch_queue_s* queue, void* block) {
  if (queue->running == std::this_thread::get_id()) {
    static_cast<Block*>(block)->invoke(block);
  } else {
    run(queue, block);
  }
}

void dispatch_release(void*) {}

struct dispatch_data_s {
  const void* bytes;
  size_t size;
};

dispatch_data_s* dispatch_data_create(const void* bytes, size_t size, dispatch_queue_s*, void*) {
  return new dispatch_data_s{bytes, size};  // one for each library of kernels, as long as the process
}

const void* porter_dispatch_data(const dispatch_data_s* data, size_t* size) {
  *size = data->size;
  return data->bytes;
}

}  // extern "C"

bool porter::objc::is_block(const void* isa) {
  return isa == _NSConcreteStackBlock || isa == _NSConcreteGlobalBlock || isa == _NSConcreteMallocBlock;
}
