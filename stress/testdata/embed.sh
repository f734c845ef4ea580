#!/bin/sh
# Prints C: an array of each cubin given, and a table of them by architecture.
set -eu
echo '#include "stress/kernels_cubins.h"'
for f; do
  name=$(basename "$f" .cubin)
  echo "static const unsigned char $name[] __attribute__((aligned(8))) = {"
  od -An -v -tu1 "$f" | sed 's/  *\([0-9]\)/\1/;s/  */,/g;s/$/,/'
  echo '};'
done
echo 'const struct kernels_cubin kernels_cubins[] = {'
for f; do
  name=$(basename "$f" .cubin)
  echo "{\"${name%%_*}\", \"sm_${name#*_sm}\", $name, sizeof $name},"
done
echo '{0}};'
