// Objects on the heap: allocation, reference counts, autorelease pools.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "memory/memory.h"
#include "objects.h"
#include "porter_runtime.h"

namespace porter::objc {
namespace {

struct Census {
  std::mutex mutex;
  std::map<const Class*, int64_t> alive;
};

Census& census() {
  static auto& value = *new Census;
  return value;
}

void count(const Class* cls, int64_t change) {
  std::lock_guard lock(census().mutex);
  census().alive[cls] += change;
}

// C++ members of a class: clang makes these two methods where there are any.
void construct(id object, Class* cls) {
  if (!cls) {
    return;
  }
  construct(object, cls->super);
  for (const MethodList* list = cls->methods; list; list = list->next) {
    for (int32_t i = 0; i < list->count; i++) {
      if (!std::strcmp(list->methods[i].name, ".cxx_construct")) {
        reinterpret_cast<id (*)(id, Selector*)>(list->methods[i].implementation)(object, nullptr);
      }
    }
  }
}

void destruct(id object, Class* cls) {
  for (; cls; cls = cls->super) {
    for (const MethodList* list = cls->methods; list; list = list->next) {
      for (int32_t i = 0; i < list->count; i++) {
        if (!std::strcmp(list->methods[i].name, ".cxx_destruct")) {
          reinterpret_cast<void (*)(id, Selector*)>(list->methods[i].implementation)(object, nullptr);
        }
      }
    }
  }
}

struct Pool {
  std::vector<id> objects;
};

std::vector<id>& pool() {
  return of_this_thread<Pool>().objects;
}

// Weak references: the variables that hold each object, which its end empties.
struct Weak {
  std::mutex mutex;
  std::multimap<id, id*> slots;
};

Weak& weak() {
  static auto& value = *new Weak;
  return value;
}

void forget_slot(Weak& references, id* slot) {
  const auto [first, last] = references.slots.equal_range(*slot);
  for (auto at = first; at != last; ++at) {
    if (at->second == slot) {
      references.slots.erase(at);
      return;
    }
  }
}

void empty_slots(id object) {
  Weak& references = weak();
  std::lock_guard lock(references.mutex);
  const auto [first, last] = references.slots.equal_range(object);
  for (auto at = first; at != last; ++at) {
    *at->second = nullptr;
  }
  references.slots.erase(first, last);
}

void send(id object, const char* name) {
  if (IMP method = find_method(class_of(object), name)) {
    Selector selector{name, "v@:"};
    reinterpret_cast<void (*)(id, Selector*)>(method)(object, &selector);
  }
}

}  // namespace
}  // namespace porter::objc

using namespace porter::objc;

extern "C" {

// The four that NSObject is written with: a new object with one reference, one more, one less, and the end.
id porter_allocate(id cls_object) {
  auto* cls = reinterpret_cast<Class*>(cls_object);
  const size_t size = sizeof(Header) + static_cast<size_t>(cls->instance_size);
  auto* start = static_cast<Header*>(std::calloc(1, size));
  if (!start) {
    throw std::bad_alloc();
  }
  new (start) Header{{1}, cls};
  id object = reinterpret_cast<id>(start + 1);
  *reinterpret_cast<Class**>(object) = cls;
  construct(object, cls);
  count(cls, 1);
  return object;
}

void porter_add_reference(id object) {
  header(object).references.fetch_add(1, std::memory_order_relaxed);
}

// 1 if this was the last reference: the caller deallocates.
int porter_drop_reference(id object) {
  const int64_t before = header(object).references.fetch_sub(1, std::memory_order_acq_rel);
  if (before <= 0) {
    fail(std::string("PTR121: an object of class ") + header(object).allocated_as->name + " was over-released");
  }
  return before == 1;
}

int64_t porter_references(id object) {
  return header(object).references.load();
}

void porter_deallocate(id object) {
  Class* cls = header(object).allocated_as;
  empty_slots(object);
  destruct(object, cls);
  count(cls, -1);
  header(object).~Header();
  std::free(&header(object));
}

void porter_autorelease(id object) {
  pool().push_back(object);
}

void* objc_autoreleasePoolPush() {
  return reinterpret_cast<void*>(pool().size() + 1);
}

void objc_autoreleasePoolPop(void* mark) {
  const size_t depth = reinterpret_cast<size_t>(mark) - 1;
  std::vector<id>& objects = pool();
  while (objects.size() > depth) {
    id object = objects.back();
    objects.pop_back();
    send(object, "release");
  }
}

id objc_retain(id object) {
  if (object) {
    send(object, "retain");
  }
  return object;
}

void objc_release(id object) {
  if (object) {
    send(object, "release");
  }
}

id objc_autorelease(id object) {
  if (object) {
    send(object, "autorelease");
  }
  return object;
}

// What code with automatic reference counting calls (-fobjc-arc).
id objc_storeStrong(id* slot, id value) {
  id old = *slot;
  *slot = objc_retain(value);
  objc_release(old);
  return value;
}
id objc_retainAutorelease(id object) {
  return objc_autorelease(objc_retain(object));
}
id objc_autoreleaseReturnValue(id object) {
  return objc_autorelease(object);
}
id objc_retainAutoreleaseReturnValue(id object) {
  return objc_retainAutorelease(object);
}
id objc_retainAutoreleasedReturnValue(id object) {
  return objc_retain(object);
}
id objc_unsafeClaimAutoreleasedReturnValue(id object) {
  return object;
}
void* _Block_copy(const void* block);
id objc_retainBlock(id block) {
  return static_cast<id>(_Block_copy(block));
}
id objc_storeWeak(id* slot, id object) {
  Weak& references = weak();
  std::lock_guard lock(references.mutex);
  forget_slot(references, slot);
  *slot = object;
  if (object) {
    references.slots.emplace(object, slot);
  }
  return object;
}
id objc_initWeak(id* slot, id object) {
  *slot = nullptr;
  return objc_storeWeak(slot, object);
}
id objc_loadWeakRetained(id* slot) {
  std::lock_guard lock(weak().mutex);
  return objc_retain(*slot);
}
id objc_loadWeak(id* slot) {
  return objc_autorelease(objc_loadWeakRetained(slot));
}
void objc_destroyWeak(id* slot) {
  objc_storeWeak(slot, nullptr);
}
void objc_copyWeak(id* to, id* from) {
  objc_initWeak(to, *from);
}
void objc_moveWeak(id* to, id* from) {
  objc_copyWeak(to, from);
  objc_destroyWeak(from);
}

void* porter_retain(void* object) {
  return objc_retain(static_cast<id>(object));
}

void porter_release(void* object) {
  objc_release(static_cast<id>(object));
}

void* porter_pool_push() {
  return objc_autoreleasePoolPush();
}

void porter_pool_pop(void* mark) {
  objc_autoreleasePoolPop(mark);
}

int64_t porter_live_objects(const char* class_name) {
  std::lock_guard lock(census().mutex);
  int64_t total = 0;
  for (const auto& [cls, alive] : census().alive) {
    total += !class_name || !std::strcmp(cls->name, class_name) ? alive : 0;
  }
  return total;
}

void objc_enumerationMutation(id) {
  fail("PTR121: a collection was mutated while being enumerated");
}

// Properties with `copy`, `retain` or `atomic` are set through these (objfw's names and GNU's).
id objc_getProperty(id self, void*, ptrdiff_t offset, bool) {
  return *reinterpret_cast<id*>(reinterpret_cast<char*>(self) + offset);
}

void objc_setProperty(id self, void*, ptrdiff_t offset, id value, bool, signed char copy) {
  id& slot = *reinterpret_cast<id*>(reinterpret_cast<char*>(self) + offset);
  id old = slot;
  if (copy && value) {
    Selector selector{"copy", "@@:"};
    slot = reinterpret_cast<id (*)(id, Selector*)>(find_method(class_of(value), "copy"))(value, &selector);
  } else {
    slot = objc_retain(value);
  }
  objc_release(old);
}

}  // extern "C"
