/* SPDX-License-Identifier: ISC */
#include "paths/nvidia/abi/release.h"

#include <stdio.h>

#define UVM_FREE_LONG                                                          \
  {.bytes = 24, .base = {0, 8}, .length = {8, 8}, .status = {16, 4}}
#define UVM_FREE_SHORT {.bytes = 16, .base = {0, 8}, .status = {8, 4}}
#define UNREGISTER_LONG                                                        \
  {.bytes = 28,                                                                \
   .gpu = {0, 16},                                                             \
   .client = {16, 4},                                                          \
   .channel = {20, 4},                                                         \
   .status = {24, 4}}
#define UNREGISTER_SHORT                                                       \
  {.bytes = 12, .client = {0, 4}, .channel = {4, 4}, .status = {8, 4}}

static const struct release_layout layouts[] = {
    {570, 48, 460, UVM_FREE_LONG, UNREGISTER_LONG},
    {580, 56, 1028, UVM_FREE_LONG, UNREGISTER_LONG},
    {610, 56, 1028, UVM_FREE_SHORT, UNREGISTER_SHORT},
};

enum { RELEASES = sizeof layouts / sizeof layouts[0] };

const struct release_layout *nvk_release_layout(int release) {
  for (size_t i = 0; i < RELEASES; i++)
    if (layouts[i].release == release)
      return &layouts[i];
  return NULL;
}

void nvk_release_list(char *text, size_t n) {
  for (size_t i = 0, at = 0; i < RELEASES && at < n; i++)
    at += (size_t)snprintf(text + at, n - at, "%s%d",
                           i == 0             ? ""
                           : i + 1 < RELEASES ? ", "
                                              : " and ",
                           layouts[i].release);
}

int nvk_release_of(const char *version) {
  int n = 0;
  const char *at = version;
  for (; *at >= '0' && *at <= '9'; at++) {
    if (n > 99999)
      return -1;
    n = 10 * n + (*at - '0');
  }
  return at != version && *at == '.' ? n : -1;
}
