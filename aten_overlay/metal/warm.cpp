// Loaded into a compiler before all else: one that is loaded already forks for each command that a socket brings. To
// load LLVM takes longer than to compile a small kernel.
//
// A request is one message: the words of the command, each with a zero behind it, and five descriptors: input, output,
// errors, current folder, and where the status goes. Nobody reads that any more: the command is killed.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int MOST_BYTES = 1 << 17, MOST_WORDS = 1 << 14, MOST_JOBS = 64, DESCRIPTORS = 5, FOLDER = 3, ANSWER = 4;

struct Job {
  pid_t process;
  int answer;
};

char text[MOST_BYTES + 1];
char* words[MOST_WORDS + 1];
Job jobs[MOST_JOBS];
int running = 0;

// In a fork: takes over a request, and returns how many words it has.
int take_over(const int* descriptors, size_t length) {
  for (int i = 0; i < 3; ++i) {
    dup2(descriptors[i], i);
  }
  if (fchdir(descriptors[FOLDER])) {
    _exit(127);
  }
  for (int i = 0; i < DESCRIPTORS; ++i) {
    close(descriptors[i]);
  }
  int count = 0;
  for (size_t at = 0; at < length && count < MOST_WORDS; at += strlen(text + at) + 1) {
    words[count++] = text + at;
  }
  return count;
}

void answer_ended() {
  int status;
  for (pid_t process; (process = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int i = 0; i < running; ++i) {
      if (jobs[i].process == process) {
        (void)!write(jobs[i].answer, &status, sizeof status);
        close(jobs[i].answer);
        jobs[i--] = jobs[--running];
      }
    }
  }
}

// The length of the next request; 0 at the end of all.
size_t receive(int socket, int* descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
  iovec part = {text, MOST_BYTES};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (length <= 0 || !header || header->cmsg_len != CMSG_LEN(DESCRIPTORS * sizeof(int))) {
    return 0;
  }
  memcpy(descriptors, CMSG_DATA(header), DESCRIPTORS * sizeof(int));
  return length;
}

// Serves until nobody holds the other end of the socket. Returns in forks alone.
int serve(int socket) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  const int signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  (void)!chdir("/");
  (void)!write(socket, "", 1);
  for (bool is_open = true; is_open || running;) {
    pollfd waited[2 + MOST_JOBS] = {{is_open && running < MOST_JOBS ? socket : -1, POLLIN, 0}, {signals, POLLIN, 0}};
    const int count = running;
    for (int i = 0; i < count; ++i) {
      waited[2 + i] = {jobs[i].answer, 0, 0};
    }
    if (poll(waited, 2 + count, -1) < 0) {
      continue;
    }
    for (int i = 0; i < count; ++i) {
      if (waited[2 + i].revents) {
        kill(jobs[i].process, SIGKILL);
      }
    }
    signalfd_siginfo told;
    while (read(signals, &told, sizeof told) > 0) {
    }
    answer_ended();
    if (!waited[0].revents) {
      continue;
    }
    int descriptors[DESCRIPTORS];
    const size_t length = receive(socket, descriptors);
    if (!length) {
      is_open = false;
      continue;
    }
    const pid_t process = fork();
    if (process == 0) {
      close(socket);
      close(signals);
      for (int i = 0; i < running; ++i) {
        close(jobs[i].answer);
      }
      sigprocmask(SIG_UNBLOCK, &children, nullptr);
      return take_over(descriptors, length);
    }
    for (int i = 0; i < ANSWER; ++i) {
      close(descriptors[i]);
    }
    if (process < 0) {
      close(descriptors[ANSWER]); // without a status: the command is run elsewhere
      continue;
    }
    jobs[running++] = {process, descriptors[ANSWER]};
  }
  _exit(0);
}

} // namespace

extern "C" int __libc_start_main(
    int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(), void (*ended)(),
    void* stack) {
  const auto start = reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  if (const char* socket = getenv("PM_WARM_SOCKET")) {
    const int number = atoi(socket);
    unsetenv("PM_WARM_SOCKET");
    unsetenv("LD_PRELOAD");
    unsetenv("LD_BIND_NOW");
    if (fork()) {
      _exit(0);
    }
    argc = serve(number);
    argv = words;
  }
  return start(main, argc, argv, init, fini, ended, stack);
}
