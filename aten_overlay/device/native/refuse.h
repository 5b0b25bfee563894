// What only a fork's own host code can do.
#pragma once
#include <c10/util/Exception.h>

namespace porter {

[[noreturn]] inline void refuse(const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "PTR149: ", name, " launches kernels that are built with PyTorch, which no fork is "
      "loaded for; name its operators with $PORTER_OPERATORS, or launch a kernel of your own");
  __builtin_unreachable();
}

}  // namespace porter
