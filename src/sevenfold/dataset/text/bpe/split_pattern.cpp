#include "sevenfold/dataset/text/bpe/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <limits>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  ::pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

constexpr size_t kStackStartBytes = size_t{32} << 10;
constexpr size_t kStackMaxBytes = size_t{64} << 20;

}  // namespace

struct MatchWorkspace::State {
  pcre2_match_data* match = ::pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = ::pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = ::pcre2_jit_stack_create(kStackStartBytes, kStackMaxBytes, nullptr);

  State() {
    SEVENFOLD_CHECK(match != nullptr && context != nullptr, "out of memory");
    ::pcre2_jit_stack_assign(context, nullptr, stack);
    ::pcre2_set_match_limit(context, std::numeric_limits<uint32_t>::max());
  }
  ~State() {
    ::pcre2_jit_stack_free(stack);
    ::pcre2_match_context_free(context);
    ::pcre2_match_data_free(match);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

MatchWorkspace::MatchWorkspace() : state_(std::make_unique<State>()) {}
MatchWorkspace::~MatchWorkspace() = default;

struct SplitPattern::Code {
  pcre2_code* compiled = nullptr;
  ~Code() { ::pcre2_code_free(compiled); }
};

SplitPattern::SplitPattern(const std::string& expression, std::string_view where)
    : code_(std::make_unique<Code>()) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->compiled =
      ::pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                      PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
  if (code_->compiled == nullptr)
    raise<ConfigError>("{}: the pattern \"{}\" is malformed at byte {}: {}", where, expression,
                       offset, message_of(error));
  uint32_t matches_empty = 0;
  ::pcre2_pattern_info(code_->compiled, PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0)
    raise<ConfigError>(
        "{}: the pattern \"{}\" matches an empty text, which is not supported; tokenize with the "
        "library that made the file and name the resulting PREFIX",
        where, expression);
  // Without a just-in-time compiler, PCRE2 interprets: slower, same matches.
  ::pcre2_jit_compile(code_->compiled, PCRE2_JIT_COMPLETE);
}

SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;

SplitPattern::Match SplitPattern::find(std::string_view text, size_t from,
                                       MatchWorkspace& workspace) const {
  pcre2_match_data* match = workspace.state_->match;
  const int result =
      ::pcre2_match(code_->compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    PCRE2_NO_UTF_CHECK, match, workspace.state_->context);
  if (result == PCRE2_ERROR_NOMATCH) return {};
  if (result < 0)
    raise<DataError>("dataset: splitting a text of {} bytes failed: {}; cut the document in parts",
                     text.size(), message_of(result));
  const PCRE2_SIZE* ends = ::pcre2_get_ovector_pointer(match);
  return {ends[0], ends[1], true};
}

}  // namespace sevenfold
