// What the host reads of memory that kernels were to write.
#include "device.h"
#include "memory/memory.h"
#include "stream.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

struct pm_kernel;
extern "C" void porter_refused_launch(const pm_kernel* kernel, const char* text);

namespace porter {
namespace {

// Memory that holds what the allocator filled it with. A byte or two can do so by chance: then their neighbors have to as well.
class Fresh {
 public:
  explicit Fresh(const at::Tensor& tensor)
      : low_(static_cast<const char*>(porter_host_address(tensor.storage().data()))),
        high_(low_ + tensor.storage().nbytes()),
        size_(tensor.element_size()) {}

  bool holds(const char* element) const {
    const char* from = element;
    const char* to = element + size_;
    if (size_ < 4) {
      from = low_ + (element - low_) / 8 * 8;
      to = std::min(from + 8, high_);
      if (to - from < 4) {
        return false;
      }
    }
    while (from < to && static_cast<unsigned char>(*from) == PORTER_FRESH_BYTE) {
      ++from;
    }
    return from == to;
  }

 private:
  const char* low_;
  const char* high_;
  size_t size_;
};

std::string place_of(at::IntArrayRef index) {
  std::string text;
  for (const int64_t at : index) {
    text += (text.empty() ? "" : ", ") + std::to_string(at);
  }
  return "[" + text + "]";
}

}  // namespace

void check_written(const at::Tensor& tensor) {
  char kernel[256];
  const bool has_bytes = tensor.defined() && tensor.device().type() == kDevice.type() && tensor.layout() == c10::kStrided &&
      tensor.has_storage() && !tensor._is_zerotensor() && tensor.numel() != 0;
  if (!has_bytes || !porter_memory_writer(porter_host_address(tensor.storage().data()), kernel, sizeof kernel)) {
    return;
  }
  finish_current_stream();
  const Fresh fresh(tensor);
  const auto* at = static_cast<const char*>(porter_host_address(tensor.unsafeGetTensorImpl()->data()));
  const int64_t size = static_cast<int64_t>(tensor.element_size());
  std::vector<int64_t> index(tensor.dim()), first;
  int64_t unwritten = 0;
  for (int64_t i = 0; i < tensor.numel(); i++) {
    if (fresh.holds(at)) {
      first = unwritten++ ? first : index;
    }
    for (int64_t d = tensor.dim() - 1; d >= 0; d--) {  // to the next element
      at += tensor.stride(d) * size;
      if (++index[d] < tensor.size(d)) {
        break;
      }
      at -= tensor.size(d) * tensor.stride(d) * size;
      index[d] = 0;
    }
  }
  if (unwritten != 0) {
    const std::string more = unwritten == 1 ? "" : ", and " + std::to_string(unwritten - 1) + " more of its elements";
    const std::string text = "PTR262: the host reads " + place_of(first) + " of a tensor" + more +
        ", which nothing wrote since it was allocated; kernel `" + kernel + "` was the last that might have\n" +
        "  Let the kernel write all of its output, or allocate it with zeros.";
    porter_refused_launch(nullptr, text.c_str());
    throw std::runtime_error(text);
  }
}

}  // namespace porter
