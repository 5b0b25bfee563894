// Which stream each thread uses, and what the host has to wait for before it touches what a stream writes.
#include "stream.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>

#include <atomic>

#include "device.h"
#include "memory/memory.h"

namespace {

thread_local int64_t current = 0;
const porter_streams* streams = nullptr;

}  // namespace

namespace porter {

const porter_streams* loaded_streams() {
  return streams;
}

void commit_stream(int64_t stream) {
  if (streams) {
    streams->commit(stream);
  }
}

void finish_current_stream() {
  if (current != 0) {  // what the default stream encodes has run by then
    commit_stream(current);
  }
}

void wait_for_current_stream() {
  finish_current_stream();
  if (streams) {
    streams->host_reads(current);
  }
}

void check_read(const at::Tensor& tensor) {
  if (!streams || !tensor.defined() || tensor.device().type() != kDevice.type() || !tensor.has_storage() || tensor.numel() == 0) {
    return;
  }
  const size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size());
  streams->check_read(current, porter_host_address(tensor.unsafeGetTensorImpl()->mutable_data()), bytes);
}

}  // namespace porter

extern "C" {

void porter_set_streams(const porter_streams* answering) {
  streams = answering;
}

int64_t porter_current_stream(void) {
  return current;
}

void porter_set_current_stream(int64_t stream) {
  TORCH_CHECK(stream >= 0 && stream <= PORTER_POOL_STREAMS, "MPS has streams 0 to ", PORTER_POOL_STREAMS, ", not ", stream);
  current = stream;
}

void porter_open_encoder(void) {
  if (streams) {
    streams->open_encoder(current);
  }
}

void porter_end_encoder(void) {
  if (streams) {
    streams->end_encoder(current);
  }
}

int64_t porter_next_stream(void) {
  static std::atomic<uint32_t> turn{0};
  return turn++ % PORTER_POOL_STREAMS + 1;
}

}  // extern "C"
