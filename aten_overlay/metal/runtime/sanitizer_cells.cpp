// Data races and reads of what nothing wrote. Order comes from barriers alone: an access is ordered after an earlier one of
// its threadgroup if the earlier thread had passed fewer barriers that cover the memory. Atomics order nothing.
#include "sanitizer.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

namespace pm::sanitizer {
namespace {
constexpr size_t kReserved = size_t(1) << 39, kKept = size_t(1) << 28;
constexpr unsigned char kFresh = 0xCB;  // what the device's memory holds until something is written there (memory.h)
constexpr uint64_t kFreshWord = 0xCBCBCBCBCBCBCBCBu;

struct Arena {
  char* start = nullptr;
  size_t used = 0;
};
thread_local Arena arena;

uint32_t site_number(const State& s, const pm_site& site) {
  return uint32_t(reinterpret_cast<const char*>(&site) - s.image);
}
const pm_site& site_at(const State& s, uint32_t number) {
  return *reinterpret_cast<const pm_site*>(s.image + number);
}

// Who accesses now.
struct Access {
  uint32_t group, lane, site;
  Epoch epoch;
  bool store, load, atomic;
};

bool is_ordered(const Access& a, uint32_t group, uint32_t lane, uint16_t epoch, uint16_t simd_epoch) {
  if (group != a.group) return false;
  if (lane == a.lane || epoch != a.epoch.group) return true;
  return lane >> 5 == a.lane >> 5 && simd_epoch != a.epoch.simd;
}
bool is_after_writer(const Access& a, const Cell& c) {
  if ((c.writer_lane & kSameValue) && c.writer_group == a.group && !a.store) return true;
  return is_ordered(a, c.writer_group, c.writer_lane & kLane, c.writer_epoch, c.writer_simd_epoch);
}
bool is_after_readers(const Access& a, const Cell& c) {
  const uint16_t flags = c.reader_lane & ~kLane;
  if (!flags) return is_ordered(a, c.reader_group, c.reader_lane, c.reader_epoch, c.reader_simd_epoch);
  if ((flags & kSeveralGroups) || c.reader_group != a.group) return false;
  if (c.reader_epoch != a.epoch.group) return true;
  return !(flags & kSeveralSimdgroups) && (c.reader_lane & kLane) >> 5 == a.lane >> 5 && c.reader_simd_epoch != a.epoch.simd;
}

void note(State& s, const Range& range, uintptr_t address, uint32_t size, const Access& a, const Cell& c, bool writes, const pm_site& site) {
  if (s.conflict.pending) return;
  Conflict& f = s.conflict;
  f = {true, &range, &site, &site_at(s, writes ? c.writer_site : c.reader_site), address, size, a.lane,
       uint32_t((writes ? c.writer_lane : c.reader_lane) & kLane), writes ? c.writer_group : c.reader_group,
       !writes && (c.reader_lane & ~kLane), writes, {}};
  if (a.store) memcpy(f.before, reinterpret_cast<const void*>(address), size < sizeof(f.before) ? size : sizeof(f.before));
}

const char* verb(const pm_site& site) { return site.kind & PM_STORES ? (site.kind & PM_ATOMIC ? "changes" : "writes") : "reads"; }

[[noreturn]] void report(State& s) {
  const Conflict& f = s.conflict;
  const bool same = f.several && f.other_lane == f.lane && f.other_group == s.group;
  fail(s, PM_DATA_RACE, "PTR261: kernel `", *f.site, f.lane,
       "has a data race in %s memory: it %s %s, which %s%s %s at %s:%u with no barrier between",
       f.range->space == kDevice ? "device" : "threadgroup", verb(*f.site), memory_name(s, f.range, *f.site, f.address).text,
       same ? "another thread" : thread_name(s, f.other_group, f.other_lane).text, f.several && !same ? " and others" : "",
       f.other_writes ? "wrote" : "read", f.other_site->file, f.other_site->line);
}

[[noreturn]] void report_unwritten(State& s, const Range& range, uintptr_t address, const pm_site& site) {
  fail(s, PM_UNINITIALIZED, "PTR262: kernel `", site, pm_index(), "reads %s, which %s", memory_name(s, &range, site, address).text,
       range.space == kDevice ? "nothing wrote since it was allocated" : "no thread of its threadgroup had written: is a barrier missing?");
}

// A start that an atomic access of another thread may come before.
[[noreturn]] void report_early(State& s, const Range& range, const Cell& c, uintptr_t address, const pm_site& site) {
  const pm_site& start = site_at(s, c.writer_site);
  fail(s, PM_UNINITIALIZED, "PTR262: kernel `", site, pm_index(), "reads %s, which %s wrote first, at %s:%u, with no barrier between",
       memory_name(s, &range, site, address).text, thread_name(s, c.writer_group, c.writer_lane & kLane).text, start.file, start.line);
}

bool is_update(const pm_site& site) { return (site.kind & PM_LOADS) && (site.kind & PM_ATOMIC); }

// An atomic access leaves what the same thread wrote just before, plainly or as the first: others still need a barrier.
bool keeps_writer(const State& s, const Cell& c, const Access& a) {
  if (!a.atomic || !c.writer_site || c.writer_group != a.group || (c.writer_lane & kLane) != a.lane) return false;
  if (c.writer_epoch != a.epoch.group || c.writer_simd_epoch != a.epoch.simd) return false;
  const pm_site& site = site_at(s, c.writer_site);
  return !(site.kind & PM_ATOMIC) || ((c.writer_lane & kFirst) && !is_update(site));
}

void note_reader(Cell& c, const Access& a) {
  const uint32_t lane = c.reader_lane & kLane;
  const bool several = c.reader_lane & ~kLane;
  const bool ordered = several ? is_after_readers(a, c) : is_ordered(a, c.reader_group, lane, c.reader_epoch, c.reader_simd_epoch);
  if (!c.reader_site || ordered) {
    c.reader_site = a.site;
    c.reader_group = a.group;
    c.reader_lane = uint16_t(a.lane);
    c.reader_epoch = a.epoch.group;
    c.reader_simd_epoch = a.epoch.simd;
  } else if (c.reader_group != a.group) {
    c.reader_lane |= kSeveralGroups;
  } else if (lane != a.lane) {
    c.reader_lane |= kSeveralLanes | (lane >> 5 != a.lane >> 5 ? kSeveralSimdgroups : 0);
    c.reader_simd_epoch = a.epoch.simd;
  }
}

void visit(State& s, const Range& range, Cell& c, uintptr_t address, uint32_t size, const Access& a, const pm_site& site) {
  if (c.stamp != range.stamp) {
    if (a.load && range.space == kThreadgroup && (s.checks & kUninitialized)) report_unwritten(s, range, address, site);
    c = {};
    c.stamp = range.stamp;
  } else if ((s.checks & kRaces) && !s.fenced[range.space]) {
    const bool free = c.writer_site && a.atomic && (site_at(s, c.writer_site).kind & PM_ATOMIC);
    if (c.writer_site && !free && !is_after_writer(a, c)) {
      note(s, range, address, size, a, c, true, site);
      if (a.load) report(s);
    }
    if (a.store && c.reader_site && !(a.atomic && (site_at(s, c.reader_site).kind & PM_ATOMIC)) && !is_after_readers(a, c))
      note(s, range, address, size, a, c, false, site);
  }
  const bool atomic_start = (c.writer_lane & kFirst) && (site_at(s, c.writer_site).kind & PM_ATOMIC);
  if (a.load && a.atomic && atomic_start && range.space == kThreadgroup && (s.checks & kUninitialized) && !s.fenced[range.space] &&
      !is_update(site_at(s, c.writer_site)) && !is_after_writer(a, c))
    report_early(s, range, c, address, site);
  if (!a.store) {
    if (!c.writer_site && range.space == kThreadgroup && (s.checks & kUninitialized)) report_unwritten(s, range, address, site);
    note_reader(c, a);
    return;
  }
  if (keeps_writer(s, c, a)) return;
  const bool same = s.conflict.pending && c.writer_site && c.writer_group == a.group;
  c.writer_lane = uint16_t(a.lane | (same ? kSameValue : 0) | (c.writer_site ? 0 : kFirst));
  c.writer_site = a.site;
  c.writer_group = a.group;
  c.writer_epoch = a.epoch.group;
  c.writer_simd_epoch = a.epoch.simd;
}

// One cell for each byte, or for as many as still fit what is accessed.
void split(Range& range, uint8_t shift) {
  const size_t count = ((range.high - range.low) >> range.shift) + 1, parts = size_t(1) << (range.shift - shift);
  Cell* cells = take_cells(count * parts);
  if (cells)
    for (size_t i = 0; i < count; ++i)
      if (range.cells[i].stamp == range.stamp)
        for (size_t k = 0; k < parts; ++k) cells[i * parts + k] = range.cells[i];
  range.cells = cells;
  range.shift = shift;
}

// Whether these bytes hold what new memory holds. One or two bytes can do so by chance: then their neighbors have to as well.
bool is_fresh(const Range& range, uintptr_t address, uint32_t size) {
  uintptr_t low = address, high = address + size;
  if (*reinterpret_cast<const unsigned char*>(low) != kFresh) return false;
  if (size < 4) {
    low = low & ~uintptr_t(7) < range.low ? range.low : low & ~uintptr_t(7);
    high = low + 8 < range.high ? low + 8 : range.high;
    if (high - low < 4 || high < address + size) return false;
  }
  for (; low + 8 <= high; low += 8) {
    uint64_t word;
    memcpy(&word, reinterpret_cast<const void*>(low), 8);
    if (word != kFreshWord) return false;
  }
  for (; low < high; ++low)
    if (*reinterpret_cast<const unsigned char*>(low) != kFresh) return false;
  return true;
}
}  // namespace

Cell* take_cells(size_t count) {
  if (!arena.start) {
    void* made = mmap(nullptr, kReserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    arena.start = static_cast<char*>(made);
  }
  const size_t bytes = count * sizeof(Cell);
  if (bytes > kReserved - arena.used) return nullptr;
  char* taken = arena.start + arena.used;
  arena.used += bytes;
  return reinterpret_cast<Cell*>(taken);
}

bool return_cells() {
  const bool kept = arena.used <= kKept;
  if (!kept) madvise(arena.start, arena.used, MADV_DONTNEED);
  arena.used = 0;
  return kept;
}

uint64_t count_unwritten(const Range& range, uintptr_t low, uint64_t count, uint64_t size, uint64_t* first) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const Cell& c = range.cells[(low + i * size - range.low) >> range.shift];
    if (c.stamp == range.stamp && c.writer_site) continue;
    if (!found++) *first = i;
  }
  return found;
}

uint64_t list_touches(const State& s, const Range& range, uintptr_t low, uintptr_t high, pm_touch* touches, uint64_t count, uint64_t capacity) {
  const size_t first = (low - range.low) >> range.shift, last = (high - 1 - range.low) >> range.shift;
  pm_touch now{};
  for (size_t i = first; i <= last + 1; ++i) {
    const Cell* c = i <= last && range.cells[i].stamp == range.stamp ? &range.cells[i] : nullptr;
    const uint32_t reads = c && c->reader_site, writes = c && c->writer_site;
    const uintptr_t at = range.low + (i << range.shift);
    if (now.high == at && now.reads == reads && now.writes == writes) {
      now.high = at + (uintptr_t(1) << range.shift);
      continue;
    }
    if (now.high && ++count <= capacity) touches[count - 1] = now;
    now = {};
    if (!reads && !writes) continue;
    const pm_site& site = site_at(s, writes ? c->writer_site : c->reader_site);
    now = {at, at + (uintptr_t(1) << range.shift), reads, writes, site.file, site.line};
  }
  return count;
}

void settle(State& s) {
  const Conflict& f = s.conflict;
  const uint32_t size = f.size < sizeof(f.before) ? f.size : sizeof(f.before);
  if (memcmp(f.before, reinterpret_cast<const void*>(f.address), size)) report(s);
  s.conflict.pending = false;
}

void record(State& s, Range& range, uintptr_t address, uint32_t size, const pm_site& site, uint32_t lane) {
  if ((site.kind & PM_LOADS) && range.space == kDevice && (s.checks & kUninitialized) && is_fresh(range, address, size))
    report_unwritten(s, range, address, site);
  if (range.shift && ((address | size) & ((1u << range.shift) - 1))) {
    split(range, (address | size) & 1 ? 0 : 1);
    if (!range.cells) return;
  }
  const Access a{s.group, lane, site_number(s, site), s.epochs[range.space][lane], bool(site.kind & PM_STORES),
                 bool(site.kind & PM_LOADS), bool(site.kind & PM_ATOMIC)};
  const size_t first = (address - range.low) >> range.shift, last = (address + size - 1 - range.low) >> range.shift;
  for (size_t i = first; i <= last; ++i) visit(s, range, range.cells[i], address, size, a, site);
}
}  // namespace pm::sanitizer
