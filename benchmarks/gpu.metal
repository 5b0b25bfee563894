// Kernels that benchmarks/gpu.py times on a GPU, as a person writes them for one.
#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void silu(device const T* x [[buffer(0)]], device T* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float v = float(x[i]);
  y[i] = T(v / (1.0f + exp(-v)));
}
template [[host_name("silu_float")]] [[kernel]] decltype(silu<float>) silu<float>;
template [[host_name("silu_half")]] [[kernel]] decltype(silu<half>) silu<half>;
template [[host_name("silu_bfloat")]] [[kernel]] decltype(silu<bfloat>) silu<bfloat>;

template <typename T>
[[kernel]] void multiply_add(device const T* x [[buffer(0)]], device const T* y [[buffer(1)]], device T* z [[buffer(2)]],
                             constant float& a [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  z[i] = T(a * float(x[i]) + float(y[i]));
}
template [[host_name("multiply_add_float")]] [[kernel]] decltype(multiply_add<float>) multiply_add<float>;
template [[host_name("multiply_add_half")]] [[kernel]] decltype(multiply_add<half>) multiply_add<half>;

// ---- one threadgroup a row, whose threads keep their part of it in registers: four vectors of four
constant constexpr uint EACH = 4;

inline float sum_group(float v, threadgroup float* parts, uint lane, uint simdgroup, uint simdgroups) {
  v = simd_sum(v);
  if (lane == 0) parts[simdgroup] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  v = simd_sum(lane < simdgroups ? parts[lane] : 0.0f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return v;
}

kernel void rms_norm_rows(device const float4* x [[buffer(0)]], device const float4* w [[buffer(1)]],
                          device float4* y [[buffer(2)]], constant float& eps [[buffer(3)]],
                          uint row [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]],
                          uint size [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                          uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float parts[32];
  const ulong start = ulong(row) * size * EACH + lid;
  float4 v[EACH];
  float squares = 0;
  for (uint k = 0; k < EACH; ++k) {
    v[k] = x[start + k * size];
    squares += dot(v[k], v[k]);
  }
  const float n = float(size * EACH * 4);
  const float scale = rsqrt(sum_group(squares, parts, lane, simdgroup, simdgroups) / n + eps);
  for (uint k = 0; k < EACH; ++k) y[start + k * size] = v[k] * scale * w[lid + k * size];
}

kernel void layer_norm_rows(device const float4* x [[buffer(0)]], device const float4* w [[buffer(1)]],
                            device const float4* b [[buffer(2)]], device float4* y [[buffer(3)]],
                            constant float& eps [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                            uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float parts[32];
  const ulong start = ulong(row) * size * EACH + lid;
  float4 v[EACH];
  float4 total = float4(0);
  for (uint k = 0; k < EACH; ++k) total += v[k] = x[start + k * size];
  const float n = float(size * EACH * 4);
  const float mean = sum_group(total.x + total.y + total.z + total.w, parts, lane, simdgroup, simdgroups) / n;
  float squares = 0;
  for (uint k = 0; k < EACH; ++k) {
    v[k] -= mean;
    squares += dot(v[k], v[k]);
  }
  const float scale = rsqrt(sum_group(squares, parts, lane, simdgroup, simdgroups) / n + eps);
  for (uint k = 0; k < EACH; ++k) y[start + k * size] = v[k] * scale * w[lid + k * size] + b[lid + k * size];
}

kernel void softmax_rows(device const float4* x [[buffer(0)]], device float4* y [[buffer(1)]],
                         uint row [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]],
                         uint size [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]],
                         uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float parts[32], tops[32];
  const ulong start = ulong(row) * size * EACH + lid;
  float4 v[EACH];
  float top = -INFINITY;
  for (uint k = 0; k < EACH; ++k) {
    v[k] = x[start + k * size];
    top = max(top, max(max(v[k].x, v[k].y), max(v[k].z, v[k].w)));
  }
  top = simd_max(top);
  if (lane == 0) tops[simdgroup] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  top = simd_max(lane < simdgroups ? tops[lane] : -INFINITY);
  float4 total = float4(0);
  for (uint k = 0; k < EACH; ++k) total += v[k] = exp(v[k] - top);
  const float sum = sum_group(total.x + total.y + total.z + total.w, parts, lane, simdgroup, simdgroups);
  for (uint k = 0; k < EACH; ++k) y[start + k * size] = v[k] / sum;
}

// ---- atomics
kernel void histogram(device const uchar4* x [[buffer(0)]], device atomic_uint* bins [[buffer(1)]],
                      constant uint& n [[buffer(2)]], uint at [[thread_position_in_grid]],
                      uint threads [[threads_per_grid]], uint lid [[thread_position_in_threadgroup]],
                      uint size [[threads_per_threadgroup]]) {
  threadgroup atomic_uint local[256];
  for (uint i = lid; i < 256; i += size) atomic_store_explicit(&local[i], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = at; i < n / 4; i += threads) {
    const uchar4 v = x[i];
    atomic_fetch_add_explicit(&local[v.x], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&local[v.y], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&local[v.z], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&local[v.w], 1, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lid; i < 256; i += size)
    atomic_fetch_add_explicit(&bins[i], atomic_load_explicit(&local[i], memory_order_relaxed), memory_order_relaxed);
}

// Rows of 64 floats added to those that `index` names.
kernel void index_add(device const long* index [[buffer(0)]], device const float* rows [[buffer(1)]],
                      device atomic_float* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const ulong row = ulong(index[i >> 6]);
  atomic_fetch_add_explicit(&out[row * 64 + (i & 63)], rows[i], memory_order_relaxed);
}

kernel void scatter_max(device const long* index [[buffer(0)]], device const int* values [[buffer(1)]],
                        device atomic_int* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_max_explicit(&out[index[i]], values[i], memory_order_relaxed);
}

// ---- bilinear samples of channels-last images: align_corners off, zeros outside
struct Sample {
  int x, y;
  float fx, fy;
  int height, width;
  Sample(float2 at, int h, int w) {
    const float px = ((at.x + 1) * w - 1) / 2, py = ((at.y + 1) * h - 1) / 2;
    x = int(floor(px)), y = int(floor(py));
    fx = px - x, fy = py - y;
    height = h, width = w;
  }
  bool has(int dx, int dy) const { return x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height; }
  uint nearest(int dx, int dy) const { return uint(clamp(y + dy, 0, height - 1) * width + clamp(x + dx, 0, width - 1)); }
  ulong pixel(int dx, int dy) const { return ulong(y + dy) * width + ulong(x + dx); }
  float across(int dx) const { return dx ? fx : 1 - fx; }
  float down(int dy) const { return dy ? fy : 1 - fy; }
};

// A thread has four channels of a sample. `shape` is height, width, a quarter of the channels, samples of an image.
kernel void grid_sample(device const float4* x [[buffer(0)]], device const float2* grid [[buffer(1)]],
                        device float4* out [[buffer(2)]], constant uint4& shape [[buffer(3)]],
                        uint2 at [[thread_position_in_grid]]) {
  const Sample s(grid[at.y], int(shape.x), int(shape.y));
  const ulong image = ulong(at.y / shape.w) * shape.x * shape.y;
  float4 sum = float4(0);
  for (int corner = 0; corner < 4; ++corner) {
    const int dx = corner & 1, dy = corner >> 1;
    if (s.has(dx, dy)) sum += s.across(dx) * s.down(dy) * x[(image + s.pixel(dx, dy)) * shape.z + at.x];
  }
  out[ulong(at.y) * shape.z + at.x] = sum;
}

// The same of 64 channels, by bands of the image's rows, so that a pixel that two samples read is still in the cache. A
// simdgroup looks at CHUNK samples, and its halves each take EACH of those in the band at a time: all loads come first.
template <int BANDS, int CHUNK, int EACH>
kernel void grid_sample_bands(device const float4* x [[buffer(0)]], device const float2* grid [[buffer(1)]],
                              device float4* out [[buffer(2)]], constant uint4& shape [[buffer(3)]],
                              uint at [[thread_position_in_grid]]) {
  const uint lane = at % 32, part = lane % 16, unit = at / 32, chunks = shape.w / CHUNK;
  const uint chunk = unit % chunks, band = unit / chunks % BANDS, number = unit / (chunks * BANDS);
  const uint first = number * shape.w + chunk * CHUNK;
  const int height = int(shape.x), width = int(shape.y);
  const float2 mine = grid[first + lane % CHUNK];
  const uint row = uint(clamp(Sample(mine, height, width).y, 0, height - 1));
  device const float4* image = x + ulong(number) * height * width * 16 + part;
  uint left = uint(ulong(simd_vote::vote_t(simd_ballot(lane < CHUNK && row * BANDS / uint(height) == band))));
  while (left != 0) {
    float4 v[EACH][4];
    float2 place[EACH];
    uint from[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
      const uint one = left != 0 ? ctz(left) : 32;
      left &= left - (left != 0);
      const uint other = left != 0 ? ctz(left) : 32;
      left &= left - (left != 0);
      from[e] = lane < 16 ? one : other;
      place[e] = simd_shuffle(mine, ushort(min(from[e], 31u)));
      if (from[e] == 32) continue;
      const Sample s(place[e], height, width);
      #pragma unroll
      for (int corner = 0; corner < 4; ++corner) v[e][corner] = image[s.nearest(corner & 1, corner >> 1) * 16];
    }
    #pragma unroll
    for (int e = 0; e < EACH; ++e) {
      if (from[e] == 32) continue;
      const Sample s(place[e], height, width);
      float4 sum = float4(0);
      #pragma unroll
      for (int corner = 0; corner < 4; ++corner)
        if (s.has(corner & 1, corner >> 1)) sum += s.across(corner & 1) * s.down(corner >> 1) * v[e][corner];
      out[ulong(first + from[e]) * 16 + part] = sum;
    }
  }
}
#define INSTANTIATE_BANDS(BANDS, CHUNK, EACH)                                                           \
  template [[host_name("grid_sample_bands_" #BANDS "_" #CHUNK)]] kernel void                             \
  grid_sample_bands<BANDS, CHUNK, EACH>(device const float4*, device const float2*, device float4*, constant uint4&, uint)
INSTANTIATE_BANDS(4, 16, 2);
INSTANTIATE_BANDS(8, 32, 2);

// A simdgroup has a sample of 64 channels. `shape` as above, but for the channels, which are 64.
kernel void grid_sample_backward(device const float* x [[buffer(0)]], device const float2* grid [[buffer(1)]],
                                 device const float* cotangent [[buffer(2)]], device atomic_float* x_grad [[buffer(3)]],
                                 device float2* grid_grad [[buffer(4)]], constant uint4& shape [[buffer(5)]],
                                 uint2 at [[thread_position_in_grid]]) {
  const uint point = at.y, lane = at.x;
  const Sample s(grid[point], int(shape.x), int(shape.y));
  const ulong image = ulong(point / shape.w) * shape.x * shape.y;
  const float given[2] = {cotangent[ulong(point) * 64 + lane], cotangent[ulong(point) * 64 + lane + 32]};
  float gx = 0, gy = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const int dx = corner & 1, dy = corner >> 1;
    if (!s.has(dx, dy)) continue;
    const ulong place = (image + s.pixel(dx, dy)) * 64 + lane;
    const float weight = s.across(dx) * s.down(dy);
    float value = 0;
    for (int half_of = 0; half_of < 2; ++half_of) {
      value += x[place + 32 * half_of] * given[half_of];
      atomic_fetch_add_explicit(&x_grad[place + 32 * half_of], weight * given[half_of], memory_order_relaxed);
    }
    gx += (dx ? value : -value) * s.down(dy);
    gy += (dy ? value : -value) * s.across(dx);
  }
  gx = simd_sum(gx);
  gy = simd_sum(gy);
  if (lane == 0) grid_grad[point] = float2(gx * 0.5f * shape.y, gy * 0.5f * shape.x);
}

// ---- C = A B by simdgroup matrices: 128x64 of C a threadgroup of four simdgroups, through threadgroup memory
kernel void matmul_float(device const float4* a [[buffer(0)]], device const float4* b [[buffer(1)]],
                         device float* c [[buffer(2)]], constant uint3& mnk [[buffer(3)]],
                         uint2 tile [[threadgroup_position_in_grid]], uint lid [[thread_index_in_threadgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float4 left[128 * 8 / 4], right[8 * 64 / 4];
  const uint n = mnk.y, depth = mnk.z, top = tile.y * 128, first = tile.x * 64;
  const uint y = simdgroup / 2 * 64, x = simdgroup % 2 * 32;
  simdgroup_float8x8 sums[8][4];
  #pragma unroll
  for (uint i = 0; i < 8; ++i)
    #pragma unroll
    for (uint j = 0; j < 4; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint start = 0; start < depth; start += 8) {
    for (uint i = lid; i < 256; i += 128) left[i] = a[(ulong(top + i / 2) * depth + start) / 4 + i % 2];
    right[lid] = b[(ulong(start + lid / 16) * n + first) / 4 + lid % 16];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 l[8], r[4];
    #pragma unroll
    for (uint i = 0; i < 8; ++i) simdgroup_load(l[i], (threadgroup const float*)left + (y + 8 * i) * 8, 8);
    #pragma unroll
    for (uint j = 0; j < 4; ++j) simdgroup_load(r[j], (threadgroup const float*)right + x + 8 * j, 64);
    #pragma unroll
    for (uint i = 0; i < 8; ++i)
      #pragma unroll
      for (uint j = 0; j < 4; ++j) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  #pragma unroll
  for (uint i = 0; i < 8; ++i)
    #pragma unroll
    for (uint j = 0; j < 4; ++j)
      simdgroup_store(sums[i][j], c + ulong(top + y + 8 * i) * n + first + x + 8 * j, n);
}

// The gradients by strips, of LONG pixels in a row: each pixel is written once, with the sum of what its samples give. The
// samples above and left of a strip's pixels are a list: `heads` has the first of each, and `next` the one after each
// sample, from 1. Heads begin at zero. `shape` is height, width, samples of an image.
template <int LONG>
kernel void grid_sample_list(device const float2* grid [[buffer(0)]], device atomic_uint* heads [[buffer(1)]],
                             device uint* next [[buffer(2)]], constant uint3& shape [[buffer(3)]],
                             device float2* grid_grad [[buffer(4)]], uint sample [[thread_position_in_grid]]) {
  grid_grad[sample] = float2(0);
  const Sample s(grid[sample], int(shape.x), int(shape.y));
  if (s.x < -1 || s.x >= s.width || s.y < -1 || s.y >= s.height) return;
  const uint row = sample / shape.z * (shape.x + 1) + uint(s.y + 1);
  const uint strip = row * (shape.y / LONG + 1) + uint(s.x + 1) / LONG;
  next[sample] = atomic_exchange_explicit(&heads[strip], sample + 1, memory_order_relaxed);
}

// A simdgroup has a strip, and a lane two of 64 channels. Four lists have samples of its pixels: a lane walks each, and all
// lanes add the samples that were found, in threadgroup memory. `shape` is height, width: whole strips.
template <int LONG, int GROUP>
kernel void grid_sample_backward_strips(device const float2* x [[buffer(0)]], device const float2* grid [[buffer(1)]],
                                        device const float2* cotangent [[buffer(2)]], device const uint* heads [[buffer(3)]],
                                        device const uint* next [[buffer(4)]], device float2* x_grad [[buffer(5)]],
                                        device atomic_float* grid_grad [[buffer(6)]], constant uint2& shape [[buffer(7)]],
                                        uint at [[thread_position_in_grid]], uint lid [[thread_index_in_threadgroup]]) {
  threadgroup float2 sums[GROUP / 32][LONG][32];
  const int height = int(shape.x), width = int(shape.y);
  const uint lane = at % 32, simdgroup = lid / 32, strips = shape.y / LONG, line = at / 32 / strips;
  const int column = int(at / 32 % strips * LONG), row = int(line % shape.x);
  const uint list = (line + line / shape.x) * (strips + 1) + uint(column) / LONG;  // an image has a row of lists more
  const ulong first = (ulong(line) * shape.y + column) * 32 + lane;
  #pragma unroll
  for (int p = 0; p < LONG; ++p) sums[simdgroup][p][lane] = float2(0);
  for (uint each = lane < 4 ? heads[list + lane / 2 * (strips + 1) + lane % 2] : 0; simd_any(each != 0);) {
    const uint sample = each - 1;
    float2 place = float2(0);
    bool near = false;
    if (each != 0) {
      each = next[sample];
      place = grid[sample];
      const Sample s(place, height, width);
      near = s.x >= column - 1 && s.x < column + LONG && (s.y == row - 1 || s.y == row);
    }
    for (uint left = uint(ulong(simd_vote::vote_t(simd_ballot(near)))); left != 0; left &= left - 1) {
      const ushort from = ushort(ctz(left));
      const Sample s(simd_shuffle(place, from), height, width);
      const uint found = simd_shuffle(sample, from);
      const float2 given = cotangent[ulong(found) * 32 + lane];
      const int dy = row - s.y;
      float2 here[2];
      #pragma unroll
      for (int dx = 0; dx < 2; ++dx) {
        const int p = s.x + dx - column;
        here[dx] = p >= 0 && p < LONG ? x[first + p * 32] : float2(0);
      }
      float gx = 0, gy = 0;
      #pragma unroll
      for (int dx = 0; dx < 2; ++dx) {
        const int p = s.x + dx - column;
        const float value = dot(here[dx], given);
        gx += (dx ? value : -value) * s.down(dy);
        gy += (dy ? value : -value) * s.across(dx);
        if (p >= 0 && p < LONG) sums[simdgroup][p][lane] += s.across(dx) * s.down(dy) * given;
      }
      gx = simd_sum(gx);
      gy = simd_sum(gy);
      if (lane < 2) {
        const float value = lane == 0 ? gx * 0.5f * width : gy * 0.5f * height;
        atomic_fetch_add_explicit(&grid_grad[2 * found + lane], value, memory_order_relaxed);
      }
    }
  }
  #pragma unroll
  for (int p = 0; p < LONG; ++p) x_grad[first + p * 32] = sums[simdgroup][p][lane];
}
#define INSTANTIATE_STRIPS(LONG, GROUP)                                                                             \
  template [[host_name("grid_sample_backward_strips_" #LONG "_" #GROUP)]] kernel void                              \
  grid_sample_backward_strips<LONG, GROUP>(                                                                        \
      device const float2*, device const float2*, device const float2*, device const uint*, device const uint*,    \
      device float2*, device atomic_float*, constant uint2&, uint, uint)
#define INSTANTIATE_LIST(LONG)                                                     \
  template [[host_name("grid_sample_list_" #LONG)]] kernel void grid_sample_list<LONG>( \
      device const float2*, device atomic_uint*, device uint*, constant uint3&, device float2*, uint)
INSTANTIATE_LIST(8);
INSTANTIATE_LIST(16);
INSTANTIATE_STRIPS(8, 64);
INSTANTIATE_STRIPS(8, 128);
INSTANTIATE_STRIPS(16, 32);
INSTANTIATE_STRIPS(16, 64);
INSTANTIATE_STRIPS(16, 128);
