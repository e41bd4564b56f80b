/* The runtime: initialisation, devices, contexts, streams, events and memory, on the CPU.
 *
 * Names, values, structure layouts and codes are those of CANN's AscendCL; the text is this project's own. Usable from
 * C99 and from C++11 on.
 *
 * The model. There is one device, number 0: this machine. A thread works in its current context, which aclrtSetDevice
 * gives it. A stream is a queue of work that runs in order on a thread of its own; work on different streams is
 * unordered unless events order it. "Device memory" is ordinary memory: programs should still reach it only through
 * the functions below, as they must on a device.
 *
 * Rules that hold for every function, unless its own text says otherwise:
 *  - It may be called from any thread. Destroying an object while another thread still uses it is refused or waited
 *    for, never undefined.
 *  - It returns 0, or a code and leaves a text for aclGetRecentErrMsg. A refused call has changed nothing.
 *  - A null out-parameter gives 100000 (ACL_ERROR_INVALID_PARAM).
 *  - A handle that was destroyed, or never was one, gives 107017 (ACL_ERROR_RT_INVALID_HANDLE).
 *  - A function that needs a current context gives 107002 (ACL_ERROR_RT_CONTEXT_NULL) on a thread that has none.
 *  - A stream that belongs to another context than the thread's current one gives 107003 (ACL_ERROR_RT_STREAM_CONTEXT).
 *  - A null stream stands for the default stream of the current context, except where a stream is destroyed.
 *  - Functions that wait for streams give 107000 (ACL_ERROR_RT_PARAM_INVALID) inside a host function if they would
 *    themselves wait for that very function. Waits in a circle are not found out: two host functions that each wait for
 *    the other's stream wait for ever.
 *  - Threads do not survive fork: in a child that was forked after a stream had started its thread, the functions that
 *    initialise, finalise, set or reset the device, create or use streams, or wait give 507899 and a text. Such a child
 *    may call exec, _exit or exit.
 *  - Timeouts are in milliseconds; -1 waits for ever, less than -1 gives 107000. */
#ifndef INC_EXTERNAL_ACL_ACL_RT_H_
#define INC_EXTERNAL_ACL_ACL_RT_H_

#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of aclrtCreateStreamWithConfig. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U
#define ACL_STREAM_PERSISTENT 0x00000004U
#define ACL_STREAM_HUGE 0x00000008U
#define ACL_STREAM_CPU_SCHEDULE 0x00000010U
#define ACL_STREAM_DEVICE_USE_ONLY 0x00000020U

/* Flags of aclrtCreateEventWithFlag and aclrtCreateEventExWithFlag. */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_EVENT_DEVICE_USE_ONLY 0x00000010U
#define ACL_EVENT_EXTERNAL 0x00000020U
#define ACL_EVENT_IPC 0x00000040U

/* Where the program itself runs. */
typedef enum MLAP_INT_ENUM {
  ACL_DEVICE = 0,
  ACL_HOST = 1,
} aclrtRunMode;

typedef enum MLAP_INT_ENUM {
  ACL_TS_ID_AICORE = 0,
  ACL_TS_ID_AIVECTOR = 1,
  ACL_TS_ID_RESERVED = 2,
} aclrtTsId;

/* The deprecated event status: complete is 0 here and 1 in aclrtEventRecordedStatus. */
typedef enum MLAP_INT_ENUM {
  ACL_EVENT_STATUS_COMPLETE = 0,
  ACL_EVENT_STATUS_NOT_READY = 1,
  ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

typedef enum MLAP_INT_ENUM {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum MLAP_INT_ENUM {
  ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
  ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
  ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF,
} aclrtEventWaitStatus;

typedef enum MLAP_INT_ENUM {
  ACL_STREAM_STATUS_COMPLETE = 0,
  ACL_STREAM_STATUS_NOT_READY = 1,
  ACL_STREAM_STATUS_RESERVED = 0xFFFF,
} aclrtStreamStatus;

typedef enum MLAP_INT_ENUM {
  ACL_CALLBACK_NO_BLOCK = 0,
  ACL_CALLBACK_BLOCK = 1,
} aclrtCallbackBlockType;

typedef enum MLAP_INT_ENUM {
  ACL_RT_OVERFLOW_MODE_SATURATION = 0,
  ACL_RT_OVERFLOW_MODE_INFNAN = 1,
  ACL_RT_OVERFLOW_MODE_UNDEF = 2,
} aclrtFloatOverflowMode;

typedef enum MLAP_INT_ENUM {
  ACL_RT_DEVICE_STATUS_NORMAL = 0,
  ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
  ACL_RT_DEVICE_STATUS_END = 0xFFFF,
} aclrtDeviceStatus;

typedef enum MLAP_INT_ENUM {
  ACL_RT_DEV_RES_CUBE_CORE = 0,
  ACL_RT_DEV_RES_VECTOR_CORE = 1,
} aclrtDevResLimitType;

typedef enum MLAP_INT_ENUM {
  ACL_RT_THREAD_LEVEL = 0,
} aclrtLastErrLevel;

/* Options of the aclrt*SysParamOpt functions. */
typedef enum MLAP_INT_ENUM {
  ACL_OPT_DETERMINISTIC = 0,             /* 0 off, 1 on, 2 strong, 3 batch */
  ACL_OPT_ENABLE_DEBUG_KERNEL = 1,       /* 0 off, 1 on */
  ACL_OPT_STRONG_CONSISTENCY = 2,        /* 0 off, 1 on; deprecated */
  ACL_OPT_ENABLE_KERNEL_EARLY_START = 3, /* 0 off, 1 on */
} aclSysParamOpt;

/* Page wishes of aclrtMalloc. */
typedef enum MLAP_INT_ENUM {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
  ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
  ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
  ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
  ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
  ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000,
} aclrtMemMallocPolicy;

typedef enum MLAP_INT_ENUM {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4,
  ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
  ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
  ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
} aclrtMemcpyKind;

/* Kinds of memory aclrtGetMemInfo can be asked about. */
typedef enum MLAP_INT_ENUM {
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5,
  ACL_DDR_MEM_P2P_HUGE = 6,
  ACL_DDR_MEM_P2P_NORMAL = 7,
  ACL_HBM_MEM_P2P_HUGE = 8,
  ACL_HBM_MEM_P2P_NORMAL = 9,
  ACL_HBM_MEM_HUGE1G = 10,
  ACL_HBM_MEM_P2P_HUGE1G = 11,
  ACL_MEM_NORMAL = 12,
  ACL_MEM_HUGE = 13,
  ACL_MEM_HUGE1G = 14,
  ACL_MEM_P2P_NORMAL = 15,
  ACL_MEM_P2P_HUGE = 16,
  ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

typedef enum MLAP_INT_ENUM {
  ACL_HOST_REGISTER_MAPPED = 0,
  ACL_HOST_REGISTER_IOMEMORY = 4,
  ACL_HOST_REGISTER_READONLY = 8,
} aclrtHostRegisterType;

typedef enum MLAP_INT_ENUM {
  ACL_RT_MEM_ATTR_RSV = 0,
  ACL_RT_MEM_ATTR_MODULE_ID = 1,
  ACL_RT_MEM_ATTR_DEVICE_ID = 2,
  ACL_RT_MEM_ATTR_VA_FLAG = 3,
} aclrtMallocAttrType;

typedef enum MLAP_INT_ENUM {
  ACL_MEM_LOCATION_TYPE_HOST = 0,
  ACL_MEM_LOCATION_TYPE_DEVICE = 1,
  ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,
  ACL_MEM_LOCATION_TYPE_MANAGED = 3,
  ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,
} aclrtMemLocationType;

typedef struct aclrtMemLocation {
  uint32_t id; /* the device's number; 0 for host memory */
  aclrtMemLocationType type;
} aclrtMemLocation;

typedef struct aclrtPtrAttributes {
  aclrtMemLocation location;
  uint32_t pageSize; /* in bytes; 0 if the memory is not the library's */
  uint32_t rsv[4];   /* zero */
} aclrtPtrAttributes;

/* A function a stream calls on its own thread; see aclrtLaunchHostFunc. */
typedef void (*aclrtHostFunc)(void *args);

/* ---- Initialisation, version, errors ---------------------------------------------------------------------------- */

/* Initialises the library. `configPath` is null, empty, or the path of a readable file; the content of the file has no
 * effect. The functions below work without it as well.
 * Returns 100002 on each further call, which counts as one more user (see aclFinalizeReference) and can be ignored;
 * 100003 if the file cannot be read; 100000 if its content differs from that of the first call; 107000 inside a host
 * function. */
ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);

/* Waits for all queued work, then destroys every stream and context, however often aclInit was called. Memory, tensors,
 * events and executors stay with their owners. aclInit may be called again.
 * Returns 0 also without aclInit, 100037 if the library is finalised already. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

/* Takes back one aclInit; the last one finalises as aclFinalize does. Writes the number of users left to `refCount`,
 * which may be null. Returns 100037 if the library is finalised already. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);

/* Returns the name of the device whose limits the operators apply: "Ascend910B3" unless the environment variable
 * MLAP_SOC says otherwise (ascend910b, ascend910_93, ascend950, none). The string lives for ever. Returns NULL, and
 * leaves a text that lists the legal values, if MLAP_SOC has another value. */
ACL_FUNC_VISIBILITY const char *aclrtGetSocName(void);

/* Writes the version of the interface, that of ACL_MAJOR_VERSION and its companions. */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);

/* Returns the texts of the failures on the calling thread since the last call, newest first, one a line, and forgets
 * them; NULL if there are none. Only the newest 32 are kept. The library owns the string, which is valid until the next
 * call on the same thread. */
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

/* Returns the calling thread's last failure among the runtime codes (107xxx, 207xxx, 507xxx), 0 if there is none.
 * aclrtGetLastError also forgets it. `level` is ACL_RT_THREAD_LEVEL, otherwise 107000 is returned. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

/* ---- Devices and contexts --------------------------------------------------------------------------------------- */

/* Makes the device's default context the calling thread's current one, creating it if necessary. All threads that set
 * the same device share that context. Each call counts as one user of the device. Returns 107001 unless `deviceId` is
 * 0. */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);

/* Takes back one aclrtSetDevice. The last one waits for all queued work and destroys the device's contexts, the
 * explicitly created ones included, with their streams. Returns 107001 unless `deviceId` is 0, 107002 if the device is
 * not set. */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);

/* Does what the last aclrtResetDevice does, however many users the device has. */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);

/* Writes the number of the current context's device. Returns 107002 without a context. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t *deviceId);

/* Writes 1. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t *count);

/* Writes ACL_HOST. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode *runMode);

/* Creates a context on a device and makes it the calling thread's current one. It is the caller's to destroy. Returns
 * 107001 unless `deviceId` is 0. */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/* Waits for the context's queued work and destroys it with its streams. Threads that had it as their current context
 * have none afterwards. Returns 100000 for NULL, 107000 for a device's default context, which aclrtResetDevice
 * destroys. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);

/* Makes `context` the calling thread's current one. Returns 100000 for NULL. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);

/* Writes the calling thread's current context. Returns 107002 if there is none. */
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext *context);

/* Writes the current context's default stream: the one a null stream stands for. It is the context's; destroying it is
 * refused with 107000. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);

/* Waits until all work queued before the call on any stream of the current context's device is done. Returns the code
 * of the oldest stream's failed task, if there is one, leaves the texts of all failed tasks, and forgets them.
 * aclrtSynchronizeDeviceWithTimeout returns 507046 if the work takes longer; it has then forgotten nothing. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/* Sets or gets an option, of the current context (Ctx) or of the process. Results never depend on them: they are always
 * deterministic. Returns 100000 for an unknown option or a value outside the option's range, 107021 when the context's
 * option is read before it was set. Options of the process start at 0. */
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value);
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value);

/* ---- Streams ---------------------------------------------------------------------------------------------------- */

/* Creates a stream in the current context. Its thread starts with the first work. It is the caller's to destroy. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStream(aclrtStream *stream);

/* The same with a priority, 0 (highest) to 7, and flags. Priorities have no effect. Of the flags, FAST_LAUNCH,
 * FAST_SYNC and HUGE are accepted without effect, the others name device features and give 207000. Returns 107000 for
 * another priority or an unknown flag. */
ACL_FUNC_VISIBILITY aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);

/* Destroys a stream after its queued work is done (aclrtDestroyStream), or after the task that is running is done,
 * dropping those that have not started (aclrtDestroyStreamForce); a dropped event record no longer holds anybody up.
 * Returns 100000 for NULL, 107000 for a default stream. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyStream(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtDestroyStreamForce(aclrtStream stream);

/* Waits until the work queued on the stream before the call is done. If tasks have failed since the last
 * synchronisation, returns the code of the first of them, leaves its text, and forgets them; the tasks after them have
 * run. aclrtSynchronizeStreamWithTimeout returns 507046 if the work takes longer; it has then forgotten nothing. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStream(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Writes whether all work queued on the stream is done. Does not wait and does not report failed tasks. */
ACL_FUNC_VISIBILITY aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/* Holds up the work queued on `stream` after this call until the event's latest record, as of this call, is reached.
 * No record: holds nothing up. The event may belong to another context, and may be destroyed after the call. */
ACL_FUNC_VISIBILITY aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/* Queues a call of fn(args), which runs on the stream's thread. `args` may be null and is the caller's. The function
 * should not call this library. Returns 100000 if `fn` is null. A C++ exception that leaves it becomes a failed task.
 * The function must return: pthread_exit, or cancelling the thread, ends the process. The stream's thread may run on
 * the processors the main thread may use, and has all signals blocked except those that report its own faults, such as
 * SIGSEGV; a program the function starts inherits both. */
ACL_FUNC_VISIBILITY aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

/* ---- Events ----------------------------------------------------------------------------------------------------- */

/* Creates an event, which marks a point of a stream. Needs a current context. It is the caller's to destroy.
 * `flag` is a combination of the ACL_EVENT_ flags; they have no effect, except that ACL_EVENT_IPC gives 207000. Returns
 * 107000 for an unknown flag. An event from aclrtCreateEventExWithFlag counts as complete before its first record, the
 * others do not. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent *event);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

/* Destroys an event. Records and waits that are queued stay in effect. Returns 100000 for NULL. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/* Queues a record: when `stream` reaches it, the event is complete and has the time of that moment. Replaces the
 * record before it for all later calls. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/* Queues a reset: when `stream` reaches it, the event is as before its first record, unless it has been recorded again
 * since this call. */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* Write whether the latest record is complete. Do not wait. Mind the opposite values of the two types. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);

/* Writes whether all waits queued with aclrtStreamWaitEvent for this event are over. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status);

/* Waits until the latest record, as of this call, is complete; returns at once if there is none. Does not report failed
 * tasks. aclrtSynchronizeEventWithTimeout returns 507047 if it takes longer. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Writes the time from `startEvent` to `endEvent` in milliseconds. Returns 107006 unless both have a complete record,
 * 107007 if the end lies before the start. */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);

/* Writes the time of the latest record in microseconds on a steady clock. Returns 107006 unless it is complete. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

/* Allocates `size` bytes of device memory, rounded up to a multiple of 32 and extended by 32, aligned to 64 bytes, not
 * cleared. Needs a current context. The caller frees it with aclrtFree. Blocks of more than 1 MiB are on huge pages of
 * their own where the system has them, whatever `policy` says. Returns 100000 if `size` is 0, 207001 if there is no
 * memory. */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/* Frees what aclrtMalloc returned. Does not wait for streams: synchronise first. Needs no context. Returns 100000 for
 * NULL, 107000 for any other pointer, the second free of a block included. */
ACL_FUNC_VISIBILITY aclError aclrtFree(void *devPtr);

/* The same for host memory, of exactly `size` bytes. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void **hostPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void *hostPtr);

/* Copies `count` bytes from `src` to `dst`, which has room for `destMax`. The ranges may overlap. Needs a current
 * context. A `count` of 0 gives 0 without looking further. The kind decides nothing: INNER_ and INTER_DEVICE_TO_DEVICE
 * and unknown values give 100000. Returns 100000 for a null pointer, 107000 if `count` exceeds `destMax` or a range
 * leaves the block of this library it begins in. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
                                         aclrtMemcpyKind kind);

/* Queues the same copy. Memory must stay valid until the stream has reached it. Returns when the copy is done if one
 * side is neither aclrtMalloc's nor aclrtMallocHost's memory. HOST_TO_HOST gives 207000. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
                                              aclrtMemcpyKind kind, aclrtStream stream);

/* Copies `height` rows of `width` bytes; rows begin `dpitch` and `spitch` bytes apart. Nothing is done if `width` or
 * `height` is 0. Kinds are HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE and DEFAULT. Returns 100000 for another
 * kind, a null pointer or a width above a pitch, 107000 if the rows do not fit into the address space or into the block
 * of this library they begin in. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                           size_t height, aclrtMemcpyKind kind);

/* Queues the same copy, under the rules of aclrtMemcpyAsync. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                                size_t height, aclrtMemcpyKind kind, aclrtStream stream);

/* Sets `count` bytes at `devPtr`, which has room for `maxCount`, to the low byte of `value`. A `count` of 0 gives 0.
 * Needs a current context. Returns 100000 for a null pointer, 107000 if `count` exceeds `maxCount` or the range leaves
 * the block of this library it begins in. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);

/* Queues the same. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
                                              aclrtStream stream);

/* Writes the machine's available and total memory in bytes, the same for every `attr`. Needs a current context. Returns
 * 100000 for an unknown `attr`. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *freeBytes, size_t *totalBytes);

/* Writes whether `ptr` lies in device memory, in aclrtMallocHost's memory, or in neither (UNREGISTERED). Returns 100000
 * if `ptr` is null. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);

#ifdef __cplusplus
}
#endif

#endif
