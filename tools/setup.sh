# shellcheck shell=bash
# Sourced by ./run and ./test: installs what is missing, configures and builds a preset. Needs $root, the tree.
# Nothing here prints on stdout: that belongs to the program that follows.

say() { printf 'sevenfold: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# As root, through sudo, or not at all.
as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else return 127
  fi
}

# Names of the packages of the given kinds, from tools/packages.txt.
packages_of() {
  local kind
  for kind in "$@"; do awk -v kind="$kind" '$1 == kind { print $2 }' "${root:?}/tools/packages.txt"; done
}

# A LibTorch that the user points CMake to replaces Debian's.
own_torch() { [[ -n "${Torch_DIR:-}${CMAKE_PREFIX_PATH:-}" ]]; }

missing_packages() {
  local package installed wanted
  mapfile -t wanted < <(packages_of "$@")
  installed=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' "${wanted[@]}" 2>/dev/null || true)"
  for package in "${wanted[@]}"; do
    if [[ $package == libtorch-dev ]] && own_torch; then continue; fi
    [[ $installed == *" $package=installed "* ]] || echo "$package"
  done
}

# install_packages KIND...: apt installs what is missing; the lists are fetched only when that fails.
install_packages() {
  command -v dpkg-query >/dev/null || return 0  # not Debian: CMake names what it cannot find
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; then
    die "missing packages, and neither root nor sudo to install them; run as root: apt-get install ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  local log install=(env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends install "${missing[@]}")
  log=$(mktemp)
  if ! as_root "${install[@]}" >"$log" 2>&1; then
    as_root apt-get update >"$log" 2>&1 || true
    if ! as_root "${install[@]}" >>"$log" 2>&1; then
      tail -n 15 "$log" >&2
      rm -f "$log"
      die "apt-get could not install ${missing[*]} (its last lines are above)"
    fi
  fi
  rm -f "$log"
}

# OpenBLAS's serial package computes wrong results when several threads call it, and ranks are threads.
require_threaded_blas() {
  local library target threaded
  for library in libblas.so.3 liblapack.so.3; do
    for target in /usr/lib/*/"$library"; do
      [[ -e $target && $(readlink -f "$target") == */openblas-serial/* ]] || continue
      threaded=${target%/*}/openblas-pthread/$library
      [[ -e $threaded ]] || die "$target is OpenBLAS's serial variant, which is wrong under threads; install libopenblas0-pthread"
      say "switching $library from OpenBLAS's serial variant, which is wrong under threads, to its pthread variant"
      as_root update-alternatives --set "$library-$(basename "${target%/*}")" "$threaded" >&2 ||
        die "run as root: update-alternatives --set $library-$(basename "${target%/*}") $threaded"
    done
  done
}

# Compile jobs: one a core, but 1.5 GB of memory for each.
num_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo 2>/dev/null || echo "$cores")
  if [[ $memory -lt 1 ]]; then memory=1; fi
  echo $((cores < memory ? cores : memory))
}

# Runs a command with its output in a log file, shown only when it fails.
quietly() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 && return 0
  cat "$log" >&2
  return 1
}

# configure PRESET [cmake argument...]: once; later changes of the CMake files are ninja's business.
configure() {
  local preset=$1 folder="$root/build/$1"
  shift
  [[ -f $folder/build.ninja && $# -eq 0 ]] && return 0
  mkdir -p "$folder"
  (cd "$root" && quietly "$folder/configure.log" cmake --preset "$preset" "$@") ||
    die "configuring build/$preset failed (output above)"
}

# Keeps one line of ninja's output on a terminal, and one line in all elsewhere.
show_progress() {
  local line step started=""
  while IFS= read -r line; do
    printf '%s\n' "$line"
    [[ $line == \[*/*\]* && $line != *"] Re-"* ]] || continue  # re-running CMake, re-checking globs
    if [[ -t 2 ]]; then printf '\r\033[Kbuilding %s]' "${line%%]*}" >&2
    elif [[ -z $started ]]; then step=${line%%]*}; say "building build/$1: ${step#*/} steps"
    fi
    started=yes
  done
  if [[ -n $started && -t 2 ]]; then printf '\r\033[K' >&2; fi
}

# build PRESET [target...]
build() {
  local preset=$1 folder="$root/build/$1" target targets=()
  shift
  for target in "$@"; do targets+=(--target "$target"); done
  if ! cmake --build "$folder" --parallel "$(num_jobs)" "${targets[@]}" 2>&1 |
       show_progress "$preset" >"$folder/build.log"; then
    grep -v '^\[[0-9]*/[0-9]*\]' "$folder/build.log" >&2 || true
    die "building build/$preset failed (output above; all of it in build/$preset/build.log)"
  fi
}

# Two builds in one tree would trip over each other: the second waits. Ends with release_tree.
hold_tree() {
  mkdir -p "$root/build"
  command -v flock >/dev/null || return 0
  exec 9>"$root/build/.lock"
  flock -n 9 || { say "waiting for another build in this tree"; flock 9; }
}
release_tree() { exec 9>&-; }
