// What compiled code does with torch::mps, one operator for each thing that it may do or has to be refused.
#include <ATen/core/Tensor.h>
#include <ATen/mps/MPSStream.h>
#include <torch/library.h>
#include <torch/mps.h>

#import <Metal/Metal.h>

namespace {

void fill(id<MTLCommandBuffer> commands, const at::Tensor& tensor, uint8_t value) {
  id<MTLBuffer> buffer = __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data());
  id<MTLBlitCommandEncoder> encoder = [commands blitCommandEncoder];
  const NSUInteger start = tensor.storage_offset() * tensor.element_size();
  [encoder fillBuffer:buffer range:NSMakeRange(start, tensor.nbytes()) value:value];
  [encoder endEncoding];
}

// PyTorch's own encoder may be open: get_command_buffer ends it.
void fills_behind_an_open_encoder(const at::Tensor& tensor) {
  dispatch_sync(torch::mps::get_dispatch_queue(), ^{
    at::mps::getCurrentMPSStream()->commandEncoder();
    fill(torch::mps::get_command_buffer(), tensor, 1);
    torch::mps::commit();
  });
}

// The command buffer goes on after a commit.
void fills_after_a_commit(const at::Tensor& tensor) {
  dispatch_sync(torch::mps::get_dispatch_queue(), ^{
    id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
    torch::mps::commit();
    TORCH_CHECK(commands == torch::mps::get_command_buffer());
    fill(commands, tensor, 2);
    torch::mps::commit();
  });
  torch::mps::synchronize();
}

void leaves_its_encoder_open(const at::Tensor& tensor) {
  @autoreleasepool {
    [torch::mps::get_command_buffer() blitCommandEncoder];
    torch::mps::commit();
  }
}

void makes_a_second_encoder(const at::Tensor& tensor) {
  @autoreleasepool {
    id<MTLCommandBuffer> commands = torch::mps::get_command_buffer();
    id<MTLComputeCommandEncoder> first = at::mps::getCurrentMPSStream()->commandEncoder();
    TORCH_CHECK(first);
    [commands computeCommandEncoder];
  }
}

void waits_for_itself(const at::Tensor& tensor) {
  dispatch_sync(torch::mps::get_dispatch_queue(), ^{
    dispatch_sync(torch::mps::get_dispatch_queue(), ^{
      fill(torch::mps::get_command_buffer(), tensor, 3);
    });
  });
}

}  // namespace

TORCH_LIBRARY(stream_test, m) {
  m.def("fills_behind_an_open_encoder", &fills_behind_an_open_encoder);
  m.def("fills_after_a_commit", &fills_after_a_commit);
  m.def("leaves_its_encoder_open", &leaves_its_encoder_open);
  m.def("makes_a_second_encoder", &makes_a_second_encoder);
  m.def("waits_for_itself", &waits_for_itself);
}
