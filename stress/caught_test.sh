#!/bin/bash
# SPDX-License-Identifier: ISC
# A program that is built with a bug fails, and says what is expected of it:
# caught_test.sh PATTERN PROGRAM [ARGUMENT...]
set -uo pipefail
pattern=$1
shift
out=$("$@" 2>&1)
status=$?
printf '%s\n' "$out" | tail -n 20
if ((status == 0)); then
  echo "FAILED: the bug was not caught"
  exit 1
fi
if ! grep -Eq -- "$pattern" <<<"$out"; then
  echo "FAILED: exit status $status, and no line has: $pattern"
  exit 1
fi
echo "caught, exit status $status"
