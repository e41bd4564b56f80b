#include "our_operator.h"

#include <aclnnop/aclnn_mla_prolog.h>

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

aclDataType AclDtype(tools::Dtype dtype) {
  switch (dtype) {
    case tools::Dtype::kBF16:
      return ACL_BF16;
    case tools::Dtype::kI8:
      return ACL_INT8;
    case tools::Dtype::kI64:
      return ACL_INT64;
    default:
      return ACL_FLOAT;
  }
}

tools::AclTensor Describe(const tools::TensorSpec& spec, void* data) {
  if (spec.role != tools::TensorRole::kNzWeight) {
    return tools::AclTensor(spec.shape, AclDtype(spec.dtype), ACL_FORMAT_ND, spec.shape, data);
  }
  const std::vector<int64_t> image = tools::NzShape(spec.shape[0], spec.shape[1], spec.dtype);
  return tools::AclTensor(image, AclDtype(spec.dtype), ACL_FORMAT_FRACTAL_NZ, image, data);
}

size_t OutputBytesOf(const tools::CaseShape& shape, size_t index) {
  const tools::TensorSpec spec = tools::OutputSpecs(shape)[index];
  return static_cast<size_t>(tools::ApproximateBytes(spec.dtype, spec.shape));
}

std::string NameOf(const Point& point) { return "ours, " + std::string(ScenarioOption(point.scenario)); }

}  // namespace

size_t QueryBytes(const tools::CaseShape& shape) { return OutputBytesOf(shape, 0); }
size_t QueryRopeBytes(const tools::CaseShape& shape) { return OutputBytesOf(shape, 1); }

OurCall::OurCall(const Fixture& fixture, const tools::CaseShape& shape, int copy, void* query, void* query_rope)
    : epsilon_(fixture.epsilon()) {
  for (const tools::TensorSpec& spec : tools::InputSpecs(shape)) {
    tensors_.emplace(spec.name, Describe(spec, fixture.Data(shape, spec.name, copy)));
  }
  const std::vector<tools::TensorSpec> outputs = tools::OutputSpecs(shape);
  tensors_.emplace("query", Describe(outputs[0], query));
  tensors_.emplace("query_rope", Describe(outputs[1], query_rope));
}

aclTensor* OurCall::Get(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.get();
}

aclOpExecutor* OurCall::MakeExecutor(uint64_t* workspace_bytes) const {
  char cache_mode[] = "PA_BSND";
  aclOpExecutor* executor = nullptr;
  RequireSuccess(
      aclnnMlaPrologGetWorkspaceSize(
          Get("token_x"), Get("weight_dq"), Get("weight_uq_qr"), Get("weight_uk"), Get("weight_dkv_kr"),
          Get("rmsnorm_gamma_cq"), Get("rmsnorm_gamma_ckv"), Get("rope_sin"), Get("rope_cos"), Get("cache_index"),
          Get("kv_cache"), Get("kr_cache"), /*dequantScaleXOptional=*/nullptr, /*dequantScaleWDqOptional=*/nullptr,
          Get("dequant_scale_w_uq_qr"), /*dequantScaleWDkvKrOptional=*/nullptr, Get("quant_scale_ckv"),
          Get("quant_scale_ckr"), /*smoothScalesCqOptional=*/nullptr, epsilon_, epsilon_, cache_mode, Get("query"),
          Get("query_rope"), workspace_bytes, &executor),
      "aclnnMlaPrologGetWorkspaceSize");
  return executor;
}

OurOperator::OurOperator(tools::CannSession* session, Fixture* fixture, const Point& point)
    : Contender(NameOf(point)),
      session_(session),
      fixture_(fixture),
      query_(QueryBytes(ShapeOf(point, fixture->block_num(), kBlockSize))),
      query_rope_(QueryRopeBytes(ShapeOf(point, fixture->block_num(), kBlockSize))) {
  const tools::CaseShape shape = ShapeOf(point, fixture->block_num(), kBlockSize);
  std::memset(query_.data(), 0, QueryBytes(shape));
  std::memset(query_rope_.data(), 0, QueryRopeBytes(shape));
  for (int copy = 0; copy < fixture->num_copies(); ++copy) {
    calls_.emplace_back(*fixture, shape, copy, query_.data(), query_rope_.data());
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
  const aclnnStatus launched = aclnnMlaProlog(workspace_->data(), workspace_bytes_, executor, session_->stream());
  const aclError synchronised = aclrtSynchronizeStream(session_->stream());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  RequireSuccess(launched, "aclnnMlaProlog");
  RequireSuccess(synchronised, "aclrtSynchronizeStream");
  return seconds;
}

void OurOperator::EndTurn() { std::this_thread::sleep_for(kIdleTime); }

}  // namespace mlap::bench
