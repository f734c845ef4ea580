# Sourced by tools/run and tools/test: bazel and its quiet options. Not named
# tools/bazel, which Debian's bazel would run in its own place.

# No links to the outputs in the folder: //... would follow those of another
# user's bazel, and with them all of /usr.
quiet=(--noshow_progress --show_result=0 --ui_event_filters=-info
  --symlink_prefix=/)

bazel() {
  # With no home to keep its outputs in, Bazel needs to be told where.
  local root=()
  [[ -n ${HOME:-} && -w $HOME ]] ||
    root=("--output_user_root=${TMPDIR:-/tmp}/rig_nv-bazel-$(id -u)")
  command bazel "${root[@]}" "$@"
}
