#!/usr/bin/env python3
"""Checks what no compiler does: ASCII sources, file names, open ends, conflicts left by a merge, links of the
documentation.

Prints file:line and the rule; exit status 1 when anything is wrong.
"""
import pathlib
import re
import sys

SOURCES = ("src", "tests", "cmake", "bench")
SUFFIXES = {".h", ".cpp", ".cu", ".txt", ".cmake", ".py", ".sh"}
VAGUE = re.compile(r"(^|_)(util|utils|helper|helpers|manager|misc|common|tmp|old|new|data2)(_|\.|$)")
OPEN_END = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
CONFLICT = re.compile(r"(<{7}|>{7}) ")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def files_of(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path


def check_source(path):
    match = VAGUE.search(path.name)
    if match:
        yield 1, f"name: '{match.group(2)}' says nothing about what is in the file"
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.isascii():
            yield number, "ascii: only ASCII in sources"
        if CONFLICT.match(line.decode("utf-8", "replace")):
            yield number, "conflict: two versions of the text stand one after the other"
        if OPEN_END.search(line.decode("utf-8", "replace")):
            yield number, "open end: name an issue, as in TODO(#12), or finish it"


def check_page(root, path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if CONFLICT.match(line):
            yield number, "conflict: two versions of the text stand one after the other"
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            if not (path.parent / target.split("#")[0]).exists():
                yield number, f"link: {target} leads nowhere"


def check_tree(root):
    found = []
    for path in files_of(root, SOURCES, SUFFIXES):
        found += [f"{path.relative_to(root)}:{number}: {rule}" for number, rule in check_source(path)]
    for path in [*root.glob("*.md"), *files_of(root, ["docs"], {".md"})]:
        found += [f"{path.relative_to(root)}:{number}: {rule}" for number, rule in check_page(root, path)]
    return found


if __name__ == "__main__":
    violations = check_tree(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve())
    print("\n".join(violations) if violations else "text: in order")
    sys.exit(1 if violations else 0)
