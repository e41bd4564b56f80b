// mlaprolog for C++17: the handles of mlaprolog.h as objects, its failures as exceptions. Header-only.
//
//   mlap::Context context;
//   mlap::WeightsArgs layer;  // an mlap_weights_args, initialised
//   layer.weight_dq = mlap::Matrix(w_dq, MLAP_BF16, hidden, q_rank);  ...
//   const mlap::Weights weights(layer);
//   mlap::RunArgs args;  ...
//   context.Run(weights, args);
#ifndef MLAPROLOG_MLAPROLOG_HPP_
#define MLAPROLOG_MLAPROLOG_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "mlaprolog/mlaprolog.h"

namespace mlap {

// A call that failed: its status, and in what() the text of mlap_last_error.
class Error : public std::runtime_error {
 public:
  Error(mlap_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  mlap_status status() const noexcept { return status_; }

 private:
  mlap_status status_;
};

// Throws Error unless a function of mlaprolog.h has succeeded.
inline void Check(mlap_status status) {
  if (status != MLAP_OK) throw Error(status, mlap_last_error());
}

// A contiguous tensor. At most MLAP_MAX_RANK dimensions are taken; the library refuses the others.
inline mlap_tensor Tensor(const void* data, mlap_dtype dtype, std::initializer_list<int64_t> dims) {
  mlap_tensor tensor = {};
  tensor.data = const_cast<void*>(data);  // what is read is never written; the interface has one type for both
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(dims.size());
  size_t i = 0;
  for (const int64_t dim : dims) {
    if (i < MLAP_MAX_RANK) tensor.dims[i++] = dim;
  }
  return tensor;
}

// The same with strides, in elements.
inline mlap_tensor StridedTensor(const void* data, mlap_dtype dtype, std::initializer_list<int64_t> dims,
                                 std::initializer_list<int64_t> strides) {
  mlap_tensor tensor = Tensor(data, dtype, dims);
  size_t i = 0;
  for (const int64_t stride : strides) {
    if (i < MLAP_MAX_RANK) tensor.strides[i++] = stride;
  }
  return tensor;
}

// A weight matrix in a layout: (k, n) in MLAP_ROW_MAJOR, (n, k) in MLAP_OUT_IN; in MLAP_FRACTAL_NZ its size (k, n).
inline mlap_tensor Matrix(const void* data, mlap_dtype dtype, int64_t rows, int64_t columns,
                          mlap_layout layout = MLAP_ROW_MAJOR) {
  mlap_tensor tensor = Tensor(data, dtype, {rows, columns});
  tensor.layout = layout;
  return tensor;
}

struct WeightsArgs : mlap_weights_args {
  WeightsArgs() { mlap_weights_args_init(this); }
};

struct RunArgs : mlap_run_args {
  RunArgs() { mlap_run_args_init(this); }
};

struct RopeTableArgs : mlap_rope_table_args {
  RopeTableArgs() { mlap_rope_table_args_init(this); }
};

// One layer's weights. Movable.
class Weights {
 public:
  explicit Weights(const mlap_weights_args& args) { Check(mlap_weights_create(&args, &handle_)); }
  ~Weights() { mlap_weights_destroy(handle_); }
  Weights(Weights&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Weights& operator=(Weights&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  const mlap_weights* get() const noexcept { return handle_; }

  mlap_weights_facts facts() const {
    mlap_weights_facts facts = {};
    facts.struct_size = sizeof(facts);
    Check(mlap_weights_query(handle_, &facts));
    return facts;
  }

 private:
  mlap_weights* handle_ = nullptr;
};

// Threads and memory for one call at a time. Movable.
class Context {
 public:
  // 0 threads and no instruction set: what the environment says, or the machine's best.
  explicit Context(int num_threads = 0, const char* max_isa = nullptr) {
    const mlap_context_args args = {sizeof(mlap_context_args), num_threads, max_isa};
    Check(mlap_context_create(&args, &handle_));
  }
  ~Context() { mlap_context_destroy(handle_); }
  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  mlap_context* get() const noexcept { return handle_; }

  void Run(const Weights& weights, const mlap_run_args& args) { Check(mlap_run(handle_, weights.get(), &args)); }

  mlap_context_facts facts() const {
    mlap_context_facts facts = {};
    facts.struct_size = sizeof(facts);
    Check(mlap_context_query(handle_, &facts));
    return facts;
  }

 private:
  mlap_context* handle_ = nullptr;
};

// The operator's definition, slowly.
inline void RunReference(const Weights& weights, const mlap_run_args& args,
                         mlap_intermediates* intermediates = nullptr) {
  mlap_reference_args reference = {};
  reference.struct_size = sizeof(reference);
  reference.intermediates = intermediates;
  Check(mlap_reference_run(weights.get(), &args, &reference));
}

inline mlap_comparison Compare(const mlap_tensor& actual, const mlap_tensor& golden, mlap_standard standard,
                               const mlap_tensor* benchmark = nullptr) {
  mlap_comparison comparison = {};
  comparison.struct_size = sizeof(comparison);
  Check(mlap_compare(&actual, &golden, benchmark, standard, &comparison));
  return comparison;
}

// Whether a device accepts such a call; if not, the reasons.
inline std::pair<bool, std::string> CheckLimits(const mlap_limits_args& args) {
  int is_accepted = 0;
  std::vector<char> reasons(4096);
  Check(mlap_check_limits(&args, &is_accepted, reasons.data(), reasons.size()));
  return {is_accepted != 0, reasons.data()};
}

}  // namespace mlap

#endif  // MLAPROLOG_MLAPROLOG_HPP_
