#include "engine.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "memory/memory.h"
#include "porter_metal.h"
#include "runtime/objects.h"

namespace porter::metal {
namespace {

porter_open_library open_library;
porter_compile_kernel compile_kernel;
porter_find_extent find_extent;
porter_allow_short allow_short;
porter_hear_refusal hear_refusal;
porter_hear_launch hear_launch;
thread_local std::string answer;
std::string& bundle() {
  static auto& value = *new std::string;
  return value;
}

struct Options {
  uint32_t flags = 0;
  uint64_t seed = 0;
  uint32_t threads = 0;
} options;
uint32_t window = 0;
bool writers_are_watched = false;

std::atomic<uint64_t> launches{0};
std::atomic<pm_touched_fn> find_touches{nullptr};  // of the runtime that all libraries share

struct Calls {
  std::mutex mutex;
  std::map<std::string, uint64_t> counts;
};

// The kernel that runs now, for a signal's handler: nothing it calls may allocate or lock.
std::atomic<const char*> running{nullptr};

struct Running {
  explicit Running(const char* name) : outer(running.exchange(name)) {}
  ~Running() { running = outer; }
  const char* outer;
};

void print_running(int) {
  const int before = errno;
  if (const char* name = running) {
    const auto put = [](const char* text) { return write(STDERR_FILENO, text, std::strlen(text)) < 0; };
    put("kernel `") || put(name) || put("` was running\n");
  }
  errno = before;
}

Calls& calls() {
  static auto& value = *new Calls;
  return value;
}

// Kernels whose launches the listener hears of, and their libraries.
struct Announced {
  std::mutex mutex;
  std::map<const pm_kernel*, int> kernels;
};

Announced& announced() {
  static auto& value = *new Announced;
  return value;
}

[[noreturn]] void refused() {
  throw std::runtime_error(porter::objc::taken_error());
}

const pm_kernel* loaded(const std::string& path, const std::string& name) {
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    throw std::runtime_error(std::string("PTR126: ") + dlerror());
  }
  const auto* library = reinterpret_cast<pm_library_fn>(dlsym(object, "pm_library"))();
  find_touches = reinterpret_cast<pm_touched_fn>(dlsym(object, "pm_touched"));
  for (uint32_t i = 0; i < library->kernel_count; i++) {
    if (name == library->kernels[i].host_name) {
      return &library->kernels[i];
    }
  }
  throw std::runtime_error("PTR126: the library compiled for kernel `" + name + "` does not contain it");
}

std::string at(const pm_kernel* kernel, const pm_argument& argument) {
  const bool threadgroup = argument.kind == PM_THREADGROUP;
  return "kernel `" + std::string(kernel->host_name) + "`, argument `" + argument.name + "` at " +
      (threadgroup ? "threadgroup" : "buffer") + " index " + std::to_string(argument.index);
}

// Metal's API validation, which MTL_DEBUG_LAYER switches as on a Mac; here it is on by default.
bool validated() {
  const char* setting = std::getenv("MTL_DEBUG_LAYER");
  return !setting || std::string(setting) != "0";
}

pm_buffer bound_bytes(Binding& binding) {
  binding.bytes.resize(std::max<size_t>(binding.bytes.size(), 1));  // zeros where nothing is bound
  const size_t length = validated() ? binding.length : binding.bytes.size() * sizeof(Unit);
  return {binding.bytes.data(), nullptr, length};
}

std::string demangled(const char* symbol) {
  int status = 0;
  char* plain = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  const std::string found = plain ? plain : symbol;
  std::free(plain);
  return found;
}

// The innermost function that launches a kernel, of those that the library with the host code exports: what is static in
// it, and the blocks that it hands to a queue, have no names; what a header defines, such as `mtl_setBytes`, is weak, and
// is no call of its own where it is inlined. Where torch has called the library, the search ends.
std::string launching_function() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&launching_function), &here);
  const void* library = nullptr;
  for (int i = 0; i < count; i++) {
    Dl_info info{};
    const ElfW(Sym)* symbol = nullptr;
    void** const found = reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&symbol));
    if (!dladdr1(static_cast<char*>(frames[i]) - 1, &info, found, RTLD_DL_SYMENT) || info.dli_fbase == here.dli_fbase) {
      continue;
    }
    library = library ? library : info.dli_fbase;
    if (std::strstr(info.dli_fname, "libtorch")) {
      break;
    }
    if (info.dli_fbase == library && info.dli_sname && symbol && ELF64_ST_BIND(symbol->st_info) != STB_WEAK) {
      return demangled(info.dli_sname);
    }
  }
  return "";
}

// The file of the innermost library on this thread's stack that has called porter's, torch's and Python's; empty for none.
std::string calling_library() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  for (int i = 0; i < count; i++) {
    Dl_info info{};
    if (!dladdr(static_cast<char*>(frames[i]) - 1, &info) || !info.dli_fname) {
      continue;
    }
    const char* slash = std::strrchr(info.dli_fname, '/');
    const char* name = slash ? slash + 1 : info.dli_fname;
    const bool is_between = !std::strncmp(name, "libporter_", 10) || !std::strncmp(name, "libffi", 6) ||
        !std::strncmp(name, "libtorch", 8) || !std::strncmp(name, "libc.", 5) || !std::strncmp(name, "_ctypes", 7) ||
        !std::strncmp(name, "python", 6) || !std::strncmp(name, "libpython", 9) || !std::strncmp(name, "libc10", 6);
    if (!is_between) {
      return info.dli_fname;
    }
  }
  return "";
}

// Makes up the bytes that an argument takes and that are not bound, if who is asked allows that.
void complete(const pm_kernel* kernel, const pm_argument& argument, Binding& binding) {
  const bool is_short = argument.kind == PM_CONSTANT_REFERENCE && binding.kind == Binding::Kind::kBytes &&
      binding.length < argument.element_size;
  if (!is_short || !allow_short || !validated()) {
    return;
  }
  const std::string function = launching_function();
  const char* name = kernel->host_name;
  if (allow_short(name, argument.name, argument.index, argument.element_size, binding.length, function.c_str())) {
    binding.bytes.resize((argument.element_size + sizeof(Unit) - 1) / sizeof(Unit));
    std::memset(reinterpret_cast<char*>(binding.bytes.data()) + binding.length, 0xa5, argument.element_size - binding.length);
    binding.length = argument.element_size;
  }
}

pm_buffer bound_buffer(const Binding& binding, const std::string& where) {
  size_t size = 0;
  void* base = porter_allocation(binding.buffer, &size);
  if (!base) {
    throw std::runtime_error("PTR124: " + where + ": the buffer bound there has been freed");
  }
  if (binding.offset > size) {
    throw std::runtime_error("PTR124: " + where + ": offset " + std::to_string(binding.offset) +
                             " is beyond the buffer's " + std::to_string(size) + " bytes");
  }
  char* host = static_cast<char*>(porter_host_address(base));
  return {host + binding.offset, host, size};
}

pm_buffer bound(const pm_kernel* kernel, const pm_argument& argument, Binding& binding) {
  switch (binding.kind) {
    case Binding::Kind::kBuffer:
      return bound_buffer(binding, at(kernel, argument));
    case Binding::Kind::kBytes:
      return bound_bytes(binding);
    case Binding::Kind::kNothing:
      if (!validated()) {
        return bound_bytes(binding);
      }
      break;
  }
  throw std::runtime_error("PTR124: " + at(kernel, argument) + ": nothing is bound there");
}

void check_sizes(const pm_kernel* kernel, const Arguments& arguments, Size group) {
  const size_t threads = group.x * group.y * group.z;
  const std::string who = "PTR125: kernel `" + std::string(kernel->host_name) + "`: ";
  if (threads == 0 || threads > kernel->max_threads_per_group) {
    throw std::runtime_error(who + "a threadgroup of " + std::to_string(group.x) + " x " + std::to_string(group.y) +
                             " x " + std::to_string(group.z) + " threads; the limit is " +
                             std::to_string(kernel->max_threads_per_group));
  }
  size_t memory = kernel->static_threadgroup_bytes;
  for (uint32_t i = 0; i < kernel->argument_count; i++) {
    const pm_argument& argument = kernel->arguments[i];
    if (argument.kind == PM_THREADGROUP) {
      memory += arguments.threadgroup_bytes.at(argument.index);
    }
  }
  if (memory > kThreadgroupMemory) {
    throw std::runtime_error(who + std::to_string(memory) + " bytes of threadgroup memory; the limit is " +
                             std::to_string(kThreadgroupMemory));
  }
}

// Adds to what is bound the bytes that are the tensor's.
void add_extents(const pm_kernel* kernel, const Arguments& arguments, std::vector<pm_buffer>& buffers) {
  for (uint32_t i = 0; find_extent && i < kernel->argument_count; i++) {
    const Binding& binding = arguments.bindings.at(kernel->arguments[i].index);
    if (kernel->arguments[i].kind == PM_THREADGROUP || binding.kind != Binding::Kind::kBuffer) {
      continue;
    }
    std::vector<size_t> offsets;
    for (uint32_t k = 0; k < kernel->argument_count; k++) {
      const Binding& other = arguments.bindings.at(kernel->arguments[k].index);
      if (kernel->arguments[k].kind != PM_THREADGROUP && other.buffer == binding.buffer) {
        offsets.push_back(other.offset);
      }
    }
    pm_buffer& buffer = buffers.at(kernel->arguments[i].index);
    const size_t found = find_extent(binding.buffer, binding.offset, offsets.data(), offsets.size(), &buffer.type);
    buffer.extent = std::min(found, static_cast<size_t>(buffer.length) - binding.offset);
  }
}

std::vector<pm_buffer> residents(const Arguments& arguments) {
  std::vector<pm_buffer> found;
  for (const void* address : arguments.resident) {
    size_t size = 0;
    if (void* base = porter_allocation(address, &size)) {
      void* host = porter_host_address(base);
      found.push_back({host, host, size});
    }
  }
  return found;
}

// A position in the grid has 32 bits (Metal Shading Language Specification, "Attributes for Kernel Function Input").
void check_grid(const pm_kernel* kernel, Size threads) {
  const size_t longest = std::max({threads.x, threads.y, threads.z});
  if (longest > size_t{1} << 32) {
    throw std::runtime_error("PTR270: kernel `" + std::string(kernel->host_name) + "`: a grid of " +
                             std::to_string(longest) + " threads along one axis; a thread's position has 32 bits");
  }
}

// The bytes of these buffers that hold elements, where that is known.
std::vector<pm_extent> extents_of(const std::vector<pm_buffer>& buffers) {
  std::vector<pm_extent> found;
  for (const pm_buffer& buffer : buffers) {
    size_t count = 0;
    const porter_extent* extents = buffer.base ? porter_memory_extents(porter_device_address(buffer.base), &count) : nullptr;
    for (size_t i = 0; i < count; i++) {
      found.push_back({buffer.base, extents[i].low, extents[i].high});
    }
  }
  return found;
}

struct Reachable {
  uintptr_t low, high;
  const void* buffer;  // of the device
};

// The buffers that a launch can reach, as the host sees them.
std::vector<Reachable> reachable(const pm_kernel* kernel, const Arguments& arguments) {
  std::vector<const void*> buffers = arguments.resident;
  for (uint32_t i = 0; i < kernel->argument_count; i++) {
    const Binding& binding = arguments.bindings.at(kernel->arguments[i].index);
    if (kernel->arguments[i].kind != PM_THREADGROUP && binding.kind == Binding::Kind::kBuffer) {
      buffers.push_back(binding.buffer);
    }
  }
  std::sort(buffers.begin(), buffers.end());
  buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
  std::vector<Reachable> spans;
  for (const void* buffer : buffers) {
    size_t size = 0;
    if (void* base = porter_allocation(buffer, &size)) {
      const auto low = reinterpret_cast<uintptr_t>(porter_host_address(base));
      spans.push_back({low, low + size, base});
    }
  }
  std::sort(spans.begin(), spans.end(), [](const Reachable& one, const Reachable& other) { return one.low < other.low; });
  return spans;
}

// Says which argument an access was made through, as far as its address tells.
void name_touch(const pm_kernel* kernel, const std::vector<pm_buffer>& buffers, order::Touch& touch) {
  touch.what = "memory that no argument is bound to";
  touch.start = touch.low;
  for (uint32_t i = 0; i < kernel->argument_count; i++) {
    const pm_argument& argument = kernel->arguments[i];
    const pm_buffer& bound = buffers.at(argument.kind == PM_THREADGROUP ? 0 : argument.index);
    const auto start = reinterpret_cast<uintptr_t>(bound.address), base = reinterpret_cast<uintptr_t>(bound.base);
    const uintptr_t end = bound.extent ? start + bound.extent : base + bound.length;
    if (argument.kind != PM_THREADGROUP && bound.base && touch.low >= start && touch.low < end) {
      touch.what = "argument `" + std::string(argument.name) + "` (buffer " + std::to_string(argument.index) + ")";
      touch.start = start;
      return;
    }
  }
}

// What the launch that this thread has just ended did to memory, as far as the sanitizer watched it.
std::vector<order::Touch> touches_of(const pm_kernel* kernel, const Arguments& arguments, const std::vector<pm_buffer>& buffers) {
  std::vector<order::Touch> all;
  std::vector<pm_touch> found(64);
  const pm_touched_fn find = find_touches;
  const std::vector<Reachable> spans = reachable(kernel, arguments);
  uintptr_t done = 0;
  for (const Reachable& span : spans) {
    const uintptr_t low = std::max(span.low, done);
    if (!find || low >= span.high) {
      continue;
    }
    done = span.high;
    const uint64_t count = find(low, span.high, found.data(), found.size());
    if (count > found.size()) {
      found.resize(count);
      find(low, span.high, found.data(), found.size());
    }
    for (uint64_t i = 0; i < count; i++) {
      const pm_touch& touch = found[i];
      order::Touch made{touch.low, touch.high, touch.reads != 0, touch.writes != 0, {}, "", 0,
                        std::string(touch.file) + ":" + std::to_string(touch.line)};
      for (const Reachable& other : spans) {
        if (touch.low < other.high && other.low < touch.high) {
          made.buffers.push_back(other.buffer);
        }
      }
      name_touch(kernel, buffers, made);
      all.push_back(std::move(made));
    }
  }
  return all;
}

void count(const char* name) {
  std::lock_guard lock(calls().mutex);
  calls().counts[name]++;
}

}  // namespace

Library::Library(const std::string& source, bool bundled) {
  if (!open_library) {
    throw std::runtime_error("PTR126: this process has no Metal compiler");
  }
  handle_ = open_library(source.c_str(), bundled);
  if (handle_ < 0) {
    refused();
  }
  size_t start = 0;
  for (size_t end; (end = answer.find('\n', start)) != std::string::npos; start = end + 1) {
    names_.push_back(answer.substr(start, end - start));
  }
  if (start < answer.size()) {
    names_.push_back(answer.substr(start));
  }
}

bool Library::has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

const pm_kernel* Library::kernel(const std::string& name, const std::string& constants) {
  std::lock_guard lock(mutex_);
  const pm_kernel*& known = kernels_[{name, constants}];
  if (!known) {
    const int state = compile_kernel(handle_, name.c_str(), constants.c_str());
    if (state < 0) {
      refused();
    }
    known = loaded(answer, name);
    if (state > 0) {
      std::lock_guard announced_lock(announced().mutex);
      announced().kernels[known] = handle_;
    }
  }
  return known;
}

void announce(const pm_kernel* kernel, Size group) {
  int library = 0;
  {
    std::lock_guard lock(announced().mutex);
    const auto asked = announced().kernels.find(kernel);
    if (!hear_launch || asked == announced().kernels.end()) {
      return;
    }
    library = asked->second;
  }
  if (hear_launch(library, kernel->host_name, group.x, group.y, group.z) < 0) {
    refused();
  }
}

namespace {

// Sets `is_told` if the launch itself has reported what is wrong (see pm_launched).
void launch_now(
    const pm_kernel* kernel, const Arguments& given, Size threads, Size group, const order::Place& place, bool& is_told) {
  Arguments arguments = given;  // a kernel may write into a copy of the bytes, as it may on a GPU
  if (threads.x * threads.y * threads.z == 0) {
    return;
  }
  check_sizes(kernel, arguments, group);
  check_grid(kernel, threads);
  std::vector<pm_buffer> buffers(PM_MAX_BUFFERS);
  for (uint32_t i = 0; i < kernel->argument_count; i++) {
    const pm_argument& argument = kernel->arguments[i];
    if (argument.kind != PM_THREADGROUP) {
      complete(kernel, argument, arguments.bindings.at(argument.index));
      Binding& binding = arguments.bindings.at(argument.index);
      buffers.at(argument.index) = bound(kernel, argument, binding);
      buffers.at(argument.index).left_over = binding.kind != Binding::Kind::kNothing && binding.block != arguments.block;
    }
  }
  add_extents(kernel, arguments, buffers);
  const std::vector<pm_buffer> resident = residents(arguments);
  const std::vector<pm_extent> extents = extents_of(buffers);
  char error[1280] = "";
  pm_launch call{};
  call.kernel = kernel;
  call.buffers = buffers.data();
  call.buffer_count = PM_MAX_BUFFERS;
  call.threadgroup_bytes = arguments.threadgroup_bytes.data();
  call.threadgroup_count = PM_MAX_THREADGROUP_ARGS;
  const auto set = [](uint32_t (&to)[3], Size size) {
    to[0] = static_cast<uint32_t>(size.x);
    to[1] = static_cast<uint32_t>(size.y);
    to[2] = static_cast<uint32_t>(size.z);
  };
  set(call.grid, threads);
  set(call.group, group);
  call.resident = resident.data();
  call.resident_count = static_cast<uint32_t>(resident.size());
  call.flags = options.flags;
  call.seed = options.seed + launches++;
  call.max_threads = options.threads;
  call.error = error;
  call.error_size = sizeof error;
  call.extents = extents.data();
  call.extent_count = static_cast<uint32_t>(extents.size());
  call.window = window;
  count(kernel->host_name);
  const Running now(kernel->host_name);
  const int status = kernel->launch(&call);
  is_told = status != PM_OK;
  if (status != PM_OK) {
    throw std::runtime_error((std::strncmp(error, "PTR", 3) ? "PTR126: " : "") + std::string(error));
  }
  for (uint32_t i = 0; writers_are_watched && !window && i < kernel->argument_count; i++) {
    const pm_argument& argument = kernel->arguments[i];
    if (argument.kind != PM_THREADGROUP && argument.writable) {
      porter_memory_note_writer(buffers.at(argument.index).base, kernel->host_name);
    }
  }
  if (order::watched()) {
    order::note(place, "kernel `" + std::string(kernel->host_name) + "`", touches_of(kernel, arguments, buffers));
  }
}

}  // namespace

void launch(const pm_kernel* kernel, const Arguments& arguments, Size threads, Size group, const order::Place& place) {
  bool is_told = false;
  try {
    launch_now(kernel, arguments, threads, group, place, is_told);
  } catch (const std::exception& error) {
    if (hear_refusal && !is_told) {
      hear_refusal(kernel, error.what());
    }
    throw;
  }
}

char* bytes_of(const void* buffer, size_t offset, size_t size, const std::string& who) {
  size_t length = 0;
  void* base = porter_allocation(buffer, &length);
  if (!base || offset > length || size > length - offset) {
    throw std::runtime_error("PTR124: " + who + ": bytes " + std::to_string(offset) + " to " +
                             std::to_string(offset + size) + " are out of bounds for a buffer of " + std::to_string(length));
  }
  return static_cast<char*>(porter_host_address(base)) + offset;
}

}  // namespace porter::metal

using namespace porter::metal;

extern "C" {

void porter_set_compiler(porter_open_library open, porter_compile_kernel compile) {
  open_library = open;
  compile_kernel = compile;
}

void porter_set_listener(porter_hear_launch hear) {
  hear_launch = hear;
}

void porter_set_extents(porter_find_extent find) {
  find_extent = find;
}

void porter_set_short(porter_allow_short allow) {
  allow_short = allow;
}

void porter_hear_refusals(porter_hear_refusal hear) {
  hear_refusal = hear;
}

size_t porter_find_caller(char* text, size_t size) {
  const std::string path = calling_library();
  std::snprintf(text, size, "%s", path.c_str());
  return path.size();
}

void porter_answer(const char* text) {
  answer = text;
}

void porter_set_bundle(const char* text) {
  bundle() = text;
}

uint8_t* porter_bundle(unsigned long* size) {
  *size = bundle().size();
  return bundle().empty() ? nullptr : reinterpret_cast<uint8_t*>(bundle().data());
}

void porter_launch_options(uint32_t flags, uint64_t seed, uint32_t threads) {
  options = {flags, seed, threads};
}

void porter_watch_order(void) {
  order::watch();
  porter_memory_watch_frees(order::forget_buffer);
}

void porter_watch_writers(void) {
  writers_are_watched = true;
}

int porter_order_is_watched(void) {
  return order::watched();
}

void porter_launch_window(uint32_t threads) {
  window = threads;
}

void porter_print_kernel_on(int signal) {
  struct sigaction action {};
  action.sa_handler = print_running;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

size_t porter_kernel_calls(char* text, size_t size) {
  std::string all;
  std::lock_guard lock(calls().mutex);
  for (const auto& [name, count] : calls().counts) {
    all += name + " " + std::to_string(count) + "\n";
  }
  if (text && size) {
    std::snprintf(text, size, "%s", all.c_str());
  }
  return all.size() + 1;
}

}  // extern "C"
