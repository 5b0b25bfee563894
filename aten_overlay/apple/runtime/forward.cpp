// Messages without a method: their arguments are decoded by the selector's type string and handed to a handler.
// Source: System V ABI for x86-64 (parameter passing); "Type Encodings" (Apple's Objective-C runtime guide).
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "objects.h"
#include "porter_runtime.h"

#ifndef __x86_64__
#error "The Objective-C runtime stand-in decodes arguments as x86-64 passes them."
#endif

namespace porter::objc {
namespace {

std::mutex handlers_mutex;
std::map<std::string, porter_message_handler>& handlers() {
  static auto& value = *new std::map<std::string, porter_message_handler>;
  return value;
}

porter_message_handler handler_for(const Class* cls) {
  std::lock_guard lock(handlers_mutex);
  for (; cls; cls = cls->super) {
    const auto found = handlers().find(cls->name);
    if (found != handlers().end()) {
      return found->second;
    }
  }
  return nullptr;
}

thread_local std::string error_text;

// One type of a type string, and how many eightbytes a struct takes.
struct Type {
  char code;
  size_t words = 1;
  bool floating = false;
};

void skip_digits(const char*& at) {
  while (*at == '-' || *at == '+' || (*at >= '0' && *at <= '9')) {
    at++;
  }
}

void skip_bracketed(const char*& at, char open, char close) {
  int depth = 0;
  do {
    depth += *at == open ? 1 : *at == close ? -1 : 0;
    at++;
  } while (depth && *at);
}

void skip_pointee(const char*& at) {
  if (*at == '{') {
    skip_bracketed(at, '{', '}');
  } else if (*at == '[') {
    skip_bracketed(at, '[', ']');
  } else if (*at == '(') {
    skip_bracketed(at, '(', ')');
  } else if (*at == '^') {
    skip_pointee(++at);
  } else if (*at) {
    at++;
  }
}

Type read_type(const char*& at) {
  while (std::strchr("rnNoORV", *at) && *at) {
    at++;
  }
  Type type{*at};
  if (*at == '{') {
    const char* start = at;
    skip_bracketed(at, '{', '}');
    const char* fields = std::strchr(start, '=');
    type.words = 0;
    for (const char* f = fields ? fields + 1 : at; f < at - 1; f++) {
      type.words += std::strchr("qQlLd@^:#*", *f) ? 1 : 0;
      type.floating = type.floating || *f == 'd' || *f == 'f';
    }
  } else if (*at == '^') {
    skip_pointee(++at);
  } else if (*at == '@' && at[1] == '?') {
    type.code = '?';
    at += 2;
  } else {
    at++;
  }
  skip_digits(at);
  return type;
}

// Where the next argument lies: registers first, then the caller's stack.
struct Registers {
  const uint64_t* integers;
  const double* vectors;  // two to a register
  const uint64_t* stack;
  int next_integer = 2;  // self and the selector have gone
  int next_vector = 0;

  uint64_t integer() {
    return next_integer < 6 ? integers[next_integer++] : *stack++;
  }
  uint64_t vector() {
    uint64_t bits;
    if (next_vector < 8) {
      std::memcpy(&bits, &vectors[2 * next_vector++], sizeof bits);
    } else {
      bits = *stack++;
    }
    return bits;
  }
};

template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

porter_argument decode(const Type& type, Registers& registers, const char* selector) {
  porter_argument argument{type.code, {0}, nullptr};
  switch (type.code) {
    case 'f':
      argument.value.d = from_bits<float>(registers.vector());
      return argument;
    case 'd':
      argument.value.d = from_bits<double>(registers.vector());
      return argument;
    case '{':
      if (type.floating || (type.words <= 2 && registers.next_integer + static_cast<int>(type.words) <= 6)) {
        fail(std::string("PTR123: cannot decode the small struct passed to `") + selector + "`");
      }
      argument.memory = registers.stack;
      registers.stack += type.words;
      return argument;
    default:
      break;
  }
  const uint64_t bits = registers.integer();
  switch (type.code) {
    case 'c':
      argument.value.i = static_cast<int8_t>(bits);
      break;
    case 'B':
    case 'C':
      argument.value.u = static_cast<uint8_t>(bits);
      break;
    case 's':
      argument.value.i = static_cast<int16_t>(bits);
      break;
    case 'S':
      argument.value.u = static_cast<uint16_t>(bits);
      break;
    case 'i':
      argument.value.i = static_cast<int32_t>(bits);
      break;
    case 'I':
      argument.value.u = static_cast<uint32_t>(bits);
      break;
    default:
      argument.value.u = bits;
  }
  return argument;
}

}  // namespace

std::string taken_error() {
  return std::exchange(error_text, "");
}

namespace {

std::string unanswered(id self, const char* selector) {
  const Class* cls = class_of(self);
  const bool meta = is_metaclass(cls);
  return std::string("PTR120: ") + (meta ? "+[" : "-[") + cls->name + " " + selector +
      "] is not supported";
}

}  // namespace
}  // namespace porter::objc

using namespace porter::objc;

extern "C" {

void porter_handle_messages(const char* class_name, porter_message_handler handler) {
  std::lock_guard lock(handlers_mutex);
  if (handler) {
    handlers()[class_name] = handler;
  } else {
    handlers().erase(class_name);
  }
}

void porter_set_error(const char* text) {
  error_text = text;
}

// Called by porter_forward with the registers as the sender left them. The result goes into rax and xmm0.
uint64_t porter_forward_decoded(const uint64_t* integers, const uint64_t* stack) {
  id self = reinterpret_cast<id>(integers[0]);
  const auto* selector = reinterpret_cast<const Selector*>(integers[1]);
  const porter_message_handler handler = handler_for(class_of(self));
  if (!handler) {
    fail(unanswered(self, selector->name));
  }
  porter_argument result{'v', {0}, nullptr};
  if (!selector->types) {
    fail(handler(self, selector->name, nullptr, 0, nullptr, &result) ? taken_error() : unanswered(self, selector->name));
  }
  const char* at = selector->types;
  const Type returned = read_type(at);
  read_type(at);  // self
  read_type(at);  // the selector
  Registers registers{integers, reinterpret_cast<const double*>(integers + 6), stack};
  std::vector<porter_argument> arguments;
  while (*at) {
    const Type type = read_type(at);
    arguments.push_back(decode(type, registers, selector->name));
  }
  result.type = returned.code;
  if (handler(self, selector->name, selector->types, arguments.size(), arguments.data(), &result)) {
    fail(taken_error());
  }
  if (returned.code == 'f') {
    const float narrow = static_cast<float>(result.value.d);
    uint64_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof narrow);
    return bits;
  }
  return result.value.u;
}

asm(R"(
.globl porter_forward
.hidden porter_forward
.type porter_forward, @function
porter_forward:
 .cfi_startproc
 push %rbp
 .cfi_def_cfa_offset 16
 .cfi_offset %rbp, -16
 mov %rsp, %rbp
 .cfi_def_cfa_register %rbp
 sub $176, %rsp
 mov %rdi, (%rsp)
 mov %rsi, 8(%rsp)
 mov %rdx, 16(%rsp)
 mov %rcx, 24(%rsp)
 mov %r8, 32(%rsp)
 mov %r9, 40(%rsp)
 movups %xmm0, 48(%rsp)
 movups %xmm1, 64(%rsp)
 movups %xmm2, 80(%rsp)
 movups %xmm3, 96(%rsp)
 movups %xmm4, 112(%rsp)
 movups %xmm5, 128(%rsp)
 movups %xmm6, 144(%rsp)
 movups %xmm7, 160(%rsp)
 mov %rsp, %rdi
 lea 16(%rbp), %rsi
 call porter_forward_decoded@PLT
 movq %rax, %xmm0
 leave
 .cfi_def_cfa %rsp, 8
 ret
 .cfi_endproc
)");

}  // extern "C"
