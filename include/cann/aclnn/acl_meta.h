/* Descriptions of operator arguments (tensors, scalars, arrays, lists) and executors.
 *
 * Names, values and signatures are those of CANN; the text is this project's own. Usable from C99 and from C++11 on.
 *
 * Rules that hold for every function, unless its own text says otherwise:
 *  - It may be called from any thread.
 *  - A function that returns a handle returns NULL on failure, the others a status; a failure leaves a text for
 *    aclGetRecentErrMsg. A refused call has changed nothing.
 *  - A null handle or pointer argument gives 161001; a handle that was destroyed, or never was one, gives 161002.
 *  - A handle is the caller's to destroy. The data a tensor describes is never touched or freed here.
 *  - No context is needed. */
#ifndef OP_API_OP_API_COMMON_INC_EXTERNAL_ACL_META_H
#define OP_API_OP_API_COMMON_INC_EXTERNAL_ACL_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* Programs use malloc and free without including it themselves. */
#include <stdlib.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ACLNN_META
#define ACLNN_META
typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;

/* The result of the operators and of the functions below: 0 or a code of aclnn/aclnn_status.h. */
typedef int32_t aclnnStatus;
#ifdef __cplusplus
constexpr aclnnStatus OK = 0;
#endif
#endif

/* ---- Creation and destruction ----------------------------------------------------------------------------------- */

/* Describes a tensor.
 *
 * `viewDims` [viewDimsNum]: the shape, 0 to 25 dimensions, copied.
 * `stride` [viewDimsNum]: distances in elements, copied; null means row-major without gaps.
 * `offset`: of the view's first element from `tensorData`, in elements.
 * `storageDims` [storageDimsNum]: the shape of the memory, 0 to 25 dimensions, copied.
 * `tensorData`: may be null; must stay valid while operators use the tensor, not while the tensor exists.
 *
 * Nothing but the pointers and the numbers of dimensions is checked here: an operator checks the tensors it gets.
 * Returns NULL if a pointer is null though its number is not 0, or a number exceeds 25. */
ACL_FUNC_VISIBILITY aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                               const int64_t *stride, int64_t offset, aclFormat format,
                                               const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData);

/* Describes another tensor with an existing handle; the parameters are those of aclCreateTensor. A null `tensorData`
 * keeps the address. Returns 161001 or 161002 where aclCreateTensor returns NULL. */
ACL_FUNC_VISIBILITY aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum,
                                              aclDataType dataType, const int64_t *stride, int64_t offset,
                                              aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                                              void *tensorData);

/* Copies one element of type `dataType` (aclDataTypeSize bytes) from `value`. */
ACL_FUNC_VISIBILITY aclScalar *aclCreateScalar(void *value, aclDataType dataType);

/* Copy `size` elements from `value`, which may be null if `size` is 0. */
ACL_FUNC_VISIBILITY aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
ACL_FUNC_VISIBILITY aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);
ACL_FUNC_VISIBILITY aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);

/* Copy `size` handles from `value`, which may be null if `size` is 0. The list takes the members over: destroying it
 * destroys them. Members may be null. */
ACL_FUNC_VISIBILITY aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size);
ACL_FUNC_VISIBILITY aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size);

/* Destroy a description; a null handle gives 0. Operators that were called with it are not affected. Destroying a list
 * destroys its members that still exist. */
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensor(const aclTensor *tensor);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalar(const aclScalar *scalar);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyIntArray(const aclIntArray *array);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyTensorList(const aclTensorList *array);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyScalarList(const aclScalarList *array);

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Write a new array [*num] with the shape of the view, its strides in elements, or the shape of the memory, and its
 * length. The array is the caller's, who frees it with C++'s `delete[]`, also if the length is 0. */
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue,
                                                  uint64_t *stridesNum);
ACL_FUNC_VISIBILITY aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims,
                                                   uint64_t *storageDimsNum);

/* Write the offset in elements, the format and the element type. */
ACL_FUNC_VISIBILITY aclnnStatus aclGetViewOffset(const aclTensor *tensor, int64_t *offset);
ACL_FUNC_VISIBILITY aclnnStatus aclGetFormat(const aclTensor *tensor, aclFormat *format);
ACL_FUNC_VISIBILITY aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType);

/* Write the number of elements. */
ACL_FUNC_VISIBILITY aclnnStatus aclGetIntArraySize(const aclIntArray *array, uint64_t *size);
ACL_FUNC_VISIBILITY aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, uint64_t *size);
ACL_FUNC_VISIBILITY aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, uint64_t *size);
ACL_FUNC_VISIBILITY aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, uint64_t *size);
ACL_FUNC_VISIBILITY aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, uint64_t *size);

/* Set or get the data address of a tensor. A new address, which may be null, has no effect on executors that exist:
 * set it before the operator's first step. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, void **addr);

/* ---- Executors -------------------------------------------------------------------------------------------------- */

/* An operator's first step makes an executor, which its second step uses up. aclSetAclOpExecutorRepeatable, called
 * between the two, lets the second step run any number of times; the executor is then the caller's to destroy, which
 * may happen while launched work is still queued. One executor should not be used by two threads at once.
 * Null gives 561103, a used-up, destroyed or wrong executor 561000. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);
ACL_FUNC_VISIBILITY aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

/* Give the executor's later runs, and `tensor`, another data address. `index` counts the operator's input tensors, its
 * output tensors, or all its tensors (inputs, then outputs), absent optional ones included; a tensor that is updated in
 * place is an input, and once more an output behind the others. `tensor` is the handle the first step got at that
 * place. A null executor, tensor or address gives 561103 (the address of an empty tensor may be null), a used-up,
 * destroyed or wrong executor 561000, an index out of range or one of an absent tensor 161002. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                                      void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                                       void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                                 void *addr);

/* The same for an operator's tensor lists. No operator of this library has one: unless an argument is null or the
 * executor wrong, the result is 161002. */
ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                             const size_t relativeIndex, aclTensorList *tensors,
                                                             void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                              const size_t relativeIndex, aclTensorList *tensors,
                                                              void *addr);
ACL_FUNC_VISIBILITY aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                        const size_t relativeIndex, aclTensorList *tensors, void *addr);

/* Older spellings of the six functions above. */
ACL_FUNC_VISIBILITY aclnnStatus AclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                                      void *addr);
ACL_FUNC_VISIBILITY aclnnStatus AclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                                       void *addr);
ACL_FUNC_VISIBILITY aclnnStatus AclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor,
                                                 void *addr);
ACL_FUNC_VISIBILITY aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                             const size_t relativeIndex, aclTensorList *tensors,
                                                             void *addr);
ACL_FUNC_VISIBILITY aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                              const size_t relativeIndex, aclTensorList *tensors,
                                                              void *addr);
ACL_FUNC_VISIBILITY aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex,
                                                        const size_t relativeIndex, aclTensorList *tensors, void *addr);

/* ---- Debugging -------------------------------------------------------------------------------------------------- */

/* Queues the dump of `tensors` [inputNum + outputNum], inputs first, null entries skipped. If the environment variable
 * MLAP_DUMP_DIR names a directory, each tensor's elements are written there in row-major order without gaps, when the
 * stream reaches the dump, to the file <opType>.<tensorName>.<n>.<input|output>.<i>.bin, n counting the dumps of the
 * process and i the tensors of the same kind. Otherwise nothing happens. The descriptions are copied; the data must
 * stay valid until then.
 * Returns 161002 for an element type of less than a byte; a file that cannot be written is a failed task of the
 * stream. */
ACL_FUNC_VISIBILITY aclnnStatus aclDumpOpTensors(const char *opType, const char *tensorName, aclTensor **tensors,
                                                 size_t inputNum, size_t outputNum, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
