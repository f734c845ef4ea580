#!/bin/bash
# Runs tools/setup with stand-ins for dpkg-query, apt-get, sudo and id.
set -uo pipefail

setup=$PWD/tools/setup
packages=$(sed -n '/^packages=(/,/^)/{/[()]/d;p}' "$setup" | xargs)
failed=0

# The stand-ins' answers are files of the case's folder.
stub() { # name, body
  printf '#!%s\n%s\n' "$BASH" "$2" >"$bin/$1" && chmod +x "$bin/$1"
}

begin() {
  name=$1
  dir=$(mktemp -d "$TEST_TMPDIR/XXXXXX")
  bin=$dir/bin
  mkdir "$bin"
  local tool
  for tool in bash cat env mktemp rm; do
    ln -s "$(command -v "$tool")" "$bin/$tool"
  done
  : >"$dir/apt"
  for tool in $packages; do echo "$tool installed"; done >"$dir/installed"
  stub dpkg-query "cat $dir/installed; [[ ! -e $dir/unknown ]]"
  stub apt-get "echo \"\$DEBIAN_FRONTEND: \$*\" >>$dir/apt
    [[ \$1 != \$(cat $dir/fails) ]] || { echo 'E: no such luck' >&2; exit 100; }"
  : >"$dir/fails"
  stub id 'echo 0'
}

lacks() { # packages that dpkg-query does not list
  local package
  for package; do sed -i "/^$package /d" "$dir/installed"; done
  touch "$dir/unknown"
}

check() { # status, a pattern of the output, apt-get's calls
  local status=0 out
  # From another folder, and with no stdin.
  out=$(cd / && TMPDIR=$dir PATH=$bin "$BASH" "$setup" 2>&1 <&-) || status=$?
  local apt
  apt=$(cat "$dir/apt")
  # shellcheck disable=SC2053
  if [[ $status == "$1" && $out == $2 && $apt == "$3" ]]; then
    echo "[  PASSED  ] 1 test(s). $name"
  else
    echo "[  FAILED  ] 1 test(s). $name: status $status"
    printf 'output: %s\napt-get: %s\n' "$out" "$apt"
    failed=1
  fi
}

update='noninteractive: update'
install='noninteractive: install -y --no-install-recommends'

begin 'nothing missing'
check 0 '' ''

begin 'one missing'
lacks clang-19
check 0 'tools/setup: installing clang-19' "$update
$install clang-19"

begin 'all missing'
lacks $packages
check 0 "tools/setup: installing $packages" "$update
$install $packages"

begin 'removed, its configuration left'
lacks libck-dev
echo 'libck-dev config-files' >>"$dir/installed"
check 0 'tools/setup: installing libck-dev' "$update
$install libck-dev"

begin 'a package whose name only starts alike'
lacks gcc
echo 'gcc-12 installed' >>"$dir/installed"
check 0 'tools/setup: installing gcc' "$update
$install gcc"

begin 'with sudo'
lacks llvm-19
stub id 'echo 1000'
stub sudo 'echo "sudo $1" >>'"$dir/apt"'; exec "$@"'
check 0 'tools/setup: installing llvm-19' "sudo env
$update
sudo env
$install llvm-19"

begin 'no root and no sudo'
lacks llvm-19 g++
stub id 'echo 1000'
check 1 'tools/setup: not root, and no sudo, to install: g++ llvm-19' ''

begin 'nothing missing, no root and no sudo'
stub id 'echo 1000'
check 0 '' ''

begin 'no dpkg-query'
rm "$bin/dpkg-query"
check 1 "tools/setup: no dpkg-query: *$packages" ''

begin 'no apt-get'
rm "$bin/apt-get"
check 1 "tools/setup: no apt-get: *$packages" ''

begin 'update fails'
lacks g++
echo update >"$dir/fails"
check 1 '*E: no such luck*apt-get update failed, to install: g++' "$update"

begin 'install fails'
lacks g++
echo install >"$dir/fails"
check 1 '*E: no such luck*apt-get install failed, to install: g++' "$update
$install g++"

exit $failed
