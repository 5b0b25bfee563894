#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>

#include "arrays.h"
#include "memory/memory.h"
#include "metal_api/metal_objects.h"
#include "porter_mpsgraph.h"
#include "runtime/objects.h"

using porter::Layout;

Layout Layout::dense(std::vector<int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t next = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = next;
    next *= std::max<int64_t>(shape[i], 1);
  }
  return {std::move(shape), std::move(strides), 0};
}

bool Layout::is_dense() const {
  const Layout plain = dense(shape);
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] > 1 && strides[i] != plain.strides[i]) {
      return false;
    }
  }
  return true;
}

int64_t Layout::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> porter::integers(NSArray<NSNumber*>* numbers) {
  std::vector<int64_t> found;
  for (NSNumber* number in numbers) {
    found.push_back([number longLongValue]);
  }
  return found;
}

NSArray<NSNumber*>* porter::numbers(const std::vector<int64_t>& integers) {
  NSMutableArray<NSNumber*>* made = [NSMutableArray array];
  for (int64_t value : integers) {
    [made addObject:[NSNumber numberWithLongLong:value]];
  }
  return made;
}

size_t porter::element_size(MPSDataType type) {
  const size_t bits = type & 0xff;
  if (bits == 0 || bits % 8) {
    porter::objc::fail("PTR130: elements of MPSDataType " + std::to_string((uint32_t)type) +
                       " do not occupy whole bytes");
  }
  return bits / 8;
}

// The sizes of 1 are dropped or added where they are; any other change of a view that is not dense cannot be a view.
static Layout reshaped(const Layout& from, const std::vector<int64_t>& shape) {
  Layout made = Layout::dense(shape);
  made.offset = from.offset;
  if (from.is_dense() && made.elements() == from.elements()) {
    return made;
  }
  size_t at = 0;
  for (size_t i = 0; i < shape.size(); i++) {
    while (at < from.shape.size() && from.shape[at] == 1 && shape[i] != 1) {
      at++;
    }
    if (shape[i] == 1 && (at == from.shape.size() || from.shape[at] != 1)) {
      continue;
    }
    if (at == from.shape.size() || from.shape[at] != shape[i]) {
      porter::objc::fail("PTR130: an array view cannot take this shape without a copy");
    }
    made.strides[i] = from.strides[at++];
  }
  return made;
}

@implementation MPSNDArrayDescriptor {
 @public
  Layout _layout;
  MPSDataType _type;
}
@synthesize dataType = _type;
@synthesize preferPackedRows = _packed;
+ (instancetype)descriptorWithDataType:(MPSDataType)type shape:(MPSShape*)shape {
  MPSNDArrayDescriptor* made = [[self new] autorelease];
  made->_type = type;
  made->_layout = Layout::dense(porter::integers(shape));
  return made;
}
// Apple counts an array's dimensions from the innermost.
static size_t index_of(const Layout& layout, NSUInteger dimension) {
  if (dimension >= layout.shape.size()) {
    porter::objc::fail("PTR130: dimension " + std::to_string(dimension) + " of an array of " +
                       std::to_string(layout.shape.size()));
  }
  return layout.shape.size() - 1 - dimension;
}
- (void)reshapeWithShape:(MPSShape*)shape {
  _layout = reshaped(_layout, porter::integers(shape));
}
- (void)transposeDimension:(NSUInteger)one withDimension:(NSUInteger)other {
  const size_t i = index_of(_layout, one);
  const size_t j = index_of(_layout, other);
  std::swap(_layout.shape[i], _layout.shape[j]);
  std::swap(_layout.strides[i], _layout.strides[j]);
}
- (void)permuteWithDimensionOrder:(NSUInteger*)order {
  const Layout before = _layout;
  for (NSUInteger dimension = 0; dimension < before.shape.size(); dimension++) {
    const size_t to = index_of(before, dimension);
    const size_t from = index_of(before, order[dimension]);
    _layout.shape[to] = before.shape[from];
    _layout.strides[to] = before.strides[from];
  }
}
- (void)sliceDimension:(NSUInteger)dimension withSubrange:(MPSDimensionSlice)subRange {
  const size_t i = index_of(_layout, dimension);
  _layout.offset += (int64_t)subRange.start * _layout.strides[i];
  _layout.shape[i] = (int64_t)subRange.length;
}
- (NSUInteger)lengthOfDimension:(NSUInteger)dimension {
  return (NSUInteger)_layout.shape[index_of(_layout, dimension)];
}
- (NSUInteger)numberOfDimensions {
  return _layout.shape.size();
}
- (void)setNumberOfDimensions:(NSUInteger)count {
  while (_layout.shape.size() < count) {
    _layout.shape.insert(_layout.shape.begin(), 1);
    _layout.strides.insert(_layout.strides.begin(), 0);
  }
  while (_layout.shape.size() > count && _layout.shape.front() == 1) {
    _layout.shape.erase(_layout.shape.begin());
    _layout.strides.erase(_layout.strides.begin());
  }
}
@end

@implementation MPSNDArray {
 @public
  id<MTLBuffer> _buffer;
  Layout _layout;
  MPSDataType _type;
}
@synthesize dataType = _type;
static MPSNDArray* over(MPSNDArray* array, id<MTLBuffer> buffer, const Layout& layout, MPSDataType type) {
  array->_buffer = [buffer retain];
  array->_layout = layout;
  array->_type = type;
  return array;
}
static MPSNDArray* view(MPSNDArray* array, const Layout& layout, MPSDataType type) {
  return [over([MPSNDArray alloc], array->_buffer, layout, type) autorelease];
}
static MPSNDArray* fresh(MPSNDArray* array, const Layout& layout, MPSDataType type) {
  const size_t size = std::max<size_t>((size_t)layout.elements() * porter::element_size(type), 1);
  id<MTLBuffer> buffer = porter::metal::make_buffer(size, MTLResourceStorageModeShared);
  over(array, buffer, layout, type);
  [buffer release];
  return array;
}
+ (instancetype)temporaryNDArrayWithCommandBuffer:(id<MTLCommandBuffer>)buffer
                                       descriptor:(MPSNDArrayDescriptor*)descriptor {
  return [[[self alloc] initWithDevice:nil descriptor:descriptor] autorelease];
}
- (instancetype)initWithDevice:(id<MTLDevice>)device descriptor:(MPSNDArrayDescriptor*)descriptor {
  return fresh(self, Layout::dense(descriptor->_layout.shape), descriptor.dataType);
}
- (instancetype)initWithDevice:(id<MTLDevice>)device scalar:(double)value {
  fresh(self, Layout::dense({1}), MPSDataTypeFloat32);
  *(float*)[_buffer contents] = (float)value;
  return self;
}
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSNDArrayDescriptor*)descriptor {
  Layout layout = descriptor->_layout;
  const size_t size = porter::element_size(descriptor.dataType);
  if (offset % size) {
    porter::objc::fail("PTR130: an array starts " + std::to_string(offset) + " bytes into its buffer, inside an element");
  }
  layout.offset += (int64_t)(offset / size);
  return over(self, buffer, layout, descriptor.dataType);
}
- (void)dealloc {
  [_buffer release];
  [super dealloc];
}
- (MPSNDArrayDescriptor*)descriptor {
  MPSNDArrayDescriptor* made = [[MPSNDArrayDescriptor new] autorelease];
  made.dataType = _type;
  made->_layout = _layout;
  return made;
}
- (MPSNDArray*)arrayViewWithDescriptor:(MPSNDArrayDescriptor*)descriptor {
  return view(self, descriptor->_layout, descriptor.dataType);
}
- (MPSNDArray*)arrayViewWithCommandBuffer:(id<MTLCommandBuffer>)buffer
                               descriptor:(MPSNDArrayDescriptor*)descriptor
                                 aliasing:(MPSAliasingStrategy)aliasing {
  return [self arrayViewWithDescriptor:descriptor];
}
- (MPSNDArray*)arrayViewWithShape:(MPSShape*)shape strides:(MPSShape*)strides {
  Layout layout = reshaped(Layout::dense(porter::integers(shape)), porter::integers(shape));
  layout.strides = porter::integers(strides);
  layout.offset = _layout.offset;
  return view(self, layout, _type);
}
- (id<MTLBuffer>)userBuffer {
  return _buffer;
}
- (NSUInteger)numberOfDimensions {
  return _layout.shape.size();
}
- (NSUInteger)lengthOfDimension:(NSUInteger)dimension {
  return [[self descriptor] lengthOfDimension:dimension];
}
- (NSUInteger)dataTypeSize {
  return porter::element_size(_type);
}
static char* dense_bytes(MPSNDArray* array, NSInteger* strides) {
  if (strides || !array->_layout.is_dense()) {
    porter::objc::fail("PTR130: the host reads and writes dense arrays only");
  }
  return (char*)[array->_buffer contents] + array->_layout.offset * (int64_t)porter::element_size(array->_type);
}
- (void)writeBytes:(void*)bytes strideBytes:(NSInteger*)strides {
  std::memcpy(dense_bytes(self, strides), bytes, (size_t)_layout.elements() * porter::element_size(_type));
}
- (void)readBytes:(void*)bytes strideBytes:(NSInteger*)strides {
  std::memcpy(bytes, dense_bytes(self, strides), (size_t)_layout.elements() * porter::element_size(_type));
}
@end

@implementation MPSKernel
@synthesize device = _device;
@synthesize label = _label;
- (instancetype)initWithDevice:(id<MTLDevice>)device {
  _device = device;
  return self;
}
- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}
- (void)dealloc {
  [_label release];
  [super dealloc];
}
@end

@implementation MPSNDArrayUnaryKernel
@end

@implementation MPSNDArrayIdentity
- (MPSNDArray*)reshapeWithCommandBuffer:(id<MTLCommandBuffer>)buffer
                            sourceArray:(MPSNDArray*)source
                                  shape:(MPSShape*)shape
                       destinationArray:(MPSNDArray*)destination {
  if (destination) {
    porter::objc::fail("PTR130: reshaping into the caller's array is not supported");
  }
  return view(source, reshaped(source->_layout, porter::integers(shape)), source.dataType);
}
@end

@implementation MPSNDArrayMatrixMultiplication
@synthesize alpha = _alpha;
@synthesize beta = _beta;
- (instancetype)initWithDevice:(id<MTLDevice>)device sourceCount:(NSUInteger)count {
  _alpha = 1;
  return [self initWithDevice:device];
}
@end

void porter_fill_array(MPSNDArray* array, porter_array* out) {
  const auto& layout = array->_layout;
  if (layout.shape.size() > PORTER_MAX_RANK) {
    porter::objc::fail("PTR130: an array of " + std::to_string(layout.shape.size()) + " dimensions is not supported");
  }
  out->address = (char*)(void*)array->_buffer + layout.offset * (int64_t)porter::element_size(array.dataType);
  out->data_type = array.dataType;
  out->rank = (int32_t)layout.shape.size();
  std::copy(layout.shape.begin(), layout.shape.end(), out->shape);
  std::copy(layout.strides.begin(), layout.strides.end(), out->strides);
}
