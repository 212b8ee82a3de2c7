"""An experiment on M0 and the program as a user starts it, for tests of whole programs."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else ""  # path of `sevenfold`

M0 = {
    "num_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "group_query_attention": True,
    "num_query_groups": 2, "ffn_hidden_size": 64, "vocab_size": 101, "make_vocab_size_divisible_by": 1,
    "seq_length": 32, "max_position_embeddings": 64, "micro_batch_size": 1, "global_batch_size": 8,
    "train_iters": 3, "optimizer": "sgd", "lr": 0.1, "lr_decay_style": "constant", "lr_warmup_iters": 0,
    "dataloader_type": "single", "bf16": False, "eod_mask_loss": True, "calculate_per_token_loss": True,
}


def write_tokens(prefix, documents):
    """A Megatron data set of 16-bit tokens."""
    lengths = [len(document) for document in documents]
    starts = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    with open(f"{prefix}.bin", "wb") as file:
        for document in documents:
            file.write(struct.pack(f"<{len(document)}H", *document))
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        file.write(struct.pack(f"<{len(lengths)}i", *lengths))
        file.write(struct.pack(f"<{len(lengths)}q", *starts))
        file.write(struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1)))


class ProgramCase(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.addCleanup(self.holder.cleanup)
        self.folder = pathlib.Path(self.holder.name)
        write_tokens(self.folder / "tokens", [[1 + (7 * d + 3 * p) % 100 for p in range(40)] + [0]
                                              for d in range(30)])

    def experiment(self, overrides=None, text=None, **top):
        """Writes experiment.yaml and returns its path."""
        path = self.folder / "experiment.yaml"
        if text is None:
            keys = {**M0, "train_data_path": str(self.folder / "tokens"), **(overrides or {})}
            module = {"framework": "megatron", "config": "pre_trainer.yaml", "model": "llama2_7B.yaml",
                      "overrides": keys}
            text = json.dumps({"work_group": "w", "user_name": "u", "exp_name": "e",
                               "workspace": str(self.folder / "output"),
                               "sevenfold": {"shuffle": False, "eod_token_id": 0},
                               "modules": {"pre_trainer": module}, **top}, indent=1)
        path.write_text(text)
        return str(path)

    def run_program(self, *arguments, environment=None):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, cwd=self.folder,
                              env={**os.environ, **(environment or {})}, check=False)

    def assert_refused(self, arguments, *words):
        """Exit code 2, one sentence on stderr with these words, nothing left behind."""
        result = self.run_program(*arguments)
        self.assertEqual(result.returncode, 2, result)
        lines = result.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertFalse((self.folder / "output").exists(), "something was written")
        return lines[0]
