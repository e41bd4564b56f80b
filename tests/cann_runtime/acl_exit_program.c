/* Ends without tidying up, in the way its argument names, while streams have work queued: the process must neither hang
 * nor crash. Compiled as C, like the programs of users who write C. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_mla_prolog.h"

static void Nap(void *unused) {
  (void)unused;
  usleep(1000);
}

/* All threads of streams wait here as the process forks: none of them holds a lock then that the child needs. */
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static int num_at_gate = 0;
static int gate_is_open = 0;

static void WaitAtGate(void *unused) {
  (void)unused;
  pthread_mutex_lock(&gate_mutex);
  ++num_at_gate;
  pthread_cond_broadcast(&gate_changed);
  while (!gate_is_open) pthread_cond_wait(&gate_changed, &gate_mutex);
  pthread_mutex_unlock(&gate_mutex);
}

static void AwaitGate(int num_threads) {
  pthread_mutex_lock(&gate_mutex);
  while (num_at_gate < num_threads) pthread_cond_wait(&gate_changed, &gate_mutex);
  pthread_mutex_unlock(&gate_mutex);
}

static void OpenGate(void) {
  pthread_mutex_lock(&gate_mutex);
  gate_is_open = 1;
  pthread_cond_broadcast(&gate_changed);
  pthread_mutex_unlock(&gate_mutex);
}

static void CallTheLibraryAtExit(void) {
  aclrtFree(NULL);
  aclGetRecentErrMsg();
  aclrtSynchronizeDeviceWithTimeout(0);
}

/* The streams' threads stayed with the parent: whatever would need them is refused instead of waiting for ever. */
static void ExitAsForkedChild(aclrtStream stream, aclrtEvent event) {
  const aclError expected = 507899;
  aclGetRecentErrMsg();
  if (aclrtSynchronizeStream(stream) != expected) exit(10);
  if (strstr(aclGetRecentErrMsg(), "fork") == NULL) exit(11);
  if (aclrtLaunchHostFunc(NULL, Nap, NULL) != expected || aclrtDestroyStream(stream) != expected) exit(12);
  if (aclrtSynchronizeDevice() != expected || aclrtSynchronizeEvent(event) != expected) exit(13);
  if (aclrtResetDevice(0) != expected || aclFinalize() != expected) exit(14);
  if (aclInit(NULL) != expected || aclrtSetDevice(0) != expected) exit(15);
  exit(0);
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "return";
  const int forks_at_gate = strcmp(way, "fork_at_gate") == 0;
  aclrtStream streams[3];
  aclrtEvent event;
  void *memory;
  int64_t dim = 4;
  int i;

  atexit(CallTheLibraryAtExit);
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  if (aclrtCreateEvent(&event) != ACL_SUCCESS) return 1;
  if (aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 1;
  if (aclCreateTensor(&dim, 1, ACL_INT8, NULL, 0, ACL_FORMAT_ND, &dim, 1, memory) == NULL) return 1;
  if (forks_at_gate && aclrtLaunchHostFunc(NULL, WaitAtGate, NULL) != ACL_SUCCESS) return 1;
  for (i = 0; i < 3; ++i) {
    int j;
    if (aclrtCreateStream(&streams[i]) != ACL_SUCCESS) return 1;
    if (forks_at_gate && aclrtLaunchHostFunc(streams[i], WaitAtGate, NULL) != ACL_SUCCESS) return 1;
    for (j = 0; j < 200; ++j) {
      if (aclrtLaunchHostFunc(streams[i], Nap, NULL) != ACL_SUCCESS) return 1;
    }
    if (aclrtRecordEvent(event, streams[i]) != ACL_SUCCESS) return 1;
    if (aclrtStreamWaitEvent(NULL, event) != ACL_SUCCESS) return 1;
  }
  aclrtSetDevice(5);
  if (strcmp(way, "exit") == 0) exit(0);
  if (forks_at_gate || strcmp(way, "fork") == 0) {
    int status = -1;
    pid_t child;
    if (forks_at_gate) AwaitGate(4);
    child = fork();
    if (child == 0) ExitAsForkedChild(streams[0], event);
    OpenGate();
    if (child < 0 || waitpid(child, &status, 0) != child) return 1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 2;
    return aclrtSynchronizeDevice() == ACL_SUCCESS && aclFinalize() == ACL_SUCCESS ? 0 : 3;
  }
  if (strcmp(way, "finalize") == 0) return aclFinalize() == ACL_SUCCESS ? 0 : 1;
  if (strcmp(way, "reset") == 0) return aclrtResetDevice(0) == ACL_SUCCESS ? 0 : 1;
  return 0;
}
