// MPSGraph records: a message that no method answers goes to the handler of class MPSGraph (runtime/porter_runtime.h).
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <cstring>
#include <string>

#include "arrays.h"
#include "foundation/text.h"
#include "metal_api/porter_metal.h"
#include "porter_mpsgraph.h"
#include "runtime/objects.h"

void porter_fill_array(MPSNDArray* array, porter_array* out);
void porter_fill_matrix(MPSMatrix* matrix, porter_array* out);

static porter_run_graph run_graph;
static porter_drop_graph drop_graph;

static MPSGraphExecutable* make_executable(MPSGraph* graph, NSArray* feeds, NSArray* targets);

@implementation MPSGraphTensor {
 @public
  int64_t _node;
  int64_t _output;
  MPSShape* _shape;
  MPSDataType _type;
}
@synthesize shape = _shape;
@synthesize dataType = _type;
- (MPSGraphOperation*)operation {
  return [[MPSGraphOperation new] autorelease];
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (void)dealloc {
  [_shape release];
  [super dealloc];
}
@end

@implementation MPSGraphOperation
- (NSString*)name {
  return @"";
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
@end

@implementation MPSGraphShapedType
@synthesize shape = _shape;
@synthesize dataType = _type;
- (instancetype)initWithShape:(MPSShape*)shape dataType:(MPSDataType)type {
  _shape = [shape copy];
  _type = type;
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (void)dealloc {
  [_shape release];
  [super dealloc];
}
@end

@implementation MPSGraphDevice
+ (instancetype)deviceWithMTLDevice:(id<MTLDevice>)device {
  return [[self new] autorelease];
}
@end

@implementation MPSGraphTensorData {
 @public
  MPSNDArray* _array;
}
@synthesize shape = _shape;
@synthesize dataType = _type;
- (instancetype)initWithMTLBuffer:(id<MTLBuffer>)buffer shape:(MPSShape*)shape dataType:(MPSDataType)type {
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:type shape:shape];
  MPSNDArray* array = [[MPSNDArray alloc] initWithBuffer:buffer offset:0 descriptor:descriptor];
  [self initWithMPSNDArray:array];
  [array release];
  return self;
}
- (instancetype)initWithMPSNDArray:(MPSNDArray*)array {
  porter_array layout;
  porter_fill_array(array, &layout);
  _array = [array retain];
  _type = (MPSDataType)layout.data_type;
  _shape = [porter::numbers(std::vector<int64_t>(layout.shape, layout.shape + layout.rank)) retain];
  return self;
}
- (instancetype)initWithDevice:(MPSGraphDevice*)device
                          data:(NSData*)data
                         shape:(MPSShape*)shape
                      dataType:(MPSDataType)type {
  MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:type shape:shape];
  MPSNDArray* array = [[MPSNDArray alloc] initWithDevice:nil descriptor:descriptor];
  [array writeBytes:(void*)[data bytes] strideBytes:nil];
  [self initWithMPSNDArray:array];
  [array release];
  return self;
}
- (MPSNDArray*)mpsndarray {
  return _array;
}
- (void)dealloc {
  [_array release];
  [_shape release];
  [super dealloc];
}
@end

@implementation MPSGraphCompilationDescriptor
- (void)disableTypeInference {
}
@end

@implementation MPSGraphExecutionDescriptor
- (void)dealloc {
  [_compilationDescriptor release];
  [super dealloc];
}
@end

@implementation MPSGraphExecutableExecutionDescriptor
@end

@implementation MPSGraph {
 @public
  NSMutableArray<MPSGraphTensor*>* _tensors;
}
static void run(MPSGraph* graph, MPSGraphTensorDataDictionary* feeds, MPSGraphTensorDataDictionary* results) {
  if (!run_graph) {
    porter::objc::fail("PTR131: this process cannot run MPSGraph");
  }
  if (run_graph((void*)graph, (void*)feeds, (void*)results)) {
    porter::objc::fail(porter::objc::taken_error());
  }
}
- (instancetype)init {
  _tensors = [NSMutableArray new];
  return self;
}
- (void)dealloc {
  if (drop_graph) {
    drop_graph((void*)self);
  }
  [_tensors release];
  [super dealloc];
}
- (NSArray<MPSGraphTensor*>*)placeholderTensors {
  porter::objc::fail("PTR131: placeholderTensors is not supported");
}
- (void)encodeToCommandBuffer:(MPSCommandBuffer*)buffer
                        feeds:(MPSGraphTensorDataDictionary*)feeds
             targetOperations:(NSArray<MPSGraphOperation*>*)operations
            resultsDictionary:(MPSGraphTensorDataDictionary*)results
          executionDescriptor:(MPSGraphExecutionDescriptor*)descriptor {
  porter_run_encoded((void*)buffer);
  run(self, feeds, results);
}
- (MPSGraphTensorDataDictionary*)runWithMTLCommandQueue:(id<MTLCommandQueue>)queue
                                                  feeds:(MPSGraphTensorDataDictionary*)feeds
                                          targetTensors:(NSArray<MPSGraphTensor*>*)targets
                                       targetOperations:(NSArray<MPSGraphOperation*>*)operations {
  NSMutableDictionary* results = [NSMutableDictionary dictionary];
  for (MPSGraphTensor* target in targets) {
    MPSNDArrayDescriptor* descriptor = [MPSNDArrayDescriptor descriptorWithDataType:target.dataType shape:target.shape];
    MPSNDArray* array = [[[MPSNDArray alloc] initWithDevice:nil descriptor:descriptor] autorelease];
    results[target] = [[[MPSGraphTensorData alloc] initWithMPSNDArray:array] autorelease];
  }
  run(self, feeds, results);
  return results;
}
- (MPSGraphExecutable*)compileWithDevice:(MPSGraphDevice*)device
                                   feeds:(MPSGraphTensorShapedTypeDictionary*)feeds
                           targetTensors:(NSArray<MPSGraphTensor*>*)targets
                        targetOperations:(NSArray<MPSGraphOperation*>*)operations
                   compilationDescriptor:(MPSGraphCompilationDescriptor*)descriptor {
  return make_executable(self, [feeds allKeys], targets);
}
@end

@implementation MPSGraphExecutable {
 @public
  MPSGraph* _graph;
  NSArray* _feeds;
  NSArray* _targets;
}
@synthesize feedTensors = _feeds;
@synthesize targetTensors = _targets;
- (NSArray<MPSGraphTensorData*>*)encodeToCommandBuffer:(MPSCommandBuffer*)buffer
                                           inputsArray:(NSArray<MPSGraphTensorData*>*)inputs
                                          resultsArray:(NSArray<MPSGraphTensorData*>*)results
                                   executionDescriptor:(MPSGraphExecutableExecutionDescriptor*)descriptor {
  porter_run_encoded((void*)buffer);
  NSMutableDictionary* feeds = [NSMutableDictionary dictionary];
  NSMutableDictionary* targets = [NSMutableDictionary dictionary];
  for (NSUInteger i = 0; i < _feeds.count; i++) {
    feeds[_feeds[i]] = inputs[i];
  }
  for (NSUInteger i = 0; i < _targets.count; i++) {
    targets[_targets[i]] = results[i];
  }
  run(_graph, feeds, targets);
  return results;
}
- (void)dealloc {
  [_graph release];
  [_feeds release];
  [_targets release];
  [super dealloc];
}
@end

static MPSGraphExecutable* make_executable(MPSGraph* graph, NSArray* feeds, NSArray* targets) {
  MPSGraphExecutable* made = [[MPSGraphExecutable new] autorelease];
  made->_graph = [graph retain];
  made->_feeds = [feeds copy];
  made->_targets = [targets copy];
  return made;
}

extern "C" {

void porter_set_graphs(porter_run_graph run, porter_drop_graph drop) {
  run_graph = run;
  drop_graph = drop;
}

void* porter_make_tensor(
    void* graph, int64_t node, int64_t output, uint32_t data_type, const int64_t* shape, int rank) {
  MPSGraphTensor* made = [MPSGraphTensor new];
  made->_node = node;
  made->_output = output;
  made->_type = (MPSDataType)data_type;
  made->_shape = rank < 0 ? nil : [porter::numbers(std::vector<int64_t>(shape, shape + rank)) retain];
  [((MPSGraph*)graph)->_tensors addObject:made];
  [made release];
  return made;
}

int64_t porter_tensor_node(const void* tensor, int64_t* output) {
  const auto* found = (const MPSGraphTensor*)tensor;
  *output = found->_output;
  return found->_node;
}

void porter_array_of(const void* data, porter_array* array) {
  id object = (id)data;
  if ([object isKindOfClass:[MPSMatrix class]]) {
    porter_fill_matrix(object, array);
    return;
  }
  porter_fill_array([object isKindOfClass:[MPSGraphTensorData class]] ? [object mpsndarray] : object, array);
}

int porter_property(const void* object, const char* name, int64_t* integer, double* real, void** value) {
  auto* cls = porter::objc::class_of((::id)const_cast<void*>(object));
  const auto* method = porter::objc::find_declared(cls, name);
  if (!method) {
    return 0;
  }
  porter::objc::Selector selector{name, method->types};
  *integer = 0;
  *real = 0;
  *value = nullptr;
  const auto send = [&]<typename T>(T*) {
    return ((T(*)(const void*, porter::objc::Selector*))method->implementation)(object, &selector);
  };
  switch (method->types[0]) {
    case 'f':
      *real = send((float*)nullptr);
      return 'f';
    case 'd':
      *real = send((double*)nullptr);
      return 'f';
    case '@':
      *value = send((void**)nullptr);
      return '@';
    case 'B':
      *integer = send((bool*)nullptr);
      return 'i';
    case 'i':
    case 'I':
      *integer = send((uint32_t*)nullptr);
      return 'i';
    default:
      *integer = send((int64_t*)nullptr);
      return 'i';
  }
}

}  // extern "C"
