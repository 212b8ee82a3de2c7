// Every line of tests/golden/tokenizers (make_tokenizer_goldens.py writes it) against the ids that
// the libraries gave which trained the tokenizers.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold {
namespace {

const std::string kFolder = std::string(SEVENFOLD_SOURCE_DIR) + "/tests/golden/tokenizers/";

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> read_texts() {
  std::vector<std::string> texts;
  for (const std::string& line : read_lines(kFolder + "lines.jsonl"))
    texts.push_back(nlohmann::json::parse(line).get<std::string>());
  return texts;
}

uint64_t fnv1a(const std::vector<int64_t>& ids) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const int64_t id : ids)
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ static_cast<uint64_t>((id >> shift) & 0xff)) * 0x100000001b3;
  return hash;
}

// The ids as the .ids file has them: written out, or their number and hash.
std::string golden_form(const std::vector<int64_t>& ids, bool written_out) {
  if (!written_out) return fmt::format("# {} {:016x}", ids.size(), fnv1a(ids));
  std::string text;
  for (const int64_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

struct Golden {
  std::string name;
  std::string file;
};

void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.file;
}

class TokenizerGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(TokenizerGolden, GivesTheLibrarysIdsForEveryLine) {
  const auto tokenizer = open_tokenizer(kFolder + GetParam().file);
  const std::vector<std::string> texts = read_texts();
  const std::vector<std::string> expected = read_lines(kFolder + GetParam().name + ".ids");
  ASSERT_EQ(texts.size(), 2000U);
  ASSERT_EQ(expected.size(), texts.size());
  size_t num_different = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int64_t> ids;
    tokenizer->encode(texts[i], ids);
    const std::string found = golden_form(ids, !expected[i].starts_with('#'));
    if (found == expected[i]) continue;
    ++num_different;
    ADD_FAILURE() << "line " << i << ": " << nlohmann::json(texts[i]).dump(-1, ' ', true)
                  << "\nfound    " << found << "\nexpected " << expected[i];
    ASSERT_LT(num_different, 10U) << "and perhaps more";
  }
}

// Without normalizer and added space, decode(encode(text)) gives the text again.
class LosslessTokenizer : public TokenizerGolden {};

TEST_P(LosslessTokenizer, DecodesWhatItEncoded) {
  const auto tokenizer = open_tokenizer(kFolder + GetParam().file);
  for (const std::string& text : read_texts()) {
    std::vector<int64_t> ids;
    tokenizer->encode(text, ids);
    ASSERT_EQ(tokenizer->decode(ids), text);
    for (const int64_t id : ids) ASSERT_LT(id, tokenizer->vocab_size());
  }
}

const auto kNameOf = [](const auto& parameter) { return parameter.param.name; };
const Golden kGpt2{"gpt2", "gpt2.json"};
const Golden kLlama3{"llama3", "llama3.json"};

INSTANTIATE_TEST_SUITE_P(Files, TokenizerGolden,
                         ::testing::Values(Golden{"library", "library.json"}, kGpt2, kLlama3,
                                           Golden{"qwen", "qwen.json"},
                                           Golden{"unigram", "unigram.model"},
                                           Golden{"bpe", "bpe.model"}),
                         kNameOf);
INSTANTIATE_TEST_SUITE_P(Files, LosslessTokenizer, ::testing::Values(kGpt2, kLlama3), kNameOf);

}  // namespace
}  // namespace sevenfold
