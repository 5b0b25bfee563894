// What a program launches, whoever bound it: counts by kernel and operator, in a file that outlives the process however it
// ends, and what a launch that failed was a part of.
#include "metal/include/porter_metal_abi.h"

#include <ATen/record_function.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace porter {
namespace {

// The file is an array of these: `text` has the file of the kernel's library, its name and the innermost operator, a line each.
struct Slot {
  std::atomic<uint64_t> count;
  char text[1016];
};
constexpr size_t kSlots = 1 << 14;

using Failed = void (*)(const char* library, const char* kernel, const char* operators, const char* text);

struct Record {
  std::mutex mutex;
  std::string folder;
  Failed failed = nullptr;
  pid_t process = 0;
  Slot* slots = nullptr;
  size_t used = 0;
  std::map<std::pair<const pm_kernel*, std::string>, Slot*> counts;
};

Record& record() {
  static auto& value = *new Record;  // kernels run until the very end of a process
  return value;
}

// The operators that run on this thread, the innermost last.
thread_local std::vector<const char*> running;

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  running.push_back(function.name());
  return nullptr;
}

void end(const at::RecordFunction&, at::ObserverContext*) {
  if (!running.empty()) {
    running.pop_back();
  }
}

const char* library_of(const pm_kernel* kernel) {
  Dl_info info{};
  return dladdr(kernel, &info) && info.dli_fname ? info.dli_fname : "";
}

// Maps the file of this process; a process that was forked starts one of its own. Null where there can be none.
Slot* map_file(Record& made) {
  const std::string path = made.folder + "/" + std::to_string(made.process) + ".launches";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return nullptr;
  }
  void* mapped = ftruncate(file, kSlots * sizeof(Slot)) == 0
      ? mmap(nullptr, kSlots * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
      : MAP_FAILED;
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<Slot*>(mapped);
}

// What is beyond the last slot is counted there, under no name.
void count(const pm_kernel* kernel) {
  Record& made = record();
  const std::string name = running.empty() ? "" : running.back();
  std::lock_guard lock(made.mutex);
  if (made.process != getpid()) {
    made.process = getpid();
    made.counts.clear();
    made.used = 0;
    made.slots = map_file(made);
  }
  if (!made.slots) {
    return;
  }
  Slot*& slot = made.counts[{kernel, name}];
  if (!slot) {
    slot = &made.slots[made.used];
    if (made.used + 1 < kSlots) {
      made.used++;
      std::snprintf(slot->text, sizeof slot->text, "%.400s\n%.400s\n%.200s", library_of(kernel), kernel->host_name, name.c_str());
    }
  }
  slot->count++;
}

void tell_failure(const pm_kernel* kernel, const char* text) {
  std::string names;
  for (const char* name : running) {
    names += names.empty() ? name : std::string("\n") + name;
  }
  if (const Failed failed = record().failed) {
    failed(kernel ? library_of(kernel) : "", kernel ? kernel->host_name : "", names.c_str(), text);
  }
}

void launched(const pm_launch* launch, int status) {
  count(launch->kernel);
  if (status != PM_OK) {
    tell_failure(launch->kernel, launch->error && launch->error_size ? launch->error : "");
  }
}

}  // namespace
}  // namespace porter

extern "C" {

// Counts launches from now on, in a file of `folder`, and calls `failed` for each that failed: the kernel's library and name,
// the operators that run, outermost first, a line each, and what is wrong. `pm_launched` is the runtime's.
void porter_record_launches(const char* folder, porter::Failed failed, pm_launched_fn* pm_launched) {
  using namespace porter;
  record().folder = folder;
  record().failed = failed;
  static const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION}));
  (void)handle;
  __atomic_store_n(pm_launched, &launched, __ATOMIC_RELEASE);
}

// Says what is wrong with a launch that never came to run.
void porter_refused_launch(const pm_kernel* kernel, const char* text) {
  porter::tell_failure(kernel, text);
}

}  // extern "C"
