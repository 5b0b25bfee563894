#include "timeline.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/memory.h"
#include "runtime/objects.h"

namespace porter::metal {
namespace {

constexpr size_t kMostCommands = 256;  // more than these run before their commit, as a driver's buffers are finite
constexpr size_t kMostLate = 64;  // command buffers: the first of more than these runs, as a queue has 64 (newCommandQueue)

// Recursive: a command may signal an event, and a completed handler may commit.
std::recursive_mutex& guard() {
  static auto& value = *new std::recursive_mutex;
  return value;
}

// Timelines that have commands or are committed, in the order in which they began.
std::vector<Timeline*>& active() {
  static auto& value = *new std::vector<Timeline*>;
  return value;
}

}  // namespace

Timeline::~Timeline() {
  std::lock_guard lock(guard());
  leave();
}

void Timeline::leave() {
  if (std::exchange(active_, false)) {
    active().erase(std::find(active().begin(), active().end(), this));
    porter_memory_release();
  }
}

void Timeline::push(Command command) {
  std::lock_guard lock(guard());
  if (!std::exchange(active_, true)) {
    active().push_back(this);
    porter_memory_hold();
  }
  commands_.push_back(std::move(command));
  if (commands_.size() > kMostCommands && is_next()) {
    step();
  }
}

void Timeline::add(std::function<void()> command, std::string name) {
  const auto run = [command = std::move(command)] {
    command();
    return true;
  };
  push({run, std::move(name)});
}

void Timeline::add_wait(std::function<bool()> ready) {
  push({std::move(ready), "a wait for an event"});
}

bool Timeline::is_next() const {
  for (const Timeline* other : active()) {
    if (other == this) {
      return true;
    }
    if (other->queue_ == queue_ && other->committed_) {
      return false;
    }
  }
  return true;
}

// Whether a command ran or the whole is complete. The object may be gone afterwards.
bool Timeline::step() {
  if (running_ || late_) {
    return false;
  }
  running_ = true;
  bool moved = false;
  try {
    while (!commands_.empty() && commands_.front().run()) {
      commands_.pop_front();
      moved = true;
    }
  } catch (const std::exception& error) {  // as on a GPU, what comes after it in the buffer does not run
    error_ = error.what();
    commands_.clear();
    moved = true;
  }
  running_ = false;
  if (!commands_.empty() || !committed_) {
    return moved;
  }
  leave();
  std::exchange(completed_, {})(error_);
  return true;
}

void Timeline::hurry_queue() {
  for (Timeline* timeline : active()) {
    if (timeline->queue_ == queue_) {
      timeline->late_ = false;
    }
    if (timeline == this) {
      return;
    }
  }
}

void Timeline::hurry() {
  std::lock_guard lock(guard());
  hurry_queue();
  advance();
}

void Timeline::commit(std::function<void(const std::string&)> completed, bool late) {
  std::lock_guard lock(guard());
  completed_ = std::move(completed);
  if (commands_.empty() && is_next()) {
    leave();
    std::exchange(completed_, {})(error_);
    return;
  }
  push({[] { return true; }, ""});
  committed_ = true;
  if (!late) {
    hurry_queue();
  } else {
    late_ = true;
    std::vector<Timeline*> waiting;
    std::copy_if(active().begin(), active().end(), std::back_inserter(waiting), [](Timeline* one) { return one->late_; });
    if (waiting.size() > kMostLate) {
      waiting.front()->late_ = false;
    }
  }
  advance();
}

void Timeline::finish() {
  hurry();
  std::lock_guard lock(guard());
  while (is_next() && step()) {
  }
  if (!commands_.empty()) {
    advance(/*uncommitted=*/true);
  }
  if (!commands_.empty()) {
    objc::fail("PTR122: a command buffer waits for an event that no earlier command signals");
  }
  if (!error_.empty()) {
    objc::fail(std::exchange(error_, {}));
  }
}

void Timeline::warn_of_lost() const {
  std::lock_guard lock(guard());
  if (!commands_.empty()) {
    const std::string others = commands_.size() > 1 ? " and " + std::to_string(commands_.size() - 1) + " more" : "";
    std::fprintf(stderr, "porter: PTR124 a command buffer was released before `commit`, and commands in it never run: %s%s\n"
                 "  Commit it before its last reference goes.\n",
                 commands_.front().name.c_str(), others.c_str());
  }
}

bool advance(bool uncommitted) {
  std::lock_guard lock(guard());
  bool any = false;
  for (bool moved = true; std::exchange(moved, false);) {
    for (Timeline* timeline : std::vector(active())) {
      const bool alive = std::find(active().begin(), active().end(), timeline) != active().end();
      if (alive && uncommitted) {
        timeline->late_ = false;
      }
      if (alive && (timeline->committed_ || uncommitted) && timeline->is_next() && timeline->step()) {
        any = moved = true;
      }
    }
  }
  return any;
}

std::string run_late() {
  std::lock_guard lock(guard());
  const auto first_error = std::make_shared<std::string>();
  for (Timeline* timeline : std::vector(active())) {
    const bool alive = std::find(active().begin(), active().end(), timeline) != active().end();
    if (!alive || !std::exchange(timeline->late_, false)) {
      continue;
    }
    timeline->completed_ = [first_error, completed = std::move(timeline->completed_)](const std::string& error) {
      *first_error = first_error->empty() ? error : *first_error;
      completed(error);
    };
    advance();
  }
  return *first_error;
}

bool any_waiting() {
  std::lock_guard lock(guard());
  return !active().empty();
}

}  // namespace porter::metal
