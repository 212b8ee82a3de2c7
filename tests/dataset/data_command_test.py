#!/usr/bin/env python3
"""sevenfold data prepare and data inspect, run as a user runs them. Argument: the program."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/tokenizers"


class DataCommand(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        (self.path / "a.txt").write_text("Hello\n")
        (self.path / "b.txt").write_text("World")
        (self.path / "c.dat").write_bytes(b"\0\1")

    def run_data(self, *arguments):
        return subprocess.run([PROGRAM, "data", *arguments], cwd=self.path, capture_output=True, text=True,
                              timeout=30)

    def prepare(self, *arguments):
        return self.run_data("prepare", "--input", "*", "--output", "out/text", *arguments)

    def expect_error(self, part, *arguments):
        before = sorted(self.path.rglob("*"))
        result = self.run_data(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(part, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(sorted(self.path.rglob("*")), before)  # nothing half-written

    def test_prepare_writes_what_inspect_shows(self):
        result = self.prepare()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], "next: sevenfold data inspect out/text")
        self.assertIn("skipped    1 that are no text: c.dat (binary)", result.stdout)
        self.assertEqual(sorted(os.listdir(self.path / "out")), ["text.bin", "text.idx"])

        shown = self.run_data("inspect", "out/text")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("document   0 (7 tokens): Hello\\n<eod>", shown.stdout)
        self.assertTrue(shown.stdout.splitlines()[-1].startswith("next: sevenfold train"))

    def test_json_is_one_document(self):
        report = json.loads(self.prepare("--json").stdout)
        self.assertEqual((report["documents"], report["tokens"], report["vocab_size"]), (2, 13, 257))
        shown = json.loads(self.run_data("inspect", "out/text", "--json", "--document", "1", "--samples", "2",
                                         "--seq-length", "4", "--no-shuffle").stdout)
        self.assertEqual((shown["dtype"], shown["tokens"], shown["largest_token_id"]), ("u16", 13, 256))
        self.assertEqual(shown["preview"]["text"], "World<eod>")
        self.assertEqual(shown["samples"]["num_samples"], 3)
        self.assertEqual(shown["samples"]["first"][1], {"sample": 1, "document": 0, "offset": 4})

    def test_names_outside_utf8_do_not_break_json(self):
        with open(os.path.join(os.fsencode(self.path), b"\xff.dat"), "wb") as file:
            file.write(b"\0")
        self.assertEqual(len(json.loads(self.prepare("--json").stdout)["skipped"]), 2)

    def test_json_lines_with_a_tokenizer_file(self):
        tokenizer = str(GOLDEN / "qwen.json")
        (self.path / "d.jsonl").write_text('{"body": "one\\ntwo"}\n{"body": 1}\n')
        arguments = ("prepare", "--input", "d.jsonl", "--output", "out/d", "--json-key", "body", "--workers", "2",
                     "--tokenizer", tokenizer)
        self.assertIn('d.jsonl:2: "body" is a JSON number', self.run_data(*arguments).stderr)
        result = self.run_data(*arguments, "--skip-invalid")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('left out   1 documents, the first: d.jsonl:2', result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1],
                         f"next: sevenfold data inspect out/d --tokenizer {tokenizer}")
        shown = self.run_data("inspect", "out/d", "--tokenizer", tokenizer)
        self.assertIn("): one\\ntwo<|endoftext|>", shown.stdout)
        self.assertTrue(shown.stdout.splitlines()[-1].endswith(" vocab_size=1503"))
        report = json.loads(self.run_data(*arguments, "--skip-invalid", "--json", "--no-append-eod").stdout)
        self.assertEqual((report["documents"], report["invalid_documents"], report["append_eod"]), (1, 1, False))

    def test_inspect_notices_a_tokenizer_that_the_data_is_not_of(self):
        self.prepare("--tokenizer", str(GOLDEN / "llama3.json"))
        self.expect_error("token id 1501 occurs", "inspect", "out/text", "--tokenizer", str(GOLDEN / "gpt2.json"))

    def test_exclusions_take_files_out(self):
        report = json.loads(self.run_data("prepare", "--input", "*.txt", "!b*", "--output", "x", "--json").stdout)
        self.assertEqual(report["documents"], 1)

    def test_a_signal_leaves_nothing_behind(self):
        (self.path / "long.txt").write_text("some words of a long text\n" * 1_000_000)
        for number in (signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen([PROGRAM, "data", "prepare", "--input", "long.txt", "--output", "out/long",
                                        "--format", "lines", "--tokenizer", str(GOLDEN / "qwen.json")],
                                       cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not list(self.path.glob("out/long.idx.partial-*")):
                time.sleep(0.005)
            process.send_signal(number)
            out, error = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 1, error)
            self.assertIn("dataset: tokenizing out/long was stopped by a signal; nothing was kept\n", error)
            self.assertEqual(out, "")
            self.assertEqual(os.listdir(self.path / "out"), [])

    def test_numbers_are_read_strictly(self):
        self.expect_error("data inspect: --samples 0: is out of range; use a whole number of 1 to 2147483648",
                          "inspect", "x", "--samples", "0")
        self.expect_error('data inspect: --document "-1x": is no whole decimal number', "inspect", "x",
                          "--document", "-1x")
        self.expect_error("data prepare: --workers 1025: is out of range; use a whole number of 0 to 1024",
                          "prepare", "--input", "a.txt", "--output", "x", "--workers", "1025")

    def test_errors_are_one_sentence_and_leave_nothing(self):
        self.expect_error('output "." names no file, only a folder', "prepare", "--input", "a.txt", "--output", ".")
        self.expect_error("no file matches input", "prepare", "--input", "none*", "--output", "x")
        self.expect_error("tokenizer.json: No such file", "prepare", "--input", "a.txt", "--output", "x",
                          "--tokenizer", "tokenizer.json")
        self.expect_error("format=csv is none of", "prepare", "--input", "a.txt", "--output", "x", "--format", "csv")
        self.expect_error("cannot make the output directory", "prepare", "--input", "a.txt", "--output", "b.txt/x")
        self.expect_error("none.idx: No such file", "inspect", "none")
        self.prepare()
        self.expect_error("has 2 documents, counted from 0", "inspect", "out/text", "--document", "2")
        self.expect_error("add --seq-length", "inspect", "out/text", "--samples", "2")
        (self.path / "out/text.bin").write_bytes(b"12")
        self.expect_error("is truncated or belongs to another index", "inspect", "out/text")


if __name__ == "__main__":
    unittest.main()
