#!/usr/bin/env python3
"""Checks the #include lines of src/ against tools/layers.txt.

Prints file:line and the broken rule, one a line; exit status 1 when there are any. Rules:
  order        a folder includes itself and what stands below it
  torch-free   the torch-free half includes no LibTorch header
  banned       headers that are never included
  header       a header includes no more of LibTorch than [headers] allows
  internal     a module's internal/ folder is its own
  own-first    foo.cpp includes foo.h before anything else
  path         project headers are included as "sevenfold/module/file.h" (or "apps/file.h") and exist
"""
import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")


class Layers:
    """The order of the folders: level[folder] counts from 0; torch holds the folders of the torch half."""

    def __init__(self, text):
        self.level, self.torch, self.free = {}, set(), set()
        self.hidden, self.apps, self.edges, self.banned = set(), set(), set(), []
        self.narrow, self.wide = set(), set()  # LibTorch headers for headers; headers that may include others
        section = ""
        for raw in text.splitlines():
            line = raw.split("#")[0].strip()
            if line.startswith("["):
                section, _, rest = line[1:].partition("]")
                self.hidden |= set(rest.replace("without", " ").split())
            elif line:
                self._add(section, line)

    def _add(self, section, line):
        if section == "edges":
            self.edges.add(tuple(part.strip() for part in line.split("->")))
        elif section == "banned":
            self.banned.append(line)
        elif section == "headers":
            (self.wide if line.startswith("sevenfold/") else self.narrow).add(line)
        elif section == "apps":
            self.apps |= set(line.split())
        elif section in ("torch-free", "torch"):
            level = 1 + max(self.level.values(), default=-1)
            for folder in line.split():
                self.level[folder] = level
                (self.torch if section == "torch" else self.free).add(folder)
        else:
            raise ValueError(f"layers.txt: no section [{section}]")

    def allows(self, source, target):
        """source, target: paths of files below src/sevenfold (or apps/...)."""
        if source.parts[0] in self.apps:
            return True
        if self._has_edge(source, target):
            return True
        a, b = source.parts[0], target.parts[0]
        if a == b:
            return a != "parallel" or self._same_strategy(source, target)
        if a in self.torch and b in self.hidden:
            return False
        return self.level[b] < self.level[a]

    def _has_edge(self, source, target):
        return any(str(source).startswith(a + "/") and (str(target).startswith(b + "/") or
                                                        str(target.with_suffix("")) == b)
                   for a, b in self.edges)

    @staticmethod
    def _same_strategy(source, target):
        # A file directly in parallel/ belongs to all strategies.
        return len(target.parts) == 2 or source.parts[1] == target.parts[1]


def check_torch(layers, source, name):
    """The rules that including LibTorch's header `name` breaks, as texts."""
    if any(name == banned or (banned.endswith("/") and name.startswith(banned)) for banned in layers.banned):
        yield f"banned: <{name}> is too heavy; include the narrow header that declares what is used"
    elif source.parts[0] in layers.free:
        yield f"torch-free: {source.parts[0]} must not include LibTorch (<{name}>)"
    elif (source.suffix == ".h" and name not in layers.narrow and "internal" not in source.parts
          and f"sevenfold/{source}" not in layers.wide):
        yield f"header: <{name}> costs every file that includes this header; move it to the .cpp"


def check_project(layers, root, source, name):
    """The rules that including "sevenfold/..." breaks, as texts."""
    target = pathlib.PurePosixPath(name[len("sevenfold/"):])
    if not (root / "src" / name).is_file():
        yield f'path: "{name}" does not exist'
        return
    if target.parts[0] not in layers.level:
        yield f"order: {target.parts[0]} is not in tools/layers.txt"
    elif not layers.allows(source, target):
        yield f'order: {"/".join(source.parts[:-1])} must not include "{name}"'
    elif "internal" in target.parts and target.parts[0] != source.parts[0]:
        yield f'internal: "{name}" belongs to {target.parts[0]} alone'


def check_include(layers, root, source, name, is_quoted):
    if TORCH.match(name):
        yield from check_torch(layers, source, name)
    elif name.startswith("sevenfold/"):
        yield from check_project(layers, root, source, name)
    elif is_quoted and name.split("/")[0] in layers.apps:
        if source.parts[0] not in layers.apps:
            yield f'order: {source.parts[0]} must not include "{name}", a part of a program'
        elif not (root / "src" / name).is_file():
            yield f'path: "{name}" does not exist'
    elif is_quoted:
        yield f'path: "{name}" should be "sevenfold/module/file.h"'


def check_file(layers, root, path):
    relative = pathlib.PurePosixPath(path.relative_to(root / "src"))
    source = relative.relative_to("sevenfold") if relative.parts[0] == "sevenfold" else relative
    if source.parts[0] not in layers.level and source.parts[0] not in layers.apps:
        yield 1, f"order: folder {source.parts[0]} is not in tools/layers.txt"
        return
    own = str(relative.with_suffix(".h"))
    own_is_due = path.suffix == ".cpp" and (root / "src" / own).is_file()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2)
        for rule in check_include(layers, root, source, name, match.group(1) == '"'):
            yield number, rule
        if own_is_due and name != own:
            yield number, f'own-first: "{own}" comes before every other include'
        own_is_due = False


def check_tree(root):
    layers = Layers((root / "tools" / "layers.txt").read_text(encoding="utf-8"))
    violations = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cpp", ".cu"):
            violations += [f"{path.relative_to(root)}:{number}: {rule}"
                           for number, rule in check_file(layers, root, path)]
    return violations


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    violations = check_tree(parser.parse_args().root.resolve())
    print("\n".join(violations) if violations else "layers: in order")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
