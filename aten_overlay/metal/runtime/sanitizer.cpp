// What instrumented kernels call at each access (see sanitizer/instrument.py): bounds, alignment, writes to what is bound
// for reading; then the cells of sanitizer_cells.cpp.
#include "sanitizer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace pm::sanitizer {
namespace {
thread_local State* own_state = nullptr;
struct Owner {
  ~Owner() {
    if (own_state) free(own_state->ranges);
    delete own_state;
    own_state = nullptr;
  }
};
constexpr int kFirstThreadgroup = 1000;
constexpr uint32_t kMostAtomics = 1 << 20;  // in a row by one lane: what waits for another lane, or for NaN to be NaN
constexpr uint32_t kMostRepeats = 1 << 22;
uint32_t last_stamp = 0;
uint32_t next_stamp() { return __atomic_add_fetch(&last_stamp, 1, __ATOMIC_RELAXED); }

uintptr_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

constexpr const char* kTypes[] = {"bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "bfloat"};
constexpr uint32_t kTypeSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 2};

bool is_float(uint32_t type) { return type == PM_HALF || type == PM_FLOAT || type == PM_BFLOAT; }

// Whether elements of one type make no sense through a pointer to the other. A kernel may take bits for an integer as wide, and
// any tensor for bytes, but for truth values; half and bfloat mean different numbers, and an integer is no float.
bool is_another_type(uint32_t pointer, uint32_t tensor) {
  if (pointer >= PM_OTHER || tensor >= PM_OTHER || pointer == tensor) return false;
  const uint32_t size = kTypeSizes[pointer], other = kTypeSizes[tensor];
  if (size == other) return is_float(pointer);
  return (size > 1 || pointer == PM_BOOL) && (other > 1 || tensor == PM_BOOL);
}

// Whether a view of bytes may be meant: the kernel or the tensor has integers, which can be parts of anything. Floats of one
// type are never parts of another's.
bool is_view_of_bytes(uint32_t pointer, uint32_t tensor) { return !is_float(pointer) || !is_float(tensor); }

// Whether a single number of the host's is bound where the kernel takes one.
bool is_lone(const pm_argument& a, const pm_buffer& b) {
  return !b.base && b.type && a.type < PM_OTHER && a.element_size == kTypeSizes[a.type] && b.length == kTypeSizes[b.type - 1];
}

// A lone integer of the host's, of any width.
int64_t read_integer(const pm_buffer& b) {
  int64_t number = 0;
  memcpy(&number, b.address, b.length);
  const int unused = 64 - 8 * int(b.length);
  return int64_t(uint64_t(number) << unused) >> unused;
}

// Whether an integer of `size` bytes, signed or not, is another one than the integer that is bound.
bool loses_integer(const pm_buffer& b, uint32_t size) {
  const int64_t half = int64_t(1) << (8 * size - 1);
  return size < b.length && (read_integer(b) < -half || read_integer(b) >= 2 * half);
}

uint8_t shift_for(uint32_t alignment) { return alignment >= 4 ? 2 : alignment >= 2 ? 1 : 0; }

// The range that holds these bytes, made larger if it overlaps them; a new one otherwise.
Range* add_range(State& s, uintptr_t low, uintptr_t high, Space space, bool writable, uint8_t shift) {
  for (int i = 0; i < s.range_count; ++i) {
    Range& r = s.ranges[i];
    if (low >= r.high || high <= r.low) continue;
    r.low = low < r.low ? low : r.low;
    r.high = high > r.high ? high : r.high;
    r.writable |= writable;
    r.shift = shift < r.shift ? shift : r.shift;
    return &r;
  }
  if (s.range_count == s.range_capacity) return nullptr;
  Range& r = s.ranges[s.range_count++];
  r = {low, high, space, writable, false, shift, nullptr, nullptr, s.stamp};
  return &r;
}

void add_cells(State& s, Range& r) {
  const uintptr_t granule = uintptr_t(1) << r.shift;
  r.low &= ~(granule - 1);
  const size_t count = ((r.high - r.low) >> r.shift) + 1;
  r.cells = s.checks & (kRaces | kUninitialized) ? take_cells(count) : nullptr;
}

void add_argument(State& s, const pm_argument& a, const pm_launch& launch) {
  const pm_buffer& b = launch.buffers[a.index];
  Bound& bound = s.arguments[a.index];
  bound = {&a, nullptr, 0, 0};
  if (a.kind == PM_SAMPLER) return;
  if (a.kind == PM_TEXTURE) {
    const auto& t = *static_cast<const pm_texture*>(b.address);
    const uintptr_t data = address_of(t.data);
    add_range(s, data, data + t.slice_bytes * t.depth * t.layers, kTexture, a.writable, 0);
    return;
  }
  const uintptr_t base = address_of(b.base ? b.base : b.address);
  bound.low = b.extent ? address_of(b.address) : base;
  bound.high = b.extent ? address_of(b.address) + b.extent : base + b.length;
  const bool is_number = is_lone(a, b);
  const bool is_list = !b.base && b.type && !is_number;
  const bool is_reference = a.kind == PM_CONSTANT_REFERENCE, is_structure = is_reference && a.type == PM_OTHER;
  // Host code may hand over more than a number takes, as PyTorch's does with `MPSScalar::value`, a union of 8 bytes of which
  // any may be left over: of these a double cannot be told. A float is no half, and a structure of another size is another one.
  const bool is_float_for_half = b.length == sizeof(float) && (a.type == PM_HALF || a.type == PM_BFLOAT);
  const bool is_wider = !b.base && b.length > a.element_size && (is_structure || (is_reference && is_float_for_half));
  bound.other_size = (is_list && is_reference && b.length != a.element_size) || is_wider;
  bound.other_layout = b.type && b.type <= PM_OTHER && !is_number && is_structure && kTypeSizes[b.type - 1] > a.alignment;
  bound.other_type = (a.kind == PM_BUFFER || is_list) && !is_number && b.type && is_another_type(a.type, uint32_t(b.type - 1));
  if (bound.other_type && b.base && !(s.checks & kElementTypes)) bound.other_type = !is_view_of_bytes(a.type, uint32_t(b.type - 1));
  if (is_number) {
    const uint32_t type = uint32_t(b.type - 1);
    bound.other_type = is_float(a.type) != is_float(type) || (a.type == PM_HALF && type == PM_BFLOAT) || (a.type == PM_BFLOAT && type == PM_HALF);
    bound.other_size |= !is_float(a.type) && !bound.other_type && loses_integer(b, kTypeSizes[a.type]);
  }
  Range* range = b.length ? add_range(s, base, base + b.length, kDevice, a.writable, shift_for(a.alignment)) : nullptr;
  if (range) range->whole |= !b.extent;
}

Range* find_range(State& s, uintptr_t low, uintptr_t high) {
  if (s.recent && low >= s.recent->low && high <= s.recent->high) return s.recent;
  for (int i = 0; i < s.range_count; ++i)
    if (low >= s.ranges[i].low && high <= s.ranges[i].high) return s.recent = &s.ranges[i];
  return nullptr;
}

// An empty state with room for what a launch binds, declares and makes resident.
void clear(State& s, const pm_launch& launch) {
  const int needed = int(PM_BINDINGS + PM_MAX_THREADGROUP_ARGS + kMostVariables + launch.resident_count);
  Range* ranges = s.ranges;
  int capacity = s.range_capacity;
  if (capacity < needed) {
    free(ranges);
    ranges = static_cast<Range*>(malloc(needed * sizeof(Range)));
    capacity = ranges ? needed : 0;
  }
  memset(static_cast<void*>(&s), 0, sizeof(State));
  s.ranges = ranges;
  s.range_capacity = capacity;
}

bool is_internal(State& s, uintptr_t address, size_t size) {
  for (const auto& range : s.internal)
    if (address >= range[0] && address + size <= range[1]) return true;
  for (const Bound& bound : s.arguments) {  // the descriptions of textures and samplers
    if (!bound.argument || bound.argument->kind < PM_TEXTURE) continue;
    const uintptr_t low = address_of(s.job->launch->buffers[bound.argument->index].address);
    if (address >= low && address + size <= low + sizeof(pm_texture)) return true;
  }
  return address >= address_of(s.job) && address < address_of(s.job) + sizeof(Job);
}

const char* verb(const pm_site& site) {
  return (site.kind & (PM_STORES | PM_LOADS)) == (PM_STORES | PM_LOADS) ? "changes" : site.kind & PM_STORES ? "writes" : "reads";
}

// What an unsigned index was before, for a message that ends there; empty where it was no negative number.
Text describe_widened(const State& s, uint32_t lane, const pm_site& site) {
  Text t{};
  const Widened& w = s.widened;
  if (!w.file || w.group != s.group || w.lane != lane) return t;
  const int length = snprintf(t.text, sizeof(t.text), "; a number that is %lld where it is signed became %llu on the way to an address",
                              static_cast<long long>(w.value), static_cast<unsigned long long>(uint32_t(w.value)));
  const bool here = w.line == site.line && site.file && !strcmp(w.file, site.file);  // which the message says at its end
  if (!here) snprintf(t.text + length, sizeof(t.text) - size_t(length), " at %s:%u", w.file, w.line);
  return t;
}

[[noreturn]] void out_of_bounds(State& s, const Bound* bound, uintptr_t address, size_t size, const pm_site& site) {
  const auto lane = pm_index();
  if (site.variable)
    fail(s, PM_OUT_OF_EXTENT, "PTR264: kernel `", site, lane, "%s %zu bytes out of bounds of variable `%s` (%u bytes)", verb(site), size,
         site.variable, site.extent);
  if (!bound) fail(s, PM_OUT_OF_EXTENT, "PTR264: kernel `", site, lane, "%s %zu bytes out of bounds of every argument%s", verb(site), size, describe_widened(s, lane, site).text);
  const pm_argument& a = *bound->argument;
  const bool shared = a.kind == PM_THREADGROUP;
  const pm_buffer* bindings = s.job->launch->buffers;
  const long start = long(shared ? bound->low : address_of(bindings[a.index].address));
  const long first = long(bound->low) - start, last = long(bound->high) - start, at = long(address) - start;
  fail(s, PM_OUT_OF_EXTENT, "PTR264: kernel `", site, lane,
       "%s %zu bytes out of bounds of argument `%s` (%s %u): byte %ld, where bytes %ld to %ld are %s%s%s", verb(site), size, a.name,
       shared ? "threadgroup" : "buffer", a.index, at, first, last, shared ? "its memory" : bindings[a.index].extent ? "the tensor" : "the buffer",
       find_range(s, address, address + size) ? "; it hits memory of something else" : "",
       describe_widened(s, lane, site).text);
}

// An argument that no thread accesses may be bound to anything: host code has to bind something.
[[noreturn]] void report_type(State& s, const Bound& bound, const pm_site& site) {
  const pm_argument& a = *bound.argument;
  const pm_buffer& b = s.job->launch->buffers[a.index];
  if (bound.other_type)
    fail(s, PM_OTHER_TYPE, "PTR279: kernel `", site, pm_index(), "%s argument `%s` (buffer %u) as %s, and the %s bound there holds %s", verb(site),
         a.name, a.index, kTypes[a.type], b.base ? "tensor" : is_lone(a, b) ? "number" : "list", kTypes[b.type - 1]);
  if (is_lone(a, b) && !is_float(a.type))
    fail(s, PM_OTHER_TYPE, "PTR279: kernel `", site, pm_index(), "%s argument `%s` (buffer %u) as %s, and %lld, which is bound there, does not fit",
         verb(site), a.name, a.index, kTypes[a.type], static_cast<long long>(read_integer(b)));
  if (bound.other_layout && !bound.other_size)
    fail(s, PM_OTHER_TYPE, "PTR279: kernel `", site, pm_index(),
         "%s argument `%s` (buffer %u), a structure whose widest member takes %u bytes, and the %s bound there holds %s", verb(site), a.name,
         a.index, a.alignment, b.base ? "tensor" : "list", kTypes[b.type - 1]);
  fail(s, PM_OTHER_TYPE, "PTR279: kernel `", site, pm_index(), "%s argument `%s` (buffer %u), which takes %u bytes, and %s %llu", verb(site),
       a.name, a.index, a.element_size, b.type && !is_lone(a, b) ? "the list bound there has" : "the host handed over",
       static_cast<unsigned long long>(b.length));
}

// Of a sparse buffer it is known where its elements lie: a multiple of 2^32 away is one that was meant.
void check_width(State& s, uintptr_t address, size_t size, const pm_site& site) {
  const pm_launch& launch = *s.job->launch;
  if (!launch.extent_count || !(s.checks & kBounds) || holds_element(launch, address, size)) return;
  if (site.variable || site.argument >= kFirstThreadgroup) return;
  const Range* range = find_range(s, address, address + size);
  for (uint32_t i = 0; i < launch.extent_count && range; ++i)
    if (address_of(launch.extents[i].base) == range->low) range = nullptr;
  if (range || is_internal(s, address, size)) return;
  int64_t away = 0;
  const pm_argument* a = find_wrapped(launch, address, size, away);
  if (!a) return;
  const long at = long(address - address_of(launch.buffers[a->index].address));
  fail(s, PM_INDEX_WIDTH, "PTR270: kernel `", site, pm_index(),
       "%s %zu bytes at byte %ld of argument `%s` (buffer %u), where it has no element; it has one at byte %ld: the offset was computed "
       "in 32 bits", verb(site), size, at, a->name, a->index, at + long(away));
}

// Whether these bytes of a range belong to a tensor that is bound.
bool is_bound(const State& s, const Range& range, uintptr_t address, size_t size) {
  if (range.space != kDevice || range.whole) return true;
  for (const Bound& b : s.arguments)
    if (b.argument && address >= b.low && address + size <= b.high) return true;
  return false;
}

// A binding lasts as long as its encoder, which operators share: what one leaves unbound, the next one finds.
void check_bound(State& s, const pm_argument& a, const pm_site& site) {
  if (!s.job->launch->buffers[a.index].left_over) return;
  fail(s, PM_UNBOUND_ARGUMENT, "PTR124: kernel `", site, pm_index(), "%s argument `%s` (buffer %u), where this launch binds nothing: it finds what "
       "an earlier operator bound to the stream's encoder", verb(site), a.name, a.index);
}

// The range of a checked access; null for memory that no thread shares.
Range* locate(State& s, uintptr_t address, size_t size, const pm_site& site) {
  const Bound* bound = nullptr;
  if (site.argument >= kFirstThreadgroup) bound = &s.threadgroup[site.argument - kFirstThreadgroup];
  else if (site.argument >= 0 && site.argument < int(PM_BINDINGS)) bound = &s.arguments[site.argument];
  if (bound && bound->argument && bound->argument->kind < PM_TEXTURE) {
    const bool within = address >= bound->low && address + size <= bound->high;
    if (bound->argument->kind < PM_THREADGROUP && (s.checks & kBounds)) check_bound(s, *bound->argument, site);
    if (!within && !bound->other_size && !bound->other_layout && (s.checks & kBounds)) out_of_bounds(s, bound, address, size, site);
    if ((bound->other_type || bound->other_size || bound->other_layout) && s.checks & kBounds) report_type(s, *bound, site);
    if (within && bound->range) return bound->range;
    return find_range(s, address, address + size);
  }
  Range* found = find_range(s, address, address + size);
  const bool own = found && (!site.variable || found->name == site.variable);
  if (own && is_bound(s, *found, address, size)) return found;
  if (site.variable && !found && !(site.kind & PM_IN_VARIABLE)) {
    // Not announced yet, or beyond it.
  } else if (is_internal(s, address, size)) {
    return nullptr;
  }
  if (s.checks & kBounds) out_of_bounds(s, nullptr, address, size, site);
  return found;
}

void count_atomic(State& s, const Range& range, uintptr_t address, const pm_site& site, uint32_t lane) {
  s.atomics = s.atomics_lane == lane ? s.atomics + 1 : 0;
  s.atomics_lane = lane;
  if (s.atomics > kMostAtomics && (s.checks & kEndless))
    fail(s, PM_ENDLESS, "PTR268: kernel `", site, lane, "does not end: it repeats an atomic access of %s", memory_name(s, &range, site, address).text);
}

// A lane that reads one place over and over, and nothing else, waits for what no other can write: lanes run one by one.
void count_repeats(State& s, const Range& range, uintptr_t address, const pm_site& site, uint32_t lane) {
  const bool same = s.last_address == address && s.last_site == &site && s.last_lane == lane;
  s.last_address = address;
  s.last_site = &site;
  s.last_lane = lane;
  s.repeats = same ? s.repeats + 1 : 0;
  if (s.repeats > kMostRepeats && (s.checks & kEndless))
    fail(s, PM_ENDLESS, "PTR268: kernel `", site, lane, "does not end: it repeats an access of %s", memory_name(s, &range, site, address).text);
}

void access(State& s, uintptr_t address, size_t size, const pm_site& site) {
  if (s.conflict.pending) settle(s);
  if (!size) return;
  const uint32_t lane = pm_index();
  if (lane >= kLanes) return;
  if ((site.kind & PM_STORES) && pm_watch.high) record_store(address, size, site.file, site.line);
  check_width(s, address, size, site);
  Range* range = locate(s, address, size, site);
  if (!range) return;
  if ((s.checks & kAlignment) && site.align && (address & (site.align - 1)))
    fail(s, PM_MISALIGNED_ACCESS, "PTR265: kernel `", site, pm_index(), "%s %s, an address that is no multiple of %u, as its type needs",
         verb(site), memory_name(s, range, site, address).text, site.align);
  if ((s.checks & kReadOnly) && (site.kind & PM_STORES) && !range->writable)
    fail(s, PM_READ_ONLY, "PTR266: kernel `", site, pm_index(), "writes %s, which is bound for reading", memory_name(s, range, site, address).text);
  if (site.kind & PM_ATOMIC) count_atomic(s, *range, address, site, lane);
  else count_repeats(s, *range, address, site, lane);
  if (range->space != kTexture && range->cells) record(s, *range, address, uint32_t(size), site, lane);
}
}  // namespace

State& state() {
  if (!own_state) {
    static thread_local Owner owner;
    own_state = new State{};
    (void)owner;
  }
  return *own_state;
}

bool active() { return own_state && own_state->active; }

Text thread_name(const State& s, uint32_t group, uint32_t lane) {
  const pm_group where = place_group(s.job->grid, group);
  uint32_t at[3], rest = lane;
  for (int d = 0; d < 3; ++d) {
    at[d] = rest % where.size[d];
    rest /= where.size[d];
  }
  Text t;
  snprintf(t.text, sizeof(t.text), "thread (%u, %u, %u) of threadgroup (%u, %u, %u)", at[0], at[1], at[2], where.at[0], where.at[1], where.at[2]);
  return t;
}

Text memory_name(const State& s, const Range* range, const pm_site& site, uintptr_t address) {
  Text t;
  if (range && range->name) {
    snprintf(t.text, sizeof(t.text), "threadgroup variable `%s` at byte %lu", range->name, (unsigned long)(address - range->low));
    return t;
  }
  const pm_launch& launch = *s.job->launch;
  for (int pass = 0; pass < 2; ++pass)
    for (uint32_t i = 0; i < launch.kernel->argument_count; ++i) {
      const pm_argument& a = launch.kernel->arguments[i];
      if (a.kind >= PM_TEXTURE) continue;
      const bool shared = a.kind == PM_THREADGROUP;
      const Bound& b = shared ? s.threadgroup[a.index] : s.arguments[a.index];
      const bool named = site.argument == int(shared ? kFirstThreadgroup + a.index : a.index);
      if (pass == 0 ? !named : !(address >= b.low && address < b.high)) continue;
      const uintptr_t start = shared ? b.low : address_of(launch.buffers[a.index].address);
      snprintf(t.text, sizeof(t.text), "argument `%s` (%s %u) at byte %ld", a.name, shared ? "threadgroup" : "buffer", a.index, long(address - start));
      return t;
    }
  snprintf(t.text, sizeof(t.text), "memory that no argument is bound to");
  return t;
}

// What to do about a finding, of which its own text says nothing; empty for the others.
const char* next_step(const char* start) {
  constexpr const char* kSteps[][2] = {
      {"PTR264", "Compare the index with the length of what is accessed, and guard the last, partial threadgroup."},
      {"PTR279", "Convert it, or launch the kernel for its type; arg_casts say how wide a list's numbers are, and a vector of 3 is bound as 4."},
      {"PTR282", "Compute in a wider type, such as long; a function that wraps on purpose says __attribute__((annotate(\"porter: wraps\")))."}};
  for (const auto& step : kSteps)
    if (!strncmp(start, step[0], 6)) return step[1];
  return "";
}

void fail(State& s, int status, const char* start, const pm_site& site, uint32_t lane, const char* format, ...) {
  char found[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(found, sizeof(found), format, arguments);
  va_end(arguments);
  const pm_launch& launch = *s.job->launch;
  const char* step = next_step(start);
  snprintf(s.failure->text, sizeof(s.failure->text), "%s%s` %s, at %s:%u, in %s (seed %llu)%s%s", start, launch.kernel->host_name, found,
           site.file, site.line, thread_name(s, s.group, lane).text, static_cast<unsigned long long>(launch.seed), *step ? "\n  " : "", step);
  s.active = false;
  longjmp(*s.escape, status);
}

void begin(const Job& job, void* const* threadgroup, Failure& failure, jmp_buf* escape, const void* internal, size_t size, const void* stacks, size_t stacks_size) {
  State& s = state();
  const pm_launch& launch = *job.launch;
  clear(s, launch);
  s.checks = job.entry->flags >> PM_SANITIZER_SHIFT;
  s.stamp = next_stamp();
  s.job = &job;
  s.image = job.entry->image_begin;
  s.failure = &failure;
  s.escape = escape;
  const uintptr_t ours[3][2] = {
      {address_of(internal), address_of(internal) + size},
      {address_of(stacks), address_of(stacks) + stacks_size},
      {address_of(job.entry->image_begin), address_of(job.entry->image_end)}};
  memcpy(s.internal, ours, sizeof(ours));
  for (uint32_t i = 0; i < launch.kernel->argument_count; ++i) {
    const pm_argument& a = launch.kernel->arguments[i];
    if (a.kind != PM_THREADGROUP) {
      add_argument(s, a, launch);
      continue;
    }
    const uintptr_t low = address_of(threadgroup[a.index]);
    s.threadgroup[a.index] = {&a, nullptr, low, low + launch.threadgroup_bytes[a.index], false};
    add_range(s, low, low + launch.threadgroup_bytes[a.index], kThreadgroup, true, shift_for(a.alignment));
  }
  for (uint32_t i = 0; i < launch.resident_count; ++i) {
    const pm_buffer& b = launch.resident[i];
    const uintptr_t base = address_of(b.base ? b.base : b.address);
    Range* range = b.length ? add_range(s, base, base + b.length, kDevice, true, 2) : nullptr;
    if (range) range->whole = true;
  }
  for (int i = 0; i < s.range_count; ++i)
    if (s.ranges[i].space != kTexture && !(s.ranges[i].space == kDevice && launch.flags & PM_WITHOUT_CELLS))
      add_cells(s, s.ranges[i]);
  for (Bound& b : s.arguments)
    if (b.argument && b.high > b.low) b.range = find_range(s, b.low, b.high);
  for (Bound& b : s.threadgroup)
    if (b.argument) b.range = find_range(s, b.low, b.high);
  s.active = true;
}

void start_group(uint32_t index) {
  State& s = state();
  if (s.conflict.pending) settle(s);
  s.group = index;
  s.atomics = s.repeats = 0;
  s.widened.file = nullptr;
  s.open_result.site = nullptr;
  memset(s.epochs, 0, sizeof(s.epochs));
  const uint32_t stamp = next_stamp();
  for (int i = 0; i < s.range_count; ++i)
    if (s.ranges[i].space == kThreadgroup) s.ranges[i].stamp = stamp;
}

void settle_last() {
  State& s = state();
  if (s.conflict.pending) settle(s);
}

void end() {
  if (!own_state) return;
  own_state->active = false;
  own_state->kept = return_cells();
}

void forget() {
  if (own_state) own_state->kept = false;
}

void announce(const void* address, size_t size, const char* name) {
  State& s = state();
  const uintptr_t low = address_of(address);
  for (int i = 0; i < s.range_count; ++i)
    if (s.ranges[i].low == low && s.ranges[i].space == kThreadgroup) return;
  Range* r = add_range(s, low, low + size, kThreadgroup, true, 2);
  if (!r) return;
  r->name = name;
  r->stamp = next_stamp();
  add_cells(s, *r);
}
}  // namespace pm::sanitizer

using namespace pm;
using namespace pm::sanitizer;

#pragma GCC visibility push(default)
extern "C" {
void pm_access(const void* address, const pm_site* site) {
  State* s = own_state;
  if (s && s->active) access(*s, reinterpret_cast<uintptr_t>(address), site->size, *site);
}
void pm_access_range(const void* address, uint64_t size, const pm_site* site) {
  if (active()) access(state(), reinterpret_cast<uintptr_t>(address), size, *site);
}
// Of a constant of the program, `site->extent` bytes from `variable`.
void pm_access_in(const void* address, const void* variable, const pm_site* site) {
  if (!active() || !(state().checks & kBounds)) return;
  const auto low = reinterpret_cast<uintptr_t>(variable), at = reinterpret_cast<uintptr_t>(address);
  if (at < low || at + site->size > low + site->extent) out_of_bounds(state(), nullptr, at, site->size, *site);
}
void pm_name_variable(const void* address, uint64_t size, const char* name) {
  if (active()) announce(address, size, name);
}
// Of the last launch of this thread, if it was watched: as count_unwritten. 0 where that is not known.
uint64_t pm_count_unwritten(const void* address, uint64_t count, uint64_t size, uint64_t* first) {
  State& s = state();
  const auto low = reinterpret_cast<uintptr_t>(address);
  const Range* range = s.kept && (s.checks & kUninitialized) ? find_range(s, low, low + count * size) : nullptr;
  return range && range->cells ? count_unwritten(*range, low, count, size, first) : 0;
}
uint64_t pm_touched(uint64_t low, uint64_t high, pm_touch* touches, uint64_t capacity) {
  const State* s = own_state;
  uint64_t count = 0;
  if (!s || !s->kept || !(s->checks & kRaces)) return 0;
  for (int i = 0; i < s->range_count; ++i) {
    const Range& range = s->ranges[i];
    const uintptr_t from = low > range.low ? low : range.low, to = high < range.high ? high : range.high;
    if (range.space == kDevice && range.cells && from < to) count = list_touches(*s, range, from, to, touches, count, capacity);
  }
  return count;
}
// Before something depends on a value that may be that of a private variable without one.
void pm_check_private(bool undefined, const char* file, uint32_t line) {
  if (!undefined || !active()) return;
  pm_site site{};
  site.file = file;
  site.line = line;
  State& s = state();
  fail_for_open_result(s, line);
  fail(s, PM_PRIVATE, "PTR267: kernel `", site, pm_index(), s.checks & kArithmetic ? "uses a private variable before it has a value, or a constant that is divided by 0 or out of range" : "uses a private variable before it has a value");
}
// What headers tell, before the lane waits: the memory that a barrier orders.
void pm_note_barrier(uint32_t memory, uint32_t simdgroup) {
  if (!active()) return;
  State& s = state();
  for (int space = 0; space < 2; ++space) {
    if (!(memory & (1u << space))) continue;
    Epoch& e = s.epochs[space][pm_index()];
    ++(simdgroup ? e.simd : e.group);
  }
}
void pm_note_fence(uint32_t memory) {
  if (!active()) return;
  for (int space = 0; space < 2; ++space)
    if (memory & (1u << space)) state().fenced[space] = true;
}
}
#pragma GCC visibility pop
