#!/usr/bin/env python3
"""Kills, stops, damages and resumes runs. Arguments: path of `sevenfold`, how many runs to kill (default 6)."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from program_case import PROGRAM, ProgramCase

KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 6
MEASURED = ("step_time_s", "tokens_per_s", "bubble_rate", "exposed_communication_s", "peak_memory_bytes")
SAVING = {"save": "yes", "save_interval": 1, "optimizer": "adam", "lr": 0.003, "hidden_dropout": 0.1,
          "use_distributed_optimizer": True}


class ResumeTest(ProgramCase):
    def train(self, file, out, *words):
        return self.run_program("train", file, "--ranks", "2", "--out", out, *words)

    def start(self, file, out, *words):
        return subprocess.Popen([PROGRAM, "train", file, "--ranks", "2", "--out", out, *words],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def results(self, out):
        lines = [json.loads(line) for line in (self.folder / out / "metrics.jsonl").read_text().splitlines()]
        return [{key: value for key, value in line.items() if key not in MEASURED} for line in lines]

    def checkpoint(self, out, step):
        return self.folder / out / "checkpoints" / f"step-{step:08}"

    def newest(self, out):
        """Name of the last checkpoint of the run, or of the one that is being written."""
        return max((path.name for path in (self.folder / out / "checkpoints").glob("step-*")), default="")

    def assert_same_files(self, left, right):
        """But for the configuration, which names the run's folder."""
        self.assertEqual(sorted(path.name for path in left.iterdir()), sorted(path.name for path in right.iterdir()))
        for path in left.iterdir():
            if path.name != "index.json":
                self.assertEqual(path.read_bytes(), (right / path.name).read_bytes(), path.name)
        indices = [json.loads((folder / "index.json").read_text()) for folder in (left, right)]
        for key in "format", "run", "optimizer", "tensors":
            self.assertEqual(indices[0][key], indices[1][key])

    def test_runs_killed_at_any_moment_end_as_one_that_was_not(self):
        steps = 10 + 4 * KILLS
        file = self.experiment({**SAVING, "train_iters": steps})
        self.assertEqual(self.train(file, "straight").returncode, 0)
        chance = random.Random(26)
        killed = 0
        for kill in range(KILLS):
            process = self.start(file, "killed")
            before = self.newest("killed")
            while process.poll() is None and self.newest("killed") == before:
                time.sleep(0.002)
            time.sleep(chance.uniform(0.0, 0.12))  # some steps, each with a save
            process.kill()
            error = process.communicate()[1]
            self.assertIn(process.returncode, (0, -signal.SIGKILL), f"kill {kill}: {error}")
            killed += process.returncode != 0
        self.assertGreater(killed, 0)
        result = self.train(file, "killed")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.results("killed"), self.results("straight"))
        self.assert_same_files(self.checkpoint("killed", steps), self.checkpoint("straight", steps))
        names = sorted(path.name for path in (self.folder / "killed/checkpoints").iterdir())
        self.assertEqual(names, ["latest"] + [f"step-{step:08}" for step in range(1, steps + 1)])

    def test_a_signal_saves_before_the_end(self):
        file = self.experiment({**SAVING, "train_iters": 1000000, "save_interval": 1000000})
        process = self.start(file, "run")
        metrics = self.folder / "run/metrics.jsonl"
        deadline = time.time() + 120
        while time.time() < deadline and not (metrics.exists() and metrics.stat().st_size > 0):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0)
        steps = len(self.results("run"))
        self.assertTrue(self.checkpoint("run", steps).exists())
        result = self.train(file, "run", f"train_iters={steps + 2}", "lr_decay_iters=1000000")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"goes on from {self.folder}/run/checkpoints/step-{steps:08}".replace(str(self.folder) + "/", ""),
                      result.stdout.replace(str(self.folder) + "/", ""))
        self.assertEqual([line["iteration"] for line in self.results("run")], list(range(1, steps + 3)))

    def test_damage_is_refused_naming_the_file(self):
        file = self.experiment(SAVING)
        self.assertEqual(self.train(file, "whole").returncode, 0)
        shard = "step-00000003/rank-00001.safetensors"

        def cut(path):
            os.truncate(path, path.stat().st_size - 1)

        def flip(path):
            content = bytearray(path.read_bytes())
            content[-9] ^= 0x10
            path.write_bytes(bytes(content))

        def empty(path):
            path.write_text("")

        for damage, name in ((cut, shard), (flip, shard), (empty, "latest"), (pathlib.Path.unlink, shard),
                             (pathlib.Path.unlink, "step-00000003/index.json"), (empty, "step-00000003/index.json")):
            shutil.copytree(self.folder / "whole", self.folder / "damaged")
            damage(self.folder / "damaged/checkpoints" / name)
            result = self.train(file, "damaged", "train_iters=5")
            self.assertEqual(result.returncode, 2, result)
            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
            self.assertIn("damaged/checkpoints/" + name, result.stderr)
            self.assertEqual((self.folder / "damaged/metrics.jsonl").read_bytes(),
                             (self.folder / "whole/metrics.jsonl").read_bytes())
            shutil.rmtree(self.folder / "damaged/checkpoints/step-00000003")
            (self.folder / "damaged/checkpoints/latest").unlink()
            self.assertEqual(self.train(file, "damaged", "train_iters=5").returncode, 0, "the one before it is whole")
            shutil.rmtree(self.folder / "damaged")

    def test_another_layout_goes_on(self):
        file = self.experiment({**SAVING, "train_iters": 6, "hidden_dropout": 0.0, "lr_decay_iters": 6})
        self.assertEqual(self.train(file, "straight", "--precision", "fp64").returncode, 0)
        self.assertEqual(self.train(file, "first", "--precision", "fp64", "exit_interval=3").returncode, 0)
        for words in (["tensor_model_parallel_size=2", "--ranks", "4"],
                      ["pipeline_model_parallel_size=2"],
                      ["data_parallel_sharding_strategy=optim_grads_params", "--ranks", "4"]):
            ranks = [] if "--ranks" in words else ["--ranks", "2"]
            result = self.run_program("train", file, "--out", "second", "--precision", "fp64", "--resume",
                                      "first/checkpoints", *words, *ranks)
            self.assertEqual(result.returncode, 0, result.stderr)
            for there, here in zip(self.results("straight")[3:], self.results("second"), strict=True):
                self.assertEqual(there["iteration"], here["iteration"])
                self.assertAlmostEqual(there["loss"], here["loss"], delta=1e-9)
                self.assertAlmostEqual(there["grad_norm"], here["grad_norm"], delta=1e-9)
            shutil.rmtree(self.folder / "second")

    def test_weights_of_another_run_are_loaded(self):
        file = self.experiment(SAVING)
        self.assertEqual(self.train(file, "first").returncode, 0)
        words = ["load=first/checkpoints", "finetune=true", "save=null"]
        result = self.train(file, "second", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line["iteration"] for line in self.results("second")], [1, 2, 3])
        self.assertLess(self.results("second")[0]["loss"], self.results("first")[0]["loss"])
        self.assertFalse((self.folder / "second/checkpoints").exists())
        self.assert_left_alone(["train", file, "--ranks", "2", "--out", "third", *words, "ckpt_step=7"],
                               "load=first/checkpoints", "no step-00000007 is there")
        self.assert_left_alone(["train", file, "--ranks", "2", "--out", "third", *words, "num_layers=3"],
                               "model.layers.2.")

    def test_checkpoints_are_looked_into(self):
        file = self.experiment(SAVING)
        self.assertEqual(self.train(file, "run").returncode, 0)
        path = "run/checkpoints/step-00000003"
        result = self.run_program("checkpoint", "inspect", "run/checkpoints", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual((found["path"], found["iteration"], found["optimizer"]), (path, 3, "adamw"))
        self.assertEqual(found["files"], ["rank-00000.safetensors", "rank-00001.safetensors"])
        self.assertEqual(found["tensors"]["lm_head.weight"], {"shape": [101, 32], "dtype": "F32", "pieces": 1})
        self.assertEqual(found["bytes"], 12 * found["parameters"])
        text = self.run_program("checkpoint", "inspect", path).stdout
        self.assertIn(f"{path}: after step 3, 24 samples", text)
        self.assertRegex(text, r"model\.norm\.weight/exp_avg +F32 +\[32\] in 1 piece")
        result = self.run_program("checkpoint", "verify", path + "/")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{path} is whole", result.stdout)
        os.truncate(self.folder / path / "rank-00000.safetensors", 100)
        for action in "inspect", "verify":
            result = self.run_program("checkpoint", action, path)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{path}/rank-00000.safetensors", result.stderr)
        for place, reason in ("none", "there is no such folder"), (".", "the folder holds no checkpoint"):
            result = self.run_program("checkpoint", "inspect", place)
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1), result.stderr)
            self.assertIn(reason, result.stderr)

    def assert_left_alone(self, arguments, *words):
        self.assert_refused(arguments, *words)
        self.assertFalse((self.folder / "third").exists(), "something was written")


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
