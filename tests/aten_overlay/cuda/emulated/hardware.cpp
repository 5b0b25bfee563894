// Blocks of threads that exchange values as a GPU's do. Where lanes wait decides which are active together: once all
// lanes of a warp do, those at the first place in the code go on.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

extern "C" unsigned char pm_dynamic[1 << 16];
alignas(16) unsigned char pm_dynamic[1 << 16];

namespace {
struct Group {
  uint32_t arrived = 0, turn = 0;
  int given[32], taken[32];
};
struct Warp {
  uint32_t live = 0, waiting = 0, active[32] = {}, ready = 0;  // ready: lanes that know which are active with them
  uintptr_t place[32];
  uint32_t halted = 0;  // at the block's barrier
  std::map<uint32_t, Group> groups;
};
std::mutex mutex;
std::condition_variable changed[32];  // for each warp: to wake all threads of a block takes longer than what they do
std::vector<Warp> warps;
unsigned live, halted, barrier_turn, block[3], blocks[3], size, votes, counted;
thread_local unsigned self;

Warp& warp() { return warps[self / 32]; }
unsigned lane() { return self % 32; }
template <class F> void wait(std::unique_lock<std::mutex>& lock, F f) {
  if (changed[self / 32].wait_for(lock, std::chrono::seconds(60), f)) return;
  std::fprintf(stderr, "thread %u waits for others that never come\n", self);
  std::abort();
}
void let_go_on(Warp& w) {
  if (!w.waiting || w.waiting != (w.live & ~w.halted)) return;
  uintptr_t first = UINTPTR_MAX;
  for (unsigned i = 0; i < 32; ++i)
    if (w.waiting >> i & 1 && w.place[i] < first) first = w.place[i];
  uint32_t together = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (w.waiting >> i & 1 && w.place[i] == first) together |= 1u << i;
  for (unsigned i = 0; i < 32; ++i)
    if (together >> i & 1) w.active[i] = together;
  w.waiting &= ~together;
  w.ready |= together;
  changed[&w - warps.data()].notify_all();
}
void open_barrier() {
  if (!halted || halted != live) return;
  halted = 0;
  counted = votes;
  votes = 0;
  ++barrier_turn;
  for (Warp& w : warps) {
    w.halted = 0;
    changed[&w - warps.data()].notify_all();
  }
}
// What all lanes of the mask gave, once they have.
void exchange(uint32_t mask, int word, int (&all)[32]) {
  std::unique_lock lock(mutex);
  Group& g = warp().groups[mask];
  g.given[lane()] = word;
  g.arrived |= 1u << lane();
  if (g.arrived == mask) {
    std::copy(g.given, g.given + 32, g.taken);
    g.arrived = 0;
    ++g.turn;
    changed[self / 32].notify_all();
  } else {
    const uint32_t turn = g.turn;
    wait(lock, [&] { return g.turn != turn; });
  }
  std::copy(g.taken, g.taken + 32, all);
}
int shuffle(uint32_t mask, int word, unsigned from) {
  int all[32];
  exchange(mask, word, all);
  if (from > 31) return word;
  return mask >> from & 1 ? all[from] : 0x5a5a5a5a;
}
template <class F> int reduce(uint32_t mask, int word, F f) {
  int all[32];
  exchange(mask, word, all);
  bool first = true;
  int sum = 0;
  for (unsigned i = 0; i < 32; ++i)
    if (mask >> i & 1) sum = first ? all[i] : f(sum, all[i]), first = false;
  return sum;
}
}  // namespace

extern "C" {
unsigned __nvvm_read_ptx_sreg_laneid() { return lane(); }
unsigned __nvvm_read_ptx_sreg_tid_x() { return self; }
unsigned __nvvm_read_ptx_sreg_ntid_x() { return size; }
unsigned __nvvm_read_ptx_sreg_ctaid_x() { return block[0]; }
unsigned __nvvm_read_ptx_sreg_ctaid_y() { return block[1]; }
unsigned __nvvm_read_ptx_sreg_ctaid_z() { return block[2]; }
unsigned __nvvm_read_ptx_sreg_nctaid_x() { return blocks[0]; }
unsigned __nvvm_read_ptx_sreg_nctaid_y() { return blocks[1]; }
int __nvvm_bar0_popc(int vote) {
  std::unique_lock lock(mutex);
  const unsigned turn = barrier_turn;
  votes += vote != 0;
  ++halted;
  warp().halted |= 1u << lane();
  let_go_on(warp());
  open_barrier();
  wait(lock, [&] { return barrier_turn != turn; });
  return int(counted);
}
void __syncthreads() { __nvvm_bar0_popc(0); }
void __nvvm_bar_warp_sync(unsigned mask) { shuffle(mask, 0, 0); }
int __nvvm_shfl_sync_idx_i32(unsigned mask, int word, int from, int) { return shuffle(mask, word, unsigned(from) & 31); }
int __nvvm_shfl_sync_down_i32(unsigned mask, int word, int by, int) { return shuffle(mask, word, lane() + by); }
int __nvvm_shfl_sync_up_i32(unsigned mask, int word, int by, int) { return shuffle(mask, word, lane() - by); }
int __nvvm_shfl_sync_bfly_i32(unsigned mask, int word, int bits, int) { return shuffle(mask, word, lane() ^ bits); }
#define REDUX(name, T, expression) \
  T __nvvm_redux_sync_##name(T v, int mask) { \
    return T(reduce(uint32_t(mask), int(v), [](int x, int y) { const T a = T(x), b = T(y); return int(expression); })); \
  }
REDUX(add, int, int(unsigned(a) + unsigned(b))) REDUX(min, int, a < b ? a : b) REDUX(max, int, a > b ? a : b)
REDUX(umin, unsigned, a < b ? a : b) REDUX(umax, unsigned, a > b ? a : b)
REDUX(and, int, a & b) REDUX(or, int, a | b) REDUX(xor, int, a ^ b)
unsigned __nvvm_vote_ballot_sync(unsigned mask, bool b) {
  return unsigned(reduce(mask, b ? int(1u << lane()) : 0, [](int x, int y) { return x | y; }));
}
float __nvvm_atom_add_gen_f(volatile float* p, float v) {
  float seen = *p, sum;
  do sum = seen + v;
  while (!__atomic_compare_exchange(p, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return seen;
}
__attribute__((noinline)) unsigned hardware_active_mask() {
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  std::unique_lock lock(mutex);
  Warp& w = warp();
  const uint32_t own = 1u << lane();
  w.place[lane()] = place;
  w.waiting |= own;
  let_go_on(w);
  wait(lock, [&] { return (w.ready & own) != 0; });
  w.ready &= ~own;
  return w.active[lane()];
}

// Runs a kernel's entry over blocks of `threads`.
void hardware_run(void (*entry)(void**), void** arguments, const unsigned* counts, unsigned threads) {
  std::copy(counts, counts + 3, blocks);
  size = threads;
  auto body = [&](unsigned index) {
    self = index;
    entry(arguments);
    std::unique_lock lock(mutex);
    --live;
    Warp& w = warp();
    w.live &= ~(1u << lane());
    let_go_on(w);
    open_barrier();
  };
  for (block[2] = 0; block[2] < counts[2]; ++block[2])
    for (block[1] = 0; block[1] < counts[1]; ++block[1])
      for (block[0] = 0; block[0] < counts[0]; ++block[0]) {
        warps.assign((threads + 31) / 32, {});
        for (unsigned i = 0; i < threads; ++i) warps[i / 32].live |= 1u << i % 32;
        live = threads;
        halted = 0;
        if (threads == 1) {
          body(0);
          continue;
        }
        std::vector<std::thread> all;
        for (unsigned i = 0; i < threads; ++i) all.emplace_back(body, i);
        for (std::thread& t : all) t.join();
      }
}
}

// As the PTX manual has the fragments of mma.m16n8k8 and movmatrix: thread 4 * r + c has elements (r, 2c) and (r, 2c + 1) of a,
// and (2c, r) and (2c + 1, r) of b.
namespace {
template <class F> void multiply(float (&sum)[4], uint32_t a, uint32_t b, F number) {
  int left[32], right[32];
  exchange(~0u, int(a), left);
  exchange(~0u, int(b), right);
  const unsigned row = lane() / 4;
  for (unsigned k = 0; k < 8; ++k)
    for (unsigned c = 0; c < 2; ++c) {
      const unsigned column = lane() % 4 * 2 + c, shift = k % 2 * 16;
      sum[c] += number(uint16_t(left[row * 4 + k / 2] >> shift)) * number(uint16_t(right[column * 4 + k / 2] >> shift));
    }
}
}  // namespace
namespace pm {
unsigned transpose_halves(unsigned pair) {
  int all[32];
  exchange(~0u, int(pair), all);
  const unsigned row = lane() / 4, first = lane() % 4 * 2;
  auto element = [&](unsigned r, unsigned c) { return uint16_t(all[r * 4 + c / 2] >> c % 2 * 16); };
  return element(first, row) | unsigned(element(first + 1, row)) << 16;
}
void multiply_halves(float (&sum)[4], unsigned a, unsigned b) {
  multiply(sum, a, b, [](uint16_t bits) { return float(__builtin_bit_cast(_Float16, bits)); });
}
void multiply_bfloats(float (&sum)[4], unsigned a, unsigned b) {
  multiply(sum, a, b, [](uint16_t bits) { return __builtin_bit_cast(float, uint32_t(bits) << 16); });
}
}  // namespace pm
