#pragma once
#ifdef __OBJC__
#include <Metal/Metal.h>
typedef id<MTLLibrary> MTLLibrary_t;
typedef id<MTLFunction> MTLFunction_t;
typedef id<MTLComputePipelineState> MTLComputePipelineState_t;
#else
typedef void* MTLLibrary_t;
typedef void* MTLFunction_t;
typedef void* MTLComputePipelineState_t;
#endif

#include <c10/core/Scalar.h>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace at {
struct TensorIteratorBase;
}

namespace at::native::mps {

// Kernels compiled from Metal source, and the pipeline states made of them.
class MetalShaderLibrary {
 public:
  explicit MetalShaderLibrary(std::string src) : shaderSource(std::move(src)) {}
  MetalShaderLibrary(const MetalShaderLibrary&) = delete;
  virtual ~MetalShaderLibrary();

  // The library of every kernel in kernels/*.metal.
  static MetalShaderLibrary& getBundledLibrary();

  std::vector<std::string> getFunctionNames();
  // Whether the library has a kernel of this host_name.
  bool hasFunction(const std::string& fname);
  MTLComputePipelineState_t getPipelineStateForFunc(const std::string& fname) {
    return getLibraryPipelineState(getLibrary(), fname).first;
  }
  MTLFunction_t getMTLFunction(const std::string& fname) {
    return getLibraryPipelineState(getLibrary(), fname).second;
  }

  // Runs a kernel registered with REGISTER_UNARY_OP or, when `alpha` is given,
  // REGISTER_UNARY_ALPHA_OP. `scalar_arg_type` is the type alpha is passed in,
  // by default the iterator's common dtype. Dense tensors of at least
  // `ilp_threshold` elements get several elements per thread.
  void exec_unary_kernel(
      TensorIteratorBase& iter,
      const std::string& name,
      const std::optional<c10::Scalar> alpha = std::nullopt,
      const std::optional<c10::ScalarType> scalar_arg_type = std::nullopt,
      const std::optional<uint32_t> ilp_threshold = std::nullopt);

  // Runs a kernel registered with REGISTER_BINARY_OP, REGISTER_OPMATH_BINARY_OP
  // or, when `alpha` is given, REGISTER_BINARY_ALPHA_OP. `natural_output_dtype`
  // is the type the kernel returns, by default the iterator's common dtype:
  // comparisons pass kBool.
  void exec_binary_kernel(
      TensorIteratorBase& iter,
      const std::string& name,
      const std::optional<c10::Scalar> alpha = std::nullopt,
      const std::optional<c10::ScalarType> scalar_arg_type = std::nullopt,
      const std::optional<c10::ScalarType> natural_output_dtype = std::nullopt,
      const std::optional<uint32_t> ilp_threshold = std::nullopt);

  // Runs a kernel registered with REGISTER_TERNARY_OP or
  // REGISTER_OPMATH_TERNARY_OP or, when `alpha` is given, with the macros of
  // their names that have ALPHA in them.
  void exec_ternary_kernel(
      TensorIteratorBase& iter,
      const std::string& name,
      const std::optional<c10::Scalar> alpha = std::nullopt,
      const std::optional<c10::ScalarType> scalar_arg_type = std::nullopt);

  // The same for kernels whose alpha is a struct, of which `params_type_name`
  // is the type they were registered with.
  template <typename T>
  void exec_unary_kernel_with_params(
      TensorIteratorBase& iter,
      const std::string& name,
      T params,
      const std::string& params_type_name,
      const std::optional<uint32_t> ilp_threshold = std::nullopt) {
    const Params bytes{&params, sizeof(T), params_type_name};
    exec_unary_kernel(iter, name, &bytes, ilp_threshold);
  }
  template <typename T>
  void exec_binary_kernel_with_params(
      TensorIteratorBase& iter,
      const std::string& name,
      T params,
      const std::string& params_type_name) {
    const Params bytes{&params, sizeof(T), params_type_name};
    exec_binary_kernel(iter, name, &bytes);
  }

 protected:
  virtual MTLLibrary_t getLibrary();
  MTLLibrary_t library = nullptr;

 private:
  std::pair<MTLComputePipelineState_t, MTLFunction_t> getLibraryPipelineState(
      MTLLibrary_t lib,
      const std::string& fname);

  std::string shaderSource;
  std::unordered_map<
      std::string,
      std::pair<MTLComputePipelineState_t, MTLFunction_t>>
      cplMap;
  std::unordered_set<std::string> functionNames;
  bool functionNamesPopulated = false;

  // What a kernel gets beside its operands, and the name of its type in Metal.
  struct Params {
    const void* bytes;
    size_t size;
    std::string type_name;
  };
  void exec_unary_kernel(
      TensorIteratorBase& iter,
      const std::string& name,
      const Params* params,
      const std::optional<uint32_t> ilp_threshold = std::nullopt);
  void exec_binary_kernel(
      TensorIteratorBase& iter,
      const std::string& name,
      const Params* params,
      const std::optional<c10::ScalarType> natural_output_dtype = std::nullopt,
      const std::optional<uint32_t> ilp_threshold = std::nullopt);
};

} // namespace at::native::mps
