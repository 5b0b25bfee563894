// Calls an operator with the arguments of its C function, as torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h declares
// it: results that the caller gives come first, then the arguments of the schema, then where to put what it returns.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace porter {

// An argument of C: a pointer, an integer, or the bits of a double.
template <class T>
uint64_t word(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<uint64_t>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  } else {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

// `name` is the operator's with its overload behind an underscore, and `_v2` where arguments were added to it later: an
// older function lacks the last ones, which have defaults.
AOTITorchError call_operator(const char* name, const uint64_t* words, size_t count);

template <class... Arguments>
AOTITorchError call(const char* name, Arguments... arguments) {
  const std::array<uint64_t, sizeof...(Arguments)> words{word(arguments)...};
  return call_operator(name, words.data(), words.size());
}

} // namespace porter
