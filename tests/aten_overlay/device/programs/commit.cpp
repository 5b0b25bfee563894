// C++ that knows nothing of Apple, and commits.
#include <torch/library.h>
#include <torch/mps.h>

TORCH_LIBRARY(commit_test, m) {
  m.def("commit", [] { torch::mps::commit(); });
}
