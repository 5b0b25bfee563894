// How kernels report errors: in a buffer of the stream that they run on, which
// raises the first of them when it is synchronized.
#pragma once
#include <c10/metal/common.h>

namespace c10 {
namespace metal {

C10_METAL_CONSTEXPR unsigned error_message_count = 30;

struct ErrorMessage {
  char file[128];
  char func[128];
  char message[250];
  unsigned int line;
};

// `count` goes on beyond the messages that there is space for.
struct ErrorMessages {
#ifdef __METAL__
  ::metal::atomic<unsigned int> count;
#else
  unsigned int count;
#endif
  ErrorMessage msg[error_message_count];
};

#ifdef __METAL__
namespace detail {

// Writes text up to the last byte of `size`, which stays 0; returns where it
// ends.
inline uint append(
    device char* to,
    uint at,
    uint size,
    constant const char* text) {
  for (; *text && at + 1 < size; ++text) {
    to[at++] = *text;
  }
  to[at] = 0;
  return at;
}

inline uint append(device char* to, uint at, uint size, long number) {
  ulong left = number < 0 ? -ulong(number) : ulong(number);
  uint digits = number < 0 ? 2 : 1;
  for (ulong rest = left / 10; rest; rest /= 10) {
    ++digits;
  }
  if (at + digits >= size) {
    return at;
  }
  const uint end = at + digits;
  to[end] = 0;
  for (uint place = end; place > at + (number < 0); left /= 10) {
    to[--place] = char('0' + left % 10);
  }
  if (number < 0) {
    to[at] = '-';
  }
  return end;
}

} // namespace detail

template <typename... Parts>
inline void report_error(
    device ErrorMessages* errors,
    constant const char* file,
    int line,
    constant const char* func,
    Parts... parts) {
  const uint index = ::metal::atomic_fetch_add_explicit(
      &errors->count, 1u, ::metal::memory_order_relaxed);
  if (index >= error_message_count) {
    return;
  }
  device ErrorMessage& to = errors->msg[index];
  detail::append(to.file, 0, sizeof(to.file), file);
  detail::append(to.func, 0, sizeof(to.func), func);
  uint at = 0;
  ((at = detail::append(to.message, at, sizeof(to.message), parts)), ...);
  to.line = line;
}

// `errors` is a buffer of ErrorMessages; text and integers follow.
#define TORCH_REPORT_ERROR(errors, ...) \
  ::c10::metal::report_error(errors, __FILE__, __LINE__, __func__, __VA_ARGS__)
#endif

} // namespace metal
} // namespace c10
