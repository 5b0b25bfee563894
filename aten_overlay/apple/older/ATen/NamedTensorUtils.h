// What an older fork's host code includes and names, and a newer wheel no longer has. Searched after the wheel's headers.
#pragma once
#include <optional>
#include <vector>

// Named tensors are gone: no tensor has names, so that there are none to compare, to hide or to pass on.
namespace at {
struct NoNamesGuard {
  ~NoNamesGuard() {}
};

namespace namedinference {
template <typename... Args>
std::optional<std::vector<int>> compute_broadcast_outnames(const Args&...) {
  return std::nullopt;
}
template <typename... Args>
std::optional<std::vector<int>> broadcast_to_outnames(const Args&...) {
  return std::nullopt;
}
template <typename... Args>
bool are_names_equal(const Args&...) {
  return true;
}
template <typename... Args>
void propagate_names(const Args&...) {}
template <typename... Args>
void propagate_names_if_nonempty(const Args&...) {}
}  // namespace namedinference
}  // namespace at
