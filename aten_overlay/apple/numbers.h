// What numbers are on macOS, as far as code for it can tell.
#pragma once
#include <algorithm>
#include <vector>

// On macOS int64_t is `long long`, as a literal with LL is; on Linux it is `long`, and so is what a vector of them holds.
namespace std {
template <>
class vector<long long> : public vector<long> {
 public:
  using vector<long>::vector;
};

constexpr long max(long a, long long b) {
  return a < b ? static_cast<long>(b) : a;
}
constexpr long max(long long a, long b) {
  return max(b, a);
}
constexpr long min(long a, long long b) {
  return b < a ? static_cast<long>(b) : a;
}
constexpr long min(long long a, long b) {
  return min(b, a);
}
}  // namespace std
