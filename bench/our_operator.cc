#include "our_operator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "tool_error.h"

namespace mlap::bench {
namespace {

using Clock = std::chrono::steady_clock;
using tools::RequireSuccess;

// Longer than the operator's threads spin.
constexpr auto kIdleTime = std::chrono::microseconds(300);

std::string NameOf(const Point& point) { return "ours, " + std::string(point.scenario->label); }

}  // namespace

const tools::PrologVersion& MeasuredVersion(const tools::Scenario& scenario) {
  return tools::VersionOf(scenario.QuantizesX() ? 3 : 1);
}

OutputBuffers::OutputBuffers(const tools::CaseShape& shape) {
  for (const tools::TensorSpec& spec : tools::OutputSpecs(shape)) {
    const auto num_bytes = static_cast<size_t>(tools::ApproximateBytes(spec.dtype, spec.shape));
    const auto [place, is_new] = buffers_.emplace(spec.name, tools::DeviceBuffer(num_bytes));
    if (num_bytes != 0) std::memset(place->second.data(), 0, num_bytes);
  }
}

OurCall::OurCall(const tools::CaseShape& shape, double epsilon, const std::function<void*(std::string_view)>& data)
    : shape_(shape), attributes_{.epsilon_cq = epsilon, .epsilon_ckv = epsilon} {
  for (const auto& specs : {tools::InputSpecs(shape), tools::OutputSpecs(shape)}) {
    for (const tools::TensorSpec& spec : specs) {
      tensors_.emplace(spec.name, tools::DescribeTensor(spec, data(spec.name)));
    }
  }
}

OurCall CallOn(const Fixture& fixture, const tools::CaseShape& shape, int copy, const OutputBuffers& outputs) {
  const std::vector<tools::TensorSpec> specs = tools::OutputSpecs(shape);
  return OurCall(shape, fixture.epsilon(), [&](std::string_view name) {
    const bool is_output =
        std::any_of(specs.begin(), specs.end(), [name](const auto& spec) { return spec.name == name; });
    return is_output ? outputs.Data(name) : fixture.Data(shape, name, copy);
  });
}

aclOpExecutor* OurCall::MakeExecutor(uint64_t* workspace_bytes) const {
  const tools::PrologVersion& version = MeasuredVersion(*shape_.scenario);
  const auto get = [this](std::string_view name) {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second.get();
  };
  aclOpExecutor* executor = nullptr;
  RequireSuccess(tools::FirstStep(version, shape_, attributes_, get, workspace_bytes, &executor),
                 version.first_step_name);
  return executor;
}

OurOperator::OurOperator(tools::CannSession* session, Fixture* fixture, const Point& point)
    : Contender(NameOf(point)),
      session_(session),
      fixture_(fixture),
      version_(MeasuredVersion(*point.scenario)),
      outputs_(ShapeOf(point, fixture->block_num(), kBlockSize)) {
  const tools::CaseShape shape = ShapeOf(point, fixture->block_num(), kBlockSize);
  for (int copy = 0; copy < fixture->num_copies(); ++copy) {
    calls_.push_back(CallOn(*fixture, shape, copy, outputs_));
    executors_.push_back(calls_.back().MakeExecutor(&workspace_bytes_));
    RequireSuccess(aclSetAclOpExecutorRepeatable(executors_.back()), "aclSetAclOpExecutorRepeatable");
  }
  workspace_ = std::make_unique<tools::DeviceBuffer>(workspace_bytes_);
  if (workspace_bytes_ != 0) std::memset(workspace_->data(), 0, workspace_bytes_);
}

OurOperator::~OurOperator() {
  for (aclOpExecutor* executor : executors_) aclDestroyAclOpExecutor(executor);
}

double OurOperator::RunOnce() {
  aclOpExecutor* executor = executors_[static_cast<size_t>(fixture_->NextCopy())];
  const Clock::time_point start = Clock::now();
  const aclnnStatus launched =
      tools::SecondStep(version_, workspace_->data(), workspace_bytes_, executor, session_->stream());
  const aclError synchronised = aclrtSynchronizeStream(session_->stream());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  RequireSuccess(launched, version_.second_step_name);
  RequireSuccess(synchronised, "aclrtSynchronizeStream");
  return seconds;
}

void OurOperator::EndTurn() { std::this_thread::sleep_for(kIdleTime); }

}  // namespace mlap::bench
