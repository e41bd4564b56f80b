// Random descriptions: whatever is sent, the first step answers with a status and a text, and nothing is written by a
// call that was refused, nor outside of what an accepted call describes. MLAP_FUZZ_ITERATIONS sets the number of
// descriptions; with MLAP_FUZZ_SECONDS there are as many as each test's share of that time allows. MLAP_FUZZ_SEED is
// the first seed, and a failure prints the one it failed with.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "prolog_fixture.h"

namespace mlap::prolog_test {
namespace {

uint64_t FromEnvironment(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// How many descriptions a test tries, and with which seeds.
class Budget {
 public:
  // `share`: of the descriptions, for tests whose descriptions take longer.
  explicit Budget(uint64_t first_seed, uint64_t share = 1)
      : first_seed_(FromEnvironment("MLAP_FUZZ_SEED", first_seed)),
        iterations_(FromEnvironment("MLAP_FUZZ_ITERATIONS", 3000) / share),
        seconds_(FromEnvironment("MLAP_FUZZ_SECONDS", 0)) {}

  // Whether there is another seed to try.
  bool Next(uint64_t* seed) {
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    const bool more = seconds_ > 0 ? elapsed < std::chrono::seconds(seconds_) : num_tried_ < iterations_;
    if (more) *seed = first_seed_ + num_tried_++;
    return more;
  }
  int64_t num_tried() const { return static_cast<int64_t>(num_tried_); }

 private:
  uint64_t first_seed_;
  uint64_t iterations_;
  uint64_t seconds_;
  uint64_t num_tried_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class Fuzzer {
 public:
  explicit Fuzzer(uint64_t seed) : engine_(seed) {}

  int64_t Pick(int64_t begin, int64_t end) { return std::uniform_int_distribution<int64_t>(begin, end - 1)(engine_); }
  bool Chance(int percent) { return Pick(0, 100) < percent; }
  template <class T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Pick(0, static_cast<int64_t>(values.size())))];
  }

  // Near legal numbers, at the ends of types, or anything. Unsigned arithmetic, because `near` may be anything too.
  int64_t Number(int64_t near) {
    switch (Pick(0, 7)) {
      case 0:
        return static_cast<int64_t>(static_cast<uint64_t>(near) + static_cast<uint64_t>(Pick(-2, 3)));
      case 1:
        return OneOf<int64_t>({0, 1, -1, 2, 3, 15, 16, 17, 31, 32, 33});
      case 2:
        return OneOf<int64_t>({INT64_MAX, INT64_MIN, INT64_MAX - 1, int64_t{1} << 62, -(int64_t{1} << 62),
                               int64_t{1} << 61, int64_t{1} << 32, (int64_t{1} << 32) + 1, int64_t{1} << 31,
                               INT32_MIN});
      case 3:
        return static_cast<int64_t>(uint64_t{1} << Pick(0, 64));
      case 4:
        return static_cast<int64_t>(static_cast<uint64_t>(near) * 2);
      case 5:
        return near / 2;
      default:
        return static_cast<int64_t>(engine_());
    }
  }

  std::vector<int64_t> Numbers(int64_t near) {
    std::vector<int64_t> numbers(static_cast<size_t>(Chance(70) ? Pick(0, 6) : Pick(0, 26)));
    for (int64_t& number : numbers) number = Number(near);
    return numbers;
  }

  void MutateTensor(TensorDesc* desc) {
    // Numbers whose product a test could not compute either stay in the description only: see MemorySuffices.
    const auto some_dim = [&] { return static_cast<size_t>(Pick(0, static_cast<int64_t>(desc->dims.size()))); };
    switch (Pick(0, 14)) {
      case 0:
        desc->null = !desc->null;
        break;
      case 1:
        desc->dtype = static_cast<aclDataType>(Pick(-5, 61));
        break;
      case 2:
        desc->dtype = OneOf<aclDataType>({ACL_BF16, ACL_INT8, ACL_FLOAT, ACL_INT64, ACL_FLOAT16, ACL_INT4});
        break;
      case 3:
        desc->format = static_cast<aclFormat>(Pick(-5, 61));
        break;
      case 4:
        desc->format = OneOf<aclFormat>({ACL_FORMAT_ND, ACL_FORMAT_NCHW, ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NCL});
        break;
      case 5:
      case 6:
        if (!desc->dims.empty()) desc->dims[some_dim()] = Number(desc->dims[0]);
        if (desc->strides && Chance(50)) desc->strides.reset();
        break;
      case 7:
        desc->dims = Numbers(16);
        desc->strides.reset();
        break;
      case 8:
        desc->offset = Number(desc->offset);
        break;
      case 9:
        desc->strides = std::vector<int64_t>(desc->dims.size(), 1);
        for (int64_t& stride : *desc->strides) stride = Number(16);
        break;
      case 10:
        if (desc->dims.empty()) break;
        if (!desc->strides) desc->strides = SafeContiguousStrides(*desc);
        (*desc->strides)[some_dim()] = Number(1);
        break;
      case 11:
        desc->storage_dims = Numbers(16);
        break;
      case 12:
        desc->data = nullptr;
        break;
      default:
        if (desc->dims.size() >= 2) {
          std::swap(desc->dims[some_dim()], desc->dims[some_dim()]);
          desc->strides.reset();
        }
    }
  }

  // Rows, pages and ends of sequences that are anything.
  void MutateLists(PrologCall* call) {
    for (const Param param : {kCacheIndex, kActualSeqLen}) {
      const int64_t count = static_cast<int64_t>(call->buffer(param).size() / (param == kCacheIndex ? 8 : 4));
      if (count == 0 || Chance(60)) continue;
      const int64_t number = Chance(50) ? Pick(-2, 60) : Number(0);
      const auto at = static_cast<size_t>(Pick(0, count));
      if (param == kCacheIndex) {
        call->buffer(param).as<int64_t>()[at] = number;
      } else {
        call->buffer(param).as<int32_t>()[at] = static_cast<int32_t>(number);
      }
    }
  }

  void MutateCall(PrologCall* call) {
    const int64_t changes = Chance(70) ? 1 : Pick(1, 5);
    for (int64_t change = 0; change < changes; ++change) {
      switch (Pick(0, 20)) {
        case 0:
          call->cache_mode.reset();
          break;
        case 1:
          call->cache_mode = RandomText();
          break;
        case 2:
          call->cache_mode =
              OneOf<std::string>({"PA_BSND", "PA_NZ", "BNSD", "BSND", "TND", "pa_nz", "PA_BLK_NZ", "PA_BLK_BSND"});
          break;
        case 3:
          call->epsilon_cq = static_cast<double>(Number(0));
          break;
        case 4:
          MutateModes(&call->modes);
          break;
        default:
          MutateTensor(&(*call)[OneOf(ParamsOf(call->config.scenario.version))]);
      }
    }
  }

 private:
  void MutateModes(Modes* modes) {
    const auto field = OneOf<int64_t Modes::*>({&Modes::weight_quant, &Modes::kv_cache_quant, &Modes::query_quant,
                                                &Modes::ckvkr_repo, &Modes::quant_scale_repo, &Modes::tile_size});
    modes->*field = Chance(70) ? Pick(-1, 7) : Number(modes->*field);
    if (Chance(20)) modes->qc_qr_scale = static_cast<double>(Number(1));
  }

  static std::vector<int64_t> SafeContiguousStrides(const TensorDesc& desc) {
    std::vector<int64_t> strides(desc.dims.size(), 1);
    for (size_t d = strides.size(); d-- > 1;) {
      if (__builtin_mul_overflow(strides[d], desc.dims[d], &strides[d - 1])) strides[d - 1] = INT64_MAX;
    }
    return strides;
  }

  std::string RandomText() {
    std::string text(static_cast<size_t>(Chance(90) ? Pick(0, 20) : Pick(0, 100000)), '\0');
    for (char& c : text) c = static_cast<char>(Pick(1, 256));
    return text;
  }

  std::mt19937_64 engine_;
};

// Whether every element the description names lies inside the buffer it points to.
bool MemorySuffices(const TensorDesc& desc, const GuardedBuffer& buffer) {
  for (const int64_t dim : desc.dims) {
    if (dim == 0) return true;
  }
  if (desc.data == nullptr) return false;
  __int128 low = desc.offset;
  __int128 high = desc.offset;
  __int128 stride = 1;
  for (size_t d = desc.dims.size(); d-- > 0;) {
    if (desc.dims[d] < 0) return false;
    const __int128 step = desc.strides ? (*desc.strides)[d] : stride;
    const __int128 reach = step * (desc.dims[d] - 1);
    (reach < 0 ? low : high) += reach;
    stride *= desc.dims[d];
    const __int128 limit = __int128{1} << 60;
    if (high > limit || low < -limit || stride > limit) return false;
  }
  return low >= 0 && (high + 1) * static_cast<__int128>(desc.ElementBytes()) <= static_cast<__int128>(buffer.size());
}

class DescriptorFuzz : public PrologTest {
 protected:
  // Returns whether the call was accepted.
  bool RunOne(const Config& config, uint64_t seed) {
    Fuzzer fuzzer(seed);
    PrologCall call(config);
    call.Allocate(seed);
    fuzzer.MutateCall(&call);
    fuzzer.MutateLists(&call);
    const auto before = call.Written();
    call.ProtectAll(Access::kNone);
    const Phase1Result first = call.Phase1();
    call.ProtectAll(Access::kReadWrite);
    if (first.status != 0) {
      EXPECT_TRUE(first.status == ACLNN_ERR_PARAM_NULLPTR || first.status == ACLNN_ERR_PARAM_INVALID ||
                  first.status == ACLNN_ERR_INNER_TILING_ERROR || first.status == ACLNN_ERR_INNER_FIND_KERNEL_ERROR)
          << first.status << ": " << first.text;
      EXPECT_NE(FirstNamed(first.text), "") << first.status << ": " << first.text;
      return false;
    }
    bool memory_suffices = first.workspace_bytes < (uint64_t{1} << 28);
    for (const Param param : ParamsOf(config.scenario.version)) {
      if (!call[param].null) memory_suffices &= MemorySuffices(call[param], call.buffer(param));
    }
    if (!memory_suffices) {
      Discard(first.executor);
      return true;
    }
    call.ProtectInputs(Access::kRead);
    GuardedBuffer workspace(first.workspace_bytes);
    EXPECT_EQ(call.Phase2(workspace.data(), workspace.size(), first.executor, stream_), 0) << TakeTexts();
    const aclError synchronised = aclrtSynchronizeStream(stream_);
    call.ProtectInputs(Access::kReadWrite);
    // Fewer slots than the indices were made for: then nothing may have been written.
    EXPECT_TRUE(synchronised == 0 || synchronised == 507015) << synchronised;
    if (synchronised != 0) {
      EXPECT_EQ(call.Written(), before);
    }
    call.ExpectGuardsIntact();
    return true;
  }

  void RunMany(const char* soc_name, const std::vector<Config>& configs, Budget budget) {
    const ScopedSoc soc(soc_name);
    int64_t num_accepted = 0;
    for (uint64_t seed = 0; budget.Next(&seed);) {
      const Config& config = configs[seed % configs.size()];
      SCOPED_TRACE("MLAP_SOC=" + std::string(soc_name) + " seed " + std::to_string(seed) + ": " + config.Name());
      num_accepted += RunOne(config, seed) ? 1 : 0;
      if (HasFailure()) return;  // the first seed is enough to look into
    }
    // Otherwise nothing but the first rules has been tried.
    if (budget.num_tried() >= 1000) {
      EXPECT_GT(num_accepted, budget.num_tried() / 50);
      EXPECT_LT(num_accepted, budget.num_tried() / 2);
    }
  }

  static std::vector<Config> Tiny() {
    std::vector<Config> configs;
    const auto add = [&](const Scenario& scenario) {
      for (const char* mode : ModesOf(scenario)) {
        for (const Config& config : FormsOf(TinyConfig(scenario, mode), 4)) {
          configs.push_back(config);
          configs.back().nz_2d = configs.size() % 2 == 0;
        }
      }
    };
    for (const Scenario& scenario : AllScenarios()) add(scenario);
    return configs;
  }
};

TEST_F(DescriptorFuzz, WithoutLimits) { RunMany("none", Tiny(), Budget(1000000)); }

// Every call is refused at the latest for its sizes, so that all the rules before see their share.
TEST_F(DescriptorFuzz, WithLimits) {
  const ScopedSoc soc("ascend910b");
  const std::vector<Config> configs = Tiny();
  Budget budget(2000000);
  for (uint64_t seed = 0; budget.Next(&seed);) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // The only calls that do not depend on sizes are those that write nothing.
    PrologCall call(configs[seed % configs.size()]);
    Fuzzer fuzzer(seed);
    fuzzer.MutateCall(&call);
    const Phase1Result first = call.Phase1();
    EXPECT_NE(first.status, 0);
    EXPECT_NE(FirstNamed(first.text), "") << first.status << ": " << first.text;
    if (HasFailure()) return;
  }
}

// The device's sizes; the data stay inaccessible.
TEST_F(DescriptorFuzz, DeviceSizes) {
  Budget budget(3000000);
  for (uint64_t seed = 0; budget.Next(&seed);) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Fuzzer fuzzer(seed);
    Config config;
    const bool is_950 = seed % 3 == 0;
    config.scenario = is_950 ? kScenarios950[seed / 3 % kScenarios950.size()] : kScenarios[seed % kScenarios.size()];
    config.soc = is_950 ? "ascend950" : "";
    config.cache_mode = fuzzer.OneOf(ModesOf(config.scenario));
    config.nz_2d = seed % 2 == 0;
    config = fuzzer.OneOf(FormsOf(config, 4));
    PrologCall call(config);
    fuzzer.MutateCall(&call);
    const Phase1Result first = call.Phase1();
    if (first.status == 0) {
      Discard(first.executor);
    } else {
      EXPECT_NE(FirstNamed(first.text), "") << first.status << ": " << first.text;
    }
    if (HasFailure()) return;
  }
}

// Legal calls of any sizes, whose memory ends where inaccessible pages begin.
TEST_F(DescriptorFuzz, AnySizesWithoutLimits) {
  const ScopedSoc soc("none");
  Budget budget(4000000, 10);
  for (uint64_t seed = 0; budget.Next(&seed);) {
    Fuzzer fuzzer(seed);
    Config config;
    const size_t scenario = seed % (kScenarios.size() + kScenarios950.size());
    config.scenario = scenario < kScenarios.size() ? kScenarios[scenario] : kScenarios950[scenario - kScenarios.size()];
    const int64_t step = config.scenario.weight_mode == 3 ? 32 : 1;  // groups of MXFP8 are whole
    config.hidden = step * fuzzer.Pick(1, step == 1 ? 70 : 4);
    config.q_rank = step * fuzzer.Pick(1, step == 1 ? 70 : 4);
    config.heads = fuzzer.Pick(1, 6);
    config.nope = fuzzer.Pick(1, 40);
    config.rope = 2 * fuzzer.Pick(1, 20);
    config.kv_rank = fuzzer.Pick(1, 70);
    config.block_num = fuzzer.Pick(1, 4);
    config.block_size = fuzzer.Pick(1, 20);
    config.nz_2d = true;  // the form that has any sizes; its memory is padded to whole fractals
    // NZ rows have sizes of their own.
    do {
      config.cache_mode = fuzzer.OneOf(ModesOf(config.scenario));
    } while (config.IsNzCache());
    // Pages are made for two sequences, which may need one page more than their tokens.
    const int64_t tokens = fuzzer.Pick(1, std::max<int64_t>(1, (config.block_num - 1) * config.block_size) + 1);
    config = fuzzer.OneOf(FormsOf(config, tokens));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + config.Name());
    PrologCall call(config);
    call.Allocate(seed);
    const RunResult result = call.Run(stream_);
    EXPECT_TRUE(result.Ok()) << result;
    if (HasFailure()) return;
  }
}

// An NZ row whose width is no multiple of its fractals' does not fit into its page. Whatever is decided about it, the
// neighbours' memory is not the operator's.
TEST_F(DescriptorFuzz, NzCachesOfAnyWidthStayInTheirMemory) {
  const ScopedSoc soc("none");
  for (const Scenario& scenario : {Scenario::kNonQuant, Scenario::kPerChannel, Scenario{Version::kV3, 2, 1}}) {
    for (const int64_t rope : {2, 8, 16, 24, 32, 48}) {
      for (const int64_t kv_rank : {1, 8, 16, 24, 32, 40, 48, 64}) {
        Config config = TinyConfig(scenario, "PA_NZ");
        config.nz_2d = true;
        config.rope = rope;
        config.kv_rank = kv_rank;
        SCOPED_TRACE(config.Name());
        PrologCall call(config);
        call.Allocate();
        call.slots()[0] = config.Capacity() - 1;
        const RunResult result = call.Run(stream_);
        if (result.phase1 == 0) {
          EXPECT_TRUE(result.Ok()) << result;
        } else {
          EXPECT_EQ(result.phase1, ACLNN_ERR_INNER_TILING_ERROR) << result;
          EXPECT_NE(FirstNamed(result.text), "") << result.text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mlap::prolog_test
