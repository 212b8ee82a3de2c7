#!/usr/bin/env bash
# tools/check.sh [--long] [--tidy]: what review should not have to look for. Layers, text rules, links, headers
# that compile alone (--long: LibTorch's too), formatting, and with --tidy clang-tidy on files changed since HEAD.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
status=0
long=""
tidy=""
for option in "$@"; do
  case $option in
    --long) long=yes ;;
    --tidy) tidy=yes ;;
    *) echo "usage: tools/check.sh [--long] [--tidy]" >&2; exit 2 ;;
  esac
done

sources() { find src tests -name '*.cpp' -o -name '*.h'; }

# Another version breaks lines elsewhere, so only 14 counts.
check_format() {
  if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "format: not checked (needs clang-format 14)"
  elif sources | tr '\n' '\0' | xargs -0 clang-format --dry-run -Werror 2>"$1"; then
    echo "format: in order"
  else
    grep -o '^[^:]*:[0-9]*:[0-9]*: error' "$1" | cut -d: -f1 | sort | uniq -c | sort -rn >&2
    echo "format: run clang-format -i on the files above (places in each)" >&2
    return 1
  fi
}

# Clang 14 cannot read LibTorch's headers as C++20 (std::vector of an incomplete type), so the torch-free half.
check_tidy() {
  [[ -f build/release/compile_commands.json ]] ||
    { echo "tidy: configure the preset release first" >&2; return 1; }
  git diff --name-only --diff-filter=d HEAD -- src/sevenfold/{core,mesh,config,schedule,dataset,cli}/'*.cpp' |
    tr '\n' '\0' | xargs -0 -r clang-tidy --quiet -p build/release
}

python3 tools/check_layers.py || status=1
python3 tools/check_text.py || status=1
tools/check_headers.sh ${long:+--torch} || status=1
log=$(mktemp)
check_format "$log" || status=1
rm -f "$log"
if [[ -n $tidy ]]; then check_tidy || status=1; fi
exit "$status"
