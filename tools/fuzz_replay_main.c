/* SPDX-License-Identifier: ISC */
/* Runs a libFuzzer harness on each file named, once: its corpus as a test,
 * where no libFuzzer is linked. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A harness may define it. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

/* The file's bytes, in memory of exactly their number so that a sanitizer
 * sees a read past them, or NULL with the reason on stderr. */
static uint8_t *read_file(const char *name, size_t *size) {
  FILE *f = fopen(name, "rb");
  if (!f) {
    perror(name);
    return NULL;
  }
  uint8_t *bytes = NULL;
  long n = -1;
  if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET))
    bytes = malloc(n ? (size_t)n : 1);
  if (bytes && fread(bytes, 1, (size_t)n, f) != (size_t)n) {
    free(bytes);
    bytes = NULL;
  }
  if (!bytes)
    perror(name);
  else
    *size = (size_t)n;
  (void)fclose(f); /* read only: nothing is lost */
  return bytes;
}

int main(int argc, char **argv) {
  if (LLVMFuzzerInitialize && LLVMFuzzerInitialize(&argc, &argv))
    return EXIT_FAILURE;
  if (argc < 2) {
    fprintf(stderr, "no corpus\n");
    return EXIT_FAILURE;
  }
  for (int i = 1; i < argc; i++) {
    size_t size;
    uint8_t *bytes = read_file(argv[i], &size);
    if (!bytes)
      return EXIT_FAILURE;
    /* Named before it runs, so that a crash's log ends with it. */
    printf("%s\n", argv[i]);
    fflush(stdout);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
  }
  return EXIT_SUCCESS;
}
