// Initialisation, version, errors.
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "cann/runtime/recent_error.h"
#include "cann/runtime/runtime_state.h"
#include "cann/runtime/soc.h"

namespace mlap::cann {
namespace {

enum class Phase { kNew, kInitialized, kFinalized };

struct Initialization {
  std::mutex mutex;
  Phase phase = Phase::kNew;
  uint64_t num_users = 0;
  std::string config;
};

Initialization& TheInitialization() {
  static Initialization* const initialization = new Initialization;
  return *initialization;
}

// A configuration is a page of JSON; the limit keeps a device file from being read for ever.
constexpr size_t kMaxConfigBytes = size_t{1} << 20;

// Reads the file at `path`; null and empty stand for an empty file. False if it cannot be read to its end.
bool ReadConfig(const char* path, std::string* content) {
  content->clear();
  if (path == nullptr || *path == '\0') return true;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), &std::fclose);
  if (file == nullptr) return false;
  char buffer[4096];
  while (const size_t num_read = std::fread(buffer, 1, sizeof buffer, file.get())) {
    content->append(buffer, num_read);
    if (content->size() > kMaxConfigBytes) return false;
  }
  // A directory opens but does not read.
  return std::ferror(file.get()) == 0;
}

std::string ConfigRefusal(const char* function, const char* path) {
  std::string found = "'";
  found.append(path).append("'");
  return RefusalText(function, "configPath", "NULL, or the path of a readable file of at most 1 MiB", found,
                     "pass NULL: the file's content has no effect");
}

aclError Init(const char* config_path) {
  if (const aclError code = RefuseAfterFork("aclInit")) return code;
  // A finalisation on another thread may be waiting for the caller.
  if (const aclError code = RefuseOnQueueThread("aclInit")) return code;
  std::string config;
  if (!ReadConfig(config_path, &config)) return Fail(ACL_ERROR_INVALID_FILE, ConfigRefusal("aclInit", config_path));
  Initialization& initialization = TheInitialization();
  const std::lock_guard<std::mutex> lock(initialization.mutex);
  if (initialization.phase != Phase::kInitialized) {
    initialization.phase = Phase::kInitialized;
    initialization.num_users = 1;
    initialization.config = std::move(config);
    return 0;
  }
  if (config != initialization.config) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                RefusalText("aclInit", "configPath", "the configuration of the first aclInit", "another one",
                            "use one file throughout, or call aclFinalize in between"));
  }
  ++initialization.num_users;
  return Fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit: the library is initialised already; this call counts as user " +
                                               std::to_string(initialization.num_users) +
                                               " and the code can be ignored");
}

aclError Finalize(const char* function, bool for_all_users, uint64_t* num_users_left) {
  if (const aclError code = RefuseAfterFork(function)) return code;
  if (const aclError code = RefuseOnQueueThread(function)) return code;
  Initialization& initialization = TheInitialization();
  // Held while the streams finish: whoever initialises meanwhile waits for a clean start.
  const std::lock_guard<std::mutex> lock(initialization.mutex);
  if (initialization.phase == Phase::kFinalized) {
    return Fail(ACL_ERROR_REPEAT_FINALIZE, RefusalText(function, "the library", "an initialised library",
                                                       "one that is finalised already", "call aclInit first"));
  }
  if (!for_all_users && initialization.num_users > 1) {
    --initialization.num_users;
  } else {
    RuntimeState::Get().ResetEverything();
    initialization.phase = Phase::kFinalized;
    initialization.num_users = 0;
  }
  if (num_users_left != nullptr) *num_users_left = initialization.num_users;
  return 0;
}

aclError RequireThreadLevel(const char* function, aclrtLastErrLevel level) {
  if (level == ACL_RT_THREAD_LEVEL) return 0;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              RefusalText(function, "level", "ACL_RT_THREAD_LEVEL (0)", std::to_string(static_cast<int>(level)), ""));
}

}  // namespace
}  // namespace mlap::cann

using namespace mlap::cann;

aclError aclInit(const char* configPath) {
  return Guarded("aclInit", [&] { return Init(configPath); });
}

aclError aclFinalize() {
  return Guarded("aclFinalize", [] { return Finalize("aclFinalize", /*for_all_users=*/true, nullptr); });
}

aclError aclFinalizeReference(uint64_t* refCount) {
  return Guarded("aclFinalizeReference",
                 [&] { return Finalize("aclFinalizeReference", /*for_all_users=*/false, refCount); });
}

const char* aclrtGetSocName() {
  return Guarded("aclrtGetSocName", []() -> const char* {
    Soc soc{};
    std::string error;
    if (ChosenSoc(&soc, &error)) return SocName(soc);
    Fail(ACL_ERROR_INVALID_PARAM, "aclrtGetSocName: " + error);
    return nullptr;
  });
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return Guarded("aclrtGetVersion", [&] {
    for (const int32_t* pointer : {majorVersion, minorVersion, patchVersion}) {
      if (const aclError code =
              RequirePointer("aclrtGetVersion", "majorVersion, minorVersion, patchVersion", pointer)) {
        return code;
      }
    }
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return 0;
  });
}

const char* aclGetRecentErrMsg() { return TakeRecentTexts(); }

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  return Guarded("aclrtPeekAtLastError", [&] {
    const aclError code = RequireThreadLevel("aclrtPeekAtLastError", level);
    return code != 0 ? code : PeekLastError();
  });
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  return Guarded("aclrtGetLastError", [&] {
    const aclError code = RequireThreadLevel("aclrtGetLastError", level);
    return code != 0 ? code : TakeLastError();
  });
}

aclnnStatus aclnnInit(const char* configPath) {
  return Guarded("aclnnInit", [&]() -> aclnnStatus {
    std::string config;
    if (ReadConfig(configPath, &config)) return 0;
    return FailOp(161002, ConfigRefusal("aclnnInit", configPath));
  });
}

aclnnStatus aclnnFinalize() { return 0; }
