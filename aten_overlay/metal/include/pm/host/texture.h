// <metal_texture>: samplers, and what all textures have in common (MSL sections 2.8, 2.10 and 6.12). There are no mipmaps.
#pragma once
#include "../../porter_metal_abi.h"

namespace metal {
enum class access { sample, read, write, read_write };
enum class coord { normalized, pixel };
enum class filter { nearest, linear };
enum class min_filter { nearest, linear };
enum class mag_filter { nearest, linear };
enum class mip_filter { none, nearest, linear };
enum class address { clamp_to_edge, clamp_to_zero, repeat, mirrored_repeat, clamp_to_border };
enum class s_address { clamp_to_edge, clamp_to_zero, repeat, mirrored_repeat, clamp_to_border };
enum class t_address { clamp_to_edge, clamp_to_zero, repeat, mirrored_repeat, clamp_to_border };
enum class r_address { clamp_to_edge, clamp_to_zero, repeat, mirrored_repeat, clamp_to_border };
enum class border_color { transparent_black, opaque_black, opaque_white };
enum class component { x, y, z, w };
enum class compare_func { never, less, less_equal, greater, greater_equal, equal, not_equal, always, none = never };
enum memory_coherence { memory_coherence_threadgroup, memory_coherence_device };
// What chooses a mipmap: there is but one.
struct level {
  PM_INLINE explicit constexpr level(float) {}
};
struct bias {
  PM_INLINE explicit constexpr bias(float) {}
};
struct min_lod_clamp {
  PM_INLINE explicit constexpr min_lod_clamp(float) {}
};
struct gradient2d {
  PM_INLINE gradient2d(float2, float2) {}
};
struct gradient3d {
  PM_INLINE gradient3d(float3, float3) {}
};
struct gradientcube {
  PM_INLINE gradientcube(float3, float3) {}
};
struct lod_clamp {
  PM_INLINE constexpr lod_clamp(float, float) {}
};
struct max_anisotropy {
  PM_INLINE constexpr max_anisotropy(int) {}
};

// What a sparse texture gives: here all of its memory is mapped.
template <class T> struct sparse_color {
  PM_INLINE constexpr sparse_color(T value, bool resident) : value_(value), resident_(resident) {}
  PM_INLINE constexpr bool resident() const { return resident_; }
  PM_INLINE constexpr T value() const { return value_; }

 private:
  T value_;
  bool resident_;
};
struct sampler {
  pm_sampler s_{};
  template <class... A> PM_INLINE constexpr sampler(A... a) { (set(a), ...); }
  PM_INLINE static sampler from(const void* p) {
    sampler s;
    s.s_ = *static_cast<const pm_sampler*>(p);
    return s;
  }
  static constexpr bool writable = false;

 private:
  PM_INLINE constexpr void set(coord c) { s_.coord = uint(c); }
  PM_INLINE constexpr void set(filter f) { s_.filter = uint(f); }
  PM_INLINE constexpr void set(min_filter f) { s_.filter = uint(f); }
  PM_INLINE constexpr void set(mag_filter f) { s_.filter = uint(f); }
  PM_INLINE constexpr void set(mip_filter) {}
  PM_INLINE constexpr void set(address a) { s_.address[0] = s_.address[1] = s_.address[2] = uint(a); }
  PM_INLINE constexpr void set(s_address a) { s_.address[0] = uint(a); }
  PM_INLINE constexpr void set(t_address a) { s_.address[1] = uint(a); }
  PM_INLINE constexpr void set(r_address a) { s_.address[2] = uint(a); }
  PM_INLINE constexpr void set(border_color b) { s_.border = uint(b); }
  PM_INLINE constexpr void set(compare_func f) { s_.compare = uint(f); }
  PM_INLINE constexpr void set(lod_clamp) {}
  PM_INLINE constexpr void set(max_anisotropy) {}
};
}  // namespace metal

namespace pm {
PM_INLINE float component_of(const pm_texture* t, const char* p, uint i, float) {
  switch (t->texel) {
    case PM_UNORM8: return float(reinterpret_cast<const uchar*>(p)[i]) / 255.0f;
    case PM_SNORM8: return metal::max(float(reinterpret_cast<const signed char*>(p)[i]) / 127.0f, -1.0f);
    case PM_UNORM16: return float(reinterpret_cast<const ushort*>(p)[i]) / 65535.0f;
    case PM_SNORM16: return metal::max(float(reinterpret_cast<const short*>(p)[i]) / 32767.0f, -1.0f);
    case PM_HALF16: return float(reinterpret_cast<const half*>(p)[i]);
    default: return reinterpret_cast<const float*>(p)[i];
  }
}
template <class T> PM_INLINE T component_of(const pm_texture* t, const char* p, uint i, T) {
  switch (t->texel) {
    case PM_UINT8: return T(reinterpret_cast<const uchar*>(p)[i]);
    case PM_SINT8: return T(reinterpret_cast<const signed char*>(p)[i]);
    case PM_UINT16: return T(reinterpret_cast<const ushort*>(p)[i]);
    case PM_SINT16: return T(reinterpret_cast<const short*>(p)[i]);
    default: return T(reinterpret_cast<const uint*>(p)[i]);
  }
}
PM_INLINE void set_component(const pm_texture* t, char* p, uint i, float v) {
  switch (t->texel) {
    case PM_UNORM8: reinterpret_cast<uchar*>(p)[i] = uchar(metal::rint(metal::clamp(v, 0.0f, 1.0f) * 255.0f)); break;
    case PM_SNORM8: reinterpret_cast<signed char*>(p)[i] = (signed char)(metal::rint(metal::clamp(v, -1.0f, 1.0f) * 127.0f)); break;
    case PM_UNORM16: reinterpret_cast<ushort*>(p)[i] = ushort(metal::rint(metal::clamp(v, 0.0f, 1.0f) * 65535.0f)); break;
    case PM_SNORM16: reinterpret_cast<short*>(p)[i] = short(metal::rint(metal::clamp(v, -1.0f, 1.0f) * 32767.0f)); break;
    case PM_HALF16: reinterpret_cast<half*>(p)[i] = half(v); break;
    default: reinterpret_cast<float*>(p)[i] = v;
  }
}
template <class T> PM_INLINE void set_component(const pm_texture* t, char* p, uint i, T v) {
  switch (t->texel) {
    case PM_UINT8: case PM_SINT8: reinterpret_cast<uchar*>(p)[i] = uchar(v); break;
    case PM_UINT16: case PM_SINT16: reinterpret_cast<ushort*>(p)[i] = ushort(v); break;
    default: reinterpret_cast<uint*>(p)[i] = uint(v);
  }
}
PM_INLINE uint component_bytes(uint texel) { return texel <= PM_SINT8 ? 1 : texel <= PM_HALF16 ? 2 : 4; }
// Reads and writes go by float, or by the integer itself.
template <class T> using carrier = metal::conditional_t<is_float<T>, float, T>;

struct identity {
  template <class C> PM_INLINE C operator()(const C& c) const { return c; }
};
// Whether a reference value compares with a texel as a sampler says.
struct compared {
  metal::compare_func how;
  float value;
  PM_INLINE bool holds(float texel) const {
    switch (how) {
      case metal::compare_func::less: return value < texel;
      case metal::compare_func::less_equal: return value <= texel;
      case metal::compare_func::greater: return value > texel;
      case metal::compare_func::greater_equal: return value >= texel;
      case metal::compare_func::equal: return value == texel;
      case metal::compare_func::not_equal: return value != texel;
      case metal::compare_func::always: return true;
      default: return false;
    }
  }
  template <class C> PM_INLINE C operator()(const C& c) const { return C(holds(float(c.x)) ? 1.0f : 0.0f); }
};
// Of the last arguments of a function that samples: the offset, which may be a swizzle, and the component.
template <class O> PM_INLINE O offset_in() { return O(0); }
template <class O, class A, class... R> PM_INLINE O offset_in(const A& a, const R&... rest) {
  if constexpr (__is_same(__decay(decltype(plain(a))), O)) return plain(a);
  else return offset_in<O>(rest...);
}
PM_INLINE int component_in() { return 0; }
template <class A, class... R> PM_INLINE int component_in(const A& a, const R&... rest) {
  if constexpr (__is_same(A, metal::component)) return int(a);
  else return component_in(rest...);
}
// Argument number N.
template <int N, class A, class... R> PM_INLINE decltype(auto) argument_at(const A& a, const R&... rest) {
  if constexpr (N == 0) return (a);
  else return argument_at<N - 1>(rest...);
}

struct Texel {
  int at[3];
  int layer;
};

template <class T, metal::access A> struct image {
  const pm_texture* t_ = nullptr;
  static constexpr bool writable = A == metal::access::write || A == metal::access::read_write;
  using color = metal::vec<T, 4>;

  PM_INLINE uint get_width(uint = 0) const { return t_->width; }
  template <class... P> PM_INLINE float calculate_clamped_lod(const P&...) const { return 0.0f; }
  template <class... P> PM_INLINE float calculate_unclamped_lod(const P&...) const { return 0.0f; }
  PM_INLINE uint get_num_mip_levels() const { return 1; }
  PM_INLINE void fence() const {}

 protected:
  PM_INLINE bool holds(const Texel& x) const {
    return uint(x.at[0]) < t_->width && uint(x.at[1]) < t_->height && uint(x.at[2]) < t_->depth && uint(x.layer) < t_->layers;
  }
  PM_INLINE char* at(const Texel& x) const {
    return static_cast<char*>(t_->data) + ulong(x.at[0]) * t_->channels * component_bytes(t_->texel) +
        ulong(x.at[1]) * t_->row_bytes + (ulong(x.layer) * t_->depth + ulong(x.at[2])) * t_->slice_bytes;
  }
  // Outside of the texture everything reads as zero. Components that the format lacks are 0, and 1 for the last.
  PM_INLINE color fetch(const Texel& x) const {
    if (!holds(x)) return color(T(0));
    color r(T(0), T(0), T(0), T(1));
    for (uint i = 0; i < t_->channels; ++i) r[i] = T(component_of(t_, at(x), i, carrier<T>(0)));
    return r;
  }
  PM_INLINE void store(const Texel& x, const color& v) const {
    if (!holds(x)) return;
    for (uint i = 0; i < t_->channels; ++i) set_component(t_, at(x), i, carrier<T>(v[i]));
  }
  // A coordinate brought into [0, size) as the address mode says; -1 is the border.
  PM_INLINE static int wrap(int i, int size, uint mode) {
    switch (metal::address(mode)) {
      case metal::address::clamp_to_edge: return i < 0 ? 0 : i >= size ? size - 1 : i;
      case metal::address::repeat: return (i % size + size) % size;
      case metal::address::mirrored_repeat: {
        const int k = (i % (2 * size) + 2 * size) % (2 * size);
        return k < size ? k : 2 * size - 1 - k;
      }
      default: return i >= 0 && i < size ? i : -1;
    }
  }
  PM_INLINE color border(const metal::sampler& s) const {
    if (metal::address(s.s_.address[0]) != metal::address::clamp_to_border) return color(T(0));
    switch (metal::border_color(s.s_.border)) {
      case metal::border_color::opaque_white: return color(T(1));
      case metal::border_color::opaque_black: return color(T(0), T(0), T(0), T(1));
      default: return color(T(0));
    }
  }
  PM_INLINE color addressed(const metal::sampler& s, Texel x, int dimensions) const {
    const int sizes[3] = {int(t_->width), int(t_->height), int(t_->depth)};
    for (int d = 0; d < dimensions; ++d) {
      x.at[d] = wrap(x.at[d], sizes[d], s.s_.address[d]);
      if (x.at[d] < 0) return border(s);
    }
    x.layer = wrap(x.layer, int(t_->layers), uint(metal::address::clamp_to_edge));
    return fetch(x);
  }
  // The texel at or below a position, and how far beyond its center the position is.
  PM_INLINE Texel locate(const metal::sampler& s, const float* position, int layer, const int* offset, int dimensions, bool linear, float* part) const {
    const uint sizes[3] = {t_->width, t_->height, t_->depth};
    Texel low{{0, 0, 0}, layer};
    for (int d = 0; d < dimensions; ++d) {
      const float p = metal::coord(s.s_.coord) == metal::coord::normalized ? position[d] * float(sizes[d]) : position[d];
      const float shifted = linear ? p - 0.5f : p;
      const float whole = metal::floor(shifted);
      low.at[d] = int(whole) + offset[d];
      part[d] = shifted - whole;
    }
    return low;
  }
  // `of` makes of each texel's color what is filtered.
  template <class F>
  PM_INLINE color sampled(const metal::sampler& s, const float* position, int layer, const int* offset, int dimensions, F of) const {
    float part[3] = {0, 0, 0};
    const bool linear = metal::filter(s.s_.filter) == metal::filter::linear;
    const Texel low = locate(s, position, layer, offset, dimensions, linear, part);
    if (!linear) return of(addressed(s, low, dimensions));
    metal::vec<float, 4> sum(0.0f);
    for (int corner = 0; corner < 1 << dimensions; ++corner) {
      Texel x = low;
      float weight = 1.0f;
      for (int d = 0; d < dimensions; ++d) {
        const bool up = corner >> d & 1;
        x.at[d] += up;
        weight *= up ? part[d] : 1.0f - part[d];
      }
      if (weight != 0.0f) sum += metal::vec<float, 4>(of(addressed(s, x, dimensions))) * weight;
    }
    return color(sum);
  }
  // One number of each of the four texels that a linear filter would mix: counterclockwise, from the lower left on.
  template <class F> PM_INLINE color gathered(const metal::sampler& s, const float* position, int layer, const int* offset, F of) const {
    float part[3];
    const Texel low = locate(s, position, layer, offset, 2, true, part);
    const int right[4] = {0, 1, 1, 0}, below[4] = {1, 1, 0, 0};
    color result;
    for (int i = 0; i < 4; ++i) {
      Texel x = low;
      x.at[0] += right[i];
      x.at[1] += below[i];
      result[i] = of(addressed(s, x, 2));
    }
    return result;
  }
  // Atomic functions act on the first component, which has 32 bits.
  PM_INLINE T* word(const Texel& x) const { return holds(x) ? reinterpret_cast<T*>(at(x)) : nullptr; }
};
}  // namespace pm
