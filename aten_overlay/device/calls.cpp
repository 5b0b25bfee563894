// Calls of kernels from Python: what one is like, as bytes, and a launch like an earlier one, with no Python in between.
#include "device/device.h"
#include "memory/memory.h"
#include "metal/include/porter_metal_abi.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/TracerMode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Size.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <torch/csrc/utils/object_ptr.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

constexpr const char* kLaunch = "porter.launch";
constexpr int kDeepest = 4;  // of lists in lists
constexpr int64_t kLarge = int64_t{1} << 31;  // whole numbers that a kernel may not be able to take
void* const kNowhere = reinterpret_cast<void*>(64);  // where a tensor without elements begins

// Whether something sees the operators that this thread dispatches: a mode, a transform, a tracer, a profiler.
bool is_watched() {
  return c10::impl::TorchDispatchModeTLS::stack_len() != 0 || at::impl::PythonTorchFunctionTLS::stack_len() != 0 ||
      c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
      at::tracer::impl::is_dispatch_enabled() ||
      torch::profiler::impl::profilerEnabled() ||
      torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr;
}

// The values of a list, a tuple or a dictionary, borrowed; false for anything else.
bool list_values(PyObject* inputs, c10::SmallVectorImpl<PyObject*>& values) {
  if (PyDict_CheckExact(inputs)) {
    Py_ssize_t place = 0;
    PyObject* value = nullptr;
    while (PyDict_Next(inputs, &place, nullptr, &value)) {
      values.push_back(value);
    }
    return true;
  }
  if (!PyList_CheckExact(inputs) && !PyTuple_CheckExact(inputs)) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(inputs); ++i) {
    values.push_back(PySequence_Fast_GET_ITEM(inputs, i));
  }
  return true;
}

// Bytes that are equal for calls alike. Each function returns false for what has to go the long way.
class Description {
 public:
  bool add_inputs(PyObject* inputs, bool by_value) {
    c10::SmallVector<PyObject*, 16> values;
    if (!list_values(inputs, values) || !add_names(inputs)) {
      return false;
    }
    put(values.size());
    for (PyObject* value : values) {
      if (!(THPVariable_CheckExact(value) ? add_tensor(THPVariable_Unpack(value)) : add_number(value, by_value))) {
        return false;
      }
    }
    return true;
  }

  // An argument beside the inputs. Equal numbers of different types differ: a kernel may take one and not the other.
  bool add(PyObject* given, int depth = 0) {
    const PyTypeObject* type = Py_TYPE(given);
    put(type);
    if (type == &PyUnicode_Type) {
      return add_text(given);
    }
    if (type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type) {
      return add_value(given);
    }
    if (given == Py_None || THPDtype_Check(given)) {
      put(given);
      return true;
    }
    return depth < kDeepest && add_parts(given, depth + 1);
  }

  PyObject* bytes() const {
    return PyBytes_FromStringAndSize(bytes_.data(), static_cast<Py_ssize_t>(bytes_.size()));
  }

 private:
  template <class T>
  void put(const T& value) {
    const auto* first = reinterpret_cast<const char*>(&value);
    bytes_.append(first, first + sizeof(T));
  }

  bool add_names(PyObject* inputs) {
    put(PyDict_CheckExact(inputs));
    Py_ssize_t place = 0;
    PyObject* name = nullptr;
    while (PyDict_CheckExact(inputs) && PyDict_Next(inputs, &place, &name, nullptr)) {
      if (!PyUnicode_CheckExact(name) || !add_text(name)) {
        return false;
      }
    }
    return true;
  }

  // Of a tensor all but its memory.
  bool add_tensor(const at::Tensor& tensor) {
    const bool differentiates = at::GradMode::is_enabled() && tensor.requires_grad();
    const bool is_traced = tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides() || tensor.is_nested();
    const bool is_lazy = tensor.is_conj() || tensor.is_neg();  // the dispatcher computes these for an operator
    if (differentiates || is_traced || is_lazy || tensor.layout() != at::kStrided) {
      return false;
    }
    put('t');
    put(tensor.scalar_type());
    put(tensor.key_set().raw_repr());
    put(tensor.get_device());
    put(tensor.dim());
    for (const auto& lengths : {tensor.sizes(), tensor.strides()}) {
      bytes_.append(
          reinterpret_cast<const char*>(lengths.begin()), reinterpret_cast<const char*>(lengths.end()));
    }
    return true;
  }

  // Of a number its type, and its value where that decides whether a call is right.
  bool add_number(PyObject* number, bool by_value) {
    const PyTypeObject* type = Py_TYPE(number);
    put('n');
    put(type);
    if (type == &PyFloat_Type || type == &PyBool_Type) {
      const double value = type == &PyFloat_Type ? PyFloat_AS_DOUBLE(number) : 0;
      put(std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max());  // no float32 holds it
      return !by_value || add_value(number);
    }
    int overflow = 0;
    const long long value = type == &PyLong_Type ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
    const bool is_large = value <= -kLarge || value >= kLarge;
    put(is_large);
    return type == &PyLong_Type && overflow == 0 && (!(by_value || is_large) || add_value(number));
  }

  bool add_value(PyObject* number) {
    if (PyFloat_CheckExact(number)) {
      put(PyFloat_AS_DOUBLE(number));
      return true;
    }
    int overflow = 0;
    put(PyLong_AsLongLongAndOverflow(number, &overflow));
    return overflow == 0;
  }

  bool add_text(PyObject* text) {
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text, &size);
    if (data == nullptr) {
      PyErr_Clear();
      return false;
    }
    put(size);
    bytes_.append(data, data + size);
    return true;
  }

  bool add_parts(PyObject* given, int depth) {
    if (PyDict_CheckExact(given)) {
      put(PyDict_GET_SIZE(given));
      Py_ssize_t place = 0;
      PyObject *name = nullptr, *value = nullptr;
      while (PyDict_Next(given, &place, &name, &value)) {
        if (!add(name, depth) || !add(value, depth)) {
          return false;
        }
      }
      return true;
    }
    const bool is_size = Py_TYPE(given) == &THPSizeType;
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given) && !is_size) {
      return false;
    }
    put(PySequence_Fast_GET_SIZE(given));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i) {
      if (!add(PySequence_Fast_GET_ITEM(given, i), depth)) {
        return false;
      }
    }
    return true;
  }

  c10::SmallVector<char, 1024> bytes_;
};

// describe(inputs, rest, by_value): bytes that are equal for calls alike; None for one that has to go the long way.
PyObject* describe(PyObject*, PyObject* const* given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 3, "describe takes inputs, the rest and whether values count");
  Description description;
  if (is_watched() || !description.add_inputs(given[0], given[2] == Py_True) || !description.add(given[1])) {
    Py_RETURN_NONE;
  }
  return description.bytes();
  END_HANDLE_TH_ERRORS
}

// What is bound at one index: `length` bytes that are always `constant`, a number of C's type `number`, or memory.
struct Argument {
  uint64_t length;
  std::string constant;
  char number;
};

struct Output {
  std::vector<int64_t> shape;
  at::ScalarType type;
};

// A launch with all but addresses, numbers, the seed and the limit. `tensors` and `numbers` are places among inputs and
// outputs, in the order of the arguments that they are bound to.
struct Launch {
  const pm_kernel* kernel;
  std::array<uint32_t, 3> grid, group;
  std::vector<Argument> arguments;
  std::vector<size_t> tensors, numbers;
  std::vector<Output> outputs;
  std::optional<c10::Scalar> start;
  bool copies;  // tensors that are not dense, for a kernel that takes them so
  const uint32_t* limit;
  PyObject *counts, *name, *seeds, *fail;  // held by the capsule
};

at::Tensor make_output(const Launch& launch, const Output& output) {
  const auto options = at::TensorOptions(at::Device(at::kMPS)).dtype(output.type);
  return launch.start ? at::full(output.shape, *launch.start, options) : at::empty(output.shape, options);
}

void* find_memory(const at::Tensor& tensor) {
  void* found = porter_host_address(tensor.const_data_ptr());
  return found == nullptr ? kNowhere : found;
}

void store(PyObject* number, char type, uint64_t& cell) {
  if (type == 'f') {
    const auto value = static_cast<float>(PyFloat_AsDouble(number));
    std::memcpy(&cell, &value, sizeof value);
  } else {
    cell = static_cast<uint64_t>(PyLong_AsLongLong(number));  // little-endian: its first bytes are a narrower number
  }
}

// What one launch binds. Copies of tensors keep memory that another thread may let go of.
struct Frame {
  c10::SmallVector<at::Tensor, 8> inputs, outputs;
  std::array<pm_buffer, PM_MAX_BUFFERS> buffers{};
  std::array<uint64_t, PM_MAX_BUFFERS> numbers{};
};

void bind(const Launch& launch, const c10::SmallVectorImpl<PyObject*>& values, Frame& frame) {
  auto tensor = launch.tensors.begin();
  auto number = launch.numbers.begin();
  for (size_t index = 0; index < launch.arguments.size(); ++index) {
    const Argument& argument = launch.arguments[index];
    pm_buffer& buffer = frame.buffers[index];
    buffer.length = argument.length;
    if (argument.number != 0) {
      store(values[*number++], argument.number, frame.numbers[index]);
      buffer.address = &frame.numbers[index];
    } else if (!argument.constant.empty()) {
      buffer.address = const_cast<char*>(argument.constant.data());
    } else if (*tensor < values.size()) {
      const at::Tensor& given = THPVariable_Unpack(values[*tensor++]);
      frame.inputs.push_back(launch.copies ? given.contiguous() : given);
      buffer.address = find_memory(frame.inputs.back());
    } else {
      buffer.address = find_memory(frame.outputs[*tensor++ - values.size()]);
    }
  }
}

bool count_launch(const Launch& launch) {
  PyObject* before = PyDict_GetItemWithError(launch.counts, launch.name);
  const long long count = before == nullptr ? 0 : PyLong_AsLongLong(before);
  auto after = THPObjectPtr(PyErr_Occurred() ? nullptr : PyLong_FromLongLong(count + 1));
  return after && PyDict_SetItem(launch.counts, launch.name, after.get()) == 0;
}

PyObject* fail(const Launch& launch, int status, const char* text) {
  auto error = THPObjectPtr(PyObject_CallFunction(launch.fail, "is", status, text));
  if (error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
  }
  return nullptr;
}

PyObject* list_outputs(const Frame& frame) {
  auto found = THPObjectPtr(PyList_New(static_cast<Py_ssize_t>(frame.outputs.size())));
  for (size_t i = 0; found && i < frame.outputs.size(); ++i) {
    PyList_SET_ITEM(found.get(), static_cast<Py_ssize_t>(i), THPVariable_Wrap(frame.outputs[i]));
  }
  return found.release();
}

// run(launch, inputs): the outputs for inputs like those of the first call.
PyObject* run(PyObject*, PyObject* const* given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 2, "run takes a launch and inputs");
  const auto* launch = static_cast<const Launch*>(PyCapsule_GetPointer(given[0], kLaunch));
  if (launch == nullptr) {
    return nullptr;
  }
  c10::SmallVector<PyObject*, 16> values;
  TORCH_CHECK_TYPE(list_values(given[1], values), "inputs are a list or a mapping");
  Frame frame;
  for (const Output& output : launch->outputs) {
    frame.outputs.push_back(make_output(*launch, output));
  }
  bind(*launch, values, frame);
  auto seed = THPObjectPtr(PyIter_Next(launch->seeds));
  if (!seed || !count_launch(*launch)) {
    return nullptr;
  }
  std::array<char, 1280> error{};
  pm_launch fields{};
  fields.kernel = launch->kernel;
  fields.buffers = frame.buffers.data();
  fields.buffer_count = static_cast<uint32_t>(launch->arguments.size());
  std::copy(launch->grid.begin(), launch->grid.end(), fields.grid);
  std::copy(launch->group.begin(), launch->group.end(), fields.group);
  fields.seed = PyLong_AsUnsignedLongLongMask(seed.get());
  fields.max_threads = *launch->limit;
  fields.error = error.data();
  fields.error_size = error.size();
  int status = 0;
  porter::finish_current_stream();
  {
    pybind11::gil_scoped_release others_run;
    status = launch->kernel->launch(&fields);
  }
  return status == 0 ? list_outputs(frame) : fail(*launch, status, error.data());
  END_HANDLE_TH_ERRORS
}

c10::Scalar read_scalar(PyObject* number) {
  if (PyBool_Check(number)) {
    return {number == Py_True};
  }
  if (PyFloat_Check(number)) {
    return {PyFloat_AsDouble(number)};
  }
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow == 0 ? c10::Scalar(value) : c10::Scalar(static_cast<uint64_t>(PyLong_AsUnsignedLongLong(number)));
}

using Parts = std::tuple<uint64_t, std::string, std::string>;  // of an Argument

pybind11::capsule prepare(
    uintptr_t kernel,
    std::array<uint32_t, 3> grid,
    std::array<uint32_t, 3> group,
    const std::vector<Parts>& arguments,
    std::vector<size_t> tensors,
    std::vector<size_t> numbers,
    const std::vector<std::pair<std::vector<int64_t>, at::ScalarType>>& outputs,
    const std::optional<pybind11::object>& start,
    bool copies,
    uintptr_t limit,
    pybind11::dict counts,
    pybind11::str name,
    pybind11::iterator seeds,
    pybind11::function fail) {
  TORCH_CHECK_VALUE(arguments.size() <= PM_MAX_BUFFERS, "more buffers than Metal binds");
  auto* launch = new Launch{
      reinterpret_cast<const pm_kernel*>(kernel), grid, group, {}, std::move(tensors), std::move(numbers), {}, {},
      copies, reinterpret_cast<const uint32_t*>(limit), counts.release().ptr(), name.release().ptr(), seeds.release().ptr(),
      fail.release().ptr()};
  for (const auto& [length, constant, number] : arguments) {
    launch->arguments.push_back({length, constant, number.empty() ? '\0' : number[0]});
  }
  for (const auto& [shape, type] : outputs) {
    launch->outputs.push_back({shape, type});
  }
  if (start) {
    launch->start = read_scalar(start->ptr());
  }
  return pybind11::capsule(launch, kLaunch, [](void* held) {
    auto* done = static_cast<Launch*>(held);
    for (PyObject* each : {done->counts, done->name, done->seeds, done->fail}) {
      Py_DECREF(each);
    }
    delete done;
  });
}

PyMethodDef methods[] = {
    {"describe", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(describe)), METH_FASTCALL, nullptr},
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PYBIND11_MODULE(porter_calls, module) {
  module.def("prepare", prepare);
  if (PyModule_AddFunctions(module.ptr(), methods) != 0) {
    throw pybind11::error_already_set();
  }
}
