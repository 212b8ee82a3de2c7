#!/usr/bin/env python3
"""Processor time of `sevenfold data prepare --workers 1` with each kind of tokenizer.

The text is made up: JSON lines of words that mostly occur once, so that no tokenizer can answer from a cache of words
as often as in real text. The tokenizers are the small ones of the tests.
"""
import argparse
import json
import pathlib
import random
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKENIZERS = ("byte", "gpt2.json", "llama3.json", "qwen.json", "unigram.model", "bpe.model")
AIM_MB_PER_S = 50 / 60


def write_text(path, size):
    random.seed(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    written = 0
    with open(path, "w") as file:
        while written < size:
            words = ["".join(random.choices(letters, range(26, 0, -1), k=random.randint(1, 9))) for _ in range(120)]
            line = json.dumps({"text": " ".join(words) + "."}) + "\n"
            written += file.write(line)


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=50)
    parser.add_argument("--program", default=ROOT / "build/release/bin/sevenfold")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text.jsonl"
        write_text(text, arguments.mb * 1_000_000)
        print(f"{arguments.mb} MB of JSON lines, one worker; the aim is {AIM_MB_PER_S:.2f} MB per second and core")
        for name in TOKENIZERS:
            tokenizer = name if name == "byte" else ROOT / "tests/golden/tokenizers" / name
            before = children_s()
            subprocess.run([arguments.program, "data", "prepare", "--input", text, "--tokenizer", tokenizer,
                            "--output", pathlib.Path(folder) / name, "--workers", "1"],
                           check=True, capture_output=True)
            seconds = children_s() - before
            print(f"{name:<16}{seconds:6.2f} s {arguments.mb / seconds:7.1f} MB/s")


if __name__ == "__main__":
    main()
