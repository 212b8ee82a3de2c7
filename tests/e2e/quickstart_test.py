#!/usr/bin/env python3
"""Runs examples/quickstart.yaml: it must beat bigrams, and give the same bits when run again.

Arguments: path of `sevenfold`, path of the source tree, and optionally --twice (the whole run twice).
"""

import json
import pathlib
import subprocess
import sys
import tempfile

BIGRAM_SHARE = 0.92  # the validation loss is at most this part of the bigram cross entropy


def run(program, tree, folder, *overrides):
    result = subprocess.run([program, "train", str(tree / "examples/quickstart.yaml"), *overrides], cwd=folder,
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"exit code {result.returncode}: {result.stderr}")
    metrics = (folder / "output/sevenfold/examples/quickstart/metrics.jsonl").read_text()
    rows = [json.loads(line) for line in metrics.splitlines()]
    losses = [(row["iteration"], row.get("loss"), row.get("validation_loss")) for row in rows]
    return losses, result.stdout


def main():
    program, tree = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        short = ["train_iters=3", "lr_warmup_iters=0", "full_validation=false"]
        first, _ = run(program, tree, folder, *short)
        second, _ = run(program, tree, folder, *short)
        assert first == second and len(first) == 4, (first, second)
        print("three steps and a validation, run twice: the same bits")

        losses, output = run(program, tree, folder)
        share = [line for line in output.splitlines() if "of the bigram cross entropy" in line][-1]
        print(share)
        assert float(share.split(" is ")[1].split(" of ")[0]) <= BIGRAM_SHARE, share
        if "--twice" in sys.argv[3:]:
            again, _ = run(program, tree, folder)
            assert again == losses, "the second run gives other losses"
            print("the whole run, run twice: the same bits")


if __name__ == "__main__":
    main()
