// Tensors as the Python side hands them over, and statuses as Python exceptions.
#ifndef MLAP_PYTHON_TENSOR_ARGUMENT_H_
#define MLAP_PYTHON_TENSOR_ARGUMENT_H_

#include <mlaprolog/mlaprolog.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <string>

namespace mlap::python {

// What Python knows of a tensor: None, or (address, dtype, layout, dims) or (address, dtype, layout, dims, strides),
// all integers and tuples of them. Whoever makes the tuple keeps the memory alive until the call has returned.
mlap_tensor ToTensor(nanobind::handle object);

// A member of one of the library's argument structs, by the name it has in messages.
template <class Args>
struct TensorMember {
  const char* name;
  mlap_tensor Args::*member;
};

// Assigns a tuple of tensors, in the order of the table, to the struct.
template <class Args, size_t kCount>
void AssignTensors(const TensorMember<Args> (&table)[kCount], const nanobind::tuple& tensors, Args* args) {
  if (tensors.size() != kCount) throw nanobind::value_error("a tensor tuple of another length than its table of names");
  for (size_t i = 0; i < kCount; ++i) args->*table[i].member = ToTensor(tensors[i]);
}

template <class Args, size_t kCount>
nanobind::tuple NamesOf(const TensorMember<Args> (&table)[kCount]) {
  nanobind::list names;
  for (const TensorMember<Args>& row : table) names.append(row.name);
  return nanobind::tuple(names);
}

// A failed call of the library. Made on the thread that failed, which alone can read the text.
struct StatusError {
  mlap_status status;
  std::string text;
};

inline void ThrowIfFailed(mlap_status status) {
  if (status != MLAP_OK) throw StatusError{status, mlap_last_error()};
}

// Runs a library function without Python's lock.
template <class Function>
void CallUnlocked(const Function& function) {
  const nanobind::gil_scoped_release unlocked;
  ThrowIfFailed(function());
}

// One place for each group of functions; module.cc calls them.
void DefineErrors(nanobind::module_& module);
void DefineMachine(nanobind::module_& module);
void DefineOperator(nanobind::module_& module);
void DefinePreparation(nanobind::module_& module);
void DefineComparison(nanobind::module_& module);

}  // namespace mlap::python

#endif  // MLAP_PYTHON_TENSOR_ARGUMENT_H_
