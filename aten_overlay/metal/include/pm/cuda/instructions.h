// Instructions for which clang has no builtin function.
#ifndef PM_CUDA_INSTRUCTIONS_H
#define PM_CUDA_INSTRUCTIONS_H

namespace pm {
PM_INLINE void nanosleep(uint time) { asm volatile("nanosleep.u32 %0;" :: "r"(time)); }
PM_INLINE uint active_mask() {
  uint mask;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}
// A matrix of 8x8 elements of 16 bits, two a lane in the order of rows, transposed.
PM_INLINE uint transpose_halves(uint pair) {
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(pair));
  return pair;
}
// Adds a product of tensor cores, whose accumulator has 16 rows: half of them is left empty. Columns of b are contiguous.
PM_INLINE void multiply_halves(float (&sum)[4], uint a, uint b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(0), "r"(b));
}
PM_INLINE void multiply_bfloats(float (&sum)[4], uint a, uint b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(0), "r"(b));
}
}  // namespace pm
#endif
