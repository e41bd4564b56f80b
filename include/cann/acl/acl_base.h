/* Kept because programs include it by this name: everything it offers is in acl/acl_base_rt.h. */
#ifndef INC_EXTERNAL_ACL_ACL_BASE_H_
#define INC_EXTERNAL_ACL_ACL_BASE_H_

#include "acl/acl_base_rt.h"

#endif
