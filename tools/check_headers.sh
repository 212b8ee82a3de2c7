#!/usr/bin/env bash
# tools/check_headers.sh [--torch]: every header compiles alone. The torch-free ones take half a second each;
# --torch adds those of the torch half (some seconds each), LibTorch being in the compiler's default path.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

headers() {
  local folder
  awk -v torch="${1:-}" '/^\[/ { wanted = /^\[torch-free\]/ || (/^\[torch\]/ && torch != ""); next }
                         /^#/ { next } wanted { for (i = 1; i <= NF; ++i) print $i }' "$root/tools/layers.txt" |
    while read -r folder; do
      if [[ -d $root/src/sevenfold/$folder ]]; then find "$root/src/sevenfold/$folder" -name '*.h'; fi
    done | sort
}

compile_alone() {
  printf '#include "%s"\n' "${1#"$root"/src/}" |
    "${CXX:-g++}" -std=c++20 -fsyntax-only -Wall -Wextra -I"$root/src" -DSEVENFOLD_FAULTS=1 -x c++ - ||
    { echo "${1#"$root"/}: does not compile alone" >&2; return 1; }
}
export -f compile_alone
export root

# shellcheck disable=SC2016  # the inner shell expands its own argument
headers "${1:-}" | tr '\n' '\0' | xargs -0 -r -n 1 -P 2 bash -c 'compile_alone "$0"'
echo "headers: each compiles alone"
