// The textures of <metal_texture>, by their dimensions. Samples of a multisampled one are in its depth, faces of a cube in its layers.
#pragma once

namespace pm {
// A direction as the face of a cube that it hits, and where on it.
struct on_cube {
  uint face;
  float at[2];
};
PM_INLINE on_cube hit_cube(metal::vec<float, 3> d) {
  const float x = metal::fabs(d.x), y = metal::fabs(d.y), z = metal::fabs(d.z);
  const uint axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
  const float most = axis == 0 ? x : axis == 1 ? y : z;
  const bool negative = (axis == 0 ? d.x : axis == 1 ? d.y : d.z) < 0.0f;
  const float sign = negative ? -1.0f : 1.0f;
  const float right = axis == 0 ? -sign * d.z : axis == 1 ? d.x : sign * d.x;
  const float down = axis == 1 ? sign * d.z : -d.y;
  return {2 * axis + uint(negative), {(right / most + 1.0f) * 0.5f, (down / most + 1.0f) * 0.5f}};
}

// D dimensions. After the coordinates of a texel come its face, if it is of a cube, its layer and its sample.
template <class T, metal::access A, int D, bool Depth, bool Cube, bool Array, bool Multisampled> struct texture_of : image<T, A> {
  using color = metal::vec<T, 4>;
  using value = metal::conditional_t<Depth, T, color>;
  using coordinates = typename metal::conditional<D == 1, metal::type_identity<float>, metal::type_identity<metal::vec<float, (Cube ? 3 : D == 1 ? 2 : D)>>>::type::type;
  using offsets = typename metal::conditional<D == 1, metal::type_identity<int>, metal::type_identity<metal::vec<int, D == 1 ? 2 : D>>>::type::type;
  static constexpr int named = Cube + Array + Multisampled;

  PM_INLINE uint get_height(uint = 0) const {
    static_assert(D >= 2, "this texture has no height");
    return this->t_->height;
  }
  PM_INLINE uint get_depth(uint = 0) const {
    static_assert(D == 3, "this texture has no depth");
    return this->t_->depth;
  }
  PM_INLINE uint get_array_size() const {
    static_assert(Array, "this texture has no layers");
    return this->t_->layers / (Cube ? 6 : 1);
  }
  PM_INLINE uint get_num_samples() const {
    static_assert(Multisampled, "this texture has no samples");
    return this->t_->depth;
  }

  template <class I, class... R> PM_INLINE value read(const I& at, const R&... rest) const { return only(this->fetch(texel(at, rest...))); }
  template <class I, class... R> PM_INLINE void write(const value& v, const I& at, const R&... rest) const {
    this->store(texel(at, rest...), color(v));
  }

  template <class... R> PM_INLINE value sample(metal::sampler s, coordinates c, const R&... rest) const {
    return only(sampled_with(s, c, identity(), rest...));
  }
  template <class... R> PM_INLINE T sample_compare(metal::sampler s, coordinates c, const R&... rest) const {
    return sampled_with(s, c, compared{metal::compare_func(s.s_.compare), float(argument_at<Array>(rest...))}, rest...).x;
  }
  template <class... R> PM_INLINE color gather(metal::sampler s, coordinates c, const R&... rest) const {
    const int which = component_in(rest...);
    return gathered_with(s, c, [which](const color& t) { return t[which]; }, rest...);
  }
  template <class... R> PM_INLINE color gather_compare(metal::sampler s, coordinates c, const R&... rest) const {
    const compared test{metal::compare_func(s.s_.compare), float(argument_at<Array>(rest...))};
    return gathered_with(s, c, [test](const color& t) { return T(test.holds(float(t.x)) ? 1.0f : 0.0f); }, rest...);
  }

#define PM_SPARSE(name) \
  template <class... R> PM_INLINE auto sparse_##name(const R&... rest) const { \
    return metal::sparse_color<__decay(decltype(this->name(rest...)))>(this->name(rest...), true); \
  }
  PM_SPARSE(sample) PM_SPARSE(sample_compare) PM_SPARSE(gather) PM_SPARSE(gather_compare) PM_SPARSE(read)
#undef PM_SPARSE

#define PM_ATOMIC(name, function) \
  template <class I, class... R> PM_INLINE color atomic_##name(const I& at, const R&... rest) const { \
    T* const word = this->word(texel(at, rest...)); \
    return first(word ? function(word, color(argument_at<named>(rest...)).x, __ATOMIC_RELAXED) : T(0)); \
  }
  PM_ATOMIC(fetch_add, __atomic_fetch_add) PM_ATOMIC(fetch_sub, __atomic_fetch_sub) PM_ATOMIC(fetch_and, __atomic_fetch_and)
  PM_ATOMIC(fetch_or, __atomic_fetch_or) PM_ATOMIC(fetch_xor, __atomic_fetch_xor) PM_ATOMIC(fetch_min, __atomic_fetch_min)
  PM_ATOMIC(fetch_max, __atomic_fetch_max) PM_ATOMIC(exchange, __atomic_exchange_n)
#undef PM_ATOMIC
  template <class I, class... R> PM_INLINE color atomic_load(const I& at, const R&... rest) const {
    const T* const word = this->word(texel(at, rest...));
    return first(word ? __atomic_load_n(word, __ATOMIC_RELAXED) : T(0));
  }
  template <class I, class... R> PM_INLINE void atomic_store(const color& v, const I& at, const R&... rest) const {
    if (T* const word = this->word(texel(at, rest...))) __atomic_store_n(word, v.x, __ATOMIC_RELAXED);
  }
  template <class I, class... R> PM_INLINE bool atomic_compare_exchange_weak(const I& at, const R&... rest) const {
    T* const word = this->word(texel(at, rest...));
    color* const expected = argument_at<named>(rest...);
    T was = expected->x;
    const T wanted = color(argument_at<named + 1>(rest...)).x;
    const bool done = word && __atomic_compare_exchange_n(word, &was, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    *expected = first(was);
    return done;
  }

 private:
  PM_INLINE static value only(const color& c) {
    if constexpr (Depth) return c.x;
    else return c;
  }
  PM_INLINE static color first(T v) { return color(v, T(0), T(0), T(0)); }
  template <int N, class... R> PM_INLINE static int number(const R&... rest) { return int(argument_at<N>(rest...)); }
  template <class I, class... R> PM_INLINE static Texel texel(const I& given, const R&... rest) {
    const auto& at = plain(given);
    Texel x{{0, 0, 0}, 0};
    if constexpr (D == 1) x.at[0] = int(at);
    else for (int d = 0; d < D; ++d) x.at[d] = int(at[d]);
    if constexpr (Cube && Array) x.layer = 6 * number<1>(rest...) + number<0>(rest...);
    else if constexpr (Cube || Array) x.layer = number<0>(rest...);
    if constexpr (Multisampled) x.at[2] = number<Array>(rest...);
    return x;
  }
  // Where a coordinate is in the layer that it is in.
  struct Spot {
    float position[3];
    int layer;
    int offset[3];
  };
  template <class... R> PM_INLINE static Spot spot(const coordinates& c, const R&... rest) {
    Spot s{{0, 0, 0}, 0, {0, 0, 0}};
    if constexpr (Array) s.layer = number<0>(rest...);
    if constexpr (Cube) {
      const on_cube hit = hit_cube(c);
      s.position[0] = hit.at[0], s.position[1] = hit.at[1];
      s.layer = 6 * s.layer + int(hit.face);
    } else if constexpr (D == 1) {
      s.position[0] = c;
    } else {
      for (int d = 0; d < D; ++d) s.position[d] = c[d];
    }
    const offsets o = offset_of(rest...);
    if constexpr (D == 1) s.offset[0] = o;
    else for (int d = 0; d < D; ++d) s.offset[d] = o[d];
    return s;
  }
  PM_INLINE static offsets offset_of() { return offsets(0); }
  // A layer is no offset, though it may be an int as well.
  template <class L, class... R> PM_INLINE static offsets offset_of(const L& l, const R&... rest) {
    if constexpr (Array) return offset_in<offsets>(rest...);
    else return offset_in<offsets>(l, rest...);
  }
  template <class F, class... R> PM_INLINE color sampled_with(const metal::sampler& s, const coordinates& c, F of, const R&... rest) const {
    const Spot at = spot(c, rest...);
    return this->sampled(s, at.position, at.layer, at.offset, D, of);
  }
  template <class F, class... R> PM_INLINE color gathered_with(const metal::sampler& s, const coordinates& c, F of, const R&... rest) const {
    const Spot at = spot(c, rest...);
    return this->gathered(s, at.position, at.layer, at.offset, of);
  }
};
}  // namespace pm

namespace metal {
#define PM_TEXTURE(NAME, DEFAULT, ...) \
  template <class T, access A = access::DEFAULT, memory_coherence = memory_coherence_threadgroup> \
  struct NAME : pm::texture_of<T, A, __VA_ARGS__> { \
    PM_INLINE static NAME from(const void* p) { \
      NAME t; \
      t.t_ = static_cast<const pm_texture*>(p); \
      return t; \
    } \
  };
PM_TEXTURE(texture1d, sample, 1, false, false, false, false)
PM_TEXTURE(texture_buffer, read, 1, false, false, false, false)
PM_TEXTURE(texture1d_array, sample, 1, false, false, true, false)
PM_TEXTURE(texture2d, sample, 2, false, false, false, false)
PM_TEXTURE(texture2d_array, sample, 2, false, false, true, false)
PM_TEXTURE(texture2d_ms, read, 2, false, false, false, true)
PM_TEXTURE(texture2d_ms_array, read, 2, false, false, true, true)
PM_TEXTURE(texture3d, sample, 3, false, false, false, false)
PM_TEXTURE(texturecube, sample, 2, false, true, false, false)
PM_TEXTURE(texturecube_array, sample, 2, false, true, true, false)
PM_TEXTURE(depth2d, sample, 2, true, false, false, false)
PM_TEXTURE(depth2d_array, sample, 2, true, false, true, false)
PM_TEXTURE(depth2d_ms, read, 2, true, false, false, true)
PM_TEXTURE(depth2d_ms_array, read, 2, true, false, true, true)
PM_TEXTURE(depthcube, sample, 2, true, true, false, false)
PM_TEXTURE(depthcube_array, sample, 2, true, true, true, false)
#undef PM_TEXTURE
template <class T, access A> PM_INLINE bool is_null_texture(const pm::image<T, A>& t) { return !t.t_; }
}  // namespace metal
