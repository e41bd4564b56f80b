/* Initialisation of the operators. Optional: they work without it, and it may be mixed with aclInit. */
#ifndef OP_API_OP_API_COMMON_INC_EXTERNAL_ACLNN_BASE_H
#define OP_API_OP_API_COMMON_INC_EXTERNAL_ACLNN_BASE_H

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does nothing but check `configPath`: null, empty, or the path of a readable file, otherwise 161002. May be called
 * repeatedly and from any thread. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char *configPath);

/* Does nothing and returns 0. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
