/* Opens each library it is given, as frameworks do, and calls what it finds there. All names are one library. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const kFunctions[] = {
    "aclInit",
    "aclrtSetDevice",
    "aclrtMalloc",
    "aclrtSynchronizeStream",
    "aclCreateTensor",
    "aclDestroyTensor",
    "aclnnMlaProlog",
    "aclnnMlaPrologGetWorkspaceSize",
    "aclnnMlaPrologV2WeightNz",
    "aclnnMlaPrologV2WeightNzGetWorkspaceSize",
    "aclnnMlaPrologV3WeightNz",
    "aclnnMlaPrologV3WeightNzGetWorkspaceSize",
};

int main(int argc, char **argv) {
  void *first = NULL;
  for (int i = 1; i < argc; ++i) {
    void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      printf("%s\n", dlerror());
      return 1;
    }
    for (size_t f = 0; f < sizeof(kFunctions) / sizeof(kFunctions[0]); ++f) {
      if (dlsym(library, kFunctions[f]) == NULL) {
        printf("%s has no %s\n", argv[i], kFunctions[f]);
        return 1;
      }
    }
    void *address = dlsym(library, "aclrtGetSocName");
    if (first == NULL) first = address;
    if (address == NULL || address != first) {
      printf("%s is a second copy of the library\n", argv[i]);
      return 1;
    }
    const char *(*soc_name)(void) = NULL;
    memcpy(&soc_name, &address, sizeof(soc_name));
    if (soc_name() == NULL) {
      printf("%s: aclrtGetSocName fails\n", argv[i]);
      return 1;
    }
    dlclose(library);
  }
  return argc > 1 ? 0 : 1;
}
