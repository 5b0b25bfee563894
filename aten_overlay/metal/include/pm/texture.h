// <metal_texture>: textures without mipmaps and samplers, as compute kernels use them (MSL sections 2.8, 2.10 and 6.12).
#pragma once
#include "../porter_metal_abi.h"

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
struct level {
  float lod;
  PM_INLINE explicit constexpr level(float l) : lod(l) {}
};
struct bias {
  float value;
  PM_INLINE explicit constexpr bias(float v) : value(v) {}
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

struct Texel {
  int at[3];
  int layer;
};

template <class T, metal::access A> struct image {
  const pm_texture* t_ = nullptr;
  static constexpr bool writable = A == metal::access::write || A == metal::access::read_write;
  using color = metal::vec<T, 4>;

  PM_INLINE uint get_width(uint = 0) const { return t_->width; }
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
  PM_INLINE color sampled(const metal::sampler& s, const float* position, int layer, const int* offset, int dimensions) const {
    const uint sizes[3] = {t_->width, t_->height, t_->depth};
    Texel low{{0, 0, 0}, layer};
    float part[3] = {0, 0, 0};
    const bool linear = metal::filter(s.s_.filter) == metal::filter::linear;
    for (int d = 0; d < dimensions; ++d) {
      const float p = metal::coord(s.s_.coord) == metal::coord::normalized ? position[d] * float(sizes[d]) : position[d];
      const float shifted = linear ? p - 0.5f : p;
      const float whole = metal::floor(shifted);
      low.at[d] = int(whole) + offset[d];
      part[d] = shifted - whole;
    }
    if (!linear) return addressed(s, low, dimensions);
    metal::vec<float, 4> sum(0.0f);
    for (int corner = 0; corner < 1 << dimensions; ++corner) {
      Texel x = low;
      float weight = 1.0f;
      for (int d = 0; d < dimensions; ++d) {
        const bool up = corner >> d & 1;
        x.at[d] += up;
        weight *= up ? part[d] : 1.0f - part[d];
      }
      if (weight != 0.0f) sum += metal::vec<float, 4>(addressed(s, x, dimensions)) * weight;
    }
    return color(sum);
  }
};
}  // namespace pm

namespace metal {
#define PM_HEIGHT PM_INLINE uint get_height(uint = 0) const { return this->t_->height; }
#define PM_DEPTH PM_INLINE uint get_depth(uint = 0) const { return this->t_->depth; }
#define PM_LAYERS PM_INLINE uint get_array_size() const { return this->t_->layers; }
// NAME has D dimensions: C and F are its integer and float coordinates, X and P make three of them; LAYER is `uint l` or nothing.
#define PM_TEXTURE_CLASS(NAME, D, C, F, X, P, LAYER, L, OFFSET, SIZES) \
  template <class T, access A = access::sample> struct NAME : pm::image<T, A> { \
    using color = vec<T, 4>; \
    PM_INLINE static NAME from(const void* p) { \
      NAME t; \
      t.t_ = static_cast<const pm_texture*>(p); \
      return t; \
    } \
    SIZES \
    template <class I> PM_INLINE color read(const I& at LAYER(uint), uint = 0) const { \
      const auto& c = pm::plain(at); \
      return this->fetch({{X}, L}); \
    } \
    template <class I> PM_INLINE void write(const color& v, const I& at LAYER(uint), uint = 0) const { \
      const auto& c = pm::plain(at); \
      this->store({{X}, L}, v); \
    } \
    PM_INLINE color sample(sampler s, F c LAYER(uint)) const { return sample_at(s, c, L, 0); } \
    PM_INLINE color sample(sampler s, F c LAYER(uint), level) const { return sample_at(s, c, L, 0); } \
    PM_INLINE color sample(sampler s, F c LAYER(uint), bias) const { return sample_at(s, c, L, 0); } \
    PM_INLINE color sample(sampler s, F c LAYER(uint), OFFSET offset) const { return sample_at(s, c, L, offset); } \
    PM_INLINE color sample(sampler s, F c LAYER(uint), level, OFFSET offset) const { return sample_at(s, c, L, offset); } \
    PM_INLINE color sample_at(sampler s, F c, uint l, OFFSET o) const { \
      const float position[3] = {P}; \
      const int offset[3] = {PM_OFFSET_##D}; \
      return this->sampled(s, position, int(l), offset, D); \
    } \
  };
#define PM_NO_LAYER(T)
#define PM_ITS_LAYER(T) , T l
#define PM_X1 int(c), 0, 0
#define PM_X2 int(c.x), int(c.y), 0
#define PM_X3 int(c.x), int(c.y), int(c.z)
#define PM_P1 c, 0, 0
#define PM_P2 c.x, c.y, 0
#define PM_P3 c.x, c.y, c.z
#define PM_OFFSET_1 o, 0, 0
#define PM_OFFSET_2 o.x, o.y, 0
#define PM_OFFSET_3 o.x, o.y, o.z
PM_TEXTURE_CLASS(texture1d, 1, uint, float, PM_X1, PM_P1, PM_NO_LAYER, 0, int, )
PM_TEXTURE_CLASS(texture2d, 2, uint2, float2, PM_X2, PM_P2, PM_NO_LAYER, 0, int2, PM_HEIGHT)
PM_TEXTURE_CLASS(texture3d, 3, uint3, float3, PM_X3, PM_P3, PM_NO_LAYER, 0, int3, PM_HEIGHT PM_DEPTH)
PM_TEXTURE_CLASS(texture1d_array, 1, uint, float, PM_X1, PM_P1, PM_ITS_LAYER, int(l), int, PM_LAYERS)
PM_TEXTURE_CLASS(texture2d_array, 2, uint2, float2, PM_X2, PM_P2, PM_ITS_LAYER, int(l), int2, PM_HEIGHT PM_LAYERS)
#undef PM_TEXTURE_CLASS
template <class T, access A = access::read> struct texture_buffer : texture1d<T, A> {
  PM_INLINE static texture_buffer from(const void* p) {
    texture_buffer t;
    t.t_ = static_cast<const pm_texture*>(p);
    return t;
  }
};
// One component.
template <class T, access A = access::sample> struct depth2d : texture2d<T, A> {
  using base = texture2d<T, A>;
  PM_INLINE static depth2d from(const void* p) {
    depth2d t;
    t.t_ = static_cast<const pm_texture*>(p);
    return t;
  }
  template <class... B> PM_INLINE T read(B... b) const { return base::read(b...).x; }
  template <class... B> PM_INLINE T sample(B... b) const { return base::sample(b...).x; }
};
template <class T, access A> PM_INLINE bool is_null_texture(const pm::image<T, A>& t) { return !t.t_; }
}  // namespace metal
