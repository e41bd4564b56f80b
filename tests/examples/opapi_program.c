/* A program that links the operators by the aggregate name of older CANN versions: -lopapi -lascendcl -lnnopbase. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_mla_prolog.h"

int main(void) {
  const int64_t dims[2] = {4, 1024};
  uint64_t workspace_size = 0;
  aclOpExecutor *executor = NULL;
  void *memory = NULL;
  char cache_mode[] = "PA_BSND";
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  if (aclrtMalloc(&memory, 4 * 1024 * 2, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 2;
  aclTensor *token_x = aclCreateTensor(dims, 2, ACL_BF16, NULL, 0, ACL_FORMAT_ND, dims, 2, memory);
  if (token_x == NULL) return 3;
  const aclnnStatus status = aclnnMlaPrologGetWorkspaceSize(
      token_x, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
      NULL, 1e-5, 1e-5, cache_mode, NULL, NULL, &workspace_size, &executor);
  const char *text = aclGetRecentErrMsg();
  printf("a call without weights: %d, %s\n", status, text != NULL ? text : "without a text");
  if (status != 161001 || text == NULL || executor != NULL) return 4;
  if (aclDestroyTensor(token_x) != 0 || aclrtFree(memory) != ACL_SUCCESS) return 5;
  if (aclrtResetDevice(0) != ACL_SUCCESS || aclFinalize() != ACL_SUCCESS) return 6;
  return 0;
}
