#include "call_costs.h"

#include <aclnnop/aclnn_mla_prolog.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "fixture.h"
#include "machine_facts.h"
#include "our_operator.h"
#include "rounds.h"

namespace mlap::bench {
namespace {

using Clock = std::chrono::steady_clock;
using tools::DeviceBuffer;
using tools::RequireSuccess;

constexpr int kCalls = 500;
constexpr int64_t kHeads = 128;

double MedianOf(const std::function<void()>& body) {
  for (int i = 0; i < kCalls / 10; ++i) body();
  std::vector<double> seconds;
  for (int i = 0; i < kCalls; ++i) {
    const Clock::time_point start = Clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return Summarise("", std::move(seconds)).median;
}

void Launch(tools::CannSession* session, aclOpExecutor* executor, const DeviceBuffer& workspace, uint64_t bytes) {
  RequireSuccess(aclnnMlaProlog(workspace.data(), bytes, executor, session->stream()), "aclnnMlaProlog");
  RequireSuccess(aclrtSynchronizeStream(session->stream()), "aclrtSynchronizeStream");
}

// The growth of the peak over what was resident before, with everything the caller owns already there.
void MeasureMemory(tools::CannSession* session, const Fixture& fixture, CallCosts* costs) {
  const tools::CaseShape shape = ShapeOf({kNonQuant, kHeads, costs->memory_tokens}, fixture.block_num(), kBlockSize);
  const OutputBuffers outputs(shape);
  const OurCall call = CallOn(fixture, shape, 0, outputs);
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = call.MakeExecutor(&workspace_bytes);
  const DeviceBuffer workspace(workspace_bytes);
  if (workspace_bytes != 0) std::memset(workspace.data(), 1, workspace_bytes);
  const bool is_reset = ResetPeakMemory();
  const MemoryUse before = ReadMemoryUse();
  Launch(session, executor, workspace, workspace_bytes);
  const MemoryUse after = ReadMemoryUse();
  costs->has_hidden_bytes = is_reset && before.resident > 0.0;
  costs->hidden_bytes = std::max(0.0, after.peak - before.resident);
}

double MeasureFirstStep(const Fixture& fixture) {
  const tools::CaseShape shape = ShapeOf({kNonQuant, kHeads, 16}, fixture.block_num(), kBlockSize);
  const OutputBuffers outputs(shape);
  const OurCall call = CallOn(fixture, shape, 0, outputs);
  std::vector<aclOpExecutor*> executors;
  uint64_t bytes = 0;
  const double seconds = MedianOf([&] { executors.push_back(call.MakeExecutor(&bytes)); });
  for (aclOpExecutor* executor : executors)
    RequireSuccess(aclDestroyAclOpExecutor(executor), "aclDestroyAclOpExecutor");
  return seconds;
}

double MeasureEmptyCall(tools::CannSession* session, const Fixture& fixture) {
  const tools::CaseShape shape = ShapeOf({kNonQuant, kHeads, 0}, fixture.block_num(), kBlockSize);
  const OutputBuffers outputs(shape);
  const OurCall call = CallOn(fixture, shape, 0, outputs);
  uint64_t bytes = 0;
  RequireSuccess(aclDestroyAclOpExecutor(call.MakeExecutor(&bytes)), "aclDestroyAclOpExecutor");
  const DeviceBuffer workspace(bytes);
  return MedianOf([&] { Launch(session, call.MakeExecutor(&bytes), workspace, bytes); });
}

// The first step reads no tensor data, so any address will do for tensors of any number of tokens.
double WorkspaceBytes(int64_t tokens) {
  uint64_t most = 0;
  for (const tools::Scenario* scenario : MeasuredScenarios()) {
    const tools::CaseShape shape = ShapeOf({scenario, kHeads, tokens}, 1, kBlockSize);
    alignas(64) std::byte nowhere[64];
    const OurCall call(shape, 0.0, [&](std::string_view) { return static_cast<void*>(nowhere); });
    uint64_t bytes = 0;
    RequireSuccess(aclDestroyAclOpExecutor(call.MakeExecutor(&bytes)), "aclDestroyAclOpExecutor");
    most = std::max(most, bytes);
  }
  return static_cast<double>(most);
}

}  // namespace

CallCosts MeasureCallCosts(tools::CannSession* session, int64_t memory_tokens) {
  CallCosts costs;
  costs.memory_tokens = memory_tokens;
  FixtureRecipe recipe;
  recipe.heads = kHeads;
  recipe.max_tokens = std::max<int64_t>(memory_tokens, 16);
  recipe.num_copies = 1;
  const Fixture fixture(recipe);
  MeasureMemory(session, fixture, &costs);
  costs.first_step_seconds = MeasureFirstStep(fixture);
  costs.empty_call_seconds = MeasureEmptyCall(session, fixture);
  for (const int64_t tokens : {1, 16, 256, 1024, 8192}) {
    costs.workspace.push_back({tokens, WorkspaceBytes(tokens)});
  }
  return costs;
}

}  // namespace mlap::bench
