// Classes as they are loaded, and how a message finds its method.
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory/memory.h"
#include "objects.h"

namespace porter::objc {
namespace {

struct Loaded {
  std::shared_mutex mutex;
  std::map<std::string_view, Class*> classes;
  std::multimap<std::string_view, Category*> categories;
  std::vector<StaticInstances*> waiting;  // for their class to be loaded
};

Loaded& loaded() {
  static auto& value = *new Loaded;
  return value;
}

Class* known(const char* name) {
  auto& all = loaded().classes;
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

// Instance variables follow those of the superclass, whose size only the loaded program knows.
void lay_out(Class* cls) {
  if (cls->info & kLaidOut) {
    return;
  }
  Class* super = nullptr;
  if (const auto* name = reinterpret_cast<const char*>(cls->super)) {
    super = known(name);
    if (!super) {
      return;  // its superclass is in a library that is not loaded yet
    }
    lay_out(super);
    if (!(super->info & kLaidOut)) {
      return;
    }
  }
  const long before = super ? super->instance_size : 0;
  if (cls->instance_size <= 0) {
    cls->instance_size = before - cls->instance_size;
  }
  for (int32_t i = 0; cls->ivars && cls->ivar_offsets && i < cls->ivars->count; i++) {
    cls->ivars->ivars[i].offset += static_cast<int32_t>(before);
    *cls->ivar_offsets[i] = cls->ivars->ivars[i].offset;
  }
  cls->super = super;
  cls->info |= kLaidOut;
  // A metaclass inherits from its class's superclass's metaclass; the root's from the root itself.
  cls->isa->super = super ? super->isa : cls;
}

// True once the constant objects know their class.
bool adopted(StaticInstances* statics) {
  Class* cls = known(statics->class_name);
  for (id* at = statics->instances; cls && *at; at++) {
    *reinterpret_cast<Class**>(*at) = cls;
  }
  return cls != nullptr;
}

const Method* in_list(const MethodList* list, const char* selector) {
  for (; list; list = list->next) {
    for (int32_t i = 0; i < list->count; i++) {
      if (!std::strcmp(list->methods[i].name, selector)) {
        return &list->methods[i];
      }
    }
  }
  return nullptr;
}

const Method* in_class(const Class* cls, const char* selector) {
  const auto [first, last] = loaded().categories.equal_range(cls->name);
  for (auto at = first; at != last; ++at) {
    const auto* methods = is_metaclass(cls) ? at->second->class_methods : at->second->instance_methods;
    if (const Method* found = in_list(methods, selector)) {
      return found;
    }
  }
  return in_list(cls->methods, selector);
}

struct CacheKey {
  const Class* cls;
  const char* selector;
  bool operator==(const CacheKey&) const = default;
};

struct CacheHash {
  size_t operator()(const CacheKey& key) const {
    return reinterpret_cast<size_t>(key.cls) * 31 ^ reinterpret_cast<size_t>(key.selector);
  }
};

std::atomic<uint64_t> generation{0};

struct Cache {
  std::unordered_map<CacheKey, IMP, CacheHash> methods;
  uint64_t generation = 0;
};

}  // namespace

Class* find_class(const char* name) {
  std::shared_lock lock(loaded().mutex);
  Class* cls = known(name);
  return cls && cls->info & kLaidOut ? cls : nullptr;
}

Class* class_of(id object) {
  if (!object) {
    return nullptr;
  }
  if (porter_is_device(object)) {
    static Class* buffer = find_class("PorterBuffer");
    return buffer;
  }
  Class* isa = *reinterpret_cast<Class**>(object);
  if (is_block(isa)) {
    static Class* block = find_class("NSBlock");
    return block;
  }
  return isa;
}

bool is_kind_of(const Class* cls, const char* name) {
  for (; cls; cls = cls->super) {
    if (!std::strcmp(cls->name, name)) {
      return true;
    }
  }
  return false;
}

IMP find_method(Class* cls, const char* selector) {
  auto& cache = of_this_thread<Cache>();
  if (cache.generation != generation) {
    cache.methods.clear();
    cache.generation = generation;
  }
  const auto [entry, fresh] = cache.methods.try_emplace({cls, selector}, nullptr);
  if (fresh) {
    const Method* declared = find_declared(cls, selector);
    entry->second = declared ? declared->implementation : nullptr;
  }
  return entry->second;
}

const Method* find_declared(Class* cls, const char* selector) {
  std::shared_lock lock(loaded().mutex);
  const Method* found = nullptr;
  for (const Class* at = cls; at && !found; at = at->super) {
    found = in_class(at, selector);
  }
  return found;
}

void fail(const std::string& text) {
  throw std::runtime_error(text);
}

}  // namespace porter::objc

using namespace porter::objc;

extern "C" {

void porter_forward();  // forward.cpp: decodes the arguments of a message without a method

static id nil_method(id, Selector*) {
  asm volatile("xorps %%xmm0, %%xmm0" ::: "xmm0");
  return nullptr;
}

// Called by the constructor that clang puts into every object file.
void __objc_exec_class(Module* module) {
  auto& all = loaded();
  std::unique_lock lock(all.mutex);
  const SymbolTable* table = module->symbols;
  for (int i = 0; i < table->class_count; i++) {
    auto* cls = static_cast<Class*>(table->definitions[i]);
    all.classes.emplace(cls->name, cls);
  }
  for (int i = 0; i < table->category_count; i++) {
    auto* category = static_cast<Category*>(table->definitions[table->class_count + i]);
    all.categories.emplace(category->class_name, category);
  }
  auto** statics = static_cast<StaticInstances**>(table->definitions[table->class_count + table->category_count]);
  for (; statics && *statics; statics++) {
    all.waiting.push_back(*statics);
  }
  for (const auto& [name, cls] : all.classes) {
    lay_out(cls);
  }
  std::erase_if(all.waiting, adopted);
  generation++;
}

IMP objc_msg_lookup(id self, Selector* selector) {
  Class* cls = class_of(self);
  if (!cls) {
    return reinterpret_cast<IMP>(nil_method);
  }
  IMP found = find_method(cls, selector->name);
  return found ? found : porter_forward;
}

IMP objc_msg_lookup_stret(id self, Selector* selector) {
  Class* cls = class_of(self);
  if (!cls) {
    fail(std::string("a message that returns a struct was sent to nil: ") + selector->name);
  }
  if (IMP found = find_method(cls, selector->name)) {
    return found;
  }
  fail(std::string("PTR120: ") + cls->name + " has no method `" + selector->name + "`");
}

struct Super {
  id self;
  Class* cls;
};

IMP objc_msg_lookup_super(Super* super, Selector* selector) {
  IMP found = find_method(super->cls, selector->name);
  return found ? found : porter_forward;
}

IMP objc_msg_lookup_super_stret(Super* super, Selector* selector) {
  return objc_msg_lookup_super(super, selector);
}

id objc_lookup_class(const char* name, ...) {
  return reinterpret_cast<id>(find_class(name));
}

id objc_get_class(const char* name, ...) {
  id found = objc_lookup_class(name);
  if (!found) {
    fail(std::string("PTR120: there is no class ") + name);
  }
  return found;
}

// Objective-C++ unwinds as C++ does.
asm(R"(
.globl __gnu_objc_personality_v0
__gnu_objc_personality_v0: jmp __gxx_personality_v0@PLT
.globl __gnustep_objcxx_personality_v0
__gnustep_objcxx_personality_v0: jmp __gxx_personality_v0@PLT
)");

}  // extern "C"
