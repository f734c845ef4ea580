#!/bin/bash
# librig_nv.so exports the names that its headers declare and no other,
# so that it brings no second malloc, and needs libc, libm and liburcu alone.
#
# exports_test.sh LIBRARY HEADER...
set -uo pipefail

library=$1
shift
failed=0
check() { # name, what is wanted, what is there
  if [[ $2 == "$3" ]]; then
    echo "[  PASSED  ] 1 test(s). $1"
  else
    echo "[  FAILED  ] 1 test(s). $1"
    diff <(echo "$2") <(echo "$3")
    failed=1
  fi
}

# RIG_PUBLIC TYPE NAME( or NAME;, on one line or two. A #define of it is none.
declared=$(cat "$@" | grep -v '^#' | tr '\n' ' ' |
  grep -oE 'RIG_PUBLIC [^(;]*[(;]' |
  sed -E 's/.*[^a-z0-9_]([a-z0-9_]+)[(;]$/\1@@RIG_NV_0.1/' | sort)
# A small letter is a symbol that no other object sees, A is the version.
check 'exports' "$declared" "$(nm -D --defined-only "$library" |
  awk '$2 ~ /[B-Z]/ { print $3 }' | sort)"
check 'soname' 'librig_nv.so.0' \
  "$(objdump -p "$library" | awk '$1 == "SONAME" { print $2 }')"
check 'needs' '' "$(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }' |
  grep -vE '^(libc|libm|liburcu-(bp|common)|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$')"
# Calls of jemalloc's own interface, which only programs link.
check 'no jemalloc' '' "$(nm "$library" | grep -iE 'jemalloc|mallocx|mallctl')"
check 'no malloc of its own' '' \
  "$(nm "$library" | grep -E ' [TtWw] (malloc|calloc|free|aligned_alloc)$')"

exit $failed
