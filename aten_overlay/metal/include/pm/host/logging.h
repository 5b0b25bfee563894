// <metal_logging>: a kernel's log goes to the standard error stream (MSL section 6.19).
#pragma once
#include "internal.h"

namespace metal {
enum class log_type { debug, info, default_type, error, fault };
struct os_log {
  const char* subsystem_ = "";
  const char* category_ = "";
  constexpr os_log() = default;
  constexpr os_log(const char* subsystem, const char* category) : subsystem_(subsystem), category_(category) {}
#define PM_LOG(name) \
  template <class... A> PM_INLINE void name(const char* format, A... a) const { pm_log(subsystem_, category_, format, passed(a)...); }
  PM_LOG(log) PM_LOG(log_debug) PM_LOG(log_info) PM_LOG(log_error) PM_LOG(log_fault)
#undef PM_LOG
 private:
  template <class A> PM_INLINE static auto passed(A a) {
    if constexpr (pm::is_float<A>) return double(float(a));
    else return a;
  }
};
inline constexpr os_log os_log_default{};
}  // namespace metal
