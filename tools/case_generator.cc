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
#include "eight_bit_codes.h"
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
    const std::vector<TensorSpec> specs = InputSpecs(shape_);
    for (const TensorSpec& spec : specs) {
      std::vector<int64_t> shape = spec.shape;
      if (spec.role == TensorRole::kNzWeight) shape = NzShape(shape[0], shape[1], spec.dtype);
      out.inputs.emplace(spec.name, NewTensor(spec.dtype, std::move(shape), &bytes_[spec.name]));
    }
    for (const TensorSpec& spec : specs) {
      FillTensor(spec, bytes_.at(spec.name));
      done_ += static_cast<double>(out.Input(spec.name).view.num_bytes);
    }
    FillRope();
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

  void FillTensor(const TensorSpec& spec, std::byte* bytes) {
    const std::string_view name = spec.name;
    const auto count =
        static_cast<size_t>(ApproximateBytes(spec.dtype, spec.shape)) / static_cast<size_t>(ElementBytes(spec.dtype));
    if (name.starts_with("rope_") || name.starts_with("dequant_scale_")) return;  // comes with something else
    if (spec.role == TensorRole::kNzWeight) {
      spec.dtype == MLAP_BF16 ? FillNzWeight(spec, bytes) : FillQuantizedWeight(spec, bytes);
    } else if (name == "token_x" && spec.dtype != MLAP_BF16) {
      FillQuantizedTokens(spec, bytes);
    } else if (name == "cache_index") {
      FillIndices(As<int64_t>(bytes), static_cast<int64_t>(count));
    } else if (name == "actual_seq_len") {
      std::copy(recipe_.sequence_ends.begin(), recipe_.sequence_ends.end(), As<int32_t>(bytes));
    } else if (name == "k_nope_clip_alpha") {
      *As<float>(bytes) = recipe_.clip_alpha;
    } else if (spec.dtype == MLAP_BF16) {
      FillBf16(spec, bytes, count);
    } else if (spec.dtype == MLAP_FLOAT32) {
      FillScales(spec, As<float>(bytes), static_cast<int64_t>(count));
    } else {
      FillBytes(spec, bytes, count);
    }
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

  // The scales of an 8-bit weight: a binary32 number per column, or an E8M0 code per 32 values of one.
  std::byte* ScalesOfWeight(std::string_view weight) {
    return bytes_.at("dequant_scale_w" + std::string(weight.substr(std::string_view("weight").size())));
  }

  // Quantises a row of x or a column of a weight, number `index`.
  void Quantize(mlap_dtype type, std::span<const float> values, int64_t index, std::byte* scales, std::byte* out,
                int64_t stride) const {
    if (!shape_.scenario->HasMxScales()) {
      As<float>(scales)[index] = QuantizeWithScale(type, values, out, stride);
      return;
    }
    constexpr size_t kGroup = 32;
    const auto num_groups = static_cast<int64_t>((values.size() + kGroup - 1) / kGroup);
    for (int64_t group = 0; group < num_groups; ++group) {
      const size_t begin = static_cast<size_t>(group) * kGroup;
      scales[index * num_groups + group] =
          QuantizeMxGroup(values.subspan(begin, std::min(kGroup, values.size() - begin)),
                          out + static_cast<int64_t>(begin) * stride, stride);
    }
  }

  // The bf16 matrix of the same stream, quantised.
  void FillQuantizedWeight(const TensorSpec& spec, std::byte* bytes) {
    const int64_t k = spec.shape[0];
    const int64_t n = spec.shape[1];
    const int64_t c0 = FractalColumns(spec.dtype);
    const int64_t padded_k = (k + 15) / 16 * 16;
    const CounterRandom random = Random(spec.name);
    std::byte* const scales = ScalesOfWeight(spec.name);
    Fill((n + c0 - 1) / c0, static_cast<size_t>(k * n), [=, this](int64_t begin, int64_t end) {
      std::vector<float> column(static_cast<size_t>(k));
      for (int64_t j = begin * c0; j < std::min(n, end * c0); ++j) {
        for (int64_t i = 0; i < k; ++i) column[static_cast<size_t>(i)] = WeightValue(random, n, i, j);
        Quantize(spec.dtype, column, j, scales, bytes + (j / c0) * padded_k * c0 + j % c0, c0);
      }
    });
  }

  // The bf16 activations of the same stream, quantised.
  void FillQuantizedTokens(const TensorSpec& spec, std::byte* bytes) {
    const int64_t hidden = shape_.dims.hidden;
    const CounterRandom random = Random(spec.name);
    std::byte* const scales = bytes_.at("dequant_scale_x");
    Fill(shape_.Tokens(), static_cast<size_t>(shape_.Tokens() * hidden), [=, this](int64_t begin, int64_t end) {
      std::vector<float> row(static_cast<size_t>(hidden));
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t i = 0; i < hidden; ++i) {
          row[static_cast<size_t>(i)] =
              FloatFromBf16(Bf16FromFloat(random.Normal(static_cast<uint64_t>(t * hidden + i))));
        }
        Quantize(spec.dtype, row, t, scales, bytes + t * hidden, 1);
      }
    });
  }

  void FillScales(const TensorSpec& spec, float* out, int64_t count) const {
    const std::string_view name = spec.name;
    const CounterRandom random = Random(name);
    // c_kv is normalised; k_r is a sum of He products of deviation kWeightDeviation.
    const float deviation =
        name == "quant_scale_ckr" ? kWeightDeviation * std::sqrt(static_cast<float>(shape_.dims.hidden)) : 1.0f;
    const float range = EightBitCodes::Of(shape_.scenario->QuantType()).Range();
    for (int64_t i = 0; i < count; ++i) {
      const float uniform = random.Uniform(static_cast<uint64_t>(i));
      out[i] =
          name == "smooth_scales_cq" ? 0.5f + 1.5f * uniform : range / (4.0f * deviation) * (0.8f + 0.4f * uniform);
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

  // The first entries of a random permutation of all slots or pages.
  void FillIndices(int64_t* out, int64_t count) {
    const int64_t capacity = shape_.HasBlocks() ? shape_.block_num : shape_.Capacity();
    std::vector<int64_t> places(static_cast<size_t>(capacity));
    std::iota(places.begin(), places.end(), 0);
    const CounterRandom random = Random(shape_.HasBlocks() ? "page" : "slot");
    for (int64_t i = 0; i < count; ++i) {
      const auto left = static_cast<uint64_t>(capacity - i);
      const auto chosen = static_cast<uint64_t>(i) + random.Below(static_cast<uint64_t>(i), left);
      std::swap(places[static_cast<size_t>(i)], places[static_cast<size_t>(chosen)]);
      out[i] = places[static_cast<size_t>(i)];
    }
  }

  const CaseRecipe& recipe_;
  const CaseShape& shape_;
  ProgressLine progress_;
  double work_;
  double done_ = 0.0;
  std::map<std::string, std::byte*, std::less<>> bytes_;
};

}  // namespace

std::vector<int32_t> RandomSequenceEnds(uint64_t seed, int64_t tokens, int64_t count) {
  const CounterRandom random(seed, "sequence");
  std::vector<int32_t> ends;
  for (int64_t i = 0; i + 1 < count; ++i) {
    ends.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(i), static_cast<uint64_t>(tokens) + 1)));
  }
  std::sort(ends.begin(), ends.end());
  ends.push_back(static_cast<int32_t>(tokens));
  return ends;
}

PrologCase GenerateCase(const CaseRecipe& recipe) {
  const CaseShape& shape = recipe.shape;
  const double slots = static_cast<double>(shape.block_num) * static_cast<double>(shape.block_size);
  RequireMemory(InputBytes(shape) + 8.0 * slots, "the case");
  const int64_t num_pages =
      shape.IsFused() ? shape.num_indices : shape.lead[0] * CeilDiv(shape.lead[1], shape.block_size);
  if (shape.HasBlocks() && shape.block_num < num_pages) {
    Fail("--blocks: expected at least {}, as every sequence begins a page, found {}", Counted(num_pages, "page"),
         shape.block_num);
  }
  if (shape.IsPaged() && slots < static_cast<double>(shape.Tokens())) {
    Fail("--blocks: expected room for {}, found {} of {}", Counted(shape.Tokens(), "token"),
         Counted(shape.block_num, "page"), Counted(shape.block_size, "slot"));
  }
  PrologCase out = Generator(recipe).Generate();
  out.name = fmt::format("generated case (seed {})", recipe.seed);
  out.shape = shape;
  out.epsilon_cq = out.epsilon_ckv = recipe.epsilon;
  out.qc_qr_scale = recipe.qc_qr_scale;
  out.kc_scale = recipe.kc_scale;
  out.soc = recipe.soc;
  out.metadata = CaseMetadata(out);
  out.metadata["seed"] = std::to_string(recipe.seed);
  return out;
}

}  // namespace mlap::tools
