// LoadCase of prolog_case.h: from the tensors and metadata of a file to a checked case.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "prolog_case.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr std::string_view kExpectedPrefix = "expected.";

// Sizes that no bytes in the file stand for (a hidden size without tokens) must not overflow products of two either.
constexpr int64_t kMaxSize = int64_t{1} << 30;

std::string Describe(const TensorSpec& spec) {
  return fmt::format("{} {}", ElementTypeName(spec.dtype), ShapeText(spec.shape));
}

std::string Describe(const TensorView& view) {
  return fmt::format("{} {}", DtypeName(view.dtype), ShapeText(view.shape));
}

class CaseLoader {
 public:
  explicit CaseLoader(const std::string& path) : file_(LoadedFile::Open(path)) {}

  PrologCase Load() {
    case_.name = file_.name();
    case_.metadata = file_.metadata();
    case_.shape.cache_mode = ReadCacheMode();
    case_.epsilon_cq = ReadNumber("rmsnorm_epsilon_cq");
    case_.epsilon_ckv = ReadNumber("rmsnorm_epsilon_ckv");
    case_.qc_qr_scale = HasMetadata("qc_qr_scale") ? ReadNumber("qc_qr_scale") : 1.0;
    case_.kc_scale = HasMetadata("kc_scale") ? ReadNumber("kc_scale") : 1.0;
    if (HasMetadata("soc")) case_.soc = ReadSoc();
    ReadScenario();
    ReadShape();
    CheckMetadata();
    TakeInputs();
    TakeExpected();
    return std::move(case_);
  }

 private:
  const std::string& name() const { return file_.name(); }

  const std::string& Metadata(std::string_view key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) Fail("{}: metadata '{}': expected in the file, found none", name(), key);
    return found->second;
  }

  bool HasMetadata(std::string_view key) const { return file_.metadata().contains(key); }

  mlap_cache_mode ReadCacheMode() const {
    const std::string& name = Metadata("cache_mode");
    mlap_cache_mode mode;
    if (FindCacheMode(name, &mode)) return mode;
    Fail("{}: metadata 'cache_mode': expected {}, found '{}'", this->name(), CacheModeChoices(), OneLine(name));
  }

  std::string ReadSoc() const {
    const std::string& soc = Metadata("soc");
    if (!IsSocName(soc)) Fail("{}: metadata 'soc': expected {}, found '{}'", name(), kSocChoices, OneLine(soc));
    return soc;
  }

  std::string ReadChoice(std::string_view key, std::initializer_list<std::string_view> choices) const {
    const std::string& text = Metadata(key);
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return text;
    Fail("{}: metadata '{}': expected one of {}, found '{}'", name(), key, fmt::join(choices, ", "), OneLine(text));
  }

  double ReadNumber(std::string_view key) const {
    const std::string& text = Metadata(key);
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      Fail("{}: metadata '{}': expected a number, found '{}'", name(), key, OneLine(text));
    }
    return value;
  }

  // The scenario that the tensors' types mean. Types that make none give the nearest one, with which the tensors are
  // then compared.
  const Scenario& ScenarioOfTypes() const {
    const auto dtype = [this](std::string_view tensor) { return file_.Tensor(tensor).dtype; };
    const Dtype uq_qr = dtype("weight_uq_qr");
    mlap_weight_quant weight_quant = MLAP_WEIGHTS_BF16;
    switch (dtype("token_x")) {
      case Dtype::kI8:
        weight_quant = MLAP_WEIGHTS_INT8;
        break;
      case Dtype::kU8:
        weight_quant = MLAP_WEIGHTS_HIFLOAT8;
        break;
      case Dtype::kF8E4M3:
        weight_quant = dtype("dequant_scale_w_uq_qr") == Dtype::kU8 ? MLAP_WEIGHTS_MXFP8 : MLAP_WEIGHTS_FP8;
        break;
      default:
        if (uq_qr == Dtype::kI8) weight_quant = MLAP_WEIGHTS_UQ_QR_INT8;
    }
    mlap_kv_quant kv_quant = MLAP_KV_BF16;
    if (dtype("kv_cache") != Dtype::kBF16 && weight_quant != MLAP_WEIGHTS_BF16) {
      const TensorView& kr_cache = file_.Tensor("kr_cache");
      const bool is_merged = kr_cache.shape.size() == 1 && kr_cache.num_bytes == 0;
      kv_quant = is_merged                                 ? MLAP_KV_PER_GROUP
                 : weight_quant == MLAP_WEIGHTS_UQ_QR_INT8 ? MLAP_KV_PER_CHANNEL
                                                           : MLAP_KV_PER_TENSOR;
    }
    return *FindScenario(weight_quant, kv_quant);
  }

  void ReadScenario() {
    CaseShape& shape = case_.shape;
    shape.scenario = &ScenarioOfTypes();
    shape.has_smooth_scales = file_.Find("smooth_scales_cq") != nullptr;
    if (shape.has_smooth_scales && !shape.scenario->MayHaveSmoothScales()) {
      Fail(
          "{}: tensor 'smooth_scales_cq': expected only where the query latent is quantised, but not as MXFP8; found "
          "in scenario {}",
          name(), shape.scenario->label);
    }
    if (shape.scenario->IsPerGroup() && (shape.IsNz() || shape.HasBlocks())) {
      Fail("{}: metadata 'cache_mode': expected PA_BSND, BSND or TND in scenario {}, found {}", name(),
           shape.scenario->label, CacheModeName(shape.cache_mode));
    }
    shape.has_query_norm = file_.Find(std::string(kExpectedPrefix) + "query_norm") != nullptr;
    if (HasMetadata("query_norm_flag")) {
      const bool is_asked = ReadChoice("query_norm_flag", {"true", "false"}) == "true";
      shape.has_query_norm = shape.has_query_norm || is_asked;
    }
  }

  // The tensor's shape, which has a rank between `min_rank` and `max_rank`.
  const std::vector<int64_t>& ShapeOf(std::string_view tensor, size_t min_rank, size_t max_rank) const {
    const TensorView& view = file_.Tensor(tensor);
    if (view.shape.size() < min_rank || view.shape.size() > max_rank) {
      const std::string ranks =
          min_rank == max_rank ? std::to_string(min_rank) : fmt::format("{} or {}", min_rank, max_rank);
      Fail("{}: tensor '{}': expected {} dimensions, found {}", name(), tensor, ranks, Describe(view));
    }
    for (const int64_t dim : view.shape) {
      if (dim > kMaxSize) {
        Fail("{}: tensor '{}': expected sizes up to {}, found {}", name(), tensor, kMaxSize, Describe(view));
      }
    }
    return view.shape;
  }

  // The sizes come from the tensors in which they stand alone; all tensors are compared with them afterwards.
  void ReadShape() {
    CaseShape& shape = case_.shape;
    const std::vector<int64_t>& x = ShapeOf("token_x", 2, 3);
    const std::vector<int64_t>& uk = ShapeOf("weight_uk", 3, 3);
    shape.lead.assign(x.begin(), x.end() - 1);
    const size_t lead_rank = shape.cache_mode == MLAP_BSND ? 2 : shape.cache_mode == MLAP_TND ? 1 : shape.lead.size();
    if (shape.lead.size() != lead_rank) {
      Fail("{}: tensor 'token_x': expected {} in cache mode {}, found {}", name(),
           lead_rank == 1 ? "(T, He)" : "(B, S, He)", CacheModeName(shape.cache_mode),
           Describe(file_.Tensor("token_x")));
    }
    shape.dims = {.hidden = x.back(),
                  .q_rank = ShapeOf("rmsnorm_gamma_cq", 1, 1)[0],
                  .heads = uk[0],
                  .nope = uk[1],
                  .rope = ShapeOf("rope_cos", 2, 3).back(),
                  .kv_rank = uk[2]};
    if (shape.IsPaged()) {
      const std::vector<int64_t>& cache = ShapeOf("kv_cache", 4, 4);
      shape.block_num = cache[0];
      shape.block_size = cache[1];
    } else {
      shape.block_num = shape.lead[0];
      shape.block_size = shape.IsFused() ? 1 : shape.lead[1];
    }
    if (shape.HasSequenceEnds()) {
      shape.num_sequences = ShapeOf("actual_seq_len", 1, 1)[0];
      shape.num_indices = ShapeOf("cache_index", 1, 1)[0];
    }
    // Per tensor, the two later versions of the operator take one scale or a row of them.
    if (shape.scenario->IsPerTensor() && ShapeOf("quant_scale_ckv", 1, 2).size() == 2) {
      shape.num_ckv_scales = shape.dims.kv_rank;
    }
    const LayerDims& d = shape.dims;
    const std::pair<const char*, int64_t> sizes[] = {{"hidden size (token_x)", d.hidden},
                                                     {"query rank (rmsnorm_gamma_cq)", d.q_rank},
                                                     {"number of heads (weight_uk)", d.heads},
                                                     {"head size (weight_uk)", d.nope},
                                                     {"rope size (rope_cos)", d.rope},
                                                     {"key rank (weight_uk)", d.kv_rank},
                                                     {"page size (kv_cache)", shape.IsPaged() ? shape.block_size : 1}};
    for (const auto& [what, size] : sizes) {
      if (size == 0) Fail("{}: expected a positive {}, found 0", name(), what);
    }
    for (const NzWidth& row : NzWidths(shape)) {
      if (row.width % row.multiple == 0) continue;
      Fail(
          "{}: tensor '{}': expected rows of a multiple of {} elements in cache mode {}, found {}; the modes without "
          "NZ "
          "take any",
          name(), row.cache, row.multiple, CacheModeName(shape.cache_mode), row.width);
    }
  }

  // What the metadata say besides must be what the tensors say.
  void CheckMetadata() const {
    const auto written = CaseMetadata(case_);
    for (const char* key : {"scenario", "weight_quant_mode", "kv_cache_quant_mode", "query_quant_mode", "hidden",
                            "q_rank", "heads", "nope", "rope", "kv_rank"}) {
      const auto found = file_.metadata().find(key);
      const std::string& expected = written.find(key)->second;
      if (found == file_.metadata().end() || found->second == expected) continue;
      Fail("{}: metadata '{}': expected '{}', which the tensors say, found '{}'", name(), key, expected,
           OneLine(found->second));
    }
  }

  CaseTensor Take(const TensorView& view) const { return {view, file_.storage()}; }

  void TakeInputs() {
    for (const TensorSpec& spec : InputSpecs(case_.shape)) {
      const TensorView& view = file_.Tensor(spec.name);
      std::string expected = Describe(spec);
      bool matches = view.shape == spec.shape;
      if (spec.role == TensorRole::kNzWeight) {
        const std::vector<int64_t> nz = NzShape(spec.shape[0], spec.shape[1], spec.dtype);
        matches = matches || view.shape == nz;
        expected += fmt::format(" or its FRACTAL_NZ image {}", ShapeText(nz));
      }
      if (!matches || view.dtype != FileDtype(spec.dtype)) {
        Fail("{}: tensor '{}': expected {}, found {}", name(), spec.name, expected, Describe(view));
      }
      case_.inputs.emplace(spec.name, Take(view));
    }
    for (const auto& [tensor, view] : file_.tensors()) {
      if (tensor.starts_with(kExpectedPrefix) || case_.inputs.contains(tensor)) continue;
      Fail("{}: tensor '{}': expected only tensors of scenario {} in cache mode {}, found one that is none of them",
           name(), OneLine(tensor), case_.shape.scenario->label, CacheModeName(case_.shape.cache_mode));
    }
  }

  // Intermediates may be among the expected tensors; only the operator's outputs are taken.
  void TakeExpected() {
    for (const TensorSpec& spec : ResultSpecs(case_.shape)) {
      const std::string tensor = std::string(kExpectedPrefix) + spec.name;
      const TensorView* view = file_.Find(tensor);
      if (view == nullptr) continue;
      if (view->dtype != FileDtype(spec.dtype) || view->shape != spec.shape) {
        Fail("{}: tensor '{}': expected {}, found {}", name(), tensor, Describe(spec), Describe(*view));
      }
      case_.expected.emplace(spec.name, Take(*view));
    }
  }

  LoadedFile file_;
  PrologCase case_;
};

}  // namespace

PrologCase LoadCase(const std::string& path) { return CaseLoader(path).Load(); }

}  // namespace mlap::tools
