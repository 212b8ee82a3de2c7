#!/usr/bin/env python3
"""mesh_command_test.py PROGRAM: `sevenfold mesh` on files as users write them."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""

EXPERIMENT = """
work_group: test
user_name: test
exp_name: mesh
workspace: ./output
modules:
  pre_trainer:
    framework: megatron
    config: pre_trainer.yaml
    model: llama2_7B.yaml
    overrides:
      train_iters: 2
      lr_warmup_iters: 0
      mock_data: true
      micro_batch_size: 1
      global_batch_size: 32
      tensor_model_parallel_size: 2
      pipeline_model_parallel_size: 2
      context_parallel_size: 2
"""


class MeshCommand(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "an experiment.yaml"
        self.file.write_text(EXPERIMENT, encoding="utf-8")

    def mesh(self, *arguments, **variables):
        environment = {name: value for name, value in os.environ.items() if name != "GPUS_PER_NODE"}
        return subprocess.run([PROGRAM, "mesh", str(self.file), *arguments], capture_output=True, text=True,
                              timeout=30, env={**environment, **variables})

    def document(self, *arguments):
        result = self.mesh("--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_json_has_the_documented_form(self):
        mesh = self.document("--world", "16")
        self.assertEqual(mesh["axes"], {"tp": 2, "cp": 2, "dp": 2, "pp": 2})
        self.assertEqual(mesh["expert_axes"], {"etp": 2, "ep": 1, "edp": 4, "pp": 2})
        self.assertEqual(mesh["nodes"], 2)
        self.assertEqual([row["rank"] for row in mesh["ranks"]], list(range(16)))
        last = {axis: mesh["ranks"][15][axis] for axis in ("tp", "cp", "dp", "pp", "etp", "ep", "edp")}
        self.assertEqual(last, {"tp": 1, "cp": 1, "dp": 1, "pp": 1, "etp": 1, "ep": 0, "edp": 3})
        self.assertEqual(mesh["groups"]["dp-cp"],
                         [[0, 2, 4, 6], [1, 3, 5, 7], [8, 10, 12, 14], [9, 11, 13, 15]])

    def test_the_next_command_repeats_what_the_user_gave(self):
        words = ["tensor_model_parallel_size=1", "pipeline_model_parallel_size=1", "context_parallel_size=1",
                 "bf16=false", "mock_data=false", "train_data_path=D1", "exp_name=my run", "vocab_size=101"]
        line = self.mesh("--strict", *words).stdout.splitlines()[-1]
        self.assertEqual(shlex.split(line)[1:], ["sevenfold", "verify", str(self.file), *words, "--strict",
                                                 "--ranks", "1"])

    def test_values_that_training_would_refuse_are_no_obstacle(self):
        self.assertEqual(self.mesh("--world", "16").returncode, 0)

    def test_override_changes_the_layout(self):
        mesh = self.document("context_parallel_size=1", "--world", "16")
        self.assertEqual(mesh["axes"], {"tp": 2, "cp": 1, "dp": 4, "pp": 2})

    def test_text_ends_with_a_next_command(self):
        result = self.mesh("--world", "16")
        self.assertRegex(result.stdout.splitlines()[-1],
                         r"^next: sevenfold config '.*an experiment\.yaml' sevenfold\.ranks=16$")
        self.assertIn("[0,2,4,6]", result.stdout)

    def test_nodes_have_the_size_that_the_environment_says(self):
        self.assertIn("16 ranks, 2 nodes of 8", self.mesh("--world", "16").stdout)
        self.assertIn("16 ranks, 4 nodes of 4", self.mesh("--world", "16", GPUS_PER_NODE="4").stdout)

    def test_tensor_parallel_groups_that_leave_the_node_are_called_out(self):
        result = self.mesh("tensor_model_parallel_size=16", "context_parallel_size=1", "--world", "32", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        json.loads(result.stdout)
        self.assertIn("warning: tensor_model_parallel_size=16", result.stderr)
        self.assertNotIn("warning", self.mesh("--world", "16").stderr)

    def test_world_that_does_not_fit_is_one_sentence(self):
        result = self.mesh("--world", "12")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        for part in ("12", "8", "16", "tensor_model_parallel_size"):
            self.assertIn(part, result.stderr)

    def test_world_that_is_no_number_or_below_one(self):
        for world in ("0", "-8", "many"):
            self.assertEqual(self.mesh("--world", world).returncode, 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
