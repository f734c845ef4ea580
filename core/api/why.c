/* SPDX-License-Identifier: ISC */
#include "core/api/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char reason[1024];

int why(enum rig_nv_error error, const char *fmt, ...) {
  /* Apart from `reason`: an argument may be the reason before. */
  char text[sizeof reason];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (n < 0)
    text[0] = '\0';
  else if ((size_t)n >= sizeof text)
    memcpy(text + sizeof text - sizeof "...", "...", sizeof "...");
  memcpy(reason, text, strlen(text) + 1);
  return -(int)error;
}

const char *rig_nv_why(void) { return reason; }
