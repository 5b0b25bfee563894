inline ulong join_words(uint2 words) {
  return (static_cast<ulong>(words.x) << 32) | words.y;
}

// Uniform in [0, 1), with as many bits as the type has digits
template <typename T>
inline float draw_uniform(uint word) {
  constexpr int digits = ::metal::numeric_limits<T>::digits;
  return (word >> (32 - digits)) * (1.0f / (1u << digits));
}

// Uniform in (0, 1)
inline float draw_open(uint word) {
  return ((word >> 9) + 0.5f) * (1.0f / (1u << 23));
}

inline float draw_normal(uint2 words) {
  return precise::sqrt(-2 * precise::log(draw_open(words.x))) * cospi(2 * draw_uniform<float>(words.y));
}

// The integers from 0 that a type has, or that a floating type has without a gap
template <typename T>
inline long draw_whole(uint2 words) {
  constexpr int digits = ::metal::numeric_limits<T>::digits;
  const ulong word = join_words(words);
  if (is_floating_point_v<T>) {
    return word % ((1ul << digits) + 1);
  }
  return word >> (64 - digits);
}

// Each element has random words of its own: those of the Philox counter at the generator's offset, plus its index.
template <typename T, typename F, typename P>
kernel void fill_random(
    device T* output [[buffer(0)]],
    constant P* params [[buffer(1)]],
    constant long* state [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
  const uint4 words = c10::metal::philox4::rand(state[0], state[1] + index);
  output[index] = static_cast<T>(F{}.template operator()<T>(words, params));
}

template <typename T, typename F>
kernel void fill_random_of(
    device T* output [[buffer(0)]],
    constant float* input [[buffer(1)]],
    constant long* state [[buffer(2)]],
    uint index [[thread_position_in_grid]]) {
  const uint4 words = c10::metal::philox4::rand(state[0], state[1] + index);
  output[index] = static_cast<T>(F{}.template operator()<T>(words, input[index]));
}

#define REGISTER_RANDOM_OP(NAME, DTYPE, PARAM)                       \
  template [[host_name(#NAME "_fill_" #DTYPE "_" #DTYPE)]] kernel void               \
  fill_random<DTYPE, NAME##_functor, PARAM>(                         \
      device DTYPE*, constant PARAM*, constant long*, uint)

#define REGISTER_RANDOM_OP_OF(NAME, DTYPE)                           \
  template [[host_name(#NAME "_fill_" #DTYPE "_" #DTYPE)]] kernel void               \
  fill_random_of<DTYPE, NAME##_functor>(                             \
      device DTYPE*, constant float*, constant long*, uint)
