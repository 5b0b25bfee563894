// Arrays in memory as MPSNDArray and MPSGraphTensorData know them.
#pragma once
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <vector>

namespace porter {

// Dimensions as in a shape: the outermost first. Strides and the offset count elements.
struct Layout {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  static Layout dense(std::vector<int64_t> shape);
  bool is_dense() const;
  int64_t elements() const;
};

std::vector<int64_t> integers(NSArray<NSNumber*>* numbers);
NSArray<NSNumber*>* numbers(const std::vector<int64_t>& integers);

// Bytes of one element. Throws PTR130 for a type of less than a byte.
size_t element_size(MPSDataType type);

}  // namespace porter
