#include "sevenfold/dataset/text/text_block.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/utf8.h"

namespace sevenfold {
namespace {

using Json = nlohmann::json;

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr std::string_view kBlanks = " \t\r\n";

// What is wrong with a line, without the parser's own prefix and the text around it.
std::string json_reason(const Json::parse_error& error) {
  std::string_view what = error.what();
  if (const size_t at = what.find("syntax error "); at != std::string_view::npos)
    what.remove_prefix(at + std::string_view("syntax error ").size());
  return fmt::format("malformed JSON at byte {}: {}", error.byte,
                     what.substr(0, what.find("; last read")));
}

// The document of a JSON line, or why there is none.
struct LineText {
  std::string text;
  std::string problem;
};

LineText read_json_line(std::string_view line, const std::string& key) {
  try {
    const Json object = Json::parse(line);
    if (!object.is_object())
      return {{}, fmt::format("the line is a JSON {}, no object", object.type_name())};
    const auto member = object.find(key);
    if (member == object.end()) return {{}, fmt::format("the object has no key \"{}\"", key)};
    if (!member->is_string())
      return {{}, fmt::format("\"{}\" is a JSON {}, no string", key, member->type_name())};
    return {member->get<std::string>(), {}};
  } catch (const Json::parse_error& error) {
    return {{}, json_reason(error)};
  } catch (const Json::exception& error) {  // a number that no double holds
    const std::string_view what = error.what();
    return {{}, fmt::format("malformed JSON: {}", what.substr(what.find("] ") + 2))};
  }
}

class BlockEncoder {
 public:
  BlockEncoder(const TextBlock& block, const Tokenizer& tokenizer, const EncodeOptions& options)
      : block_(block), tokenizer_(tokenizer), options_(options) {
    result_.num_bytes_done = block.num_bytes_done;
  }

  EncodedBlock run() {
    if (block_.format == TextFormat::kText) {
      encode_document(block_.text, block_.path);
    } else {
      encode_lines();
    }
    return std::move(result_);
  }

 private:
  void encode_lines() {
    const std::string_view text = block_.text;
    int64_t number = block_.first_line;
    for (size_t at = 0; at < text.size(); ++number) {
      const size_t end = std::min(text.find('\n', at), text.size());
      encode_line(text.substr(at, end - at), fmt::format("{}:{}", block_.path, number));
      at = end + 1;
    }
  }

  void encode_line(std::string_view line, const std::string& place) {
    if (line.find_first_not_of(kBlanks) == std::string_view::npos) return;
    if (block_.format == TextFormat::kLines) {
      if (line.back() == '\r') line.remove_suffix(1);
      return encode_document(line, place);
    }
    const LineText document = read_json_line(line, options_.json_key);
    if (document.problem.empty()) {
      encode_document(document.text, place);
    } else {
      result_.invalid.push_back(place + ": " + document.problem);
    }
  }

  void encode_document(std::string_view text, const std::string& place) {
    // The byte tokenizer takes any bytes, the others take characters.
    if (const auto invalid = tokenizer_.is_splittable() ? std::nullopt : find_invalid_utf8(text)) {
      result_.invalid.push_back(fmt::format("{}: not UTF-8 at byte {}", place, *invalid));
      return;
    }
    tokenizer_.encode(text, result_.ids);
    if (!block_.ends_document) return;
    if (options_.eod_token_id) result_.ids.push_back(*options_.eod_token_id);
    result_.document_ends.push_back(result_.ids.size());
  }

  const TextBlock& block_;
  const Tokenizer& tokenizer_;
  const EncodeOptions& options_;
  EncodedBlock result_;
};

}  // namespace

TextFormat text_format(const std::string& name, const std::string& path) {
  if (name == "text") return TextFormat::kText;
  if (name == "lines") return TextFormat::kLines;
  if (name == "jsonl") return TextFormat::kJsonl;
  if (name != "auto")
    raise<ConfigError>("dataset: format={} is none of auto, text, lines and jsonl; choose one",
                       name);
  std::string_view bare = path;
  if (bare.ends_with(".gz")) bare.remove_suffix(3);
  const bool is_json =
      bare.ends_with(".jsonl") || bare.ends_with(".ndjson") || bare.ends_with(".json");
  return is_json ? TextFormat::kJsonl : TextFormat::kText;
}

BlockReader::BlockReader(std::vector<InputFile> files, std::string format, bool may_cut_texts)
    : files_(std::move(files)), format_name_(std::move(format)), may_cut_texts_(may_cut_texts) {}

void BlockReader::open(const InputFile& file) {
  source_ = open_byte_source(file.path);
  format_ = text_format(format_name_, file.path);
  at_end_ = false;
  next_line_ = 1;
  carry_.clear();
}

std::optional<TextBlock> BlockReader::next() {
  while (source_ == nullptr) {
    if (next_file_ == files_.size()) return std::nullopt;
    open(files_[next_file_]);
  }
  TextBlock block{.path = files_[next_file_].path, .format = format_};
  if (format_ == TextFormat::kText) {
    read_text(block);
  } else {
    read_lines(block);
  }
  block.num_bytes_done = bytes_before_ + source_->num_bytes_done();
  if (at_end_) {
    source_.reset();
    bytes_before_ += files_[next_file_++].num_bytes;
    block.num_bytes_done = bytes_before_;
  }
  return block;
}

size_t BlockReader::append(std::string& text, size_t num_bytes) {
  const size_t before = text.size();
  text.resize(before + num_bytes);
  const size_t count = source_->read({text.data() + before, num_bytes});
  text.resize(before + count);
  at_end_ = count < num_bytes;
  return count;
}

void BlockReader::read_text(TextBlock& block) {
  do {
    append(block.text, kBlockBytes);
  } while (!at_end_ && !may_cut_texts_);
  block.ends_document = at_end_;
}

void BlockReader::read_lines(TextBlock& block) {
  block.text = std::move(carry_);
  carry_.clear();
  block.first_line = next_line_;
  size_t last_break = std::string::npos;
  while (!at_end_ && last_break == std::string::npos) {
    const size_t before = block.text.size();
    append(block.text, kBlockBytes);
    const size_t found = block.text.rfind('\n');
    if (found != std::string::npos && found >= before) last_break = found;
  }
  if (!at_end_) {
    carry_ = block.text.substr(last_break + 1);
    block.text.resize(last_break + 1);
  }
  next_line_ += std::count(block.text.begin(), block.text.end(), '\n');
}

EncodedBlock encode_block(const TextBlock& block, const Tokenizer& tokenizer,
                          const EncodeOptions& options) {
  return BlockEncoder(block, tokenizer, options).run();
}

}  // namespace sevenfold
