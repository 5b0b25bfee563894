#include "call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace {

using c10::IValue;
using c10::TypeKind;
using torch::aot_inductor::tensor_handle_to_tensor_pointer;

// `name` with its overload behind one of its underscores: as short an overload as there is.
std::optional<c10::OperatorHandle> find_operator(const std::string& name) {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (auto whole = dispatcher.findSchema({"aten::" + name, ""})) {
    return whole;
  }
  for (size_t at = name.rfind('_'); at != std::string::npos && at > 0; at = name.rfind('_', at - 1)) {
    if (auto handle = dispatcher.findSchema({"aten::" + name.substr(0, at), name.substr(at + 1)})) {
      return handle;
    }
  }
  return std::nullopt;
}

c10::OperatorHandle get_operator(const std::string& name) {
  auto handle = find_operator(name);
  const size_t version = name.rfind("_v");
  if (!handle && version != std::string::npos && name.find_first_not_of("0123456789", version + 2) == std::string::npos) {
    handle = find_operator(name.substr(0, version));
  }
  TORCH_CHECK(handle.has_value(), "this torch has no operator that is called ", name);
  return *handle;
}

// Reads the words of a call in turn.
class Words {
 public:
  Words(const uint64_t* words, size_t count) : next_(words), end_(words + count) {}

  bool is_empty() const {
    return next_ == end_;
  }

  int64_t integer() {
    TORCH_CHECK(!is_empty(), "a call with too few arguments");
    return static_cast<int64_t>(*next_++);
  }

  double number() {
    return std::bit_cast<double>(static_cast<uint64_t>(integer()));
  }

  template <class T>
  T* pointer() {
    return reinterpret_cast<T*>(integer());
  }

 private:
  const uint64_t* next_;
  const uint64_t* end_;
};

at::Tensor& tensor_of(AtenTensorHandle handle) {
  return *tensor_handle_to_tensor_pointer(handle);
}

[[noreturn]] void refuse(const c10::Type& type) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "an argument of type ", type.str(), " of a compiled package");
}

// One element of C's array for a list, or what the pointer of an argument that may be None points to.
IValue read_element(const void* elements, int64_t at, const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      return tensor_of(static_cast<const AtenTensorHandle*>(elements)[at]);
    case TypeKind::BoolType:
      return static_cast<const int32_t*>(elements)[at] != 0;
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return static_cast<int64_t>(static_cast<const int32_t*>(elements)[at]);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return static_cast<const int64_t*>(elements)[at];
    case TypeKind::FloatType:
    case TypeKind::NumberType:
      return static_cast<const double*>(elements)[at];
    case TypeKind::StringType:
      return std::string(static_cast<const char* const*>(elements)[at]);
    case TypeKind::GeneratorType:
      return *reinterpret_cast<at::Generator*>(static_cast<const AtenGeneratorHandle*>(elements)[at]);
    case TypeKind::OptionalType: { // in a list: a pointer each
      const void* element = static_cast<const void* const*>(elements)[at];
      return element ? read_element(element, 0, *type.expectRef<c10::OptionalType>().getElementType()) : IValue();
    }
    default:
      refuse(type);
  }
}

IValue read_list(const void* elements, int64_t count, const c10::TypePtr& element) {
  const bool is_symbolic = element->kind() == TypeKind::SymIntType;
  c10::impl::GenericList list(is_symbolic ? c10::TypePtr(c10::IntType::get()) : element);
  list.reserve(count);
  for (int64_t at = 0; at < count; ++at) {
    list.push_back(read_element(elements, at, *element));
  }
  return list;
}

// Enumerations are integers for the dispatcher, and 32 bits wide in C.
IValue read_argument(Words& words, const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      return tensor_of(words.pointer<AtenTensorOpaque>());
    case TypeKind::BoolType:
      return words.integer() != 0;
    case TypeKind::IntType:
    case TypeKind::SymIntType:
    case TypeKind::ScalarTypeType:
    case TypeKind::LayoutType:
    case TypeKind::MemoryFormatType:
      return words.integer();
    case TypeKind::FloatType:
    case TypeKind::NumberType:
      return words.number();
    case TypeKind::StringType:
      return std::string(words.pointer<const char>());
    case TypeKind::ListType: {
      const void* elements = words.pointer<const void>();
      const int64_t count = words.integer();
      return read_list(elements, count, type.expectRef<c10::ListType>().getElementType());
    }
    case TypeKind::OptionalType: {
      const c10::Type& inner = *type.expectRef<c10::OptionalType>().getElementType();
      const void* pointer = words.pointer<const void>();
      if (inner.kind() == TypeKind::DeviceObjType) {
        const auto index = static_cast<c10::DeviceIndex>(words.integer());
        return pointer ? IValue(c10::Device(static_cast<c10::DeviceType>(*static_cast<const int32_t*>(pointer)), index))
                       : IValue();
      }
      if (inner.kind() == TypeKind::ListType) {
        const int64_t count = words.integer();
        const auto* elements = static_cast<const void* const*>(pointer);
        return elements ? read_list(*elements, count, inner.expectRef<c10::ListType>().getElementType()) : IValue();
      }
      return pointer ? read_element(pointer, 0, inner) : IValue();
    }
    default:
      refuse(type);
  }
}

void write_result(Words& words, const IValue& value) {
  if (value.isTensor()) {
    *words.pointer<AtenTensorHandle>() = torch::aot_inductor::new_tensor_handle(at::Tensor(value.toTensor()));
  } else if (value.isInt()) {
    *words.pointer<int64_t>() = value.toInt();
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "a result of a compiled package that is a ", value.tagKind());
  }
}

// How many results go where pointers of the call say: none that an argument is.
size_t count_returned(const c10::FunctionSchema& schema) {
  return std::count_if(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& result) {
    return result.alias_info() == nullptr || !result.alias_info()->isWrite();
  });
}

void run(const c10::OperatorHandle& op, const uint64_t* words, size_t count) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t returned = count_returned(schema);
  TORCH_CHECK(count >= returned, schema.name(), " with ", count, " arguments of C");
  Words passed(words, count - returned);
  std::vector<IValue> outs;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.is_out()) {
      outs.emplace_back(tensor_of(passed.pointer<AtenTensorOpaque>()));
    }
  }
  torch::jit::Stack stack;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.is_out()) {
      break;
    }
    if (passed.is_empty()) { // of an older function
      TORCH_CHECK(argument.default_value(), schema.name(), " needs ", argument.name());
      stack.push_back(*argument.default_value());
    } else {
      stack.push_back(read_argument(passed, *argument.real_type()));
    }
  }
  stack.insert(stack.end(), outs.begin(), outs.end());
  op.callBoxed(stack);
  Words places(words + (count - returned), returned);
  for (size_t at = 0; at < returned; ++at) {
    write_result(places, stack[at]);
  }
}

} // namespace

namespace porter {

AOTITorchError call_operator(const char* name, const uint64_t* words, size_t count) {
  AOTI_TORCH_CONVERT_EXCEPTION_TO_ERROR_CODE({ run(get_operator(name), words, count); });
}

} // namespace porter

// Whether a function of that name calls an operator that this torch has.
extern "C" __attribute__((visibility("default"))) int porter_finds_operator(const char* name) {
  try {
    get_operator(name);
    return 1;
  } catch (const c10::Error&) {
    return 0;
  }
}
