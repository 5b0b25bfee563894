// The kernels of $name: their Metal source, and what each of their buffers holds.
#pragma once
#include <string>
#include <vector>

namespace $name {

enum class Content { kData, kShape, kStrides, kRank, kStorageOffset };

// One argument of a kernel: what it holds of the operand with this number. Inputs come first, then outputs.
struct Buffer {
  size_t operand;
  Content content;
};

// In `text`, type_of_x stands for the element type of operand x, pointer_to_x for * or &, and rank_of_x for its rank.
struct Source {
  std::string name;
  std::string function;
  std::vector<std::string> operands;
  std::vector<Buffer> buffers;
  bool contiguous;
  std::string text;
};

inline const std::vector<Source>& sources() {
  static const auto& value = *new std::vector<Source>{
$sources
  };
  return value;
}

}  // namespace $name
