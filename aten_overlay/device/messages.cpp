// Messages of Python to Objective-C objects: finds the method of one, and calls it as the ABI of x86-64 says.
#include <cstring>
#include <exception>
#include <string>

#include "runtime/objects.h"

namespace {

// What does not fit into registers. A struct of this size is passed by value where the ABI has such arguments, so that
// whoever is called finds its own there, in their order.
struct Stack {
  uint64_t words[24];
};

struct Registers {
  uint64_t integers[6];
  double reals[8];
};

struct Integers {
  uint64_t first, second;
};

template <class Result>
Result call(IMP method, const Registers& r, const Stack& stack) {
  using Function = Result (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, double, double, double,
                              double, double, double, double, double, Stack);
  return reinterpret_cast<Function>(method)(
      r.integers[0], r.integers[1], r.integers[2], r.integers[3], r.integers[4], r.integers[5], r.reals[0], r.reals[1],
      r.reals[2], r.reals[3], r.reals[4], r.reals[5], r.reals[6], r.reals[7], stack);
}

thread_local std::string failure;

}  // namespace

extern "C" {

// The types of the method that answers a selector, or null where the object's class has none.
const char* porter_find_method(id object, const char* selector, IMP* method) {
  const porter::objc::Method* found = porter::objc::find_declared(porter::objc::class_of(object), selector);
  if (!found) {
    return nullptr;
  }
  *method = found->implementation;
  return found->types;
}

// Calls a method; `kind` is `d` or `f` where it returns a real number. What it throws is the text that is returned.
const char* porter_call(IMP method, const Registers* registers, const Stack* stack, char kind, Integers* result) {
  try {
    if (kind == 'd') {
      const double value = call<double>(method, *registers, *stack);
      std::memcpy(result, &value, sizeof value);
    } else if (kind == 'f') {
      const float value = call<float>(method, *registers, *stack);
      std::memcpy(result, &value, sizeof value);
    } else {
      *result = call<Integers>(method, *registers, *stack);
    }
    return nullptr;
  } catch (const std::exception& error) {
    failure = error.what();
    return failure.c_str();
  }
}

}  // extern "C"
