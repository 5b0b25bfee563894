// at::MPSGeneratorImpl, whose definition only Apple builds of libtorch hold: a Philox stream on the mps device.
#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/Utils.h>
#include <ATen/mps/MPSGeneratorImpl.h>

#include <cstring>

namespace at {
namespace {

// The bytes of torch.mps.get_rng_state(): counters, keys and last numbers, then seed, then offset.
struct State {
  std::array<uint32_t, mps::detail::PHILOX_STATE_N> philox;
  uint64_t seed;
  uint64_t offset;
};
constexpr size_t kPhiloxBytes = sizeof(State::philox);
constexpr size_t kStateBytes = kPhiloxBytes + 2 * sizeof(uint64_t);

void pack(const State& state, uint8_t* bytes) {
  std::memcpy(bytes, state.philox.data(), kPhiloxBytes);
  std::memcpy(bytes + kPhiloxBytes, &state.seed, sizeof(uint64_t));
  std::memcpy(bytes + kPhiloxBytes + sizeof(uint64_t), &state.offset, sizeof(uint64_t));
}

State unpack(const uint8_t* bytes) {
  State state;
  std::memcpy(state.philox.data(), bytes, kPhiloxBytes);
  std::memcpy(&state.seed, bytes + kPhiloxBytes, sizeof(uint64_t));
  std::memcpy(&state.offset, bytes + kPhiloxBytes + sizeof(uint64_t), sizeof(uint64_t));
  return state;
}

}  // namespace

MPSGeneratorImpl::MPSGeneratorImpl(uint64_t seed)
    : GeneratorImpl(porter::kDevice, DispatchKeySet(DispatchKey::MPS)), engine_(seed) {
  set_current_seed(seed);
}

void MPSGeneratorImpl::set_current_seed(uint64_t seed) {
  data_.seed = seed;
  data_.state.fill(1);
  data_.state[mps::detail::PHILOX_STATE_N - 2] = static_cast<uint32_t>(seed);
  data_.state[mps::detail::PHILOX_STATE_N - 1] = static_cast<uint32_t>(seed >> 32);
  engine_.reset_state(seed);
}

void MPSGeneratorImpl::set_offset(uint64_t offset) {
  engine_.set_offset(offset);
}

uint64_t MPSGeneratorImpl::get_offset() const {
  return engine_.get_offset();
}

uint64_t MPSGeneratorImpl::current_seed() const {
  return data_.seed;
}

uint64_t MPSGeneratorImpl::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return data_.seed;
}

c10::intrusive_ptr<c10::TensorImpl> MPSGeneratorImpl::get_state() const {
  auto bytes = detail::empty_cpu({static_cast<int64_t>(kStateBytes)}, kByte, std::nullopt, std::nullopt, std::nullopt,
      std::nullopt);
  pack({data_.state, data_.seed, get_offset()}, bytes.mutable_data_ptr<uint8_t>());
  return bytes.getIntrusivePtr();
}

void MPSGeneratorImpl::set_state(const c10::TensorImpl& bytes) {
  detail::check_rng_state(bytes);
  TORCH_CHECK(static_cast<size_t>(bytes.numel()) == kStateBytes, "RNG state is wrong size");
  const State state = unpack(bytes.data_dtype_initialized<uint8_t>());
  set_current_seed(state.seed);
  set_offset(state.offset);
  data_.state = state.philox;
}

void MPSGeneratorImpl::update_philox_counters() {
  for (int counter = 1; counter <= 4; ++counter) {
    data_.state[counter] = engine_();
  }
}

std::shared_ptr<MPSGeneratorImpl> MPSGeneratorImpl::clone() const {
  return std::shared_ptr<MPSGeneratorImpl>(clone_impl());
}

MPSGeneratorImpl* MPSGeneratorImpl::clone_impl() const {
  auto* copy = new MPSGeneratorImpl(data_.seed);
  copy->data_ = data_;
  copy->engine_ = engine_;
  return copy;
}

namespace mps::detail {

Generator createMPSGenerator(uint64_t seed) {
  return make_generator<MPSGeneratorImpl>(seed);
}

const Generator& getDefaultMPSGenerator() {
  static const Generator instance = createMPSGenerator(c10::detail::getNonDeterministicRandom());
  return instance;
}

}  // namespace mps::detail
}  // namespace at

namespace porter {

at::Generator host_generator(const at::Generator& device_generator) {
  auto* generator = at::check_generator<at::MPSGeneratorImpl>(device_generator);
  std::lock_guard<std::mutex> lock(generator->mutex_);
  generator->update_philox_counters();
  const uint32_t* numbers = generator->state_data() + 1;
  return at::make_generator<at::CPUGeneratorImpl>(uint64_t{numbers[0]} << 32 | numbers[1]);
}

}  // namespace porter
