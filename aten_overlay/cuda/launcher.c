// Launches of prepared kernels without ctypes: addresses and numbers go into a block that is kept, and the driver is called.
// Nothing here runs Python between filling a block and launching, so that both are one step under the interpreter's lock.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef int (*launch_function)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
enum { MOST_TENSORS = 64, ALIGNMENT = 16, LONG_WAY = -1 };
static PyObject *is_cuda_name, *data_ptr_name, *get_device_name, *storage_offset_name, *numel_name;

// ---- Launch: a function of a grid with its parameters but for addresses and numbers
typedef struct {
  PyObject_HEAD
  launch_function launch;
  void* function;
  unsigned blocks[3], threads, dynamic;
  Py_ssize_t size, count;  // bytes of the block, addresses in it
  unsigned char* block;
  void** parameters;
  Py_ssize_t* words;
  PyObject* kept;
} Launch;

static void Launch_dealloc(Launch* self) {
  PyMem_Free(self->block);
  PyMem_Free(self->parameters);
  PyMem_Free(self->words);
  Py_XDECREF(self->kept);
  Py_TYPE(self)->tp_free((PyObject*)self);
}

static Py_ssize_t* read_numbers(PyObject* tuple, Py_ssize_t most) {
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  Py_ssize_t* found = PyMem_Calloc(count + 1, sizeof(Py_ssize_t));
  if (!found) return (Py_ssize_t*)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; ++i) {
    found[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    if (PyErr_Occurred() || found[i] < 0 || found[i] > most) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "an offset lies outside of the block");
      PyMem_Free(found);
      return NULL;
    }
  }
  return found;
}

// Launch(address of cuLaunchKernel, function, (x, y, z), threads, dynamic bytes, block, offsets of parameters, words, kept)
static int Launch_init(Launch* self, PyObject* args, PyObject* named) {
  unsigned long long launch, function;
  const char* block;
  PyObject *offsets, *words, *kept;
  (void)named;
  if (!PyArg_ParseTuple(args, "KK(III)IIy#O!O!O", &launch, &function, &self->blocks[0], &self->blocks[1], &self->blocks[2],
                        &self->threads, &self->dynamic, &block, &self->size, &PyTuple_Type, &offsets, &PyTuple_Type,
                        &words, &kept))
    return -1;
  self->launch = (launch_function)(uintptr_t)launch;
  self->function = (void*)(uintptr_t)function;
  self->count = PyTuple_GET_SIZE(words);
  const Py_ssize_t parameters = PyTuple_GET_SIZE(offsets);
  Py_ssize_t* at = read_numbers(offsets, self->size);
  self->words = read_numbers(words, self->size / 8 - 1);
  self->block = PyMem_Malloc(self->size);
  self->parameters = PyMem_Calloc(parameters + 1, sizeof(void*));
  if (!at || !self->words || !self->block || !self->parameters) {
    PyMem_Free(at);
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return -1;
  }
  memcpy(self->block, block, self->size);
  for (Py_ssize_t i = 0; i < parameters; ++i) self->parameters[i] = self->block + at[i];
  PyMem_Free(at);
  self->kept = Py_NewRef(kept);
  return 0;
}

static int launch_now(Launch* self, const uint64_t* addresses, uint64_t stream) {
  for (Py_ssize_t i = 0; i < self->count; ++i) memcpy(self->block + 8 * self->words[i], &addresses[i], 8);
  return self->launch(self->function, self->blocks[0], self->blocks[1], self->blocks[2], self->threads, 1, 1, self->dynamic,
                      (void*)(uintptr_t)stream, self->parameters, NULL);
}

// run(stream, addresses, pieces): the driver's status. A piece is an offset and what is written there.
static PyObject* Launch_run(Launch* self, PyObject* args) {
  unsigned long long stream;
  PyObject *given, *pieces;
  uint64_t addresses[MOST_TENSORS];
  if (!PyArg_ParseTuple(args, "KO!O!", &stream, &PyList_Type, &given, &PyList_Type, &pieces)) return NULL;
  if (PyList_GET_SIZE(given) != self->count || self->count > MOST_TENSORS) {
    PyErr_SetString(PyExc_ValueError, "a launch has as many addresses as it was prepared for");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < self->count; ++i) addresses[i] = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(given, i));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pieces); ++i) {
    Py_ssize_t at, size;
    const char* data;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(pieces, i), "ny#", &at, &data, &size)) return NULL;
    if (at < 0 || at + size > self->size) {
      PyErr_SetString(PyExc_ValueError, "a piece lies outside of the block");
      return NULL;
    }
    memcpy(self->block + at, data, size);
  }
  return PyErr_Occurred() ? NULL : PyLong_FromLong(launch_now(self, addresses, stream));
}

static PyMethodDef Launch_methods[] = {
    {"run", (PyCFunction)Launch_run, METH_VARARGS, "Launches on a stream, with addresses and pieces; the driver's status."},
    {NULL, NULL, 0, NULL}};
static PyTypeObject LaunchType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "launcher.Launch", .tp_basicsize = sizeof(Launch),
    .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = PyType_GenericNew, .tp_init = (initproc)Launch_init,
    .tp_dealloc = (destructor)Launch_dealloc, .tp_methods = Launch_methods,
    .tp_doc = "A launch that lacks addresses and numbers."};

// ---- Calls: the launches of a kernel by what calls of it are like
typedef struct {
  PyObject_HEAD
  PyObject *types, *references, *launches, *current_device, *current_stream;
  int restricts;
} Calls;

static void Calls_dealloc(Calls* self) {
  Py_XDECREF(self->types);
  Py_XDECREF(self->references);
  Py_XDECREF(self->launches);
  Py_XDECREF(self->current_device);
  Py_XDECREF(self->current_stream);
  Py_TYPE(self)->tp_free((PyObject*)self);
}

// Calls(types of tensors, indices of references, launches by key, restrict, current_device, current_stream)
static int Calls_init(Calls* self, PyObject* args, PyObject* named) {
  PyObject *types, *references, *launches, *device, *stream;
  (void)named;
  if (!PyArg_ParseTuple(args, "O!O!O!pOO", &PyTuple_Type, &types, &PyFrozenSet_Type, &references, &PyDict_Type, &launches,
                        &self->restricts, &device, &stream))
    return -1;
  self->types = Py_NewRef(types), self->references = Py_NewRef(references), self->launches = Py_NewRef(launches);
  self->current_device = Py_NewRef(device), self->current_stream = Py_NewRef(stream);
  return 0;
}

// What a method without arguments, or a function of at most one, returns; -1 with an error set.
static long long ask(PyObject* result) {
  if (!result) return -1;
  const unsigned long long value = PyLong_AsUnsignedLongLongMask(result);
  Py_DECREF(result);
  return (long long)value;
}

static int is_tensor(Calls* self, PyObject* value) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->types); ++i)
    if ((PyObject*)Py_TYPE(value) == PyTuple_GET_ITEM(self->types, i)) return 1;
  return 0;
}

typedef struct {
  uint64_t starts[MOST_TENSORS];
  Py_ssize_t count;
  long long device, threads;
  int ordinary;  // no offsets, and no two tensors that begin at one address
  uint64_t unaligned;
} Found;

// Notes a tensor. 0: the long way has to be taken, or an error is set.
static int add_tensor(Calls* self, Found* found, PyObject* tensor, Py_ssize_t index) {
  PyObject* on_cuda = PyObject_GetAttr(tensor, is_cuda_name);
  Py_XDECREF(on_cuda);
  if (on_cuda != Py_True || found->count == MOST_TENSORS) return 0;
  if (PySet_GET_SIZE(self->references)) {
    PyObject* number = PyLong_FromSsize_t(index);
    const int refers = number ? PySet_Contains(self->references, number) : -1;
    Py_XDECREF(number);
    if (refers) return 0;
  }
  const uint64_t start = (uint64_t)ask(PyObject_CallMethodNoArgs(tensor, data_ptr_name));
  const long long device = ask(PyObject_CallMethodNoArgs(tensor, get_device_name));
  const long long offset = ask(PyObject_CallMethodNoArgs(tensor, storage_offset_name));
  if (found->threads < 0) found->threads = ask(PyObject_CallMethodNoArgs(tensor, numel_name));
  if (PyErr_Occurred() || device < 0 || (found->device >= 0 && found->device != device)) return 0;
  for (Py_ssize_t i = 0; i < found->count; ++i) found->ordinary &= found->starts[i] != start;
  found->ordinary &= offset == 0;
  found->device = device;
  found->unaligned |= start;
  found->starts[found->count++] = start;
  return 1;
}

// The bytes of a number as a launch takes it: a float of 32 bits, or an integer of 64. NULL: not such a number.
static PyObject* pack(PyObject* value) {
  if (PyFloat_CheckExact(value)) {
    const double wide = PyFloat_AS_DOUBLE(value);
    if (wide > 3.4e38 || wide < -3.4e38) return NULL;
    const float narrow = (float)wide;
    return PyBytes_FromStringAndSize((const char*)&narrow, sizeof narrow);
  }
  if (!PyLong_CheckExact(value)) return NULL;
  int overflow;
  const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow ? NULL : PyBytes_FromStringAndSize((const char*)&whole, sizeof whole);
}

static PyObject* as_key(PyObject* sizes) { return PyList_CheckExact(sizes) ? PyList_AsTuple(sizes) : Py_NewRef(sizes); }

// What a call is like: its values, threads, group, whether its memory is apart and aligned, device. NULL: the long way.
static PyObject* make_key(Calls* self, PyObject* args, PyObject* threads, PyObject* group, Found* found) {
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  PyObject* key = PyTuple_New(count + 4);
  if (!key) return NULL;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = PyTuple_GET_ITEM(args, i);
    const int tensor = is_tensor(self, value);
    PyObject* part = tensor ? (add_tensor(self, found, value, i) ? Py_NewRef(Py_None) : NULL) : pack(value);
    if (!part) goto fail;
    PyTuple_SET_ITEM(key, i, part);
  }
  const int aligned = self->restricts && found->unaligned % ALIGNMENT == 0;
  if (found->device < 0 || (aligned && !found->ordinary)) goto fail;  // whether views overlap is found the long way
  PyTuple_SET_ITEM(key, count, threads == Py_None ? PyLong_FromLongLong(found->threads) : as_key(threads));
  PyTuple_SET_ITEM(key, count + 1, as_key(group));
  PyTuple_SET_ITEM(key, count + 2, PyBool_FromLong(aligned));
  PyTuple_SET_ITEM(key, count + 3, PyLong_FromLongLong(found->device));
  return key;
fail:
  Py_DECREF(key);
  return NULL;
}

// calls(args, threads, group): the status of the launch; -1 if the call has to go the long way.
static PyObject* Calls_call(Calls* self, PyObject* given, PyObject* named) {
  PyObject *args, *threads, *group;
  (void)named;
  if (!PyArg_ParseTuple(given, "O!OO", &PyTuple_Type, &args, &threads, &group)) return NULL;
  Found found = {.device = -1, .threads = threads == Py_None ? -1 : 0, .ordinary = 1};
  PyObject* key = make_key(self, args, threads, group, &found);
  if (!key) {
    if (PyErr_Occurred()) PyErr_Clear();  // the long way meets it again
    return PyLong_FromLong(LONG_WAY);
  }
  PyObject* launch = PyDict_GetItemWithError(self->launches, key);
  Py_XINCREF(launch);
  Py_DECREF(key);
  if (!launch) {
    PyErr_Clear();
    return PyLong_FromLong(LONG_WAY);
  }
  int status = LONG_WAY;
  PyObject* device = PyLong_FromLongLong(found.device);
  if (device && ((Launch*)launch)->count == found.count && ask(PyObject_CallNoArgs(self->current_device)) == found.device) {
    const uint64_t stream = (uint64_t)ask(PyObject_CallOneArg(self->current_stream, device));
    if (!PyErr_Occurred()) status = launch_now((Launch*)launch, found.starts, stream);
  }
  Py_XDECREF(device);
  Py_DECREF(launch);
  if (PyErr_Occurred()) return NULL;
  return PyLong_FromLong(status);
}

static PyTypeObject CallsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "launcher.Calls", .tp_basicsize = sizeof(Calls),
    .tp_flags = Py_TPFLAGS_DEFAULT, .tp_new = PyType_GenericNew, .tp_init = (initproc)Calls_init,
    .tp_dealloc = (destructor)Calls_dealloc, .tp_call = (ternaryfunc)Calls_call,
    .tp_doc = "Launches calls that are like earlier ones."};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "launcher", "Launches of prepared kernels.", -1, NULL,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_launcher(void) {
  is_cuda_name = PyUnicode_InternFromString("is_cuda");
  data_ptr_name = PyUnicode_InternFromString("data_ptr");
  get_device_name = PyUnicode_InternFromString("get_device");
  storage_offset_name = PyUnicode_InternFromString("storage_offset");
  numel_name = PyUnicode_InternFromString("numel");
  PyObject* made = PyModule_Create(&module);
  if (!made || PyModule_AddType(made, &LaunchType) || PyModule_AddType(made, &CallsType)) return NULL;
  return made;
}
