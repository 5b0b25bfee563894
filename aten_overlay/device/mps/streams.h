// The streams of the process by number, for headers that declare a pool and for those that do not.
#pragma once
#include <ATen/mps/MPSStream.h>

namespace porter {

// The stream with this number: 0 is the default one. It is made when it is first asked for, and stays.
at::mps::MPSStream* stream_of(int64_t number);

// Synchronizes every stream that has been made.
void synchronize_streams(at::mps::SyncType type);

}  // namespace porter
