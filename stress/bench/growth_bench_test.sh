#!/bin/bash
# SPDX-License-Identifier: ISC
# The benchmark runs, and its posts were given while each kind of ring grew:
# growth_bench_test.sh PROGRAM
set -uo pipefail
out=$("$1" 2 4) || { echo "$out"; exit 1; }
echo "$out"
for kind in "nobody grows" segments launches channels; do
  if ! grep -Eq "^$kind +[1-9][0-9]* posts  p50 +[1-9]" <<<"$out"; then
    echo "FAILED: no posts: $kind"
    exit 1
  fi
done
if "$1" 0 2>/dev/null; then
  echo "FAILED: no threads, and no failure"
  exit 1
fi
