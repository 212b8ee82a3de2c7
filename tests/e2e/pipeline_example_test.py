#!/usr/bin/env python3
"""Runs a few steps of examples/pipeline.yaml: other schedules and one rank must give its losses.

Arguments: path of `sevenfold`, path of the source tree.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

STEPS = ["train_iters=3", "lr_warmup_iters=0", "eval_interval=3", "full_validation=false"]
ROUNDING = 2e-5  # relative: fp32, and the norm of the gradients summed in another order


def run(program, tree, folder, *words):
    result = subprocess.run([program, words[0], str(tree / "examples/pipeline.yaml"), *words[1:]], cwd=folder,
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{words}: exit code {result.returncode}: {result.stderr}")
    return result.stdout


def losses(program, tree, folder, *overrides):
    metrics = folder / "output/sevenfold/examples/pipeline/metrics.jsonl"
    metrics.unlink(missing_ok=True)
    run(program, tree, folder, "train", *STEPS, *overrides)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    bubbles = [row["bubble_rate"] for row in rows if "bubble_rate" in row]
    return [row.get("loss", row.get("validation_loss")) for row in rows], bubbles


def main():
    program, tree = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        drawing = run(program, tree, folder, "schedule", "--text")
        assert "rank 1 ...F0 B0 F1 B1 W0" in drawing and "zb-h1: 2 ranks, 8 micro batches" in drawing, drawing

        found, bubbles = losses(program, tree, folder)
        assert len(found) == 4 and len(bubbles) == 3, (found, bubbles)
        assert all(0 < rate < 1 for rate in bubbles), bubbles
        assert losses(program, tree, folder)[0] == found, "the second run gives other losses"
        print("three steps and a validation, run twice: the same bits")

        for words in (["pp_algorithm=1f1b"], ["pp_algorithm=v-half", "num_virtual_stages_per_pipeline_rank=2"]):
            other, _ = losses(program, tree, folder, *words)
            assert other == found, (words, other, found)
        print("1f1b and v-half: the same bits")

        alone, _ = losses(program, tree, folder, "pipeline_model_parallel_size=1", "sevenfold.ranks=1")
        apart = max(abs(a - b) / b for a, b in zip(alone, found, strict=True))
        print(f"one rank: losses at most {apart:.1e} apart")
        assert apart <= ROUNDING, (alone, found)


if __name__ == "__main__":
    main()
