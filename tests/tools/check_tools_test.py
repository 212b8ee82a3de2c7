#!/usr/bin/env python3
"""The checkers catch what they are there for: each rule is broken once in a small tree of its own."""
import contextlib
import importlib.util
import io
import os
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LAYERS, TEXT, SKIPS = load("check_layers"), load("check_text"), load("check_skips")


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("tools/layers.txt", (ROOT / "tools/layers.txt").read_text())
        for header in ("core/error.h", "mesh/mesh.h", "config/load.h", "cli/commands.h", "nn/linear.h",
                       "nn/internal/autograd.h", "parallel/tensor/column.h", "parallel/data/reducer.h",
                       "optim/sgd.h", "pipeline/chunk.h"):
            self.write(f"src/sevenfold/{header}", "#pragma once\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def layers(self, name, *includes):
        """The violations of a file with these include lines."""
        self.write(f"src/{name}", "".join(f"#include {include}\n" for include in includes))
        return LAYERS.check_tree(self.root)

    def assert_one(self, violations, place, rule):
        self.assertEqual(len(violations), 1, violations)
        self.assertTrue(violations[0].startswith(place), violations[0])
        self.assertIn(f": {rule}: ", violations[0])


class CheckLayers(Tree):
    def test_this_tree_is_in_order(self):
        self.assertEqual(LAYERS.check_tree(ROOT), [])

    def test_lower_layers_may_be_used(self):
        self.assertEqual(self.layers("sevenfold/nn/a.cpp", '"sevenfold/config/load.h"', "<ATen/ATen.h>"), [])

    def test_higher_layer(self):
        found = self.layers("sevenfold/mesh/a.cpp", "<vector>", '"sevenfold/config/load.h"')
        self.assert_one(found, "src/sevenfold/mesh/a.cpp:2", "order")

    def test_neighbours_on_one_line(self):
        found = self.layers("sevenfold/optim/a.cpp", '"sevenfold/pipeline/chunk.h"')
        self.assert_one(found, "src/sevenfold/optim/a.cpp:1", "order")

    def test_command_line_is_hidden_from_the_torch_half(self):
        found = self.layers("sevenfold/nn/a.cpp", '"sevenfold/cli/commands.h"')
        self.assert_one(found, "src/sevenfold/nn/a.cpp:1", "order")

    def test_programs_may_use_everything(self):
        found = self.layers("apps/main.cpp", '"sevenfold/cli/commands.h"', '"sevenfold/optim/sgd.h"')
        self.assertEqual(found, [])

    def test_strategies_do_not_know_each_other(self):
        found = self.layers("sevenfold/parallel/data/a.cpp", '"sevenfold/parallel/tensor/column.h"')
        self.assert_one(found, "src/sevenfold/parallel/data/a.cpp:1", "order")

    def test_named_edge_is_allowed(self):
        found = self.layers("sevenfold/parallel/sequence/a.cpp", '"sevenfold/parallel/tensor/column.h"')
        self.assertEqual(found, [])

    def test_torch_in_the_torch_free_half(self):
        for header in ("<torch/script.h>", "<ATen/core/Tensor.h>", "<c10/util/Optional.h>"):
            found = self.layers("sevenfold/config/a.cpp", header)
            self.assert_one(found, "src/sevenfold/config/a.cpp:1", "torch-free")

    def test_banned_header(self):
        for header in ("<torch/torch.h>", "<torch/nn/module.h>"):
            self.assert_one(self.layers("sevenfold/nn/a.cpp", header), "src/sevenfold/nn/a.cpp:1", "banned")

    def test_heavy_include_in_a_header(self):
        found = self.layers("sevenfold/nn/a.h", "<ATen/core/Tensor.h>", "<ATen/ATen.h>")
        self.assert_one(found, "src/sevenfold/nn/a.h:2", "header")
        self.write("src/sevenfold/nn/a.h", "")
        self.assertEqual(self.layers("sevenfold/nn/internal/b.h", "<ATen/ATen.h>"), [])

    def test_internal_of_another_module(self):
        found = self.layers("sevenfold/optim/a.cpp", '"sevenfold/nn/internal/autograd.h"')
        self.assert_one(found, "src/sevenfold/optim/a.cpp:1", "internal")

    def test_own_header_comes_first(self):
        found = self.layers("sevenfold/mesh/mesh.cpp", "<vector>", '"sevenfold/mesh/mesh.h"')
        self.assert_one(found, "src/sevenfold/mesh/mesh.cpp:1", "own-first")

    def test_paths_are_whole_and_exist(self):
        self.assert_one(self.layers("sevenfold/mesh/a.cpp", '"mesh.h"'), "src/sevenfold/mesh/a.cpp:1", "path")
        found = self.layers("sevenfold/mesh/a.cpp", '"sevenfold/core/missing.h"')
        self.assert_one(found, "src/sevenfold/mesh/a.cpp:1", "path")

    def test_headers_of_programs_stay_with_the_programs(self):
        self.write("src/apps/options.h", "")
        self.assertEqual(self.layers("apps/main.cpp", '"apps/options.h"'), [])
        found = self.layers("sevenfold/train/a.cpp", '"apps/options.h"')
        self.assert_one(found, "src/sevenfold/train/a.cpp:1", "order")

    def test_unlisted_folder(self):
        self.assert_one(self.layers("sevenfold/extra/a.cpp"), "src/sevenfold/extra/a.cpp:1", "order")


class CheckText(Tree):
    def test_clean_tree(self):
        self.assertEqual(TEXT.check_tree(self.root), [])

    def test_other_than_ascii(self):
        self.write("src/a.cpp", "// ok\n// 2 \u00d7 3\n")
        self.assert_one(TEXT.check_tree(self.root), "src/a.cpp:2", "ascii")

    def test_vague_file_name(self):
        self.write("src/mesh_" + "utils.cpp", "")
        self.assert_one(TEXT.check_tree(self.root), "src/mesh_", "name")

    def test_open_end_without_issue(self):
        self.write("src/a.cpp", "// TO" + "DO later\n// TO" + "DO(#12) later\n")
        self.assert_one(TEXT.check_tree(self.root), "src/a.cpp:1", "open end")

    def test_conflict_left_by_a_merge(self):
        self.write("README.md", "a\n" + "<" * 7 + " HEAD\nb\n")
        self.assert_one(TEXT.check_tree(self.root), "README.md:2", "conflict")
        self.write("README.md", "")
        self.write("src/a.cpp", ">" * 7 + " 1234567 (b)\n")
        self.assert_one(TEXT.check_tree(self.root), "src/a.cpp:1", "conflict")

    def test_dead_link(self):
        self.write("docs/a.md", "[b](b.md) [web](https://x.org) [here](#part) [up](../README.md#map)\n")
        self.write("README.md", "")
        self.assert_one(TEXT.check_tree(self.root), "docs/a.md:1", "link")


class CheckSkips(Tree):
    LOG = ("[ RUN      ] Tree.Loads\n[  SKIPPED ] Tree.Loads (0 ms)\n[       OK ] Tree.Other (1 ms)\n"
           "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] Tree.Loads\n")

    def status(self, expected):
        self.write("log", self.LOG)
        self.write("expected", expected)
        with contextlib.redirect_stdout(io.StringIO()):
            return SKIPS.main(self.root / "log", self.root / "expected")

    def test_names_are_read_once(self):
        self.assertEqual(SKIPS.skipped_tests(self.LOG), ["Tree.Loads"])
        self.assertEqual(SKIPS.skipped_tests("[  SKIPPED ] P/Ring.Adds/4, where GetParam() = 4 (0 ms)\n"),
                         ["P/Ring.Adds/4"])

    def test_unexpected_skip_fails(self):
        self.assertEqual(self.status("# none\n"), 1)
        self.assertEqual(self.status("Other.*\n"), 1)

    def test_expected_skip_passes(self):
        self.assertEqual(self.status("Tree.*\n"), 0)

    def test_condition_takes_the_excuse_away(self):
        os.environ.pop("SEVENFOLD_TEST_CONDITION", None)
        self.assertEqual(self.status("Tree.* unless SEVENFOLD_TEST_CONDITION\n"), 0)
        os.environ["SEVENFOLD_TEST_CONDITION"] = "set"
        self.addCleanup(os.environ.pop, "SEVENFOLD_TEST_CONDITION")
        self.assertEqual(self.status("Tree.* unless SEVENFOLD_TEST_CONDITION\n"), 1)


if __name__ == "__main__":
    unittest.main()
