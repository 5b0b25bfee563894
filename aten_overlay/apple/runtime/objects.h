// Inside the runtime: the structures that clang emits for -fobjc-runtime=objfw-1.0, and what its parts share.
// Source: clang/lib/CodeGen/CGObjCGNU.cpp (GNU-style modules with non-fragile instance variables).
#pragma once
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

struct objc_object;
typedef struct objc_object* id;
typedef void (*IMP)();

namespace porter::objc {

// A value of each thread. The main thread's is there until the process ends: static objects, as a fork's shader libraries
// are, send messages from their destructors, when what is thread_local is gone.
template <class T>
T& of_this_thread() {
  thread_local T* value = nullptr;
  thread_local struct Owner {
    ~Owner() {
      if (gettid() != getpid()) {
        delete value;
        value = nullptr;
      }
    }
  } owner;
  static_cast<void>(owner);
  if (!value) {
    value = new T;
  }
  return *value;
}

struct Selector {
  const char* name;
  const char* types;
};

struct Method {
  const char* name;
  const char* types;
  IMP implementation;
};

struct MethodList {
  MethodList* next;
  int32_t count;
  Method methods[];
};

struct Ivar {
  const char* name;
  const char* type;
  int32_t offset;
};

struct IvarList {
  int32_t count;
  Ivar ivars[];
};

struct Class {
  Class* isa;
  Class* super;  // until the class is laid out: the superclass's name
  const char* name;
  long version;
  unsigned long info;
  long instance_size;
  IvarList* ivars;
  MethodList* methods;
  void* dispatch_table;
  void* subclasses;
  void* sibling;
  void* protocols;
  void* gc_type;
  long abi_version;
  int32_t** ivar_offsets;
  void* properties;
  long strong_pointers;
  long weak_pointers;
};

struct Category {
  const char* name;
  const char* class_name;
  MethodList* instance_methods;
  MethodList* class_methods;
  void* protocols;
};

// Constant objects of one class, whose `isa` the runtime sets.
struct StaticInstances {
  const char* class_name;
  id instances[];  // ends with null
};

struct SymbolTable {
  unsigned long selector_count;
  Selector* selectors;
  uint16_t class_count;
  uint16_t category_count;
  void* definitions[];  // classes, categories, then a null-terminated StaticInstances**
};

struct Module {
  unsigned long version;
  unsigned long size;
  const char* file;
  SymbolTable* symbols;
};

constexpr unsigned long kMetaclass = 2;
constexpr unsigned long kLaidOut = 1ul << 20;

inline bool is_metaclass(const Class* cls) {
  return cls->info & kMetaclass;
}

// What lies before every object of the heap.
struct Header {
  std::atomic<int64_t> references;
  Class* allocated_as;
};

inline Header& header(id object) {
  return *(reinterpret_cast<Header*>(object) - 1);
}

// The class that an object's methods are found in: MTLBuffer's for an address of the device, NSBlock for a block,
// whose `isa` is an address without a class behind it. Null for nil.
Class* class_of(id object);

// Whether this `isa` is a block's.
bool is_block(const void* isa);

// The laid-out class of this name, or null.
Class* find_class(const char* name);

bool is_kind_of(const Class* cls, const char* name);

// The declared method for a selector, with its types, in `cls` or its superclasses; null when there is none.
const Method* find_declared(Class* cls, const char* selector);

// The method for a selector in `cls` or its superclasses, categories first; null when there is none.
IMP find_method(Class* cls, const char* selector);

[[noreturn]] void fail(const std::string& text);

// What porter_set_error() was last given on this thread.
std::string taken_error();

}  // namespace porter::objc
