// Contexts, weights, and the operator in its three forms: fast, reference, exact.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "tensor_argument.h"

namespace mlap::python {
namespace {

namespace nb = nanobind;

class Context {
 public:
  Context(int num_threads, const std::optional<std::string>& max_isa) {
    mlap_context_args args = {};
    args.struct_size = sizeof(args);
    args.num_threads = num_threads;
    args.max_isa = max_isa.has_value() ? max_isa->c_str() : nullptr;
    CallUnlocked([&] { return mlap_context_create(&args, &handle_); });
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { mlap_context_destroy(handle_); }

  void Close() {
    ThrowIfFailed(mlap_context_destroy(handle_));
    handle_ = nullptr;
  }

  nb::tuple Facts() const {
    mlap_context_facts facts = {};
    facts.struct_size = sizeof(facts);
    ThrowIfFailed(mlap_context_query(handle_, &facts));
    return nb::make_tuple(facts.num_threads, facts.isa, facts.workspace_bytes);
  }

  mlap_context* handle() const { return handle_; }

 private:
  mlap_context* handle_ = nullptr;
};

constexpr TensorMember<mlap_weights_args> kWeightTensors[] = {
    {"weight_dq", &mlap_weights_args::weight_dq},
    {"weight_uq_qr", &mlap_weights_args::weight_uq_qr},
    {"weight_uk", &mlap_weights_args::weight_uk},
    {"weight_dkv_kr", &mlap_weights_args::weight_dkv_kr},
    {"rmsnorm_gamma_cq", &mlap_weights_args::rmsnorm_gamma_cq},
    {"rmsnorm_gamma_ckv", &mlap_weights_args::rmsnorm_gamma_ckv},
    {"dequant_scale_w_dq", &mlap_weights_args::dequant_scale_w_dq},
    {"dequant_scale_w_uq_qr", &mlap_weights_args::dequant_scale_w_uq_qr},
    {"dequant_scale_w_dkv_kr", &mlap_weights_args::dequant_scale_w_dkv_kr},
    {"smooth_scales_cq", &mlap_weights_args::smooth_scales_cq},
};

constexpr TensorMember<mlap_run_args> kRunTensors[] = {
    {"token_x", &mlap_run_args::token_x},
    {"dequant_scale_x", &mlap_run_args::dequant_scale_x},
    {"rope_sin", &mlap_run_args::rope_sin},
    {"rope_cos", &mlap_run_args::rope_cos},
    {"kv_cache", &mlap_run_args::kv_cache},
    {"kr_cache", &mlap_run_args::kr_cache},
    {"cache_index", &mlap_run_args::cache_index},
    {"actual_seq_len", &mlap_run_args::actual_seq_len},
    {"quant_scale_ckv", &mlap_run_args::quant_scale_ckv},
    {"quant_scale_ckr", &mlap_run_args::quant_scale_ckr},
    {"k_nope_clip_alpha", &mlap_run_args::k_nope_clip_alpha},
    {"query", &mlap_run_args::query},
    {"query_rope", &mlap_run_args::query_rope},
    {"dequant_scale_q_nope", &mlap_run_args::dequant_scale_q_nope},
    {"query_norm", &mlap_run_args::query_norm},
    {"dequant_scale_q_norm", &mlap_run_args::dequant_scale_q_norm},
};

constexpr TensorMember<mlap_intermediates> kIntermediates[] = {
    {"c_q", &mlap_intermediates::c_q},
    {"c_q_quantized", &mlap_intermediates::c_q_quantized},
    {"c_q_scale", &mlap_intermediates::c_q_scale},
    {"q_c", &mlap_intermediates::q_c},
    {"q_r", &mlap_intermediates::q_r},
    {"c_kv", &mlap_intermediates::c_kv},
    {"k_r", &mlap_intermediates::k_r},
};

constexpr TensorMember<mlap_exact_results> kExactResults[] = {
    {"query", &mlap_exact_results::query},
    {"query_rope", &mlap_exact_results::query_rope},
    {"c_kv", &mlap_exact_results::c_kv},
    {"k_r", &mlap_exact_results::k_r},
};

class Weights {
 public:
  Weights(const nb::tuple& tensors, int ownership, const nb::tuple& dims) {
    mlap_weights_args args;
    mlap_weights_args_init(&args);
    AssignTensors(kWeightTensors, tensors, &args);
    args.ownership = static_cast<mlap_ownership>(ownership);
    args.dims = {nb::cast<int64_t>(dims[0]), nb::cast<int64_t>(dims[1]), nb::cast<int64_t>(dims[2]),
                 nb::cast<int64_t>(dims[3]), nb::cast<int64_t>(dims[4]), nb::cast<int64_t>(dims[5])};
    CallUnlocked([&] { return mlap_weights_create(&args, &handle_); });
  }
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  ~Weights() { mlap_weights_destroy(handle_); }

  // ((He, Hcq, N, D, Dr, Hckv), weight_quant, ownership, owned_bytes)
  nb::tuple Facts() const {
    mlap_weights_facts facts = {};
    facts.struct_size = sizeof(facts);
    ThrowIfFailed(mlap_weights_query(handle_, &facts));
    const mlap_dims& dims = facts.dims;
    return nb::make_tuple(nb::make_tuple(dims.hidden, dims.q_rank, dims.heads, dims.nope, dims.rope, dims.kv_rank),
                          static_cast<int>(facts.weight_quant), static_cast<int>(facts.ownership), facts.owned_bytes);
  }

  const mlap_weights* handle() const { return handle_; }

 private:
  mlap_weights* handle_ = nullptr;
};

mlap_run_args ToRunArgs(const nb::tuple& tensors, const nb::tuple& modes, const nb::tuple& numbers) {
  if (modes.size() != 4 || numbers.size() != 4) throw nb::value_error("four modes and four numbers are expected");
  mlap_run_args args;
  mlap_run_args_init(&args);
  AssignTensors(kRunTensors, tensors, &args);
  args.cache_mode = static_cast<mlap_cache_mode>(nb::cast<int>(modes[0]));
  args.kv_quant = static_cast<mlap_kv_quant>(nb::cast<int>(modes[1]));
  args.rope_style = static_cast<mlap_rope_style>(nb::cast<int>(modes[2]));
  args.rules = static_cast<mlap_numeric_rules>(nb::cast<int>(modes[3]));
  args.rmsnorm_epsilon_cq = nb::cast<double>(numbers[0]);
  args.rmsnorm_epsilon_ckv = nb::cast<double>(numbers[1]);
  args.qc_qr_scale = nb::cast<double>(numbers[2]);
  args.kc_scale = nb::cast<double>(numbers[3]);
  return args;
}

void Run(const Context& context, const Weights& weights, const nb::tuple& tensors, const nb::tuple& modes,
         const nb::tuple& numbers) {
  const mlap_run_args args = ToRunArgs(tensors, modes, numbers);
  CallUnlocked([&] { return mlap_run(context.handle(), weights.handle(), &args); });
}

void RunReference(const Weights& weights, const nb::tuple& tensors, const nb::tuple& modes, const nb::tuple& numbers,
                  const nb::tuple& intermediates) {
  const mlap_run_args args = ToRunArgs(tensors, modes, numbers);
  mlap_intermediates wanted = {};
  wanted.struct_size = sizeof(wanted);
  AssignTensors(kIntermediates, intermediates, &wanted);
  mlap_reference_args reference = {};
  reference.struct_size = sizeof(reference);
  reference.intermediates = &wanted;
  CallUnlocked([&] { return mlap_reference_run(weights.handle(), &args, &reference); });
}

void RunExact(const Weights& weights, const nb::tuple& tensors, const nb::tuple& modes, const nb::tuple& numbers,
              const nb::tuple& results) {
  const mlap_run_args args = ToRunArgs(tensors, modes, numbers);
  mlap_exact_results wanted = {};
  wanted.struct_size = sizeof(wanted);
  AssignTensors(kExactResults, results, &wanted);
  CallUnlocked([&] { return mlap_exact_run(weights.handle(), &args, &wanted); });
}

}  // namespace

void DefineOperator(nb::module_& module) {
  module.attr("WEIGHT_TENSORS") = NamesOf(kWeightTensors);
  module.attr("RUN_TENSORS") = NamesOf(kRunTensors);
  module.attr("INTERMEDIATES") = NamesOf(kIntermediates);
  module.attr("EXACT_RESULTS") = NamesOf(kExactResults);

  nb::class_<Context>(module, "Context")
      .def(nb::init<int, std::optional<std::string>>(), nb::arg("num_threads"), nb::arg("max_isa").none())
      .def("close", &Context::Close)
      .def("facts", &Context::Facts);
  nb::class_<Weights>(module, "Weights")
      .def(nb::init<nb::tuple, int, nb::tuple>(), nb::arg("tensors"), nb::arg("ownership"), nb::arg("dims"))
      .def("facts", &Weights::Facts);

  module.def("run", &Run, nb::arg("context"), nb::arg("weights"), nb::arg("tensors"), nb::arg("modes"),
             nb::arg("numbers"));
  module.def("reference_run", &RunReference, nb::arg("weights"), nb::arg("tensors"), nb::arg("modes"),
             nb::arg("numbers"), nb::arg("intermediates"));
  module.def("exact_run", &RunExact, nb::arg("weights"), nb::arg("tensors"), nb::arg("modes"), nb::arg("numbers"),
             nb::arg("results"));
}

}  // namespace mlap::python
