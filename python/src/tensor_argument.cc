#include "tensor_argument.h"

#include <cctype>
#include <string>
#include <string_view>

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

// What the C interface's texts call what Python's user wrote.
constexpr struct {
  std::string_view native;
  std::string_view python;
} kWords[] = {
    {"MLAP_ROW_MAJOR", "layout=\"row_major\""},
    {"MLAP_OUT_IN", "layout=\"out_in\""},
    {"MLAP_FRACTAL_NZ", "layout=\"nz\""},
    {"MLAP_COPY", "copy=True"},
    {"MLAP_BORROW", "copy=False"},
    {"MLAP_KV_BF16", "\"bf16\""},
    {"MLAP_KV_PER_TENSOR", "\"per_tensor\""},
    {"MLAP_KV_PER_CHANNEL", "\"per_channel\""},
    {"MLAP_KV_PER_GROUP", "\"per_group\""},
    {"MLAP_PA_BSND", "PA_BSND"},
    {"MLAP_PA_NZ", "PA_NZ"},
    {"MLAP_PA_BLK_BSND", "PA_BLK_BSND"},
    {"MLAP_PA_BLK_NZ", "PA_BLK_NZ"},
    {"MLAP_BSND", "BSND"},
    {"MLAP_TND", "TND"},
    {"MLAP_ROPE_NONE", "rope_style=\"none\""},
    {"MLAP_ROW_CANN", "\"cann\""},
    {"MLAP_ROW_FLASHMLA", "\"flashmla\""},
};

std::string InPythonsWords(const std::string& text) {
  constexpr std::string_view kPrefix = "MLAP_";
  std::string result;
  size_t place = 0;
  while (place < text.size()) {
    const size_t start = text.find(kPrefix, place);
    if (start == std::string::npos) break;
    size_t end = start;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    std::string_view word = std::string_view(text).substr(start, end - start);
    for (const auto& row : kWords) {
      if (row.native == word) {
        word = row.python;
        break;
      }
    }
    result.append(text, place, start - place).append(word);
    place = end;
  }
  return result.append(text, place, std::string::npos);
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
          PyErr_SetString(type, InPythonsWords(failure.text).c_str());
        }
      },
      error.ptr());
}

}  // namespace mlap::python
