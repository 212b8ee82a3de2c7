#include "sevenfold/cli/number_options.h"

#include <charconv>
#include <cmath>

#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

std::string range_text(const WholeRange& range) {
  if (range.largest == std::numeric_limits<int64_t>::max())
    return fmt::format("at least {}", range.smallest);
  return fmt::format("{} to {}", range.smallest, range.largest);
}

}  // namespace

std::string command_words(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr || parent->get_parent() == nullptr) return command.get_name();
  return command_words(*parent) + " " + command.get_name();
}

int64_t read_whole_number(const std::string& place, const std::string& text,
                          const WholeRange& range) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument)
    raise<ConfigError>("{} \"{}\": is no whole decimal number; write one ({})", place, text,
                       range_text(range));
  if (error != std::errc() || value < range.smallest || value > range.largest)
    raise<ConfigError>("{} {}: is out of range; use a whole number of {}", place, text,
                       range_text(range));
  return value;
}

double read_positive_number(const std::string& place, const std::string& text, bool takes_zero) {
  double value = 0.0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop == end && error == std::errc::result_out_of_range)
    raise<ConfigError>("{} {}: is out of range; use {} to 1e+308", place, text,
                       takes_zero ? "0, or 1e-307" : "1e-307");
  const bool is_number = stop == end && error == std::errc() && !std::isinf(value);
  if (!is_number || !(value > 0.0 || (takes_zero && value == 0.0)))
    raise<ConfigError>("{} \"{}\": is no decimal number {}; write one", place, text,
                       takes_zero ? "of 0 or more" : "above 0");
  return value;
}

}  // namespace sevenfold::cli
