// What PyTorch's MPSHooks.mm does for torch::mps: here it tells the device, which has the hooks, once it is loaded.
#include <ATen/mps/MPSStream.h>

#include "device/stream.h"

namespace {

void* command_buffer() {
  auto* stream = at::mps::getDefaultMPSStream();
  stream->endKernelCoalescing();  // the caller makes an encoder of its own, and there is only ever one
  return (void*)stream->commandBuffer();
}

void* dispatch_queue() {
  return (void*)at::mps::getDefaultMPSStream()->queue();
}

void commit() {
  at::mps::getDefaultMPSStream()->synchronize(at::mps::SyncType::COMMIT);
}

void synchronize() {
  at::mps::getDefaultMPSStream()->synchronize(at::mps::SyncType::COMMIT_AND_WAIT);
}

const porter_stream functions{&command_buffer, &dispatch_queue, &commit, &synchronize};
const bool told = (porter_set_stream(&functions), true);

}  // namespace
