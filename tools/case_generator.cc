#include "case_generator.h"

#include <mlaprolog/mlaprolog.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bf16_convert.h"
#include "counter_random.h"
#include "memory_budget.h"
#include "parallel_for.h"
#include "progress_line.h"
#include "text_format.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

constexpr float kWeightDeviation = 0.02f;

template <typename T>
T* As(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

// Element (i, j) of a weight matrix of n columns, whatever layout and type it is stored in.
float WeightValue(const CounterRandom& random, int64_t n, int64_t i, int64_t j) {
  constexpr float kUnit = kWeightDeviation * CounterRandom::kNormalUnit;
  const auto index = static_cast<uint64_t>(i) * static_cast<uint64_t>(n) + static_cast<uint64_t>(j);
  return FloatFromBf16(Bf16FromFloat(static_cast<float>(random.CentredSum(index)) * kUnit));
}

class Generator {
 public:
  explicit Generator(const CaseRecipe& recipe)
      : recipe_(recipe), shape_(recipe.shape), progress_("generating the case"), work_(InputBytes(recipe.shape)) {}

  PrologCase Generate() {
    PrologCase out;
    for (const TensorSpec& spec : InputSpecs(shape_)) {
      const bool is_nz = spec.role == TensorRole::kNzWeight;
      std::byte* bytes = nullptr;
      CaseTensor tensor =
          NewTensor(spec.dtype, is_nz ? NzShape(spec.shape[0], spec.shape[1], spec.dtype) : spec.shape, &bytes);
      const std::string_view name = spec.name;
      if (is_nz && spec.dtype == Dtype::kI8) {
        FillInt8Weight(spec, bytes);
      } else if (is_nz) {
        FillNzWeight(spec, bytes);
      } else if (spec.dtype == Dtype::kBF16 && !name.starts_with("rope_")) {
        FillBf16(spec, bytes, tensor.view.num_bytes / 2);
      } else if (spec.dtype == Dtype::kI8) {
        FillBytes(spec, bytes, tensor.view.num_bytes);
      } else if (spec.dtype == Dtype::kF32 && name != "dequant_scale_w_uq_qr") {
        FillScales(spec, As<float>(bytes), spec.shape.back());
      }
      done_ += static_cast<double>(tensor.view.num_bytes);
      bytes_.emplace(spec.name, bytes);
      out.inputs.emplace(spec.name, std::move(tensor));
    }
    if (shape_.HasInt8Weight()) {
      std::copy(column_scales_.begin(), column_scales_.end(), As<float>(bytes_.at("dequant_scale_w_uq_qr")));
    }
    FillRope();
    FillSlots();
    return out;
  }

 private:
  CounterRandom Random(std::string_view stream) const { return CounterRandom(recipe_.seed, stream); }

  // `body` fills items [begin, end) of `count` ones, which are a tensor of `num_bytes`.
  void Fill(int64_t count, size_t num_bytes, const std::function<void(int64_t, int64_t)>& body) {
    const double per_item = static_cast<double>(num_bytes) / static_cast<double>(std::max<int64_t>(count, 1));
    ParallelFor(count, body,
                [&](int64_t items) { progress_.Update((done_ + per_item * static_cast<double>(items)) / work_); });
  }

  void FillBf16(const TensorSpec& spec, std::byte* bytes, size_t count) {
    const std::string_view name = spec.name;
    const bool is_gamma = name.starts_with("rmsnorm_gamma");
    const float mean = is_gamma ? 1.0f : 0.0f;
    const float deviation = is_gamma ? 0.1f : name == "weight_uk" ? kWeightDeviation : 1.0f;
    const float unit = deviation * CounterRandom::kNormalUnit;
    const CounterRandom random = Random(name);
    auto* out = As<uint16_t>(bytes);
    Fill(static_cast<int64_t>(count), count * 2, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float scaled = static_cast<float>(random.CentredSum(static_cast<uint64_t>(i))) * unit;
        out[i] = Bf16FromFloat(mean + scaled);
      }
    });
  }

  void FillBytes(const TensorSpec& spec, std::byte* bytes, size_t count) {
    const CounterRandom random = Random(spec.name);
    Fill(static_cast<int64_t>(count), count, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) bytes[i] = static_cast<std::byte>(random.Bits(static_cast<uint64_t>(i)));
    });
  }

  void FillNzWeight(const TensorSpec& spec, std::byte* bytes) {
    const int64_t k = spec.shape[0];
    const int64_t n = spec.shape[1];
    const int64_t c0 = FractalColumns(spec.dtype);
    const int64_t padded_k = (k + 15) / 16 * 16;
    const CounterRandom random = Random(spec.name);
    auto* out = As<uint16_t>(bytes);
    Fill((n + c0 - 1) / c0, static_cast<size_t>(k * n * 2), [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t columns = std::min(c0, n - block * c0);
        for (int64_t i = 0; i < k; ++i) {
          uint16_t* row = out + (block * padded_k + i) * c0;
          for (int64_t c = 0; c < columns; ++c) row[c] = Bf16FromFloat(WeightValue(random, n, i, block * c0 + c));
        }
      }
    });
  }

  // The bf16 matrix of the same stream, per column as round(w / scale) with scale = max |w| / 127.
  void FillInt8Weight(const TensorSpec& spec, std::byte* bytes) {
    const int64_t k = spec.shape[0];
    const int64_t n = spec.shape[1];
    const int64_t c0 = FractalColumns(spec.dtype);
    const int64_t padded_k = (k + 15) / 16 * 16;
    const CounterRandom random = Random(spec.name);
    auto* out = As<int8_t>(bytes);
    column_scales_.assign(static_cast<size_t>(n), 0.0f);
    const std::span<float> scales = column_scales_;
    Fill((n + c0 - 1) / c0, static_cast<size_t>(k * n), [=](int64_t begin, int64_t end) {
      std::vector<float> column(static_cast<size_t>(k));
      for (int64_t j = begin * c0; j < std::min(n, end * c0); ++j) {
        float amax = 0.0f;
        for (int64_t i = 0; i < k; ++i) {
          const float value = WeightValue(random, n, i, j);
          column[static_cast<size_t>(i)] = value;
          amax = std::max(amax, std::fabs(value));
        }
        const float scale = amax > 0.0f ? amax / 127.0f : 1.0f;
        scales[static_cast<size_t>(j)] = scale;
        int8_t* first = out + (j / c0) * padded_k * c0 + j % c0;
        for (int64_t i = 0; i < k; ++i) {
          first[i * c0] = static_cast<int8_t>(std::nearbyint(column[static_cast<size_t>(i)] / scale));
        }
      }
    });
  }

  void FillScales(const TensorSpec& spec, float* out, int64_t count) const {
    const std::string_view name = spec.name;
    const CounterRandom random = Random(name);
    // c_kv is normalised; k_r is a sum of He products of deviation kWeightDeviation.
    const float deviation =
        name == "quant_scale_ckr" ? kWeightDeviation * std::sqrt(static_cast<float>(shape_.dims.hidden)) : 1.0f;
    for (int64_t i = 0; i < count; ++i) {
      const float uniform = random.Uniform(static_cast<uint64_t>(i));
      out[i] =
          name == "smooth_scales_cq" ? 0.5f + 1.5f * uniform : 127.0f / (4.0f * deviation) * (0.8f + 0.4f * uniform);
    }
  }

  void FillRope() {
    const int64_t rope = shape_.dims.rope;
    const int64_t steps = shape_.lead.size() == 2 ? shape_.lead[1] : 1;  // tokens of one sequence
    const CounterRandom random = Random("position");
    std::vector<int64_t> positions;
    for (int64_t t = 0; t < shape_.Tokens(); ++t) {
      positions.push_back(static_cast<int64_t>(random.Below(static_cast<uint64_t>(t / steps), 4096)) + t % steps);
    }
    const auto tensor = [&](void* data, mlap_dtype dtype, std::vector<int64_t> dims) {
      mlap_tensor result = {};
      result.data = data;
      result.dtype = dtype;
      result.rank = static_cast<int32_t>(dims.size());
      std::copy(dims.begin(), dims.end(), result.dims);
      return result;
    };
    const mlap_tensor position = tensor(positions.data(), MLAP_INT64, {shape_.Tokens()});
    const mlap_tensor sin = tensor(bytes_.at("rope_sin"), MLAP_BF16, {shape_.Tokens(), rope});
    const mlap_tensor cos = tensor(bytes_.at("rope_cos"), MLAP_BF16, {shape_.Tokens(), rope});
    mlap_rope_table_args args;
    mlap_rope_table_args_init(&args);
    args.base = recipe_.rope_theta;
    args.factor = recipe_.yarn_factor;
    if (mlap_rope_table(&args, &position, &sin, &cos) != MLAP_OK) Fail("RoPE: {}", mlap_last_error());
  }

  // The first T entries of a random permutation of all slots.
  void FillSlots() {
    const int64_t capacity = shape_.block_num * shape_.block_size;
    std::vector<int64_t> slots(static_cast<size_t>(capacity));
    std::iota(slots.begin(), slots.end(), 0);
    const CounterRandom random = Random("slot");
    auto* out = As<int64_t>(bytes_.at("cache_index"));
    for (int64_t t = 0; t < shape_.Tokens(); ++t) {
      const auto left = static_cast<uint64_t>(capacity - t);
      const auto chosen = static_cast<uint64_t>(t) + random.Below(static_cast<uint64_t>(t), left);
      std::swap(slots[static_cast<size_t>(t)], slots[static_cast<size_t>(chosen)]);
      out[t] = slots[static_cast<size_t>(t)];
    }
  }

  const CaseRecipe& recipe_;
  const CaseShape& shape_;
  ProgressLine progress_;
  double work_;
  double done_ = 0.0;
  std::vector<float> column_scales_;
  std::map<std::string, std::byte*, std::less<>> bytes_;
};

}  // namespace

PrologCase GenerateCase(const CaseRecipe& recipe) {
  const CaseShape& shape = recipe.shape;
  const double slots = static_cast<double>(shape.block_num) * static_cast<double>(shape.block_size);
  RequireMemory(InputBytes(shape) + 8.0 * slots, "the case");
  if (slots < static_cast<double>(shape.Tokens())) {
    Fail("--blocks: expected room for {}, found {} of {}", Counted(shape.Tokens(), "token"),
         Counted(shape.block_num, "page"), Counted(shape.block_size, "slot"));
  }
  PrologCase out = Generator(recipe).Generate();
  out.name = fmt::format("generated case (seed {})", recipe.seed);
  out.shape = shape;
  out.epsilon_cq = out.epsilon_ckv = recipe.epsilon;
  out.metadata = CaseMetadata(out);
  out.metadata["seed"] = std::to_string(recipe.seed);
  return out;
}

}  // namespace mlap::tools
