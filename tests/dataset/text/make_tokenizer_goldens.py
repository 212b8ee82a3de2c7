#!/usr/bin/env python3
"""Writes tests/golden/tokenizers: the lines, tokenizers trained on such lines, and the ids of the lines.

Ids come from the libraries that made the tokenizers: Hugging Face's `tokenizers` (0.23.3) and `sentencepiece`
(0.2.3); pip has both. All text is made up here from a fixed seed. Argument: the folder to write.

NAME.ids has a line for every text: the ids, or past the first FULL_LINES "# count hash" with the 64-bit FNV-1a
hash of the ids as little-endian int32.
"""

import io
import json
import pathlib
import random
import re
import sys

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

NUM_LINES = 2000
FULL_LINES = 250
VOCABULARY = 1500

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + "{1,3}" + REST
QWEN = CONTRACTIONS + REST

# First and last letters of what words of a script are made of.
SCRIPTS = {
    "latin": "aeiouybcdfghklmnprstvw",
    "diacritics": "\u00e4\u00f6\u00fc\u00df\u00e9\u00e8\u00ea\u00e7\u00f1\u0159\u017e\u0142\u0131\u0130\u1ea1\u1ec7nrtse",
    "cyrillic": "\u0430\u0431\u0432\u0433\u0434\u0435\u0438\u043a\u043b\u043d\u043e\u0440\u0441\u0442\u0451\u0439",
    "greek": "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03ba\u03bb\u03bf\u03c2\u03c3\u03ac\u03ce",
    "arabic": "\u0627\u0628\u062a\u062b\u062c\u062d\u062f\u0631\u0633\u0639\u0644\u0645\u0646\u064e\u0651",
    "hebrew": "\u05d0\u05d1\u05d2\u05d3\u05d4\u05d5\u05d6\u05d7\u05e9\u05ea\u05b8\u05b4",
    "devanagari": "\u0915\u0916\u0917\u0928\u092e\u0930\u0938\u0939\u093e\u093f\u0940\u0947\u094d\u0902",
    "thai": "\u0e01\u0e02\u0e04\u0e07\u0e19\u0e21\u0e23\u0e2a\u0e32\u0e34\u0e35\u0e48\u0e49\u0e40",
    "hangul": "\ud55c\uad6d\uc5b4\uc0ac\ub78c\ub098\ub77c\u1112\u1161\u11ab",
    "kana": "\u3042\u3044\u3046\u3048\u304b\u304d\u306e\u30a2\u30a4\u30ab\u30ca\u30fc\u3099",
    "cjk": "\u4e2d\u6587\u56fd\u4eba\u5927\u5b66\u65e5\u672c\u8a9e\u5929\u5730\u6c34\u706b\U00020000\U0002a6d6",
}
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\t\t", "\u00a0", "\u2003", "\u3000", "\r\n", "\n", "\n\n", " \n ", "\u0085",
          "\u2028", "\v", "\u200b", "\u202f ", " \t "]
EMOJI = ["\U0001f600", "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f",
         "\U0001f1eb\U0001f1f7", "\u263a", "\U0001f9d1\U0001f3fb\u200d\U0001f91d\u200d\U0001f9d1\U0001f3ff", "1\ufe0f\u20e3"]
MARKS = ["e\u0301", "a\u030a", "\u0301", "o\u0302\u0323", "q\u0307\u0323", "\u1e9b\u0323", "\ufb01", "\u212b", "\u2126", "n\u0303"]
SPECIALS = ["<|endoftext|>", "<|begin|>", "<mask>", "[ROOM]", "lone", "cafe\u0301", "caf\u00e9", "<|end", "|>", "<s>", "</s>"]
NUMBERS = ["0", "7", "42", "2026", "1,234,567.89", "3.14159", "1e-9", "0x1F", "12345678", "\u0664\u0662", "\u00bd", "\u2167",
           "\u00b2", "\u2460", "\u096a\u0968"]
ENDINGS = ["'s", "'S", "'t", "'RE", "'ve", "'M", "I'll", "I'LL", "we'd", "d'", "'\u017f", "\u2019s", "'l", "'x"]
CODE = ["for (int i = 0; i < n; ++i) {", "}", "    return x[i] != y;", "def f(a, *b):", "#include <vector>", "a->b.c();",
        "\tif (!p) break;", "x = {'k': [1, 2], \"s\": \"\\n\"}", "</div><p class=\"a\">", "http://a.example/b?c=d&e=%20",
        "==", "////", "--------", "...", "!?", "$_{i}^2$", "@user #tag"]


class Text:
    """Makes lines; the same seed makes the same ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = {name: [self.word(letters) for _ in range(150)] for name, letters in SCRIPTS.items()}

    def word(self, letters):
        return "".join(self.random.choice(letters) for _ in range(self.random.randint(1, 7)))

    def plain(self):
        name = self.random.choice(["latin"] * 6 + list(SCRIPTS))
        word = self.words[name][min(self.random.randrange(150), self.random.randrange(150))]
        return self.random.choice([word, word, word, word.capitalize(), word.upper()])

    def odd(self):
        kind = self.random.choice([EMOJI, MARKS, SPECIALS, NUMBERS, ENDINGS, CODE])
        return self.random.choice(kind)

    def line(self):
        share_odd = self.random.choice([0.05, 0.2, 0.6])
        share_space = self.random.choice([0.0, 0.05, 0.5])
        parts = []
        for _ in range(self.random.randint(0, 22)):
            parts.append(self.odd() if self.random.random() < share_odd else self.plain())
            if self.random.random() < 0.1:
                parts.append(self.random.choice(".,;:!?-()\"'"))
            if self.random.random() < 0.9:
                parts.append(self.random.choice(SPACES) if self.random.random() < share_space else " ")
        # Four dots are two tokens in either order, with the same score in a unigram model: a tie that versions of the
        # library break differently.
        return re.sub(r"\.{4,}", "...", "".join(parts))


def byte_level(split=None, prefix=False):
    if split is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True)
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(split), behavior="isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(lines, pre_tokenizer, normalizer=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def make_library(lines):
    """The library's own byte-level BPE, with every flag of an added token."""
    tokenizer = train(lines, byte_level(prefix=True))
    tokenizer.add_special_tokens(["<|endoftext|>", AddedToken("<mask>", lstrip=True), AddedToken("[ROOM]", rstrip=True)])
    tokenizer.add_tokens([AddedToken("lone", single_word=True), "|>"])
    return tokenizer


def make_gpt2(lines):
    tokenizer = train(lines, byte_level())
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def make_llama3(lines):
    tokenizer = train(lines, byte_level(LLAMA3), ignore_merges=True)
    tokenizer.add_special_tokens(["<|begin|>", "<|endoftext|>"])
    # A token that no merge makes: only ignore_merges finds it.
    description = json.loads(tokenizer.to_str())
    description["model"]["merges"].remove(max(description["model"]["merges"], key=lambda pair: len(pair[0] + pair[1])))
    tokenizer = Tokenizer.from_str(json.dumps(description))
    begin = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", begin)])])
    return tokenizer


def make_qwen(lines):
    tokenizer = train(lines, byte_level(QWEN), normalizer=normalizers.NFC())
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.add_tokens([AddedToken("cafe\u0301", normalized=True), AddedToken("[ROOM]", normalized=False)])
    return tokenizer


def write_tokenizer(path, tokenizer, merges_as_strings=False):
    description = json.loads(tokenizer.to_str())
    if merges_as_strings:
        description["model"]["merges"] = [" ".join(pair) for pair in description["model"]["merges"]]
    path.write_text(json.dumps(description, separators=(",", ":")) + "\n", encoding="ascii")
    return Tokenizer.from_file(str(path))


def fnv1a(ids):
    value = 0xcbf29ce484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in ids):
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


def write_ids(path, lines, encode):
    with open(path, "w", encoding="ascii") as file:
        for number, line in enumerate(lines):
            ids = encode(line)
            text = " ".join(map(str, ids)) if number < FULL_LINES else f"# {len(ids)} {fnv1a(ids):016x}"
            file.write(text + "\n")


# Through memory: a model trained into a file keeps that file's path.
def train_sentencepiece(folder, name, lines, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(" ".join(line.split()) for line in lines), model_writer=model,
        vocab_size=VOCABULARY, minloglevel=2, num_threads=1, **options)
    (folder / f"{name}.model").write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    text = Text(7)
    training = [text.line() for _ in range(6000)]
    lines = ["", " ", "a", "\n", "  a", "a  ", *(text.line() for _ in range(NUM_LINES - 6))]
    with open(folder / "lines.jsonl", "w", encoding="ascii") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    for make in (make_library, make_gpt2, make_llama3, make_qwen):
        name = make.__name__[len("make_"):]
        tokenizer = write_tokenizer(folder / f"{name}.json", make(training), merges_as_strings=make is make_gpt2)
        write_ids(folder / f"{name}.ids", lines, lambda line: tokenizer.encode(line, add_special_tokens=False).ids)
    model = train_sentencepiece(folder, "unigram", training, model_type="unigram", character_coverage=0.999,
                                normalization_rule_name="identity")
    write_ids(folder / "unigram.ids", lines, model.encode)
    model = train_sentencepiece(folder, "bpe", training, model_type="bpe", byte_fallback=True, split_digits=True,
                                normalization_rule_name="identity", remove_extra_whitespaces=False,
                                allow_whitespace_only_pieces=True, user_defined_symbols=["<mask>"])
    write_ids(folder / "bpe.ids", lines, model.encode)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
