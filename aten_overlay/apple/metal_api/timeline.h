// When commands run: those of torch's default stream at once, those of its other streams when their command buffer is
// committed, those of a queue that the program made as late as a Mac may run them.
#pragma once
#include <deque>
#include <functional>
#include <string>

namespace porter::metal {

// The commands of one command buffer. They run in order, behind those that the queue has been given
// before, and stop at a wait until its event is signaled. Memory that is freed meanwhile stays until they have run.
class Timeline {
 public:
  explicit Timeline(const void* queue) : queue_(queue) {}
  ~Timeline();
  Timeline(const Timeline&) = delete;
  void operator=(const Timeline&) = delete;

  // `name` reads as "kernel `k`": a warning has it if the command never runs.
  void add(std::function<void()> command, std::string name);

  // The commands after this one run once `ready` answers true.
  void add_wait(std::function<bool()> ready);

  // Runs the commands, as far as no wait stops them. `completed` is called at their end, with what a command threw or "".
  // With `late` they run when somebody waits for them or for what is committed behind them.
  void commit(std::function<void(const std::string& error)> completed, bool late);

  // Somebody waits for these commands: they run, and those that were committed to their queue before.
  void hurry();

  // Runs the commands before they are committed, for work that cannot be put off. Throws PTR122 if a wait stops them.
  void finish();

  // Says on stderr that commands will never run, if there are any: their command buffer goes without a commit.
  void warn_of_lost() const;

 private:
  struct Command {
    std::function<bool()> run;  // false while it waits
    std::string name;
  };
  friend bool advance(bool uncommitted);
  friend std::string run_late();
  void hurry_queue();
  void push(Command command);
  void leave();
  bool step();
  bool is_next() const;

  const void* queue_;
  std::deque<Command> commands_;
  std::function<void(const std::string&)> completed_;
  std::string error_;
  bool active_ = false, committed_ = false, running_ = false, late_ = false;
};

// Runs what can run of all committed command buffers, and with `uncommitted` of the others too: after an event's signal,
// and before something waits for one. Whether any command ran.
bool advance(bool uncommitted = false);

// Runs all that was committed to run late. The first error of a command, or "".
std::string run_late();

// Whether a command has still to run.
bool any_waiting();

}  // namespace porter::metal
