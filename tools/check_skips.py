#!/usr/bin/env python3
"""check_skips.py LOG EXPECTED: fails when a test was skipped that EXPECTED does not allow.

LOG is CTest's LastTest.log. A line of EXPECTED is a pattern of GoogleTest names, optionally with the
environment variable that takes the excuse away: `PrimusTree.* unless SEVENFOLD_PRIMUS_DIR`.
"""
import fnmatch
import os
import pathlib
import re
import sys

SKIPPED = re.compile(r"^\[  SKIPPED \] (\S+\.\S+?)(?:,.*)?(?: \(\d+ ms\))?$")


def read_expected(text):
    """Patterns that are allowed here and now."""
    patterns = []
    for raw in text.splitlines():
        words = raw.split("#")[0].split()
        if not words:
            continue
        if len(words) not in (1, 3) or (len(words) == 3 and words[1] != "unless"):
            raise ValueError(f"expected skips: cannot read '{raw}'")
        if len(words) == 1 or not os.environ.get(words[2]):
            patterns.append(words[0])
    return patterns


def skipped_tests(log):
    return sorted({match.group(1) for match in map(SKIPPED.match, log.splitlines()) if match})


def main(log_path, expected_path):
    log = pathlib.Path(log_path).read_text(encoding="utf-8", errors="replace")
    patterns = read_expected(pathlib.Path(expected_path).read_text(encoding="utf-8"))
    skipped = skipped_tests(log)
    unexpected = [name for name in skipped if not any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    for name in unexpected:
        print(f"unexpected skip: {name} (allow it in tests/expected_skips.txt with its reason, or mend it)")
    print(f"skips: {len(skipped)}, of them unexpected: {len(unexpected)}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
