#include "sevenfold/dataset/text/bpe/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/bpe/byte_alphabet.h"
#include "sevenfold/dataset/text/bpe/piece_cache.h"
#include "sevenfold/dataset/text/utf8.h"

namespace sevenfold {
namespace {

// The bytes that no UTF-8 text has need no token.
bool occurs_in_utf8(int byte) {
  return byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
}

// There is a place for every id up to the largest. Vocabularies have gaps, but not of this size.
int64_t max_id(size_t num_tokens) {
  return 2 * static_cast<int64_t>(num_tokens) + 65536;
}

std::string normalize_all(std::string_view text, const std::vector<NormalForm>& forms) {
  std::string normalized(text);
  for (const NormalForm form : forms) normalized = normalize(normalized, form);
  return normalized;
}

std::unique_ptr<AddedTokenMatcher> matcher_of(std::vector<AddedToken> tokens) {
  return tokens.empty() ? nullptr : std::make_unique<AddedTokenMatcher>(std::move(tokens));
}

}  // namespace

struct BpeTokenizer::Workspace {
  MatchWorkspace match;
  PieceCache cache;
  PieceMerger merger;
  std::vector<int32_t> piece_ids;
  std::string prefixed;
  std::vector<AddedTokenMatcher::Part> raw_parts;
  std::vector<AddedTokenMatcher::Part> parts;
  std::vector<int64_t>* ids = nullptr;  // the result
};

// A workspace for the time of one call, so that calls at the same time have one each.
class BpeTokenizer::Loan {
 public:
  explicit Loan(const BpeTokenizer& owner) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.idle_.empty()) return;
    workspace_ = std::move(owner_.idle_.back());
    owner_.idle_.pop_back();
  }
  ~Loan() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(workspace_));
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  Workspace& get() {
    if (!workspace_) workspace_ = std::make_unique<Workspace>();
    return *workspace_;
  }

 private:
  const BpeTokenizer& owner_;
  std::unique_ptr<Workspace> workspace_;
};

BpeTokenizer::BpeTokenizer(std::string name, const BpeDescription& description,
                           const std::optional<std::string>& eod_token)
    : name_(std::move(name)),
      normal_forms_(description.normal_forms),
      add_prefix_space_(description.add_prefix_space),
      ignore_merges_(description.ignore_merges),
      ids_before_(description.ids_before),
      ids_after_(description.ids_after),
      merges_(description.merges.size()) {
  for (const SplitStep& step : description.splits)
    splits_.push_back({SplitPattern(step.expression, "dataset: " + name_), step.behavior});
  if (description.last_split)
    last_split_ = Splitter{SplitPattern(description.last_split->expression, "dataset: " + name_),
                           description.last_split->behavior};
  add_vocabulary(description);
  add_merges(description);
  add_added_tokens(description);
  if (!eod_token) return;
  const auto found = id_of_token_.find(*eod_token);
  if (found == id_of_token_.end())
    raise<ConfigError>(
        "dataset: {}: the end-of-document token \"{}\" is not in the vocabulary; name one that is "
        "(--eod-token)",
        name_, *eod_token);
  eod_token_id_ = found->second;
}

BpeTokenizer::~BpeTokenizer() = default;

void BpeTokenizer::add_vocabulary(const BpeDescription& description) {
  int64_t largest = -1;
  const size_t num_tokens = description.vocab.size() + description.added_tokens.size();
  const auto count = [&](const std::string& token, int64_t id) {
    if (id > max_id(num_tokens))
      raise<ConfigError>(
          "dataset: {}: token \"{}\" has id {}, far above the number of tokens {}; mend the file",
          name_, token, id, num_tokens);
    largest = std::max(largest, id);
  };
  for (const auto& [token, id] : description.vocab) count(token, id);
  for (const AddedToken& token : description.added_tokens) count(token.content, token.id);
  bytes_of_id_.resize(static_cast<size_t>(largest + 1));
  for (const auto& [token, id] : description.vocab) {
    id_of_token_.emplace(token, id);
    std::optional<std::string>& bytes = bytes_of_id_[static_cast<size_t>(id)];
    bytes = bytes_of_token(token);
    if (bytes) {
      id_of_bytes_.emplace(*bytes, static_cast<int32_t>(id));
    } else {
      bytes = token;  // outside the byte alphabet: no piece is this token
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    const auto found = id_of_bytes_.find(std::string_view(&character, 1));
    id_of_byte_[static_cast<size_t>(byte)] = found != id_of_bytes_.end() ? found->second : -1;
    if (found == id_of_bytes_.end() && occurs_in_utf8(byte))
      raise<ConfigError>(
          "dataset: {}: the vocabulary has no token for byte 0x{:02x}, so text with it would be "
          "lost; use a tokenizer trained with the whole byte alphabet",
          name_, byte);
  }
}

void BpeTokenizer::add_merges(const BpeDescription& description) {
  const auto id_of = [&](const std::string& token) {
    const auto found = id_of_token_.find(token);
    if (found == id_of_token_.end())
      raise<ConfigError>(
          "dataset: {}: a merge makes or takes \"{}\", which is not in the "
          "vocabulary; fetch the file again",
          name_, token);
    return static_cast<int32_t>(found->second);
  };
  int32_t rank = 0;
  for (const auto& [left, right] : description.merges)
    merges_.set(id_of(left), id_of(right), {rank++, id_of(left + right)});
}

void BpeTokenizer::add_added_tokens(const BpeDescription& description) {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
  for (AddedToken token : description.added_tokens) {
    id_of_token_[token.content] = token.id;
    bytes_of_id_[static_cast<size_t>(token.id)] = token.content;
    if (token.is_normalized) {
      token.content = normalize_all(token.content, normal_forms_);
      normalized.push_back(std::move(token));
    } else {
      raw.push_back(std::move(token));
    }
  }
  raw_tokens_ = matcher_of(std::move(raw));
  normalized_tokens_ = matcher_of(std::move(normalized));
}

void BpeTokenizer::encode(std::string_view text, std::vector<int64_t>& ids) const {
  if (const auto invalid = find_invalid_utf8(text))
    raise<DataError>("dataset: text is not UTF-8 at byte {}", *invalid);
  Loan loan(*this);
  Workspace& workspace = loan.get();
  workspace.ids = &ids;
  ids.insert(ids.end(), ids_before_.begin(), ids_before_.end());
  if (raw_tokens_) {
    workspace.raw_parts.clear();
    raw_tokens_->split(text, workspace.match, workspace.raw_parts);
    for (const auto& part : workspace.raw_parts) {
      if (part.id != AddedTokenMatcher::kNone) {
        ids.push_back(part.id);
      } else {
        encode_plain(text.substr(part.begin, part.end - part.begin), workspace);
      }
    }
  } else {
    encode_plain(text, workspace);
  }
  ids.insert(ids.end(), ids_after_.begin(), ids_after_.end());
}

// Text without tokens that are matched as they stand.
void BpeTokenizer::encode_plain(std::string_view text, Workspace& workspace) const {
  std::string normalized;
  if (!normal_forms_.empty()) {
    normalized = normalize_all(text, normal_forms_);
    text = normalized;
  }
  if (!normalized_tokens_) return split_pieces(text, 0, workspace);
  workspace.parts.clear();
  normalized_tokens_->split(text, workspace.match, workspace.parts);
  for (const auto& part : workspace.parts) {
    if (part.id != AddedTokenMatcher::kNone) {
      workspace.ids->push_back(part.id);
    } else {
      split_pieces(text.substr(part.begin, part.end - part.begin), 0, workspace);
    }
  }
}

// Calls take(piece) for the pieces of `text`, none of them empty.
template <typename Take>
void BpeTokenizer::cut(std::string_view text, const Splitter& splitter, Workspace& workspace,
                       Take&& take) const {
  const bool with_matches = splitter.behavior != SplitBehavior::kDropMatches;
  const bool with_others = splitter.behavior != SplitBehavior::kKeepMatches;
  size_t done = 0;
  while (done < text.size()) {
    const SplitPattern::Match match = splitter.pattern.find(text, done, workspace.match);
    const size_t begin = match.found ? match.begin : text.size();
    if (with_others && begin > done) take(text.substr(done, begin - done));
    if (!match.found) return;
    if (with_matches) take(text.substr(begin, match.end - begin));
    done = match.end;
  }
}

void BpeTokenizer::split_pieces(std::string_view text, size_t step, Workspace& workspace) const {
  if (step == splits_.size()) return encode_byte_level(text, workspace);
  cut(text, splits_[step], workspace,
      [&](std::string_view piece) { split_pieces(piece, step + 1, workspace); });
}

void BpeTokenizer::encode_byte_level(std::string_view text, Workspace& workspace) const {
  if (text.empty()) return;
  if (add_prefix_space_ && text.front() != ' ') {
    workspace.prefixed.assign(" ").append(text);
    text = workspace.prefixed;
  }
  if (!last_split_) return encode_piece(text, workspace);
  cut(text, *last_split_, workspace,
      [&](std::string_view piece) { encode_piece(piece, workspace); });
}

void BpeTokenizer::encode_piece(std::string_view piece, Workspace& workspace) const {
  std::span<const int32_t> ids = workspace.cache.find(piece);
  if (ids.empty()) {
    std::vector<int32_t>& made = workspace.piece_ids;
    made.clear();
    const auto whole = ignore_merges_ ? id_of_bytes_.find(piece) : id_of_bytes_.end();
    if (whole != id_of_bytes_.end()) {
      made.push_back(whole->second);
    } else {
      for (const char byte : piece) made.push_back(id_of_byte_[static_cast<unsigned char>(byte)]);
      workspace.merger.merge(merges_, made);
    }
    workspace.cache.keep(piece, made);
    ids = made;
  }
  workspace.ids->insert(workspace.ids->end(), ids.begin(), ids.end());
}

std::string BpeTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    const bool is_known = id >= 0 && id < vocab_size() && bytes_of_id_[static_cast<size_t>(id)];
    text += is_known ? *bytes_of_id_[static_cast<size_t>(id)] : fmt::format("<{}>", id);
  }
  return text;
}

}  // namespace sevenfold
