// Matrices, and what their kernels were made with. What a kernel encodes goes to the handler of class MPSKernel.
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include "arrays.h"
#include "porter_mpsgraph.h"

@implementation MPSMatrixDescriptor
@synthesize rows = _rows;
@synthesize columns = _columns;
@synthesize matrices = _matrices;
@synthesize rowBytes = _rowBytes;
@synthesize matrixBytes = _matrixBytes;
@synthesize dataType = _type;
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)type {
  return [self matrixDescriptorWithRows:rows
                                columns:columns
                               matrices:1
                               rowBytes:rowBytes
                            matrixBytes:rows * rowBytes
                               dataType:type];
}
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)type {
  MPSMatrixDescriptor* made = [[self new] autorelease];
  made.rows = rows;
  made.columns = columns;
  made.rowBytes = rowBytes;
  made.dataType = type;
  made->_matrices = matrices;
  made->_matrixBytes = matrixBytes;
  return made;
}
@end

@implementation MPSMatrix {
 @public
  id<MTLBuffer> _buffer;
  MPSMatrixDescriptor* _descriptor;
}
@synthesize offset = _offset;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor {
  return [self initWithBuffer:buffer offset:0 descriptor:descriptor];
}
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor {
  _buffer = [buffer retain];
  _offset = offset;
  _descriptor = [descriptor retain];
  return self;
}
- (void)dealloc {
  [_buffer release];
  [_descriptor release];
  [super dealloc];
}
- (NSUInteger)rows {
  return _descriptor.rows;
}
- (NSUInteger)columns {
  return _descriptor.columns;
}
- (MPSDataType)dataType {
  return _descriptor.dataType;
}
- (id<MTLBuffer>)data {
  return _buffer;
}
@end

// A batch of one is a matrix: a kernel takes the first of a batch unless it is told otherwise.
void porter_fill_matrix(MPSMatrix* matrix, porter_array* out) {
  MPSMatrixDescriptor* descriptor = matrix->_descriptor;
  const auto size = (int64_t)porter::element_size(descriptor.dataType);
  out->address = (char*)(void*)matrix->_buffer + matrix.offset;
  out->data_type = descriptor.dataType;
  out->rank = 2;
  out->shape[0] = (int64_t)descriptor.rows;
  out->shape[1] = (int64_t)descriptor.columns;
  out->strides[0] = (int64_t)descriptor.rowBytes / size;
  out->strides[1] = 1;
}

@implementation MPSMatrixDecompositionLU
- (instancetype)initWithDevice:(id<MTLDevice>)device rows:(NSUInteger)rows columns:(NSUInteger)columns {
  return [self initWithDevice:device];
}
@end

@interface MPSMatrixMultiplication ()
@property BOOL transposeLeft, transposeRight;
@property NSUInteger rows, columns, interior;
@property double alpha, beta;
@end

@implementation MPSMatrixMultiplication
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)rows
                 resultColumns:(NSUInteger)columns
               interiorColumns:(NSUInteger)interior
                         alpha:(double)alpha
                          beta:(double)beta {
  _transposeLeft = transposeLeft;
  _transposeRight = transposeRight;
  _rows = rows;
  _columns = columns;
  _interior = interior;
  _alpha = alpha;
  _beta = beta;
  return [self initWithDevice:device];
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                    resultRows:(NSUInteger)rows
                 resultColumns:(NSUInteger)columns
               interiorColumns:(NSUInteger)interior {
  return [self initWithDevice:device
                transposeLeft:NO
               transposeRight:NO
                   resultRows:rows
                resultColumns:columns
              interiorColumns:interior
                        alpha:1
                         beta:0];
}
@end

@interface MPSMatrixSolveLU ()
@property BOOL transpose;
@end

@implementation MPSMatrixSolveLU
- (instancetype)initWithDevice:(id<MTLDevice>)device
                     transpose:(BOOL)transpose
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)count {
  _transpose = transpose;
  return [self initWithDevice:device];
}
@end

@interface MPSMatrixSolveTriangular ()
@property BOOL right, upper, transpose, unit;
@property double alpha;
@end

@implementation MPSMatrixSolveTriangular
- (instancetype)initWithDevice:(id<MTLDevice>)device
                         right:(BOOL)right
                         upper:(BOOL)upper
                     transpose:(BOOL)transpose
                          unit:(BOOL)unit
                         order:(NSUInteger)order
        numberOfRightHandSides:(NSUInteger)count
                         alpha:(double)alpha {
  _right = right;
  _upper = upper;
  _transpose = transpose;
  _unit = unit;
  _alpha = alpha;
  return [self initWithDevice:device];
}
@end
