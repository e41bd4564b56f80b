#include "tensor_argument.h"

namespace mlap::python {
namespace {

namespace nb = nanobind;

int64_t ToInteger(PyObject* object) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return value;
}

int32_t ReadSizes(PyObject* object, int64_t (&sizes)[MLAP_MAX_RANK]) {
  if (!PyTuple_Check(object)) throw nb::type_error("a tensor's dims and strides have to be tuples");
  const Py_ssize_t rank = PyTuple_GET_SIZE(object);
  if (rank > MLAP_MAX_RANK) throw nb::value_error("a tensor of more than 4 dimensions");
  for (Py_ssize_t i = 0; i < rank; ++i) sizes[i] = ToInteger(PyTuple_GET_ITEM(object, i));
  return static_cast<int32_t>(rank);
}

}  // namespace

mlap_tensor ToTensor(nb::handle object) {
  mlap_tensor tensor = {};
  if (object.is_none()) return tensor;
  PyObject* const tuple = object.ptr();
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) < 4 || PyTuple_GET_SIZE(tuple) > 5) {
    throw nb::type_error("a tensor has to be (address, dtype, layout, dims[, strides]) or None");
  }
  tensor.data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(tuple, 0));
  if (tensor.data == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  tensor.dtype = static_cast<mlap_dtype>(ToInteger(PyTuple_GET_ITEM(tuple, 1)));
  tensor.layout = static_cast<mlap_layout>(ToInteger(PyTuple_GET_ITEM(tuple, 2)));
  tensor.rank = ReadSizes(PyTuple_GET_ITEM(tuple, 3), tensor.dims);
  if (PyTuple_GET_SIZE(tuple) == 5) {
    const int32_t num_strides = ReadSizes(PyTuple_GET_ITEM(tuple, 4), tensor.strides);
    if (num_strides != tensor.rank) throw nb::value_error("a tensor whose dims and strides differ in number");
  }
  return tensor;
}

void DefineErrors(nb::module_& module) {
  // One exception for both who catches IndexError and who catches what a wrong argument raises.
  nb::tuple bases = nb::make_tuple(nb::handle(PyExc_IndexError), nb::handle(PyExc_ValueError));
  nb::object error = nb::steal(PyErr_NewExceptionWithDoc(
      "mlaprolog.CacheIndexError", "A cache index beyond the cache; nothing was written.", bases.ptr(), nullptr));
  if (!error.is_valid()) throw nb::python_error();
  module.attr("CacheIndexError") = error;
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* index_error) {
        try {
          std::rethrow_exception(thrown);
        } catch (const StatusError& failure) {
          PyObject* type = PyExc_ValueError;
          switch (failure.status) {
            case MLAP_INDEX_OUT_OF_RANGE:
              type = static_cast<PyObject*>(index_error);
              break;
            case MLAP_UNSUPPORTED:
              type = PyExc_NotImplementedError;
              break;
            case MLAP_OUT_OF_MEMORY:
              type = PyExc_MemoryError;
              break;
            case MLAP_BUSY:
              type = PyExc_RuntimeError;
              break;
            default:
              break;
          }
          PyErr_SetString(type, failure.text.c_str());
        }
      },
      error.ptr());
}

}  // namespace mlap::python
