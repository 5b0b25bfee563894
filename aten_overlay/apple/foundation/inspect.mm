// What Python asks of an object: runtime/porter_runtime.h.
#include "runtime/porter_runtime.h"

#include <initializer_list>
#include <utility>

#include "runtime/objects.h"
#include "text.h"

extern "C" {

const char* porter_class_name(const void* object) {
  return object ? porter::objc::class_of((::id)const_cast<void*>(object))->name : "nil";
}

const char* porter_kind(const void* object) {
  const auto* cls = porter::objc::class_of((::id)const_cast<void*>(object));
  if (!cls) {
    return "nil";
  }
  if (porter::objc::is_metaclass(cls)) {
    return "class";
  }
  using Kind = std::pair<const char*, const char*>;
  for (const auto& [name, kind] : {Kind{"NSString", "string"}, {"NSNumber", "number"}, {"NSArray", "array"},
                                   {"NSDictionary", "dictionary"}, {"NSData", "data"}, {"NSNull", "null"}}) {
    if (porter::objc::is_kind_of(cls, name)) {
      return kind;
    }
  }
  return cls->name;
}

const char* porter_string(const void* string) {
  return [(NSString*)string UTF8String];
}

size_t porter_count(const void* collection) {
  return [(NSArray*)collection count];
}

void* porter_at(const void* array, size_t index) {
  return [(NSArray*)array objectAtIndex:index];
}

const void* porter_data(const void* data, size_t* size) {
  *size = [(NSData*)data length];
  return [(NSData*)data bytes];
}

void* porter_make_string(const char* text) {
  return porter::string(text);
}

void* porter_make_integer(int64_t value) {
  return [NSNumber numberWithLongLong:value];
}

void* porter_make_array(void* const* objects, size_t count) {
  return [NSArray arrayWithObjects:(const id*)objects count:count];
}

}  // extern "C"
