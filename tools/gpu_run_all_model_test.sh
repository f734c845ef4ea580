#!/bin/bash
# run-all of gpu-bundle with the programs themselves, on the model, and with as
# little work as they take: gpu_run_all_model_test.sh RUN_ALL PROGRAM...
set -uo pipefail

dir=$TEST_TMPDIR/bundle
mkdir "$dir" || exit 1
cp "$1" "$dir/run-all" || exit 1
shift

# The last of an option's values counts.
for program; do
  base=$(basename "$program") more='' first=''
  case $base in
  device_smoke) more='--path=model --posts=200 --cycles=2' ;;
  growth_stress) more='--devices=1' ;;
  post_stress) more='--submissions=8' ;;
  submit_bench) more='--threads=1 --seconds=0.001' ;;
  rig-nv)
    # shellcheck disable=SC2016
    first='case $1 in doctor) exit 0 ;; run) set -- "$@" --model ;; esac'
    ;;
  esac
  printf '#!/bin/sh\n%s\nexec "%s" "$@" %s\n' "$first" "$PWD/$program" \
    "$more" >"$dir/$base"
  chmod +x "$dir/$base"
done

# From a folder with nothing in it: what the programs need is in them.
mkdir "$TEST_TMPDIR/empty" || exit 1
(cd "$TEST_TMPDIR/empty" && "$dir/run-all" --quick --log "$dir/logs") \
  >"$dir/out" 2>&1 && exit 0
cat "$dir/out"
sed -n 's/.*exit status [0-9]*, //p' "$dir/out" | while read -r log; do
  echo "== $log"
  cat "$log"
done
exit 1
