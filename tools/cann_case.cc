#include "cann_case.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "nz_packing.h"
#include "tool_error.h"

namespace mlap::tools {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Per tensor, V2 takes a row of scales of which the first counts, V3 that scale alone.
TensorSpec SpecOf(const PrologVersion& version, const CaseShape& shape, TensorSpec spec) {
  if (shape.scenario->IsPerTensor() && spec.name == std::string_view("quant_scale_ckv")) {
    spec.shape = version.number == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, shape.dims.kv_rank};
  }
  return spec;
}

// The tensor with its first element repeated if it has fewer elements than `spec`.
CaseTensor Widened(const TensorSpec& spec, const CaseTensor& tensor) {
  const auto num_bytes = static_cast<size_t>(ApproximateBytes(spec.dtype, spec.shape));
  if (tensor.view.num_bytes >= num_bytes || tensor.view.num_bytes == 0) return tensor;
  std::byte* bytes = nullptr;
  CaseTensor wide = NewTensor(spec.dtype, spec.shape, &bytes);
  const auto element = static_cast<size_t>(ElementBytes(spec.dtype));
  for (size_t at = 0; at < num_bytes; at += element) std::memcpy(bytes + at, tensor.view.bytes, element);
  return wide;
}

const PrologVersion& ChosenVersion(const PrologCase& prolog_case, int number) {
  const PrologAttributes attributes = AttributesOf(prolog_case);
  if (number == 0) return FirstVersionFor(prolog_case.shape, attributes);
  const PrologVersion& version = VersionOf(number);
  const std::string_view missing = MissingIn(version, prolog_case.shape, attributes);
  if (!missing.empty()) {
    Fail("--version: expected 3, whose arguments can say all of {}, found {}: {} has no argument for {}",
         prolog_case.name, number, version.second_step_name, missing);
  }
  return version;
}

}  // namespace

PrologAttributes AttributesOf(const PrologCase& prolog_case) {
  return {prolog_case.epsilon_cq, prolog_case.epsilon_ckv, prolog_case.qc_qr_scale, prolog_case.kc_scale};
}

const PrologVersion& FirstVersionFor(const CaseShape& shape, const PrologAttributes& attributes) {
  return FirstVersionFor(shape, attributes, !CannSession::SocName().starts_with("Ascend950"));
}

CannCase::CannCase(CannSession* session, const PrologCase& prolog_case, int version)
    : session_(session), case_(prolog_case), version_(ChosenVersion(prolog_case, version)) {
  for (const TensorSpec& spec : InputSpecs(case_.shape)) {
    const CaseTensor& input = case_.Input(spec.name);
    const bool is_plain_weight = spec.role == TensorRole::kNzWeight && input.view.shape.size() == 2;
    const TensorSpec wanted = SpecOf(version_, case_.shape, spec);
    Add(wanted, is_plain_weight ? PackNz(input, spec.dtype) : Widened(wanted, input), true);
  }
  for (const TensorSpec& spec : OutputSpecs(case_.shape)) {
    CaseTensor host;
    host.view.dtype = FileDtype(spec.dtype);
    host.view.shape = spec.shape;
    host.view.num_bytes = static_cast<size_t>(ApproximateBytes(spec.dtype, spec.shape));
    Add(spec, host, false);
  }
}

void CannCase::Add(const TensorSpec& spec, const CaseTensor& host, bool is_input) {
  DeviceBuffer buffer(host.view.num_bytes);
  if (is_input) buffer.Upload(host.view.bytes);
  AclTensor tensor = DescribeTensor(spec, buffer.data());
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
  const aclnnStatus status = FirstStep(
      version_, case_.shape, AttributesOf(case_), [this](std::string_view name) { return Get(name); }, &workspace_bytes,
      &executor);
  times.first_step = SecondsSince(start);
  RequireSuccess(status, fmt::format("{}: {} refuses it", case_.name, version_.first_step_name));
  const DeviceBuffer workspace(workspace_bytes);
  start = Clock::now();
  const char* const step = version_.second_step_name;
  RequireSuccess(SecondStep(version_, workspace.data(), workspace_bytes, executor, session_->stream()),
                 fmt::format("{}: {} refuses it", case_.name, step));
  RequireSuccess(aclrtSynchronizeStream(session_->stream()), fmt::format("{}: {} failed", case_.name, step));
  times.second_step = SecondsSince(start);
  has_run_ = true;
  return times;
}

CaseOutputs CannCase::Outputs() const {
  CaseOutputs outputs;
  for (const TensorSpec& spec : ResultSpecs(case_.shape)) {
    const DeviceTensor& device = tensors_.find(spec.name)->second;
    std::byte* bytes = nullptr;
    CaseTensor& host = outputs[spec.name] = NewTensor(spec.dtype, spec.shape, &bytes);
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

bool IsShapeAccepted(const CaseShape& shape, const PrologVersion& version, std::string* why_not) {
  // The first step reads no data, but wants to see an address.
  alignas(64) static std::byte nowhere[64];
  std::map<std::string, AclTensor, std::less<>> tensors;
  for (const TensorSpec& spec : InputSpecs(shape)) {
    tensors.emplace(spec.name, DescribeTensor(SpecOf(version, shape, spec), nowhere));
  }
  for (const TensorSpec& spec : OutputSpecs(shape)) tensors.emplace(spec.name, DescribeTensor(spec, nowhere));
  const auto get = [&tensors](std::string_view name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second.get();
  };
  uint64_t workspace_bytes = 0;
  aclOpExecutor* executor = nullptr;
  if (FirstStep(version, shape, {}, get, &workspace_bytes, &executor) != 0) {
    const char* text = aclGetRecentErrMsg();
    *why_not = text != nullptr ? text : "";
    return false;
  }
  aclDestroyAclOpExecutor(executor);
  return true;
}

}  // namespace mlap::tools
