// A command buffer that stands before another, and takes a new one when it commits and goes on.
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>

@implementation MPSCommandBuffer {
  id<MTLCommandBuffer> _root;
}
@dynamic label;
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)queue {
  return [self commandBufferWithCommandBuffer:[queue commandBuffer]];
}
+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)buffer {
  MPSCommandBuffer* made = [[self new] autorelease];
  made->_root = [buffer retain];
  return made;
}
- (void)dealloc {
  [_root release];
  [super dealloc];
}
- (void)commitAndContinue {
  [_root commit];
  id<MTLCommandBuffer> next = [[[_root commandQueue] commandBuffer] retain];
  [_root release];
  _root = next;
}
- (id<MTLCommandBuffer>)commandBuffer {
  return _root;
}
- (id<MTLCommandBuffer>)rootCommandBuffer {
  return _root;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [_root computeCommandEncoder];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [_root computeCommandEncoderWithDispatchType:type];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [_root blitCommandEncoder];
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [_root encodeSignalEvent:event value:value];
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [_root encodeWaitForEvent:event value:value];
}
- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  [_root addScheduledHandler:block];
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  [_root addCompletedHandler:block];
}
- (void)enqueue {
  [_root enqueue];
}
- (void)commit {
  [_root commit];
}
- (void)waitUntilScheduled {
  [_root waitUntilScheduled];
}
- (void)waitUntilCompleted {
  [_root waitUntilCompleted];
}
- (MTLCommandBufferStatus)status {
  return [_root status];
}
- (NSError*)error {
  return [_root error];
}
- (CFTimeInterval)GPUStartTime {
  return [_root GPUStartTime];
}
- (CFTimeInterval)GPUEndTime {
  return [_root GPUEndTime];
}
- (CFTimeInterval)kernelStartTime {
  return [_root kernelStartTime];
}
- (CFTimeInterval)kernelEndTime {
  return [_root kernelEndTime];
}
- (id<MTLDevice>)device {
  return [_root device];
}
- (id<MTLCommandQueue>)commandQueue {
  return [_root commandQueue];
}
- (void)setLabel:(NSString*)label {
}
- (NSString*)label {
  return @"";
}
@end
