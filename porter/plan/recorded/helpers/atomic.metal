// Addition to an element of device memory that other threads add to as well
template <typename T>
struct AtomicType;

template <typename T>
using AtomicType_t = typename AtomicType<T>::type;

template <>
struct AtomicType<float> {
  using type = ::metal::atomic<float>;
  static void atomic_add(device type* data, long offset, float value) {
    ::metal::atomic_fetch_add_explicit(
        data + offset, value, ::metal::memory_order_relaxed);
  }
};

template <>
struct AtomicType<int> {
  using type = ::metal::atomic<int>;
  static void atomic_add(device type* data, long offset, int value) {
    ::metal::atomic_fetch_add_explicit(
        data + offset, value, ::metal::memory_order_relaxed);
  }
};

template <>
struct AtomicType<float2> {
  using type = ::metal::atomic<float>;
  static void atomic_add(device type* data, long offset, float2 value) {
    AtomicType<float>::atomic_add(data, 2 * offset, value.x);
    AtomicType<float>::atomic_add(data, 2 * offset + 1, value.y);
  }
};

// 64-bit integers as two words, of which the upper one gets the carry
template <>
struct AtomicType<long> {
  using type = ::metal::atomic<uint>;
  static void atomic_add(device type* data, long offset, long value) {
    const uint low = static_cast<uint>(value);
    const uint old = ::metal::atomic_fetch_add_explicit(
        data + 2 * offset, low, ::metal::memory_order_relaxed);
    const uint high =
        static_cast<uint>(value >> 32) + (old + low < old ? 1 : 0);
    if (high != 0) {
      ::metal::atomic_fetch_add_explicit(
          data + 2 * offset + 1, high, ::metal::memory_order_relaxed);
    }
  }
};

template <typename T>
inline T from_bits(uint bits) {
  return static_cast<T>(bits);
}

template <>
inline half from_bits<half>(uint bits) {
  return as_type<half>(static_cast<ushort>(bits));
}

template <typename T>
inline uint to_bits(T value) {
  return static_cast<uint>(value);
}

inline uint to_bits(half value) {
  return as_type<ushort>(value);
}

#if __METAL_VERSION__ >= 310
template <>
inline bfloat from_bits<bfloat>(uint bits) {
  return as_type<bfloat>(static_cast<ushort>(bits));
}

inline uint to_bits(bfloat value) {
  return as_type<ushort>(value);
}
#endif

// Elements of less than 32 bits: the word around one is exchanged until no
// other thread has written to it in between
template <typename T>
struct AtomicPart {
  using type = ::metal::atomic<uint>;
  static void atomic_add(device type* data, long offset, T value) {
    const ulong address = reinterpret_cast<ulong>(data) + offset * sizeof(T);
    device type* word = reinterpret_cast<device type*>(address & ~3ul);
    const uint shift = 8 * (address & 3);
    const uint mask = sizeof(T) == 1 ? 0xff : 0xffff;
    uint old =
        ::metal::atomic_load_explicit(word, ::metal::memory_order_relaxed);
    uint sum;
    do {
      const T element = from_bits<T>((old >> shift) & mask);
      const uint bits = to_bits(static_cast<T>(element + value)) & mask;
      sum = (old & ~(mask << shift)) | (bits << shift);
    } while (!::metal::atomic_compare_exchange_weak_explicit(
        word,
        &old,
        sum,
        ::metal::memory_order_relaxed,
        ::metal::memory_order_relaxed));
  }
};

template <>
struct AtomicType<half> : AtomicPart<half> {};

template <>
struct AtomicType<short> : AtomicPart<short> {};

template <>
struct AtomicType<char> : AtomicPart<char> {};

template <>
struct AtomicType<uchar> : AtomicPart<uchar> {};

template <>
struct AtomicType<bool> : AtomicPart<bool> {};

#if __METAL_VERSION__ >= 310
template <>
struct AtomicType<bfloat> : AtomicPart<bfloat> {};
#endif
