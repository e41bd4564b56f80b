// mlaprolog._native: the native C interface for the Python package, which alone calls it. Arrays are checked and
// described in Python (mlaprolog/_arrays.py, mlaprolog/torch); here they are addresses, types and sizes.
#include "tensor_argument.h"

NB_MODULE(_native, module) {
  // Contexts and weights in a program's globals live until it ends; that is no leak.
  nanobind::set_leak_warnings(false);
  mlap::python::DefineErrors(module);
  mlap::python::DefineMachine(module);
  mlap::python::DefineOperator(module);
  mlap::python::DefinePreparation(module);
  mlap::python::DefineComparison(module);
}
