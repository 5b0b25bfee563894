// Names the kernel that ends the process, where it accesses memory that is not there and nothing checks its bounds.
#include "runtime.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

namespace pm {
namespace {
constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction before[2];
bool is_told;

// Nothing here may allocate or lock.
void tell(const char* kernel) {
  const auto put = [](const char* text) { return write(STDERR_FILENO, text, strlen(text)) < 0; };
  put("PTR445: kernel `") || put(kernel) || put("` accesses memory that is not there, and ends the process\n") ||
      put("  Run `porter kernel check FILE`, or the program with PORTER_SANITIZE=all: both name the line and the argument.\n");
}

// What was there before handles the signal next: the access is repeated as soon as this returns.
void handle(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  if (running_kernel && !__atomic_exchange_n(&is_told, true, __ATOMIC_RELAXED)) tell(running_kernel);
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &before[i], nullptr);
  if (info->si_code <= 0) raise(signal);  // sent by a process: nothing repeats it
  errno = saved;
}

__attribute__((constructor)) void start() {
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &before[i]);
}
}  // namespace

thread_local const char* running_kernel;
}  // namespace pm
