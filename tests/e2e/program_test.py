#!/usr/bin/env python3
"""Runs the built programs as a user would. Argument: path of `sevenfold` (sevenfold-engine stands beside it)."""

import json
import os
import pathlib
import shlex
import signal
import struct
import subprocess
import sys
import time
import unittest

from program_case import PROGRAM, ProgramCase, write_tokens


class ProgramTest(ProgramCase):
    # --- the job -------------------------------------------------------------------------------------------

    def test_trains_and_says_what_comes_next(self):
        result = self.run_program("train", self.experiment(), "--ranks", "2", "--out", "run")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([line["iteration"] for line in lines], [1, 2, 3])
        self.assertIn("simulated cluster: 2 ranks", result.stdout)
        self.assertIn("iteration        3/       3 | consumed samples:", result.stdout)
        self.assertTrue(result.stdout.splitlines()[-1].startswith("next: sevenfold verify"))
        self.assertEqual(result.stderr, "", "no progress bar without a terminal")

    def test_trains_a_torchtitan_file_as_its_megatron_twin(self):
        keys = {"model": {"flavor": "debugmodel", "dim": 32, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2,
                          "multiple_of": 64, "vocab_size": 101},
                "training": {"mock_data": False, "dataset_path": str(self.folder / "tokens"), "seq_len": 32,
                             "local_batch_size": 4, "steps": 4},
                "lr_scheduler": {"warmup_steps": 2}, "metrics": {"log_freq": 1},
                "checkpoint": {"enable": True, "folder": "kept", "interval": 1, "keep_latest_k": 2},
                "parallelism": {"pipeline_parallel_degree": 2, "pipeline_parallel_schedule": "ZBVZeroBubble"}}
        module = {"framework": "torchtitan", "config": "pre_trainer.yaml", "model": "llama3.1_8B.yaml",
                  "overrides": keys}
        titan = self.experiment(text=json.dumps({
            "work_group": "w", "user_name": "u", "exp_name": "e", "workspace": str(self.folder / "output"),
            "sevenfold": {"shuffle": False, "ranks": 4}, "modules": {"pre_trainer": module}}, indent=1))
        twin = self.folder / "twin.yaml"
        translated = self.run_program("config", titan, "--as", "megatron")
        self.assertEqual(translated.returncode, 0, translated.stderr)
        twin.write_text(translated.stdout)
        self.assertIn("framework: megatron", translated.stdout.replace('"', ""))
        rows = {}
        for name in titan, str(twin):
            out = "run" + str(len(rows))
            result = self.run_program("train", name, "--out", out)
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = (self.folder / out / "metrics.jsonl").read_text().splitlines()
            rows[name] = [(row["loss"], row["grad_norm"], row["lr"]) for row in map(json.loads, lines)]
            self.assertEqual(sorted(path.name for path in (self.folder / out / "kept").iterdir()),
                             ["latest", "step-00000003", "step-00000004"])
        self.assertEqual(rows[titan], rows[str(twin)])
        # Up to the rate in two steps, then down in a line to a half of it before the last step's end.
        self.assertEqual([round(lr, 10) for _, _, lr in rows[titan]], [4e-4, 8e-4, 8e-4, 4e-4])
        result = self.run_program("verify", titan)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def losses(self, out):
        """Of the steps in metrics.jsonl, by iteration."""
        lines = [json.loads(line) for line in (self.folder / out / "metrics.jsonl").read_text().splitlines()]
        return [(line["iteration"], line["loss"]) for line in lines if "loss" in line]

    def train_to(self, steps, out, *words):
        file = self.experiment({"save": "yes", "save_interval": 2, "optimizer": "adam", "lr": 0.01})
        result = self.run_program("train", file, f"train_iters={steps}", "--ranks", "2", "--out", out, *words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_goes_on_from_the_newest_checkpoint_and_from_one_that_is_named(self):
        self.train_to(5, "whole")
        whole = self.losses("whole")
        self.assertEqual([iteration for iteration, _ in whole], [1, 2, 3, 4, 5])
        kept = sorted(path.name for path in (self.folder / "whole/checkpoints").iterdir())
        self.assertEqual(kept, ["latest", "step-00000002", "step-00000004", "step-00000005"])
        self.train_to(3, "parts", "--tensorboard")
        self.train_to(5, "parts", "--tensorboard")
        self.assertEqual(self.losses("parts"), whole)
        self.assertEqual(len(list((self.folder / "parts/tensorboard").iterdir())), 2)
        self.train_to(5, "beside", "--resume", "whole/checkpoints/step-00000002")
        self.assertEqual(self.losses("beside"), whole[2:])
        self.train_to(6, "beside", "--resume", "whole/checkpoints")  # the newest there is of step 5
        self.assertEqual([iteration for iteration, _ in self.losses("beside")], [3, 4, 5, 6])

    def test_verifies_a_layout_as_text_and_json(self):
        result = self.run_program("verify", self.experiment(), "--ranks", "4")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("PASS", result.stdout)
        result = self.run_program("verify", self.experiment(), "--ranks", "4", "--json", "--steps", "2")
        report = json.loads(result.stdout)
        self.assertTrue(report["pass"])
        self.assertEqual(report["layout"]["dp"], 4)
        self.assertEqual(len(report["steps"]), 2)
        self.assertLessEqual(report["max_gradient_difference"], 1e-9)
        self.assertEqual(report["axes_used"], {"dp": True})

    def test_verifies_in_the_precision_of_training(self):
        for precision, tolerance in (("bf16", 3e-2), ("fp32", 1e-4)):
            result = self.run_program("verify", self.experiment(), "--ranks", "2", "--precision", precision, "--json")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            report = json.loads(result.stdout)
            self.assertEqual((report["precision"], report["tolerance"]), (precision, tolerance))

    def test_verify_fails_with_a_planted_fault(self):
        result = self.run_program("verify", self.experiment(), "--ranks", "2",
                                  environment={"SEVENFOLD_FAULTS": "dp-sum-missing"})
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("FAIL", result.stdout)
        self.assertIn("planted faults are switched on", result.stderr)

    def test_names_a_next_command_that_works_when_pasted(self):
        odd = self.folder / "a folder; with 'quotes'"
        odd.mkdir()
        path = pathlib.Path(self.experiment()).rename(odd / "experiment.yaml")
        result = self.run_program("train", str(path), "train_iters=1", "--ranks", "2", "--out", "run")
        command = result.stdout.splitlines()[-1].removeprefix("next: sevenfold ")
        self.assertIn("train_iters=1", command)
        self.assertIn("--ranks 2", command)
        pasted = self.run_program(*shlex.split(command))
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        command = pasted.stdout.splitlines()[-1].removeprefix("next: sevenfold ")
        self.assertEqual(self.run_program(*shlex.split(command)).returncode, 0)

    def test_fails_when_its_output_cannot_be_written(self):
        for arguments in (["verify", self.experiment(), "--ranks", "2", "--json"],
                          ["config", self.experiment(), "--json"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                        cwd=self.folder, check=False)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("cannot write to", result.stderr)

    def test_refuses_a_folder_that_another_run_writes_to(self):
        process = subprocess.Popen([PROGRAM, "train", self.experiment({"train_iters": 1000000}), "--ranks", "2",
                                    "--out", "run"], stdout=subprocess.DEVNULL, cwd=self.folder)
        metrics = self.folder / "run/metrics.jsonl"
        deadline = time.time() + 120
        while time.time() < deadline and not (metrics.exists() and metrics.stat().st_size > 0):
            time.sleep(0.05)
        self.assert_refused(["train", self.experiment(), "--out", "run"], "another run")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)

    def test_warns_of_a_batch_without_a_trained_token(self):
        write_tokens(self.folder / "tokens", [[0] * 300])
        result = self.run_program("train", self.experiment({"weight_decay": 0.0}), "--ranks", "2", "--out", "run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("warning: no token of iteration"), 3)
        rows = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([(row["loss"], row["grad_norm"], row["trained_tokens"]) for row in rows], [(0, 0, 0)] * 3)

    def test_ends_a_run_whose_loss_is_not_finite(self):
        result = self.run_program("train", self.experiment({"lr": "1e30"}), "--out", "run")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertIn("iteration 2", result.stderr)

    def test_verify_shrinks_a_large_file(self):
        big = {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_query_groups": 8,
               "ffn_hidden_size": 11008, "seq_length": 4096, "max_position_embeddings": 4096,
               "vocab_size": 32000, "micro_batch_size": 2, "global_batch_size": 64, "mock_data": True,
               "train_data_path": None}
        result = self.run_program("verify", self.experiment(big), "--ranks", "8", "--shrink", "--json")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(json.loads(result.stdout)["layout"]["dp"], 2)

    def test_stops_cleanly_when_asked(self):
        process = subprocess.Popen([PROGRAM, "train", self.experiment({"train_iters": 1000000}), "--ranks", "2",
                                    "--out", "run"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder)
        metrics = self.folder / "run/metrics.jsonl"
        deadline = time.time() + 120
        while time.time() < deadline and not (metrics.exists() and metrics.stat().st_size > 0):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("as asked by a signal", output)
        for line in metrics.read_text().splitlines():
            json.loads(line)

    def test_writes_a_trace_and_event_files_when_asked(self):
        result = self.run_program("train", self.experiment(), "--ranks", "2", "--out", "run", "--trace",
                                  "--tensorboard", "--check-replicas", "2", "--peak-tflops", "0.05")
        self.assertEqual(result.returncode, 0, result.stderr)
        events = json.loads((self.folder / "run/trace.json").read_text())["traceEvents"]
        work = {(event["pid"], event["name"]) for event in events if event["ph"] == "X"}
        for rank in (0, 1):
            for name in ("read data", "forward 0", "backward 3", "optimizer", "wait: all_reduce dp-cp"):
                self.assertIn((rank, name), work)
        self.assertEqual(sum(event["ph"] == "b" for event in events), sum(event["ph"] == "e" for event in events))
        files = list((self.folder / "run/tensorboard").iterdir())
        self.assertEqual(len(files), 1)
        self.assertIn(b"lm loss", files[0].read_bytes())
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        for line in lines:
            self.assertGreater(line["mfu"], 0.0)

    def test_leaves_a_whole_trace_when_stopped(self):
        process = subprocess.Popen([PROGRAM, "train", self.experiment({"train_iters": 1000000}), "--ranks", "2",
                                    "--out", "run", "--trace"], stdout=subprocess.DEVNULL, cwd=self.folder)
        metrics = self.folder / "run/metrics.jsonl"
        deadline = time.time() + 120
        while time.time() < deadline and not (metrics.exists() and metrics.stat().st_size > 0):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=120), 0)
        self.assertGreater(len(json.loads((self.folder / "run/trace.json").read_text())["traceEvents"]), 10)

    def test_validates_only(self):
        keys = {"valid_data_path": str(self.folder / "tokens"), "eval_iters": 2}
        result = self.run_program("train", self.experiment(keys), "--ranks", "2", "--out", "run", "--eval-only")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("validation loss at iteration 0 | lm loss value:", result.stdout)
        self.assertIn("| samples: 16 |", result.stdout)
        self.assert_refused(["train", self.experiment({"eval_iters": 0}), "--eval-only"], "eval_iters")

    # Files above 256 MiB are checked as they are read, not at the start.
    def test_names_a_bad_token_met_under_way(self):
        tokens = 150 * 2**20
        with open(self.folder / "large.bin", "wb") as file:
            file.write(struct.pack("<1000H", *[1 + i % 100 for i in range(1000)]))
            file.seek(2 * (32 * 10 + 5))
            file.write(struct.pack("<H", 60000))
            file.truncate(2 * tokens)
        with open(self.folder / "large.idx", "wb") as file:
            file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2))
            file.write(struct.pack("<i", tokens) + struct.pack("<q", 0) + struct.pack("<qq", 0, 1))
        result = self.run_program("train", self.experiment({"train_data_path": str(self.folder / "large")}),
                                  "--ranks", "2", "--out", "run")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for word in ("large", "60000", "document 0", str(32 * 10 + 5)):
            self.assertIn(word, result.stderr)
        self.assertEqual(len((self.folder / "run/metrics.jsonl").read_text().splitlines()), 1)

    # --- files of Primus -----------------------------------------------------------------------------------

    SMALL = ["num_layers=2", "hidden_size=64", "ffn_hidden_size=96", "num_attention_heads=4", "num_query_groups=2",
             "seq_length=64", "max_position_embeddings=64", "micro_batch_size=1", "global_batch_size=4",
             "train_iters=3"]

    @unittest.skipUnless("SEVENFOLD_PRIMUS_DIR" in os.environ, "needs a Primus checkout")
    def test_trains_files_of_primus_made_small(self):
        folder = pathlib.Path(os.environ["SEVENFOLD_PRIMUS_DIR"]) / "examples/megatron/configs/MI300X"
        for name in ("llama2_7B", "llama3.1_8B"):
            with self.subTest(name):
                result = self.run_program("train", str(folder / f"{name}-BF16-pretrain.yaml"), *self.SMALL,
                                          "--ranks", "2", "--out", name)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.assertIn("in bf16 on each rank", result.stdout)
                lines = [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]
                losses = [line["loss"] for line in lines if "loss" in line]
                self.assertEqual(len(losses), 3)
                for loss in losses:
                    self.assertTrue(5.0 < loss < 13.0, losses)

    # --- mistakes ------------------------------------------------------------------------------------------

    def test_refuses_a_wrong_command_line(self):
        self.assert_refused([])
        self.assert_refused(["train"], "file")
        self.assert_refused(["train", self.experiment(), "--no-such-option"], "--no-such-option")
        self.assert_refused(["conjure"], "conjure")
        self.assert_refused(["train", self.experiment(), "--resume", "maybe"], "maybe", "auto")
        self.assert_refused(["train", self.experiment(), "--backend", "carrier-pigeon"], "carrier-pigeon", "threads")

    def test_refuses_a_missing_file(self):
        self.assert_refused(["train", "nowhere.yaml"], "nowhere.yaml")
        self.assert_refused(["train", str(self.folder)], str(self.folder))

    def test_refuses_unreadable_yaml_and_shows_the_line(self):
        self.assert_refused(["train", self.experiment(text="work_group: a\nuser_name: [b\nexp_name: c\n")],
                            "experiment.yaml:")
        self.assert_refused(["train", self.experiment(text="")], "experiment.yaml")
        self.assert_refused(["train", self.experiment(text="- a\n- b\n")], "experiment.yaml")

    def test_refuses_files_that_extend_each_other(self):
        (self.folder / "other.yaml").write_text("extends: experiment.yaml\n")
        self.assert_refused(["train", self.experiment(text="extends: other.yaml\nwork_group: w\n")], "other.yaml")

    def test_refuses_a_misspelt_key(self):
        self.assert_refused(["train", self.experiment({"tensor_model_parallel_sise": 2})],
                            "tensor_model_parallel_sise", "tensor_model_parallel_size", "experiment.yaml:")
        self.assert_refused(["train", self.experiment(), "hiden_size=64"], "hiden_size", "hidden_size")

    def test_refuses_a_value_of_the_wrong_type(self):
        self.assert_refused(["train", self.experiment({"hidden_size": "wide"})], "hidden_size", "wide")

    def test_refuses_batches_that_do_not_divide(self):
        line = self.assert_refused(["train", self.experiment({"global_batch_size": 6, "micro_batch_size": 2}),
                                    "--ranks", "2"], "6", "2", "4", "8")
        self.assertIn("global_batch_size", line)
        self.assert_refused(["train", self.experiment({"micro_batch_size": 0})], "micro_batch_size", "0")

    def test_refuses_an_impossible_world_size(self):
        self.assert_refused(["train", self.experiment({"tensor_model_parallel_size": 2}), "--ranks", "3"],
                            "tensor_model_parallel_size", "3")
        self.assert_refused(["train", self.experiment(), "--ranks", "0"], "0")
        self.assert_refused(["train", self.experiment(), "--ranks", "-2"], "-2")

    def test_refuses_what_it_cannot_do_yet(self):
        self.assert_refused(["train", self.experiment({"fp8": "hybrid"})], "fp8", "use fp8=null")
        self.assert_refused(["train", self.experiment({"num_experts": 8})], "num_experts")
        self.assert_refused(["verify", self.experiment({"context_parallel_size": 2}), "--ranks", "4"],
                            "context_parallel_size")

    def test_refuses_missing_and_corrupt_data(self):
        self.assert_refused(["train", self.experiment({"train_data_path": str(self.folder / "absent")})], "absent")
        index = self.folder / "tokens.idx"
        whole = index.read_bytes()
        index.write_bytes(whole[:100])
        self.assert_refused(["train", self.experiment()], "tokens.idx")
        index.write_bytes(b"PK" + whole[2:])
        self.assert_refused(["train", self.experiment()], "tokens.idx")
        index.write_bytes(whole)
        tokens = self.folder / "tokens.bin"
        tokens.write_bytes(tokens.read_bytes()[:-4])
        self.assert_refused(["train", self.experiment()], "tokens.bin")

    def test_refuses_a_token_beyond_the_vocabulary(self):
        self.assert_refused(["train", self.experiment({"vocab_size": 60})], "tokens", "60")

    def test_refuses_an_output_directory_that_it_cannot_write(self):
        (self.folder / "file").write_text("not a directory")
        self.assert_refused(["train", self.experiment(), "--out", str(self.folder / "file/run")], "file/run")
        self.assert_refused(["data", "prepare", "--input", str(self.folder / "experiment.yaml"), "--output",
                             str(self.folder / "file/tokens")], "file")

    def test_refuses_to_write_over_a_run_without_resume(self):
        taken = self.folder / "run"
        taken.mkdir()
        (taken / "metrics.jsonl").write_text("{}\n")
        self.assert_refused(["train", self.experiment(), "--out", str(taken), "--resume", "none"], "--resume")
        self.assertEqual((taken / "metrics.jsonl").read_text(), "{}\n")

    def test_refuses_to_resume_from_what_is_not_there(self):
        way_out = "; use auto, none or the folder of a checkpoint"
        steps = self.folder / "kept"
        for step in range(100, 900, 100):
            (steps / f"step-{step:08d}").mkdir(parents=True)
        (steps / "latest").write_text("step-00000800")
        file = self.experiment()
        line = self.assert_refused(["train", file, "--resume", "kept/step-00000150/"])
        self.assertEqual(line, "train: --resume kept/step-00000150/: there is no such folder; beside it: "
                         "step-00000300, step-00000400, step-00000500, step-00000600, step-00000700, step-00000800 "
                         "and 2 more" + way_out)
        line = self.assert_refused(["train", file, "--resume", "kept/step-00000100/more"])
        self.assertEqual(line, "train: --resume kept/step-00000100/more: there is no such folder; beside it: no "
                         "folder" + way_out)
        line = self.assert_refused(["train", file, "--resume", "gone/checkpoints/step-00000100"])
        self.assertEqual(line, "train: --resume gone/checkpoints/step-00000100: there is no such folder, nor "
                         "gone/checkpoints" + way_out)
        line = self.assert_refused(["train", file, "--resume", "kept/latest"])
        self.assertEqual(line, "train: --resume kept/latest: this is a file" + way_out)

    def test_verifies_whatever_the_file_says_of_checkpoints(self):
        file = self.experiment({"save": "kept", "load": str(self.folder / "nowhere"), "finetune": False,
                                "override_opt_param_scheduler": False, "use_checkpoint_opt_param_scheduler": True})
        result = self.run_program("verify", file, "--ranks", "2")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"(?m)^notice: .*experiment.yaml:\d+ load=.*/nowhere: not read, as both "
                         "sides start hot$")
        self.assertFalse((self.folder / "output").exists(), "something was written")


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
