// <metal_array>: MSL section 2.12.
#pragma once

// The compiler makes one of a list in braces.
namespace std {
template <class T> class initializer_list {
  const T* first_ = nullptr;
  size_t count_ = 0;

 public:
  constexpr initializer_list() = default;
  PM_INLINE constexpr T* begin() const { return const_cast<T*>(first_); }
  PM_INLINE constexpr T* end() const { return begin() + count_; }
  PM_INLINE constexpr size_t size() const { return count_; }
};
}  // namespace std

namespace metal {
using std::initializer_list;
template <class T, size_t N> struct array {
  T elements_[N];
  PM_INLINE constexpr T& operator[](size_t i) { return elements_[i]; }
  PM_INLINE constexpr const T& operator[](size_t i) const { return elements_[i]; }
  PM_INLINE constexpr T& at(size_t i) { return elements_[i]; }
  PM_INLINE constexpr const T& at(size_t i) const { return elements_[i]; }
  PM_INLINE constexpr T& front() { return elements_[0]; }
  PM_INLINE constexpr const T& front() const { return elements_[0]; }
  PM_INLINE constexpr T& back() { return elements_[N - 1]; }
  PM_INLINE constexpr const T& back() const { return elements_[N - 1]; }
  PM_INLINE constexpr T* data() { return elements_; }
  PM_INLINE constexpr const T* data() const { return elements_; }
  PM_INLINE constexpr T* begin() { return elements_; }
  PM_INLINE constexpr T* end() { return elements_ + N; }
  PM_INLINE constexpr const T* begin() const { return elements_; }
  PM_INLINE constexpr const T* end() const { return elements_ + N; }
  PM_INLINE static constexpr size_t size() { return N; }
  PM_INLINE static constexpr size_t max_size() { return N; }
  PM_INLINE static constexpr bool empty() { return N == 0; }
  PM_INLINE constexpr void fill(const T& v) {
    for (auto& e : elements_) e = v;
  }
};
}  // namespace metal
