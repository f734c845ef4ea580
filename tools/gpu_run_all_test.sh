#!/bin/bash
# run-all of gpu-bundle, with programs made here: gpu_run_all_test.sh RUN_ALL
set -uo pipefail

run_all=$1
failed=0

begin() { # name: all programs pass, and note how they were called
  name=$1
  dir=$(mktemp -d "$TEST_TMPDIR/XXXXXX")
  mkdir "$dir/bin" "$dir/path"
  cp "$run_all" "$dir/bin/run-all"
  local program
  for program in device_smoke rig-nv submit_bench growth_bench post_stress \
    growth_stress; do
    program "$program" ''
  done
}

program() { # name, text of its script
  cat >"$dir/bin/$1" <<SCRIPT
#!/bin/sh
echo "$1 \$*" >>"$dir/calls"
echo "said by $1 \$*"
$2
SCRIPT
  chmod +x "$dir/bin/$1"
}

is() { # what is wrong else, COMMAND...
  local wrong=$1
  shift
  "$@" && wrong=''
  judge "$wrong"
}

judge() { # what is wrong, or nothing
  if [[ -z $1 ]]; then
    echo "[  PASSED  ] 1 test(s). $name"
  else
    echo "[  FAILED  ] 1 test(s). $name: $1"
    sed 's/^/  /' "$dir/out"
    failed=1
  fi
}

# check STATUS 'ARGUMENTS' LINE...: it exits so, and each LINE, a pattern, is a
# line of what it prints.
check() {
  local want=$1 arguments=$2 status=0 wrong='' line
  shift 2
  # shellcheck disable=SC2086
  (cd / && TMPDIR=$dir PATH=$dir/path:$PATH "$dir/bin/run-all" $arguments) \
    >"$dir/out" 2>&1 </dev/null || status=$?
  [[ $status == "$want" ]] || wrong="exit status $status"
  for line; do
    grep -Eq -- "^$line$" "$dir/out" || wrong+=" lacks '$line'"
  done
  judge "$wrong"
}

# called PATTERN N: N calls of programs match it.
called() {
  local n
  n=$(grep -Ec -- "$1" "$dir/calls")
  [[ $n == "$2" ]] && n=''
  judge "${n:+$n calls of $1, not $2}"
}

stages=(info open second memory fork peers clock dma costs times wraps launches
  growth posts places carry cycles kill 'run post' 'run turn' submit_bench growth_bench post_stress
  growth_stress fault 'after fault' fault-host 'after fault-host' fault-kernel
  'after fault-kernel' fault-segment 'after fault-segment')
table() { # the table of passed stages, as patterns
  printf '%s +passed +[0-9]+ *\n' "${stages[@]}"
}

begin 'all pass'
mapfile -t lines < <(table)
check 0 "--log $dir/logs" "kernel  $(uname -r)" 'driver  .+' "${lines[@]}"
is 'the table is not last, or not in order' test \
  "$(tail -n ${#stages[@]} "$dir/out" | sed -E 's/  +.*//')" = \
  "$(printf '%s\n' "${stages[@]}")"
is 'the kernel is not first' test "$(head -n 1 "$dir/out")" = \
  "kernel  $(uname -r)"
called '^rig-nv run .*--no-boost' 2
called '^rig-nv run' 2
called '^rig-nv doctor$' 1
called 'boost-|reset|--boost' 0
called '^device_smoke --path=nvidia --gpu=-1 --only=memory$' 5
called '^device_smoke' 25
is 'no log of fault-host' grep -qx "$dir/logs/fault-host.log" -e \
  'said by device_smoke --path=nvidia --gpu=-1 --only=fault-host'

begin 'quick, of GPU 3, its SM clock read'
cat >"$dir/path/nvidia-smi" <<SCRIPT
#!/bin/sh
echo "\$*" >>"$dir/smi"
echo '3, 345 MHz'
SCRIPT
chmod +x "$dir/path/nvidia-smi"
check 0 "--quick --gpu 3 --log $dir/logs" 'begin: GPU 3, 345 MHz'
called '^device_smoke --path=nvidia --gpu=3 --only=[a-z-]+ --quick ' 25
called '^rig-nv (doctor --gpu 3|run --no-boost --gpu 3 --submissions 10000)' 3
called '^submit_bench --runs 1$' 1
is 'its clock is not kept' \
  grep -qx 'growth, after: GPU 3, 345 MHz' "$dir/logs/clocks"
is 'something else was asked' test "$(sort -u "$dir/smi")" = \
  '--query-gpu=index,clocks.sm --format=csv,noheader'

begin 'some fail, and the others run'
program device_smoke "case \$3 in
*=growth) exit 3 ;;
*=fault-host) touch '$dir/faulted' ;;
*=memory) [ ! -e '$dir/faulted' ] ;;
esac"
rm "$dir/bin/submit_bench"
check 1 '' 'growth +FAILED +[0-9]+  exit status 3, /.*/growth.log' \
  'posts +passed .*' 'memory +passed .*' 'after fault +passed .*' \
  'fault-host +passed .*' 'after fault-host +FAILED .*' \
  'submit_bench +FAILED +[0-9]+  exit status 12[67], .*' \
  'growth_bench +passed .*'

begin 'one hangs'
program post_stress 'sleep 60'
program growth_bench "trap '' TERM; sleep 60 & wait; wait; sleep 60"
check 1 '--bound 1' 'post_stress +FAILED +[1-9]  past its bound' \
  'growth_bench +FAILED +[1-9]  past its bound' 'growth_stress +passed .*'

begin 'one cannot be ended'
cat >"$dir/path/timeout" <<'SCRIPT'
#!/bin/sh
case $* in
*--only=posts*) exec sleep 8 ;;
esac
shift 3
exec "$@"
SCRIPT
chmod +x "$dir/path/timeout"
export RUN_ALL_GRACE=1
check 1 '--bound 1 --quick' 'growth +passed .*' \
  'launches +passed .*'
unset RUN_ALL_GRACE
is 'it is not the last line' grep -Eq '^posts +FAILED +[2-5]  past its bound, and cannot be ended$' \
  <(tail -n 1 "$dir/out")

begin 'no GPU opens'
program rig-nv 'echo "FAIL  no such thing  -> get one"; exit 1'
check 1 '' 'No GPU opens .*' 'FAIL  no such thing  -> get one'
called . 1

begin 'help'
check 0 --help 'run-all: every program .*' '  --quick +a tenth .*'

while IFS='|' read -r arguments cause; do
  begin "wrong usage: $arguments"
  check 2 "$arguments" "run-all: $cause; .*"
  is 'something was run' test ! -e "$dir/calls"
done <<'TABLE'
--walk|'--walk' is no option
--gpu|--gpu: of what\?
--gpu x|--gpu: 'x' is no number
--bound -1|--bound: '-1' is no number
TABLE

exit $failed
