// Faults in the shapes that public kernels have, and their repairs: members, helpers with pointers, templates, grids of two
// dimensions, nested loops, structures in threadgroup memory, atomics there. The line that is found has the kernel's name.
#include <metal_stdlib>
using namespace metal;

#define PAIR(name, body, ...) \
  kernel void name(__VA_ARGS__) { body<false>(ARGUMENTS); } \
  kernel void name##_repaired(__VA_ARGS__) { body<true>(ARGUMENTS); }
#define BUFFERS device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]]
#define FLAT BUFFERS, uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]
#define SQUARE BUFFERS, uint2 at [[thread_position_in_grid]], uint2 l [[thread_position_in_threadgroup]]

// A member of a structure that lies beyond the last whole one.
struct Node {
  float value;
  int next;
};
template <bool repaired> static void follow(device Node* out, const device float* in, uint n, uint i, uint) {
  if (repaired && i >= n / 2) return;
  out[i].next = int(in[i]);  // member_written
}
#define ARGUMENTS reinterpret_cast<device Node*>(out), in, n, i, l
PAIR(member_written, follow, FLAT)
#undef ARGUMENTS

#define ARGUMENTS out, in, n, i, l
// A helper that copies more than its caller has.
static float add_from(const device float* from, uint count) {
  float sum = 0;
  for (uint k = 0; k < count; ++k) sum += from[k];  // helper_reads
  return sum;
}
template <bool repaired> static void rows(device float* out, const device float* in, uint n, uint i, uint) {
  const uint left = n - min(i, n);
  out[i] = add_from(in + i, repaired ? min(left, 4u) : 4);
}
PAIR(helper_reads, rows, FLAT)

// Templates that unroll by recursion.
template <int N> struct Load {
  static float at(const device float* p) { return p[N - 1] + Load<N - 1>::at(p); }  // recursive_template
};
template <> struct Load<0> {
  static float at(const device float*) { return 0; }
};
template <bool repaired> static void unrolled(device float* out, const device float* in, uint n, uint i, uint) {
  if (i * 3 < n) out[i] = !repaired || i * 3 + 3 <= n ? Load<3>::at(in + i * 3) : 0;
}
PAIR(recursive_template, unrolled, FLAT)

// One of two arguments, by a condition.
template <bool repaired> static void either(device float* out, const device float* in, uint n, uint i, uint) {
  const device float* from = i & 1 ? in : out;
  if (i & 1) out[i] = from[repaired ? i % n : i * 4];  // either_argument
}
PAIR(either_argument, either, FLAT)

// A structure as a whole.
struct Block {
  float values[8];
};
template <bool repaired> static void blocks(device float* out, const device float* in, uint n, uint i, uint) {
  if (i >= (repaired ? n / 8 : n / 8 + 1)) return;
  reinterpret_cast<device Block*>(out)[i] = reinterpret_cast<const device Block*>(in)[i];  // whole_structure
}
PAIR(whole_structure, blocks, FLAT)

// An atomic at an index from data.
template <bool repaired> static void bins(device float* out, const device float* in, uint n, uint i, uint) {
  const uint bin = repaired ? min(uint(abs(in[i]) * 100), n - 1) : uint(abs(in[i]) * 100) + n;
  atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(out) + bin, 1u, memory_order_relaxed);  // atomic_bin
}
PAIR(atomic_bin, bins, FLAT)

// Four halves at an address that is a multiple of two.
template <typename T> static T load_as(const device half* p) { return *reinterpret_cast<const device T*>(p); }  // cast_in_helper
template <bool repaired> static void halves(device float* out, const device float* in, uint n, uint i, uint) {
  const device half* from = reinterpret_cast<const device half*>(in) + 1;
  if (i < 4) out[i] = repaired ? half4(load_as<packed_half4>(from + i * 4)).x : load_as<half4>(from + i * 4).x;
}
PAIR(cast_in_helper, halves, FLAT)

// A pointer in a structure with methods.
struct Writer {
  device float* data;
  void put(uint k, float v) const { data[k] = v; }  // method_writes
};
template <bool repaired> static void through(device float* out, const device float* in, uint, uint i, uint) {
  const Writer to{repaired ? out : const_cast<device float*>(in)};
  to.put(i, 1);
}
PAIR(method_writes, through, FLAT)

// Private structures in nested loops, of which the last is never set.
struct Best {
  float value;
  uint index;
};
template <bool repaired> static void best(device float* out, const device float* in, uint n, uint i, uint) {
  Best top[4];
  for (uint k = 0; k < (repaired ? 4u : 3u); ++k) top[k] = {-1, 0};
  for (uint a = 0; a < 4; ++a)
    for (uint k = 0; k < 4; ++k)
      if (in[(i + a) % n] > top[k].value) top[k] = {in[(i + a) % n], a};  // private_structures
  out[i] = top[0].value + top[3].index;
}
PAIR(private_structures, best, FLAT)

// Scratch memory that the first pass has to fill, read by a helper of the second.
static float combine(const device float* parts, uint k) { return parts[k] * 2; }  // scratch_unset
template <bool repaired> static void scratch(device float* out, const device float* in, uint n, uint i, uint) {
  if (i < n) out[repaired ? i : i + n] = in[i];
  if (i < n) out[i] = combine(out, i);
}
PAIR(scratch_unset, scratch, FLAT)

// Structures in threadgroup memory: one member is read before its barrier.
template <bool repaired> static void shared(device float* out, const device float* in, uint n, uint i, uint l, threadgroup Best* all) {
  all[l] = {in[i], 0};
  threadgroup_barrier(mem_flags::mem_threadgroup);
  all[l].index = l;  // shared_structures
  if (repaired) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = all[63 - l].index;
}
#undef ARGUMENTS
#define ARGUMENTS out, in, n, i, l, all
#undef PAIR
#define PAIR(name, body, declared, ...) \
  kernel void name(__VA_ARGS__) { \
    declared; \
    body<false>(ARGUMENTS); \
  } \
  kernel void name##_repaired(__VA_ARGS__) { \
    declared; \
    body<true>(ARGUMENTS); \
  }
PAIR(shared_structures, shared, threadgroup Best all[64], FLAT)

// Counts in threadgroup memory: one is read as if no thread could still change it, one was never set to 0.
template <bool repaired> static void count(device float* out, const device float* in, uint n, uint i, uint l, threadgroup atomic_uint* all) {
  if (l < 4) atomic_store_explicit(&all[l], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&all[i & 3], 1u, memory_order_relaxed);  // shared_count
  if (repaired) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = reinterpret_cast<threadgroup uint*>(all)[l & 3];
}
PAIR(shared_count, count, threadgroup atomic_uint all[4], FLAT)
template <bool repaired> static void unset(device float* out, const device float* in, uint n, uint i, uint l, threadgroup atomic_uint* all) {
  if (repaired && l < 4) atomic_store_explicit(&all[l], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&all[i & 3], 1u, memory_order_relaxed);  // count_unset
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = atomic_load_explicit(&all[l & 3], memory_order_relaxed);
}
PAIR(count_unset, unset, threadgroup atomic_uint all[4], FLAT)

// A lock that its owner never gives back.
template <bool repaired> static void locked(device float* out, const device float* in, uint n, uint i, uint l, threadgroup atomic_uint* all) {
  if (l == 0) atomic_store_explicit(&all[0], 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (l == 5) {
    while (atomic_exchange_explicit(&all[0], 1u, memory_order_relaxed));
    while (!repaired && atomic_exchange_explicit(&all[0], 1u, memory_order_relaxed));  // lock_kept
    out[0] = in[0];
    atomic_store_explicit(&all[0], 0u, memory_order_relaxed);
  }
}
PAIR(lock_kept, locked, threadgroup atomic_uint all[4], FLAT)

// Two buffers in turn, of which the wrong one is filled.
template <bool repaired> static void turns(device float* out, const device float* in, uint n, uint i, uint l, threadgroup float* all) {
  all[l] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint step = 0; step < 4; ++step) {
    for (uint k = 0; k < 2; ++k) sum += all[(step & 1) * 64 + (l + k) % 64];
    all[(repaired ? 1 - (step & 1) : step & 1) * 64 + l] = sum;  // double_buffer
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (!repaired) sum += 1;
  }
  out[i] = sum;
}
PAIR(double_buffer, turns, threadgroup float all[128], FLAT)

// Barriers of simdgroups where the threadgroup's are needed, in a threadgroup of two dimensions.
template <bool repaired> static void turn(device float* out, const device float* in, uint n, uint2 at, uint2 l, threadgroup float (*all)[17]) {
  all[l.y][l.x] = in[at.y * n + at.x];
  if (repaired) threadgroup_barrier(mem_flags::mem_threadgroup);
  else simdgroup_barrier(mem_flags::mem_threadgroup);
  out[at.y * n + at.x] = all[l.x][l.y];  // transposed
}
#undef ARGUMENTS
#define ARGUMENTS out, in, n, at, l, all
PAIR(transposed, turn, threadgroup float all[16][17], SQUARE)

// A halo that the tile has no room for.
template <bool repaired> static void stencil(device float* out, const device float* in, uint n, uint2 at, uint2 l, threadgroup float (*all)[16]) {
  all[l.y][l.x] = in[at.y * n + at.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint dy = 0; dy < 2; ++dy)
    for (uint dx = 0; dx < 2; ++dx) sum += all[repaired ? min(l.y + dy, 15u) : l.y + dy][min(l.x + dx, 15u)];  // tile_halo
  out[at.y * n + at.x] = sum;
}
PAIR(tile_halo, stencil, threadgroup float all[16][16], SQUARE)

#undef PAIR
#define PAIR(name, body, ...) \
  kernel void name(__VA_ARGS__) { body<false>(ARGUMENTS); } \
  kernel void name##_repaired(__VA_ARGS__) { body<true>(ARGUMENTS); }
#undef ARGUMENTS
#define ARGUMENTS out, in, n, at, l
// Neighbors in two loops, of which the first lies before the tensor.
template <bool repaired> static void around(device float* out, const device float* in, uint n, uint2 at, uint2) {
  float sum = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      const int y = int(at.y) + dy, x = int(at.x) + dx;
      if (repaired && (y < 0 || x < 0 || y >= int(n) || x >= int(n))) continue;
      sum += in[y * int(n) + x];  // before_the_tensor
    }
  out[at.y * n + at.x] = sum;
}
PAIR(before_the_tensor, around, SQUARE)

// Rows and columns of one grid that write one element.
template <bool repaired> static void columns(device float* out, const device float* in, uint n, uint2 at, uint2) {
  out[repaired ? at.y * n + at.x : at.x] = in[at.y * n + at.x];  // one_column
}
PAIR(one_column, columns, SQUARE)

// A threadgroup that adds to a total of all, member by member.
struct Total {
  float sum;
  uint count;
};
template <bool repaired> static void total(device float* out, const device float* in, uint n, uint2 at, uint2 l) {
  const uint group = (at.y / 16) * (n / 16) + at.x / 16;
  if (l.x + l.y == 0) reinterpret_cast<device Total*>(out)[repaired ? group : 0].count = group;  // total_of_groups
}
PAIR(total_of_groups, total, SQUARE)

#undef ARGUMENTS
#define ARGUMENTS out, in, n, i, l
// A barrier in the turns of a helper's loop, which threads take in different numbers.
static void wait_for(uint turns) {
  for (uint k = 0; k < turns; ++k) threadgroup_barrier(mem_flags::mem_threadgroup);  // helper_waits
}
template <bool repaired> static void waits(device float* out, const device float* in, uint n, uint i, uint l) {
  wait_for(repaired ? n % 3 + 1 : l < 32 ? 2 : 1);
  out[i] = in[i];
}
PAIR(helper_waits, waits, FLAT)

// A shuffle of a template in a branch that half of the lanes take.
template <typename T> static T pair_sum(T v) { return v + simd_shuffle_xor(v, 1); }  // template_shuffles
template <bool repaired> static void shuffled(device float* out, const device float* in, uint n, uint i, uint l) {
  if (repaired || l & 1) out[i] = pair_sum(in[i]);
}
PAIR(template_shuffles, shuffled, FLAT)

// A function constant that says how far to read.
constant uint reach [[function_constant(0)]];
constant bool guarded [[function_constant(1)]];
kernel void by_constant(FLAT) {
  if (guarded && i + reach >= n) return;
  out[i] = in[i + reach];  // by_constant
}

// The dimensions of a tensor: one more than there are.
struct Shape {
  uint rank;
  uint sizes[4];
};
template <bool repaired> static void shaped(device float* out, constant Shape& n, uint i) {
  uint product = 1;
  for (uint d = 0; d < (repaired ? n.rank : n.rank + 1); ++d) product *= n.sizes[d];  // one_more_dimension
  if (i == 0) out[0] = product;
}
kernel void one_more_dimension(device float* out [[buffer(0)]], constant Shape& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  shaped<false>(out, n, i);
}
kernel void one_more_dimension_repaired(device float* out [[buffer(0)]], constant Shape& n [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  shaped<true>(out, n, i);
}

// Eight by eight elements of a tile that has fewer rows.
template <bool repaired> static void matrices(device float* out, const device float* in, uint l, threadgroup float* tile) {
  for (uint k = l; k < 64; k += 32) tile[k] = in[k];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 m;
  simdgroup_load(m, tile + (repaired ? 0 : 8), 8);  // matrix_of_tile
  simdgroup_store(m, out, 8);
}
kernel void matrix_of_tile(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint l [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  matrices<false>(out, in, l, tile);
}
kernel void matrix_of_tile_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint l [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  matrices<true>(out, in, l, tile);
}
