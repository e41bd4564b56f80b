#include <mlaprolog/mlaprolog.h>
#include <stdio.h>

int main(void) {
  const char *isa = NULL;
  if (mlap_chosen_isa(&isa) != MLAP_OK) {
    printf("%s\n", mlap_last_error());
    return 1;
  }
  printf("mlaprolog %s on %s: %s\n", mlap_version_string(), mlap_cpu_name(), isa);
  return 0;
}
