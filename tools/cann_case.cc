#include "cann_case.h"

#include <aclnnop/aclnn_mla_prolog.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "nz_packing.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

aclDataType AclDtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBF16:
      return ACL_BF16;
    case Dtype::kI8:
      return ACL_INT8;
    case Dtype::kI64:
      return ACL_INT64;
    default:
      return ACL_FLOAT;
  }
}

AclTensor Describe(const TensorSpec& spec, void* data) {
  if (spec.role != TensorRole::kNzWeight) {
    return AclTensor(spec.shape, AclDtype(spec.dtype), ACL_FORMAT_ND, spec.shape, data);
  }
  // The view of 4 dimensions says nothing about padding, so a padded weight has a view of 2.
  const std::vector<int64_t> image = NzShape(spec.shape[0], spec.shape[1], spec.dtype);
  const bool is_padded = image[0] * image[3] != spec.shape[1] || image[1] * image[2] != spec.shape[0];
  return AclTensor(is_padded ? spec.shape : image, AclDtype(spec.dtype), ACL_FORMAT_FRACTAL_NZ, image, data);
}

// The first step, with `get` giving the tensor of a name, null if the case has none.
aclnnStatus FirstStep(const std::function<aclTensor*(std::string_view)>& get, const PrologCase& prolog_case,
                      uint64_t* workspace_bytes, aclOpExecutor** executor) {
  std::string cache_mode(CacheModeName(prolog_case.shape.cache_mode));
  return aclnnMlaPrologGetWorkspaceSize(
      get("token_x"), get("weight_dq"), get("weight_uq_qr"), get("weight_uk"), get("weight_dkv_kr"),
      get("rmsnorm_gamma_cq"), get("rmsnorm_gamma_ckv"), get("rope_sin"), get("rope_cos"), get("cache_index"),
      get("kv_cache"), get("kr_cache"), /*dequantScaleXOptional=*/nullptr, /*dequantScaleWDqOptional=*/nullptr,
      get("dequant_scale_w_uq_qr"), /*dequantScaleWDkvKrOptional=*/nullptr, get("quant_scale_ckv"),
      get("quant_scale_ckr"), get("smooth_scales_cq"), prolog_case.epsilon_cq, prolog_case.epsilon_ckv,
      cache_mode.data(), get("query"), get("query_rope"), workspace_bytes, executor);
}

}  // namespace

CannCase::CannCase(CannSession* session, const PrologCase& prolog_case) : session_(session), case_(prolog_case) {
  for (const TensorSpec& spec : InputSpecs(case_.shape)) {
    const CaseTensor& input = case_.Input(spec.name);
    const bool is_plain_weight = spec.role == TensorRole::kNzWeight && input.view.shape.size() == 2;
    Add(spec, is_plain_weight ? PackNz(input) : input, true);
  }
  for (const TensorSpec& spec : OutputSpecs(case_.shape)) {
    CaseTensor host;
    host.view.dtype = spec.dtype;
    host.view.shape = spec.shape;
    host.view.num_bytes = static_cast<size_t>(ApproximateBytes(spec.dtype, spec.shape));
    Add(spec, host, false);
  }
}

void CannCase::Add(const TensorSpec& spec, const CaseTensor& host, bool is_input) {
  DeviceBuffer buffer(host.view.num_bytes);
  if (is_input) buffer.Upload(host.view.bytes);
  AclTensor tensor = Describe(spec, buffer.data());
  CaseTensor kept = host;
  if (is_input) kept.owner.reset(), kept.view.bytes = nullptr;
  tensors_.emplace(spec.name, DeviceTensor{std::move(kept), std::move(buffer), std::move(tensor)});
}

aclTensor* CannCase::Get(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.tensor.get();
}

CallTimes CannCase::Run() {
  CallTimes times;
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  Clock::time_point start = Clock::now();
  const aclnnStatus status =
      FirstStep([this](std::string_view name) { return Get(name); }, case_, &workspace_bytes, &executor);
  times.first_step = SecondsSince(start);
  RequireSuccess(status, fmt::format("{}: aclnnMlaPrologGetWorkspaceSize refuses it", case_.name));
  const DeviceBuffer workspace(workspace_bytes);
  start = Clock::now();
  RequireSuccess(aclnnMlaProlog(workspace.data(), workspace_bytes, executor, session_->stream()),
                 fmt::format("{}: aclnnMlaProlog refuses it", case_.name));
  RequireSuccess(aclrtSynchronizeStream(session_->stream()), fmt::format("{}: aclnnMlaProlog failed", case_.name));
  times.second_step = SecondsSince(start);
  has_run_ = true;
  return times;
}

CaseOutputs CannCase::Outputs() const {
  CaseOutputs outputs;
  for (const char* name : kOutputNames) {
    const DeviceTensor& device = tensors_.find(name)->second;
    std::byte* bytes = nullptr;
    CaseTensor& host = outputs[name] = NewTensor(device.host.view.dtype, device.host.view.shape, &bytes);
    if (host.view.num_bytes != 0) device.buffer.Download(bytes);
  }
  return outputs;
}

mlap_cann_report CannCase::Report() const {
  mlap_cann_report report = {};
  report.struct_size = sizeof(report);
  if (case_.shape.Tokens() == 0) return report;
  RequireSuccess(mlap_cann_last_report(session_->stream(), &report), "mlap_cann_last_report");
  return report;
}

bool IsShapeAccepted(const CaseShape& shape, std::string* why_not) {
  PrologCase prolog_case;
  prolog_case.shape = shape;
  // The first step reads no data, but wants to see an address.
  alignas(64) static std::byte nowhere[64];
  std::map<std::string, AclTensor, std::less<>> tensors;
  for (const TensorSpec& spec : InputSpecs(shape)) tensors.emplace(spec.name, Describe(spec, nowhere));
  for (const TensorSpec& spec : OutputSpecs(shape)) tensors.emplace(spec.name, Describe(spec, nowhere));
  const auto get = [&tensors](std::string_view name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second.get();
  };
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  if (FirstStep(get, prolog_case, &workspace_bytes, &executor) != 0) {
    const char* text = aclGetRecentErrMsg();
    *why_not = text != nullptr ? text : "";
    return false;
  }
  aclDestroyAclOpExecutor(executor);
  return true;
}

}  // namespace mlap::tools
