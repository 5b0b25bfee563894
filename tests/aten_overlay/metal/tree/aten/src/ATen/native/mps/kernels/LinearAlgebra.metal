#include <metal_stdlib>
using namespace metal;

// A product by tiles that a threadgroup holds. `sizes` are rows, inner and columns; a stride is of a row, then a column.
kernel void matmul_float(
    constant float* a [[buffer(0)]],
    constant float* b [[buffer(1)]],
    device float* out [[buffer(2)]],
    constant ulong2* strides [[buffer(3)]],
    constant uint3& sizes [[buffer(4)]],
    uint2 at [[thread_position_in_grid]],
    uint2 in_tile [[thread_position_in_threadgroup]]) {
  constexpr uint side = 16;
  threadgroup float left[side][side];
  threadgroup float right[side][side];
  float sum = 0;
  for (uint start = 0; start < sizes.y; start += side) {
    uint column = start + in_tile.x, row = start + in_tile.y;
    left[in_tile.y][in_tile.x] =
        at.y < sizes.x && column < sizes.y ? a[at.y * strides[0].x + column * strides[0].y] : 0;
    right[in_tile.y][in_tile.x] = row < sizes.y && at.x < sizes.z ? b[row * strides[1].x + at.x * strides[1].y] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 0; i < side; ++i) {
      sum += left[in_tile.y][i] * right[i][in_tile.x];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (at.y < sizes.x && at.x < sizes.z) {
    out[at.y * strides[2].x + at.x * strides[2].y] = sum;
  }
}

// `sizes` are rows, inner, columns and batches; a tensor's three strides are of its columns, rows and batches.
template <typename T>
kernel void naive_bmm(
    constant T* a [[buffer(0)]],
    constant T* b [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant ulong* strides [[buffer(3)]],
    constant uint4& sizes [[buffer(4)]],
    uint3 at [[thread_position_in_grid]]) {
  if (at.y >= sizes.x || at.x >= sizes.z || at.z >= sizes.w) {
    return;
  }
  T sum = 0;
  for (uint i = 0; i < sizes.y; ++i) {
    sum += a[i * strides[0] + at.y * strides[1] + at.z * strides[2]] *
        b[at.x * strides[3] + i * strides[4] + at.z * strides[5]];
  }
  out[at.x * strides[6] + at.y * strides[7] + at.z * strides[8]] = sum;
}
template [[host_name("naive_bmm_long")]] kernel void naive_bmm<long>(
    constant long*, constant long*, device long*, constant ulong*, constant uint4&, uint3);

// The lower Cholesky factor, by blocks of columns: of block `k`, first its diagonal block.
kernel void factorDiagonalBlock(
    device float* matrices [[buffer(0)]],
    device int* info [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    constant uint& k [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
  device float* matrix = matrices + group.x * size * size;
  uint start = k * width, length = min(width, size - start), step = threads.x * threads.y;
  threadgroup float block[32][33];
  for (uint i = thread_id; i < length * length; i += step) {
    block[i / length][i % length] = matrix[(start + i / length) * size + start + i % length];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < length; ++j) {
    if (thread_id == 0) {
      if (block[j][j] <= 0) {
        info[group.x] = int(start + j + 1);
      }
      block[j][j] = metal::precise::sqrt(block[j][j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = j + 1 + thread_id; i < length; i += step) {
      block[i][j] /= block[j][j];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_id; i < length * length; i += step) {
      uint row = i / length, column = i % length;
      if (column > j && row >= column) {
        block[row][column] -= block[row][j] * block[column][j];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = thread_id; i < length * length; i += step) {
    if (i % length <= i / length) {
      matrix[(start + i / length) * size + start + i % length] = block[i / length][i % length];
    }
  }
}

// Then the blocks below it: a thread solves for a row.
kernel void applyTRSM(
    device float* matrices [[buffer(0)]],
    device int* info [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    constant uint& k [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
  device float* matrix = matrices + group.x * size * size;
  uint start = k * width, step = threads.x * threads.y;
  threadgroup float block[32][33];
  for (uint i = thread_id; i < width * width; i += step) {
    block[i / width][i % width] = matrix[(start + i / width) * size + start + i % width];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint row = (k + 1 + group.y) * width + thread_id;
  if (thread_id < width && row < size) {
    device float* solved = matrix + row * size + start;
    for (uint j = 0; j < width; ++j) {
      float value = solved[j];
      for (uint i = 0; i < j; ++i) {
        value -= solved[i] * block[j][i];
      }
      solved[j] = value / block[j][j];
    }
  }
}

// Then what is left, by pairs of blocks on or below the diagonal.
kernel void applySYRK(
    device float* matrices [[buffer(0)]],
    device int* info [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    constant uint& width [[buffer(3)]],
    constant uint& k [[buffer(4)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]],
    uint2 threads [[threads_per_threadgroup]]) {
  device float* matrix = matrices + group.x * size * size;
  uint high = 0, low = group.y;
  while (low > high) {
    high += 1;
    low -= high;
  }
  uint start = k * width;
  for (uint i = thread_id; i < width * width; i += threads.x * threads.y) {
    uint row = (k + 1 + high) * width + i / width, column = (k + 1 + low) * width + i % width;
    if (row < size && column <= row) {
      float sum = 0;
      for (uint j = 0; j < width; ++j) {
        sum += matrix[row * size + start + j] * matrix[column * size + start + j];
      }
      matrix[row * size + column] -= sum;
    }
  }
}

// Exchanges rows, from the last pivot to the first.
kernel void applyPivots(
    device float* matrices [[buffer(0)]],
    constant int* pivots [[buffer(1)]],
    constant uint& rows [[buffer(2)]],
    constant uint& count [[buffer(3)]],
    uint batch [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]]) {
  device float* matrix = matrices + batch * rows * rows;
  for (uint i = count; i-- > 0;) {
    uint other = uint(pivots[batch * count + i]);
    if (other != i) {
      for (uint column = thread_id; column < rows; column += threads) {
        float kept = matrix[i * rows + column];
        matrix[i * rows + column] = matrix[other * rows + column];
        matrix[other * rows + column] = kept;
      }
    }
    threadgroup_barrier(mem_flags::mem_device);
  }
}
