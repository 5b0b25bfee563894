// What the Metal objects know of each other.
#pragma once
#include <Metal/Metal.h>

#include <memory>
#include <string>

#include "engine.h"

namespace porter::metal {

// A new buffer with one reference; nil when there is no room.
id<MTLBuffer> make_buffer(size_t length, MTLResourceOptions options);

// A second buffer over memory of a first, with one reference; nil where no buffer holds these bytes of the host's view.
id<MTLBuffer> make_alias(void* bytes, size_t length, MTLResourceOptions options);

id<MTLFence> make_fence();

// For a message about nil: the last function that this thread asked a library for in vain; "" if it found all.
std::string missing_function();

// A library of these kernels with one reference; nil and an error if the source does not compile.
id<MTLLibrary> make_library(const std::string& source, bool bundled, NSError** error);

// A pipeline state of the function with one reference.
id<MTLComputePipelineState> make_pipeline(id<MTLFunction> function);
// A state of fewer threads than its kernel allows, if `threads` is not 0.
void limit_threads(id<MTLComputePipelineState> pipeline, NSUInteger threads);

const pm_kernel* kernel_of(id<MTLComputePipelineState> state);

id<MTLCommandQueue> make_queue();

}  // namespace porter::metal
