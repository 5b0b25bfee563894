// Atomic functions, barriers and threadgroup memory.
#include <metal_stdlib>
using namespace metal;

#define EACH(T, name, function) \
  kernel void name##_##T(device const T* x [[buffer(0)]], device atomic<T>* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { \
    atomic_##function##_explicit(&out[i % 3], x[i], memory_order_relaxed); \
  }
#define WORDS(T) EACH(T, add, fetch_add) EACH(T, sub, fetch_sub) EACH(T, least, fetch_min) EACH(T, greatest, fetch_max)
WORDS(int) WORDS(uint) WORDS(float)
EACH(int, any_bit, fetch_or) EACH(uint, every_bit, fetch_and) EACH(uint, odd_bits, fetch_xor)
EACH(ulong, least, min) EACH(ulong, greatest, max)

kernel void exchanged(device const int* x [[buffer(0)]], device atomic_int* slot [[buffer(1)]], device atomic_int* sum [[buffer(2)]],
                      uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(sum, atomic_exchange_explicit(slot, x[i], memory_order_relaxed), memory_order_relaxed);
}
kernel void compared(device const float* x [[buffer(0)]], device atomic_uint* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint seen = atomic_load_explicit(out, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(out, &seen, as_type<uint>(as_type<float>(seen) + x[i]), memory_order_relaxed, memory_order_relaxed)) {
  }
}
kernel void flags(device const uint* x [[buffer(0)]], device atomic_bool* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (x[i]) atomic_store_explicit(&out[x[i] % 8], true, memory_order_relaxed);
}
kernel void counted(device const uchar* x [[buffer(0)]], device atomic_uint* out [[buffer(1)]], constant uint& n [[buffer(2)]],
                    uint i [[thread_position_in_grid]], uint local [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  threadgroup atomic_uint bins[256];
  for (uint b = local; b < 256; b += threads) atomic_store_explicit(&bins[b], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < n) atomic_fetch_add_explicit(&bins[x[i]], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint b = local; b < 256; b += threads)
    atomic_fetch_add_explicit(&out[b], atomic_load_explicit(&bins[b], memory_order_relaxed), memory_order_relaxed);
}
// A tree over threadgroup memory whose length the launch gives, and an array of the kernel's own.
kernel void tree(device const int* x [[buffer(0)]], device int* out [[buffer(1)]], threadgroup int* shared [[threadgroup(0)]],
                 threadgroup long* wide [[threadgroup(1)]], uint i [[thread_position_in_threadgroup]],
                 uint n [[threads_per_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  threadgroup int own[256];
  own[i] = shared[i] = x[group * n + i];
  wide[i] = shared[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = n / 2; step > 0; step /= 2) {
    if (i < step) shared[i] += own[i + step], wide[i] += wide[i + step];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    own[i] = shared[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i == 0) out[group] = shared[0] == int(wide[0]) ? own[0] : -1;
}
// Neighbors in device memory, after a barrier that orders it.
kernel void passed_on(device int* x [[buffer(0)]], device int* out [[buffer(1)]], uint i [[thread_position_in_grid]],
                      uint local [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  x[i] = int(i) * 3;
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = x[i - local + (local + 1) % n];
}
struct Scale {
  float factor;
  short shift;
  int3 more;
};
constant bool doubled [[function_constant(0)]];
constant int added [[function_constant(1)]];
kernel void passed(device float* out [[buffer(0)]], constant Scale& scale [[buffer(1)]], constant uint* sizes [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  out[i] = (doubled ? 2 : 1) * scale.factor * float(sizes[i % 4]) + scale.shift + scale.more.z + added;
}
