// Launches in an order that the host made of a seed (PM_SCHEDULED): which block is which threadgroup, how long simdgroups
// wait where they begin and around barriers. A barrier that threads miss, which returned before it, is noted.
#pragma once

namespace pm {
struct schedule {
  uint grid[3], group[3], groups[3];    // as in dims
  uint seed, multiplier, offset;        // threadgroup = (block * multiplier + offset) % threadgroups, where nothing shares a factor
  uint noted, line, reached, expected;  // of the first barrier that was missed
  char file[96];                        // its name
};
}  // namespace pm
extern "C" {
__attribute__((device, used)) pm::schedule pm_schedule;
}

namespace pm {
PM_INLINE ulong block_number() {
  const ulong row = uint(__nvvm_read_ptx_sreg_ctaid_y()) + ulong(uint(__nvvm_read_ptx_sreg_nctaid_y())) * uint(__nvvm_read_ptx_sreg_ctaid_z());
  return uint(__nvvm_read_ptx_sreg_ctaid_x()) + ulong(uint(__nvvm_read_ptx_sreg_nctaid_x())) * row;
}
// The threadgroup of this block, if there is one.
PM_INLINE bool find_scheduled(uint (&group)[3]) {
  const schedule& s = pm_schedule;
  const ulong total = ulong(s.groups[0]) * s.groups[1] * s.groups[2], block = block_number();
  if (block >= total) return false;
  const ulong at = (block * s.multiplier + s.offset) % total, row = at / s.groups[0];
  group[0] = uint(at % s.groups[0]), group[1] = uint(row % s.groups[1]), group[2] = uint(row / s.groups[1]);
  return true;
}
// The name of a file, without its folders. A string of the kernel's is no memory that the host can read.
PM_INLINE void copy_name(char (&to)[96], const char* path) {
  uint at = 0;
  for (; *path; ++path) {
    if (*path == '/') at = 0;
    else if (at < sizeof(to) - 1) to[at++] = *path;
  }
  to[at] = 0;
}
PM_INLINE void wait_a_while(uint where) {
  uint h = (pm_schedule.seed ^ where * 0x9E3779B9u) + uint(block_number()) * 0x85EBCA6Bu + pm_index() / 32 * 0xC2B2AE35u;
  h = (h ^ h >> 15) * 0x2C1B3C6Du;
  nanosleep((h ^ h >> 13) & 1023);
}
// A barrier of all threads that have not returned: as many as the threadgroup has, unless one is missing.
PM_INLINE void meet(uint line, const char* file) {
  schedule& s = pm_schedule;
  uint group[3], expected = 1;
  find_scheduled(group);
  for (int i = 0; i < 3; ++i) {
    const uint left = s.grid[i] - group[i] * s.group[i];
    expected *= left < s.group[i] ? left : s.group[i];
  }
  wait_a_while(line);
  const uint reached = uint(__nvvm_bar0_popc(1));
  if (reached != expected && !__atomic_exchange_n(&s.noted, 1u, __ATOMIC_RELAXED)) {
    s.line = line, s.reached = reached, s.expected = expected;
    copy_name(s.file, file);
  }
  wait_a_while(~line);
}
}  // namespace pm
