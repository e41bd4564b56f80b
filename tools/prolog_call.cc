#include "prolog_call.h"

#include <aclnnop/aclnn_mla_prolog.h>
#include <aclnnop/aclnn_mla_prolog_v2_weight_nz.h>
#include <aclnnop/aclnn_mla_prolog_v3_weight_nz.h>

#include <string>
#include <vector>

namespace mlap::tools {
namespace {

constexpr PrologVersion kVersions[] = {
    {1, "aclnnMlaPrologGetWorkspaceSize", "aclnnMlaProlog"},
    {2, "aclnnMlaPrologV2WeightNzGetWorkspaceSize", "aclnnMlaPrologV2WeightNz"},
    {3, "aclnnMlaPrologV3WeightNzGetWorkspaceSize", "aclnnMlaPrologV3WeightNz"},
};

constexpr int64_t kTileSize = 128;

aclDataType AclDtype(mlap_dtype dtype) {
  switch (dtype) {
    case MLAP_BF16:
      return ACL_BF16;
    case MLAP_INT8:
      return ACL_INT8;
    case MLAP_INT32:
      return ACL_INT32;
    case MLAP_INT64:
      return ACL_INT64;
    case MLAP_FLOAT8_E4M3:
      return ACL_FLOAT8_E4M3FN;
    case MLAP_HIFLOAT8:
      return ACL_HIFLOAT8;
    case MLAP_FLOAT8_E8M0:
      return ACL_FLOAT8_E8M0;
    default:
      return ACL_FLOAT;
  }
}

}  // namespace

const PrologVersion& VersionOf(int number) { return kVersions[number - 1]; }

std::string_view MissingIn(const PrologVersion& version, const CaseShape& shape, const PrologAttributes& attributes) {
  if (version.number == 3) return "";
  if (shape.has_query_norm) return "query_norm";
  if (shape.HasSequenceEnds()) return "actual_seq_len";
  if (shape.scenario->IsPerGroup()) return "a per-group cache";
  if (shape.scenario->HasFloat8()) return "8-bit floats";
  if (attributes.qc_qr_scale != 1.0) return "qc_qr_scale";
  if (attributes.kc_scale != 1.0) return "kc_scale";
  if (version.number == 1 && shape.scenario->IsPerTensor()) return "dequant_scale_q_nope";
  return "";
}

const PrologVersion& FirstVersionFor(const CaseShape& shape, const PrologAttributes& attributes, bool has_v1) {
  const bool is_paged_by_slot = shape.cache_mode == MLAP_PA_BSND || shape.cache_mode == MLAP_PA_NZ;
  for (const PrologVersion& version : kVersions) {
    if (version.number == 3) return version;
    if (!has_v1 || !is_paged_by_slot) continue;
    if (version.number == 1 && shape.scenario->QuantizesX()) continue;  // listed, but no device computes it
    if (MissingIn(version, shape, attributes).empty()) return version;
  }
  return kVersions[2];
}

AclTensor DescribeTensor(const TensorSpec& spec, void* data) {
  if (spec.role != TensorRole::kNzWeight) {
    return AclTensor(spec.shape, AclDtype(spec.dtype), ACL_FORMAT_ND, spec.shape, data);
  }
  // The view of 4 dimensions says nothing about padding, so a padded weight has a view of 2.
  const std::vector<int64_t> image = NzShape(spec.shape[0], spec.shape[1], spec.dtype);
  const bool is_padded = image[0] * image[3] != spec.shape[1] || image[1] * image[2] != spec.shape[0];
  return AclTensor(is_padded ? spec.shape : image, AclDtype(spec.dtype), ACL_FORMAT_FRACTAL_NZ, image, data);
}

aclnnStatus FirstStep(const PrologVersion& version, const CaseShape& shape, const PrologAttributes& attributes,
                      const TensorByName& get, uint64_t* workspace_bytes, aclOpExecutor** executor) {
  std::string cache_mode(CacheModeName(shape.cache_mode));
  const PrologAttributes& a = attributes;
  const Scenario& scenario = *shape.scenario;
  switch (version.number) {
    case 1:
      return aclnnMlaPrologGetWorkspaceSize(
          get("token_x"), get("weight_dq"), get("weight_uq_qr"), get("weight_uk"), get("weight_dkv_kr"),
          get("rmsnorm_gamma_cq"), get("rmsnorm_gamma_ckv"), get("rope_sin"), get("rope_cos"), get("cache_index"),
          get("kv_cache"), get("kr_cache"), get("dequant_scale_x"), get("dequant_scale_w_dq"),
          get("dequant_scale_w_uq_qr"), get("dequant_scale_w_dkv_kr"), get("quant_scale_ckv"), get("quant_scale_ckr"),
          get("smooth_scales_cq"), a.epsilon_cq, a.epsilon_ckv, cache_mode.data(), get("query"), get("query_rope"),
          workspace_bytes, executor);
    case 2:
      return aclnnMlaPrologV2WeightNzGetWorkspaceSize(
          get("token_x"), get("weight_dq"), get("weight_uq_qr"), get("weight_uk"), get("weight_dkv_kr"),
          get("rmsnorm_gamma_cq"), get("rmsnorm_gamma_ckv"), get("rope_sin"), get("rope_cos"), get("cache_index"),
          get("kv_cache"), get("kr_cache"), get("dequant_scale_x"), get("dequant_scale_w_dq"),
          get("dequant_scale_w_uq_qr"), get("dequant_scale_w_dkv_kr"), get("quant_scale_ckv"), get("quant_scale_ckr"),
          get("smooth_scales_cq"), a.epsilon_cq, a.epsilon_ckv, cache_mode.data(), get("query"), get("query_rope"),
          get("dequant_scale_q_nope"), workspace_bytes, executor);
    default:
      return aclnnMlaPrologV3WeightNzGetWorkspaceSize(
          get("token_x"), get("weight_dq"), get("weight_uq_qr"), get("weight_uk"), get("weight_dkv_kr"),
          get("rmsnorm_gamma_cq"), get("rmsnorm_gamma_ckv"), get("rope_sin"), get("rope_cos"), get("kv_cache"),
          get("kr_cache"), get("cache_index"), get("dequant_scale_x"), get("dequant_scale_w_dq"),
          get("dequant_scale_w_uq_qr"), get("dequant_scale_w_dkv_kr"), get("quant_scale_ckv"), get("quant_scale_ckr"),
          get("smooth_scales_cq"), get("actual_seq_len"), get("k_nope_clip_alpha"), a.epsilon_cq, a.epsilon_ckv,
          cache_mode.data(), scenario.weight_quant, scenario.kv_quant, scenario.IsPerTensor() ? 1 : 0,
          scenario.IsPerGroup() ? 1 : 0, scenario.IsPerGroup() ? 1 : 0, kTileSize, a.qc_qr_scale, a.kc_scale,
          get("query"), get("query_rope"), get("dequant_scale_q_nope"), get("query_norm"), get("dequant_scale_q_norm"),
          workspace_bytes, executor);
  }
}

aclnnStatus SecondStep(const PrologVersion& version, void* workspace, uint64_t workspace_bytes, aclOpExecutor* executor,
                       aclrtStream stream) {
  switch (version.number) {
    case 1:
      return aclnnMlaProlog(workspace, workspace_bytes, executor, stream);
    case 2:
      return aclnnMlaPrologV2WeightNz(workspace, workspace_bytes, executor, stream);
    default:
      return aclnnMlaPrologV3WeightNz(workspace, workspace_bytes, executor, stream);
  }
}

}  // namespace mlap::tools
