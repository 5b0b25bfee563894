// What the Metal API does: kernels dispatched, and what its validation says.
#include <Metal/Metal.h>

#include <cmath>
#include <sstream>
#include <stdexcept>

#include "metal_api/porter_metal.h"
#include "runtime/porter_runtime.h"

static const char* kSource = R"(
#include <metal_stdlib>
using namespace metal;
kernel void scale(device float* out [[buffer(0)]], constant float* in [[buffer(1)]], constant float& by [[buffer(2)]],
                  uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * by;
}
kernel void strided(device float* out [[buffer(0)]], constant float* in [[buffer(1)]],
                    constant ulong4& by [[buffer(2)]], constant uchar& from [[buffer(3)]],
                    constant ulong4& step [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  out[i * by.x] = in[i * step.w + from];
}
kernel void sizes(device float* out [[buffer(0)]], constant uint3& sizes [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  out[i] = sizes[i];
}
kernel void unread(device float* out [[buffer(0)]], constant uint* sizes [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  if (i > 2) out[i] = sizes[i];
}
kernel void total(device float* out [[buffer(0)]], constant float* in [[buffer(1)]],
                  threadgroup float* shared [[threadgroup(0)]], uint i [[thread_position_in_threadgroup]],
                  uint n [[threads_per_threadgroup]]) {
  shared[i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = n / 2; s > 0; s /= 2) {
    if (i < s) shared[i] += shared[i + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i == 0) out[0] = shared[0];
}
kernel void lost_total(device float* out [[buffer(0)]], constant float* in [[buffer(1)]],
                       uint i [[thread_position_in_threadgroup]]) {
  float sum = simd_sum(in[i % 8]);
  if (i == 0) out[0] = sum;
}
constant half2 pair [[function_constant(0)]];
constant float least [[function_constant(1)]];
constant bool both [[function_constant(2)]];
constant ushort first [[function_constant(3)]];
constant ushort second [[function_constant(4)]];
kernel void specialized(device float* out [[buffer(0)]]) {
  out[0] = pair.x;
  out[1] = pair.y;
  out[2] = least;
  out[3] = both;
  out[4] = first;
  out[5] = second;
}
kernel void ask_for_groups(device uint* groups [[buffer(0)]]) { groups[1] = 3; groups[2] = groups[3] = 1; }
struct Table { device float* rows[4]; };
kernel void gather(constant Table& table [[buffer(0)]], device float* out [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  out[i] = table.rows[i][0];
}
)";

static std::string told;

struct Fixture {
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  id<MTLCommandBuffer> commands = nil;
  id<MTLComputeCommandEncoder> encoder = nil;
  id<MTLBuffer> in = [device newBufferWithLength:8 * sizeof(float) options:MTLResourceStorageModeShared];
  id<MTLBuffer> out = [device newBufferWithLength:8 * sizeof(float) options:MTLResourceStorageModeShared];
  id<MTLFunction> function = nil;
  id<MTLComputePipelineState> state = nil;

  Fixture() {
    porter_run_at_once((void*)queue);
    commands = [queue commandBuffer];
    encoder = [commands computeCommandEncoder];
    for (int i = 0; i < 8; i++) {
      ((float*)[in contents])[i] = (float)i;
      ((float*)[out contents])[i] = -1;
    }
  }
  ~Fixture() {
    for (id object : {(id)in, (id)out, (id)state, (id)function, (id)queue}) {
      [object release];
    }
  }
  void use(const char* name) {
    NSError* error = nil;
    id<MTLLibrary> library = [[device newLibraryWithSource:[NSString stringWithUTF8String:kSource]
                                                   options:nil
                                                     error:&error] autorelease];
    if (!library) {
      throw std::runtime_error([[error localizedDescription] UTF8String]);
    }
    function = [library newFunctionWithName:[NSString stringWithUTF8String:name]];
    if (!function) {
      throw std::runtime_error("no function");
    }
    state = [device newComputePipelineStateWithFunction:function error:&error];
    [encoder setComputePipelineState:state];
  }
  void run(NSUInteger threads, NSUInteger group) {
    [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
  }
  void show_second(std::ostream& to) {
    to << ((float*)[out contents])[1] << " ";
  }
  void show(std::ostream& to) {
    for (int i = 0; i < 8; i++) {
      to << ((float*)[out contents])[i] << " ";
    }
  }
};

template <typename Body>
static const char* tell(Body body) {
  (void)MTLCreateSystemDefaultDevice();  // the one object that stays
  const int64_t before = porter_live_objects(nullptr);
  std::ostringstream out;
  @autoreleasepool {
    Fixture fixture;
    try {
      body(out, fixture);
    } catch (const std::exception& error) {
      out << "! " << error.what();
    }
  }
  out << "| left " << porter_live_objects(nullptr) - before;
  told = out.str();
  return told.c_str();
}

// A kernel in a queue that a program makes, and what becomes of its command buffer.
template <typename Then>
static const char* on_a_queue(NSUInteger offset, Then then) {
  return tell([=](std::ostream& out, Fixture& f) {
    f.use("scale");
    const float by = 3;
    id<MTLCommandQueue> queue = [[f.device newCommandQueue] autorelease];
    @autoreleasepool {
      id<MTLCommandBuffer> commands = [queue commandBuffer];
      id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
      [encoder setComputePipelineState:f.state];
      [encoder setBuffer:f.out offset:offset atIndex:0];
      [encoder setBuffer:f.in offset:0 atIndex:1];
      [encoder setBytes:&by length:sizeof by atIndex:2];
      [encoder dispatchThreads:MTLSizeMake(2, 1, 1) threadsPerThreadgroup:MTLSizeMake(2, 1, 1)];
      [encoder endEncoding];
      f.show_second(out);
      then(out, f, commands);
    }
    f.show_second(out);
  });
}

extern "C" {

const char* scaled() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    const float by = 3;
    [f.encoder setBuffer:f.out offset:4 atIndex:0];
    [f.encoder setBuffer:f.in offset:8 atIndex:1];
    [f.encoder setBytes:&by length:sizeof by atIndex:2];
    f.run(5, 2);
    f.show(out);
  });
}

const char* aligned() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("strided");
    struct {
      char odd = 0;
      uint64_t by[4] = {2, 0, 0, 0};
      uint8_t from = 1;
    } __attribute__((packed)) given;
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:1];
    [f.encoder setBytes:&given.from length:sizeof given.from atIndex:3];
    for (int times = 0; times < 4; times++) {  // wherever the bytes come to lie
      const uint64_t step[4] = {0, 0, 0, 1};
      [f.encoder setBytes:given.by length:sizeof given.by atIndex:2];
      [f.encoder setBytes:step length:sizeof step atIndex:4];
      f.run(4, 2);
    }
    f.show(out);
  });
}

// A constant argument of 16 bytes, or one that no thread reads, and fewer bytes for it.
static const char* given_bytes(const char* name, NSUInteger length) {
  return tell([=](std::ostream& out, Fixture& f) {
    f.use(name);
    const uint32_t sizes[3] = {1, 2, 3};
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBytes:sizes length:length atIndex:1];
    f.run(3, 1);
    f.show(out);
  });
}

const char* short_bytes() {
  return given_bytes("sizes", 12);
}

const char* unvalidated() {
  setenv("MTL_DEBUG_LAYER", "0", 1);
  const char* found = given_bytes("sizes", 12);
  unsetenv("MTL_DEBUG_LAYER");
  return found;
}

const char* unvalidated_unbound() {
  setenv("MTL_DEBUG_LAYER", "0", 1);
  const char* found = tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:1];
    f.run(2, 2);
    f.show(out);
  });
  unsetenv("MTL_DEBUG_LAYER");
  return found;
}

const char* no_bytes() {
  return given_bytes("unread", 0);
}

const char* summed() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("total");
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:1];
    [f.encoder setThreadgroupMemoryLength:32 atIndex:0];
    f.run(8, 8);
    out << ((float*)[f.out contents])[0] << " " << [f.state maxTotalThreadsPerThreadgroup] << " "
        << [f.state threadExecutionWidth] << " ";
  });
}

const char* gathered() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("gather");
    id<MTLArgumentEncoder> arguments = [[f.function newArgumentEncoderWithBufferIndex:0] autorelease];
    id<MTLBuffer> table = [[f.device newBufferWithLength:[arguments encodedLength] options:0] autorelease];
    [arguments setArgumentBuffer:table offset:0];
    for (NSUInteger i = 0; i < 4; i++) {
      [arguments setBuffer:f.in offset:(7 - i) * sizeof(float) atIndex:i];
    }
    [f.encoder useResource:f.in usage:MTLResourceUsageRead];
    [f.encoder setBuffer:table offset:0 atIndex:0];
    [f.encoder setBuffer:f.out offset:0 atIndex:1];
    f.run(4, 4);
    f.show(out);
    [arguments setBuffer:f.in offset:0 atIndex:4];
  });
}

// Constants of a vector, of an infinity, by name, and of a range.
const char* specialized() {
  return tell([](std::ostream& out, Fixture& f) {
    const _Float16 pair[2] = {1.5, -2};
    const float least = -INFINITY;
    const bool both = true;
    const uint16_t numbers[2] = {7, 65535};
    MTLFunctionDescriptor* descriptor = [MTLFunctionDescriptor functionDescriptor];
    MTLFunctionConstantValues* values = [[MTLFunctionConstantValues new] autorelease];
    [values setConstantValue:pair type:MTLDataTypeHalf2 atIndex:0];
    [values setConstantValue:&least type:MTLDataTypeFloat withName:@"least"];
    [values setConstantValue:&both type:MTLDataTypeBool atIndex:2];
    [values setConstantValues:numbers type:MTLDataTypeUShort withRange:NSMakeRange(3, 2)];
    descriptor.name = @"specialized";
    descriptor.constantValues = values;
    [values reset];  // the descriptor has a copy
    NSError* error = nil;
    id<MTLLibrary> library = [[f.device newLibraryWithSource:[NSString stringWithUTF8String:kSource]
                                                     options:nil
                                                       error:&error] autorelease];
    f.function = [library newFunctionWithDescriptor:descriptor error:&error];
    if (!f.function) {
      throw std::runtime_error([[error localizedDescription] UTF8String]);
    }
    f.state = [f.device newComputePipelineStateWithFunction:f.function error:&error];
    [f.encoder setComputePipelineState:f.state];
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    f.run(1, 1);
    f.show(out);
  });
}

// A kernel says how many threadgroups the next one has, in a queue whose commands run late.
const char* indirect() {
  return tell([](std::ostream& out, Fixture& f) {
    id<MTLBuffer> groups = [[f.device newBufferWithLength:16 options:MTLResourceStorageModeShared] autorelease];
    id<MTLCommandQueue> queue = [[f.device newCommandQueueWithDescriptor:[[MTLCommandQueueDescriptor new] autorelease]]
        autorelease];
    id<MTLCommandBuffer> commands = [queue commandBufferWithDescriptor:[[MTLCommandBufferDescriptor new] autorelease]];
    id<MTLComputeCommandEncoder> encoder =
        [commands computeCommandEncoderWithDescriptor:[MTLComputePassDescriptor computePassDescriptor]];
    const float by = 3;
    f.use("ask_for_groups");
    [encoder setComputePipelineState:[f.state autorelease]];
    [encoder setBuffer:groups offset:0 atIndex:0];
    [encoder dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
    [f.function release];
    f.use("scale");
    [encoder setComputePipelineState:f.state];
    const id<MTLBuffer> buffers[2] = {f.out, f.in};
    const NSUInteger offsets[2] = {0, 4};
    [encoder setBuffers:buffers offsets:offsets withRange:NSMakeRange(0, 2)];
    [encoder setBytes:&by length:sizeof by atIndex:2];
    [encoder dispatchThreadgroupsWithIndirectBuffer:groups
                               indirectBufferOffset:4
                              threadsPerThreadgroup:MTLSizeMake(2, 1, 1)];
    [encoder endEncoding];
    id<MTLBlitCommandEncoder> blit =
        [commands blitCommandEncoderWithDescriptor:[MTLBlitPassDescriptor blitPassDescriptor]];
    [blit synchronizeResource:f.out];
    [blit endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
    f.show(out);
  });
}

const char* indirect_past_the_end() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("ask_for_groups");
    [f.encoder dispatchThreadgroupsWithIndirectBuffer:f.in
                                 indirectBufferOffset:24
                                threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  });
}

// What programs ask a device before they choose their kernels.
const char* described() {
  return tell([](std::ostream& out, Fixture& f) {
    out << [[[f.device architecture] name] UTF8String] << " " << ([f.device registryID] != 0) << [f.device isLowPower]
        << [f.device isRemovable] << [f.device supportsFunctionPointers] << " " << [f.device location] << " "
        << [f.device supportsFamily:MTLGPUFamilyApple1] << [f.device supportsFamily:MTLGPUFamilyMac1]
        << [f.device supportsFamily:MTLGPUFamilyApple10] << " ";
    [f.device newLibraryWithSource:@"kernel void one(device float* o) { o[0] = 1; }"
                           options:nil
                 completionHandler:^(id<MTLLibrary> library, NSError*) {
                   id<MTLFunction> function = [[library newFunctionWithName:@"one"] autorelease];
                   [f.device newComputePipelineStateWithFunction:function
                                               completionHandler:^(id<MTLComputePipelineState> state, NSError*) {
                                                 out << [[state label] UTF8String] << [function functionType] << " ";
                                               }];
                 }];
  });
}

const char* unbound() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:2];
    f.run(8, 8);
  });
}

const char* kept() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    const float by = 2;
    id<MTLBuffer> mine = [f.device newBufferWithLength:32 options:0];
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBuffer:mine offset:0 atIndex:1];
    ((float*)[mine contents])[0] = 21;
    [mine release];
    [f.encoder setBytes:&by length:sizeof by atIndex:2];
    f.run(1, 1);
    f.run(0, 0);
    out << ((float*)[f.out contents])[0] << " ";
  });
}

const char* beyond_offset() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    const float by = 3;
    [f.encoder setBuffer:f.out offset:40 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:1];
    [f.encoder setBytes:&by length:sizeof by atIndex:2];
    f.run(8, 8);
  });
}

const char* beyond_table() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    [f.encoder setBuffer:f.out offset:0 atIndex:31];
  });
}

const char* crowded() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    f.run(4096, 2048);
  });
}

const char* greedy() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("total");
    [f.encoder setThreadgroupMemoryLength:65536 atIndex:0];
    f.run(8, 8);
  });
}

const char* freed() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    id<MTLBuffer> gone = [f.device newBufferWithLength:32 options:0];
    [gone release];
    [f.encoder setBuffer:gone offset:0 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:1];
    [f.encoder setBytes:"0123" length:4 atIndex:2];
    f.run(8, 8);
  });
}

const char* ended() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    [f.encoder endEncoding];
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
  });
}

const char* copied() {
  return tell([](std::ostream& out, Fixture& f) {
    [f.encoder endEncoding];
    id<MTLBlitCommandEncoder> blit = [f.commands blitCommandEncoder];
    [blit copyFromBuffer:f.in sourceOffset:4 toBuffer:f.out destinationOffset:0 size:8];
    [blit fillBuffer:f.out range:NSMakeRange(8, 8) value:0];
    f.show(out);
    [blit copyFromBuffer:f.in sourceOffset:28 toBuffer:f.out destinationOffset:0 size:8];
  });
}

const char* second_encoder() {
  return tell([](std::ostream& out, Fixture& f) { [f.commands blitCommandEncoder]; });
}

const char* open_at_commit() {
  return tell([](std::ostream& out, Fixture& f) { [f.commands commit]; });
}

const char* lost_encoder() {
  return tell([](std::ostream& out, Fixture& f) {
    [f.encoder endEncoding];
    @autoreleasepool {
      [f.commands computeCommandEncoder];
    }
    [f.commands commit];
  });
}

const char* after_commit() {
  return tell([](std::ostream& out, Fixture& f) {
    [f.encoder endEncoding];
    [f.commands commit];
    [f.commands computeCommandEncoder];
  });
}

const char* waited_uncommitted() {
  return tell([](std::ostream& out, Fixture& f) {
    [f.encoder endEncoding];
    [f.commands waitUntilCompleted];
  });
}

const char* waited() {
  return on_a_queue(0, [](std::ostream& out, Fixture& f, id<MTLCommandBuffer> commands) {
    [commands commit];
    f.show_second(out);
    [commands waitUntilCompleted];
  });
}

const char* asked() {
  return on_a_queue(0, [](std::ostream&, Fixture&, id<MTLCommandBuffer> commands) {
    [commands commit];
    while (commands.status != MTLCommandBufferStatusCompleted) {
    }
  });
}

const char* handled() {
  return on_a_queue(0, [](std::ostream& out, Fixture&, id<MTLCommandBuffer> commands) {
    std::ostream* const to = &out;
    [commands addCompletedHandler:^(id<MTLCommandBuffer>) { *to << "handled "; }];
    [commands commit];
  });
}

const char* later_waited() {
  return on_a_queue(0, [](std::ostream& out, Fixture& f, id<MTLCommandBuffer> commands) {
    [commands commit];
    id<MTLCommandBuffer> later = [[commands commandQueue] commandBuffer];
    [later commit];
    f.show_second(out);
    [later waitUntilCompleted];
  });
}

const char* many_committed() {
  return on_a_queue(0, [](std::ostream& out, Fixture& f, id<MTLCommandBuffer> commands) {
    [commands commit];
    id<MTLCommandBuffer> later = nil;
    for (int i = 0; i < 64; i++) {
      f.show_second(out);
      later = [[commands commandQueue] commandBuffer];
      [later commit];
    }
    f.show_second(out);
    [later waitUntilCompleted];
  });
}

const char* never_committed() {
  return on_a_queue(0, [](auto&&...) {});
}

const char* failed_when_waited() {
  return on_a_queue(40, [](std::ostream& out, Fixture&, id<MTLCommandBuffer> commands) {
    [commands commit];
    out << "committed ";
    [commands waitUntilCompleted];
  });
}

const char* one_after_the_other() {
  return tell([](std::ostream& out, Fixture& f) {
    [f.encoder endEncoding];
    [[f.commands blitCommandEncoder] endEncoding];
    [[f.commands computeCommandEncoder] endEncoding];
    [f.commands commit];
    out << "committed ";
  });
}

const char* device_address() {
  return tell([](std::ostream& out, Fixture& f) {
    [f.device newBufferWithBytes:(const void*)f.in length:8 options:MTLResourceStorageModeShared];
  });
}

const char* many_bytes() {
  return tell([](std::ostream& out, Fixture& f) {
    f.use("scale");
    const float by[1025] = {3};
    [f.encoder setBytes:by length:1024 * sizeof(float) atIndex:2];
    [f.encoder setBytes:by length:sizeof by atIndex:2];
  });
}

const char* private_contents() {
  return tell([](std::ostream& out, Fixture& f) {
    const MTLResourceOptions options = MTLResourceStorageModePrivate | MTLResourceHazardTrackingModeUntracked;
    id<MTLBuffer> buffer = [[f.device newBufferWithLength:16 options:options] autorelease];
    out << int(buffer.storageMode) << (buffer.resourceOptions == options) << int(f.out.storageMode) << " ";
    [buffer contents];
  });
}

const char* macros() {
  return tell([](std::ostream& out, Fixture& f) {
    MTLCompileOptions* options = [[MTLCompileOptions new] autorelease];
    options.preprocessorMacros = @{@"NAME" : @"named", @"BY" : @3};
    NSError* error = nil;
    id<MTLLibrary> made = [f.device newLibraryWithSource:@"kernel void NAME(device float* o) { o[0] = BY; }"
                                                 options:options
                                                   error:&error];
    out << [[made.functionNames firstObject] UTF8String] << " ";
    [made release];
  });
}

// The first function of a library by its URL, and of one whose source lies beside it.
const char* libraries() {
  return tell([](std::ostream& out, Fixture& f) {
    NSString* folder = [NSString stringWithUTF8String:std::getenv("PORTER_TEST_LIBRARIES")];
    for (NSString* name in @[ @"made.metallib", @"beside.metallib" ]) {
      NSURL* url = [NSURL fileURLWithPath:[folder stringByAppendingPathComponent:name]];
      id<MTLLibrary> library = [f.device newLibraryWithURL:url error:nil];
      MTLComputePipelineDescriptor* descriptor = [[MTLComputePipelineDescriptor new] autorelease];
      descriptor.computeFunction = [[library newFunctionWithName:[library.functionNames firstObject]] autorelease];
      descriptor.maxTotalThreadsPerThreadgroup = 64;
      id<MTLComputePipelineState> state = [f.device newComputePipelineStateWithDescriptor:descriptor
                                                                                  options:MTLPipelineOptionNone
                                                                               reflection:nil
                                                                                    error:nil];
      out << [[state label] UTF8String] << state.maxTotalThreadsPerThreadgroup << " ";
      [state release];
      [library release];
    }
  });
}

// What a library of each math mode makes of a mask: regrouped, the sum loses its value.
const char* math_modes() {
  return tell([](std::ostream& out, Fixture& f) {
    NSString* source =
        @"kernel void mask(device float* o, constant float* x) { o[0] = x[1] * x[1] + (-1e10f) * (1.0f - x[1]); }";
    MTLCompileOptions* fast = [[MTLCompileOptions new] autorelease];
    MTLCompileOptions* safe = [[MTLCompileOptions new] autorelease];
    safe.mathMode = MTLMathModeSafe;
    MTLCompileOptions* relaxed = [[MTLCompileOptions new] autorelease];
    relaxed.mathMode = MTLMathModeRelaxed;
    MTLCompileOptions* older = [[MTLCompileOptions new] autorelease];
    older.fastMathEnabled = NO;
    for (MTLCompileOptions* options : {(MTLCompileOptions*)nil, fast, safe, relaxed, older}) {
      id<MTLLibrary> library = [f.device newLibraryWithSource:source options:options error:nil];
      id<MTLFunction> function = [library newFunctionWithName:@"mask"];
      id<MTLComputePipelineState> state = [f.device newComputePipelineStateWithFunction:function error:nil];
      [f.encoder setComputePipelineState:state];
      [f.encoder setBuffer:f.out offset:0 atIndex:0];
      [f.encoder setBuffer:f.in offset:0 atIndex:1];
      f.run(1, 1);
      out << ((float*)[f.out contents])[0] << " ";
      for (id object : {(id)state, (id)function, (id)library}) [object release];
    }
  });
}

static const char* total_in(NSUInteger group) {
  return tell([=](std::ostream& out, Fixture& f) {
    f.use("lost_total");
    [f.encoder setBuffer:f.out offset:0 atIndex:0];
    [f.encoder setBuffer:f.in offset:0 atIndex:1];
    f.run(group, group);
    out << ((float*)[f.out contents])[0] << " ";
  });
}
const char* total_in_32() {
  return total_in(32);
}
const char* total_in_64() {
  return total_in(64);
}

const char* unordered_source() {
  return tell([](std::ostream& out, Fixture& f) {
    NSError* error = nil;
    id<MTLLibrary> library = [f.device
        newLibraryWithSource:@"kernel void turn(device float* o, uint i [[thread_position_in_threadgroup]]) {\n"
                              "  threadgroup float t[32];\n  t[i] = o[i];\n"
                              "  threadgroup_barrier(mem_flags::mem_none);\n  o[i] = t[31 - i];\n}"
                     options:nil
                       error:&error];
    out << (library ? "compiled " : [[error localizedDescription] UTF8String]);
    [library release];
  });
}

const char* families() {
  return tell([](std::ostream& out, Fixture& f) {
    for (long family : {1005L, 1007L, 1009L, 1010L, 2002L, 5001L}) out << [f.device supportsFamily:(MTLGPUFamily)family];
    out << " ";
  });
}

const char* unknown() {
  return tell([](std::ostream& out, Fixture& f) { f.use("nowhere"); });
}

}  // extern "C"
