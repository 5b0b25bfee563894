// What the sanitizer watches where threads wait for others: who takes part, and who reads from a thread that does not.
#pragma once
#include "runtime.h"

namespace pm {
// Checks by their bit in pm_entry's flags: as sanitizer/checks.py numbers them.
constexpr uint32_t kLaneChecks = 1u << (PM_SANITIZER_SHIFT + 16), kBarrierChecks = 1u << (PM_SANITIZER_SHIFT + 17);
constexpr uint32_t kAccessChecks = 0xffffu << PM_SANITIZER_SHIFT;  // all others

// A barrier or simdgroup operation in the source; its number tells it from others on the line.
struct Meeting {
  const char* file;
  uint32_t line, number;
  uint32_t turn;  // of the loops around it
};
// The one that the thread which runs now is about to wait at.
Meeting next_meeting();

// The one that it waited at last.
Meeting last_meeting();

// A thread of a threadgroup, by its lane.
struct Thread {
  const pm_group* group;
  uint32_t lane;
};
// The one that runs now, on a fiber.
Thread current_thread();
// Fails with PTR274: `missing` never reaches the barrier at which `waiting` waits.
int report_missing(const Job& job, Failure& failure, const Meeting& at, Thread waiting, Thread missing, bool ended);
// Fails with PTR275: two threads wait at two barriers.
int report_apart(const Job& job, Failure& failure, const Meeting& at, Thread one, const Meeting& other_at, Thread other);

// Fails with PTR295: two threads wait at one barrier, in different turns of its loop.
int report_turns(const Job& job, Failure& failure, const Meeting& at, Thread one, Thread other);

// Runs a launch as `run(context, failure)` does, again with other values for what inactive lanes hold if any was read;
// fails with PTR273 if the results are not the same.
void run_with_open_lanes(const Job& job, Failure& failure, void (*run)(void* context), void* context);
}  // namespace pm
