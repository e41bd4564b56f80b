// LoadCase of prolog_case.h: from the tensors and metadata of a file to a checked case.
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

std::string Describe(Dtype dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{} {}", DtypeName(dtype), ShapeText(shape));
}

std::string Describe(const TensorView& view) { return Describe(view.dtype, view.shape); }

class CaseLoader {
 public:
  explicit CaseLoader(const std::string& path) : file_(LoadedFile::Open(path)) {}

  PrologCase Load() {
    case_.name = file_.name();
    case_.metadata = file_.metadata();
    case_.shape.cache_mode = ReadCacheMode();
    case_.epsilon_cq = ReadNumber("rmsnorm_epsilon_cq");
    case_.epsilon_ckv = ReadNumber("rmsnorm_epsilon_ckv");
    CheckAttributes();
    ReadScenario();
    ReadShape();
    CheckMetadataSizes();
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

  CacheMode ReadCacheMode() const {
    const std::string& mode = Metadata("cache_mode");
    if (mode == "PA_BSND") return CacheMode::kPaBsnd;
    if (mode == "PA_NZ") return CacheMode::kPaNz;
    Fail("{}: metadata 'cache_mode': expected PA_BSND or PA_NZ, found '{}'", name(), OneLine(mode));
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

  // What would change the results and aclnnMlaProlog does not have must not be passed over.
  void CheckAttributes() const {
    for (const char* factor : {"qc_qr_scale", "kc_scale"}) {
      if (file_.metadata().find(factor) == file_.metadata().end() || ReadNumber(factor) == 1.0) continue;
      Fail("{}: metadata '{}': expected 1, as aclnnMlaProlog has no such factor, found '{}'", name(), factor,
           OneLine(Metadata(factor)));
    }
    const auto soc = file_.metadata().find("soc");
    if (soc != file_.metadata().end() && soc->second == "ascend950") {
      Fail("{}: metadata 'soc': expected a device with aclnnMlaProlog, found ascend950, whose roundings differ",
           name());
    }
  }

  void ReadScenario() {
    const auto stated = file_.metadata().find("scenario");
    const std::string stated_name = stated == file_.metadata().end() ? "" : stated->second;
    if (stated_name.starts_with("full_int8") || file_.Tensor("token_x").dtype == Dtype::kI8) {
      Fail(
          "{}: scenario '{}': aclnnMlaProlog does not offer int8 token_x (only the operator's later versions do); it "
          "runs non-quant, partial and partial-kv-int8",
          name(), stated_name.empty() ? "full_int8" : OneLine(stated_name));
    }
    CaseShape& shape = case_.shape;
    shape.scenario = Scenario::kNonQuant;
    if (file_.Tensor("weight_uq_qr").dtype == Dtype::kI8) {
      const bool int8_cache = file_.Tensor("kv_cache").dtype == Dtype::kI8;
      shape.scenario = int8_cache ? Scenario::kPartialKvInt8 : Scenario::kPartial;
    }
    if (!stated_name.empty() && stated_name != ScenarioName(shape.scenario)) {
      Fail("{}: metadata 'scenario': expected '{}', which the tensors' types say, found '{}'", name(),
           ScenarioName(shape.scenario), OneLine(stated_name));
    }
    shape.has_smooth_scales = file_.Find("smooth_scales_cq") != nullptr;
    if (shape.has_smooth_scales && !shape.HasInt8Weight()) {
      Fail("{}: tensor 'smooth_scales_cq': expected only with an I8 weight_uq_qr, found with a {} one", name(),
           DtypeName(file_.Tensor("weight_uq_qr").dtype));
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
    const std::vector<int64_t>& cache = ShapeOf("kv_cache", 4, 4);
    shape.lead.assign(x.begin(), x.end() - 1);
    shape.dims = {.hidden = x.back(),
                  .q_rank = ShapeOf("rmsnorm_gamma_cq", 1, 1)[0],
                  .heads = uk[0],
                  .nope = uk[1],
                  .rope = ShapeOf("rope_cos", 2, 3).back(),
                  .kv_rank = uk[2]};
    shape.block_num = cache[0];
    shape.block_size = cache[1];
    const LayerDims& d = shape.dims;
    const std::pair<const char*, int64_t> sizes[] = {
        {"hidden size (token_x)", d.hidden},       {"query rank (rmsnorm_gamma_cq)", d.q_rank},
        {"number of heads (weight_uk)", d.heads},  {"head size (weight_uk)", d.nope},
        {"rope size (rope_cos)", d.rope},          {"key rank (weight_uk)", d.kv_rank},
        {"page size (kv_cache)", shape.block_size}};
    for (const auto& [what, size] : sizes) {
      if (size == 0) Fail("{}: expected a positive {}, found 0", name(), what);
    }
    if (shape.cache_mode == CacheMode::kPaNz) {
      const int64_t c0 = FractalColumns(shape.CacheDtype());
      for (const auto& [tensor, width] : {std::pair{"kv_cache", d.kv_rank}, std::pair{"kr_cache", d.rope}}) {
        if (width % c0 == 0) continue;
        Fail(
            "{}: tensor '{}': expected rows of a multiple of {} elements in cache mode PA_NZ, found {}; PA_BSND takes "
            "any",
            name(), tensor, c0, width);
      }
    }
  }

  void CheckMetadataSizes() const {
    const LayerDims& d = case_.shape.dims;
    const std::pair<const char*, int64_t> sizes[] = {{"hidden", d.hidden}, {"q_rank", d.q_rank},
                                                     {"heads", d.heads},   {"nope", d.nope},
                                                     {"rope", d.rope},     {"kv_rank", d.kv_rank}};
    for (const auto& [key, size] : sizes) {
      const auto found = file_.metadata().find(key);
      if (found == file_.metadata().end() || found->second == std::to_string(size)) continue;
      Fail("{}: metadata '{}': expected {}, which the tensors' shapes say, found '{}'", name(), key, size,
           OneLine(found->second));
    }
  }

  CaseTensor Take(const TensorView& view) const { return {view, file_.storage()}; }

  void TakeInputs() {
    for (const TensorSpec& spec : InputSpecs(case_.shape)) {
      const TensorView& view = file_.Tensor(spec.name);
      std::string expected = Describe(spec.dtype, spec.shape);
      bool matches = view.shape == spec.shape;
      if (spec.role == TensorRole::kNzWeight) {
        const std::vector<int64_t> nz = NzShape(spec.shape[0], spec.shape[1], spec.dtype);
        matches = matches || view.shape == nz;
        expected += fmt::format(" or its FRACTAL_NZ image {}", ShapeText(nz));
      }
      if (!matches || view.dtype != spec.dtype) {
        Fail("{}: tensor '{}': expected {}, found {}", name(), spec.name, expected, Describe(view));
      }
      case_.inputs.emplace(spec.name, Take(view));
    }
    for (const auto& [tensor, view] : file_.tensors()) {
      if (tensor.starts_with(kExpectedPrefix) || case_.inputs.contains(tensor)) continue;
      Fail("{}: tensor '{}': expected only tensors of scenario {}, found one that is none of them", name(),
           OneLine(tensor), ScenarioLabel(case_.shape.scenario));
    }
  }

  // Intermediates may be among the expected tensors; only the operator's outputs are taken.
  void TakeExpected() {
    std::vector<TensorSpec> outputs = OutputSpecs(case_.shape);
    for (const TensorSpec& spec : InputSpecs(case_.shape)) {
      if (std::string_view(spec.name).ends_with("_cache")) outputs.push_back(spec);
    }
    for (const TensorSpec& spec : outputs) {
      const std::string tensor = std::string(kExpectedPrefix) + spec.name;
      const TensorView* view = file_.Find(tensor);
      if (view == nullptr) continue;
      if (view->dtype != spec.dtype || view->shape != spec.shape) {
        Fail("{}: tensor '{}': expected {}, found {}", name(), tensor, Describe(spec.dtype, spec.shape),
             Describe(*view));
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
