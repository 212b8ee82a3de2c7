#include "sevenfold/train/output/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr std::string_view kHead = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
constexpr std::string_view kTail = "\n]}\n";

[[noreturn]] void raise_system_error(const char* what, const std::filesystem::path& path) {
  raise<Error>("train: cannot {} {}: {}", what, path.string(),
               std::generic_category().message(errno));
}

}  // namespace

TraceFile::TraceFile(std::filesystem::path path, int64_t num_ranks)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wb")), start_s_(Timeline::now_s()) {
  if (!file_) raise_system_error("open", path_);
  fmt::print(file_.get(), "{}{}", kHead, kTail);
  std::string names;
  for (int64_t rank = 0; rank < num_ranks; ++rank)
    names += fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{0},\"args\":{{\"name\":\"rank "
        "{0}\"}}}}"
        ",\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{"
        "0}}}}}"
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{0},\"tid\":0,\"args\":{{\"name\":"
        "\"work\"}}}}",
        rank);
  append(names);
}

// Names are words of ours without quotes or backslashes; times are microseconds.
void TraceFile::write(int64_t rank, const std::vector<TimeSpan>& spans) {
  std::string events;
  for (const TimeSpan& span : spans) {
    const double start_us = (span.start_s - start_s_) * 1e6;
    const double end_us = (span.end_s - start_s_) * 1e6;
    if (span.kind == TimeSpan::Kind::kWork) {
      events += fmt::format(
          ",\n{{\"ph\":\"X\",\"name\":\"{}\",\"pid\":{},\"tid\":0,\"ts\":{:.3f},\"dur\":{:.3f}}}",
          span.name, rank, start_us, end_us - start_us);
      continue;
    }
    const int64_t id = num_collectives_++;
    for (const auto& [phase, at_us] : {std::pair{'b', start_us}, {'e', end_us}})
      events += fmt::format(
          ",\n{{\"ph\":\"{}\",\"cat\":\"in flight\",\"name\":\"{}\",\"id\":{},\"pid\":{},\"tid\":0,"
          "\"ts\":{:.3f}}}",
          phase, span.name, id, rank, at_us);
  }
  append(events);
}

// Overwrites the end of the document, which then follows the new events. `events` begin with a
// comma each.
void TraceFile::append(const std::string& events) {
  if (events.empty()) return;
  const std::string text = events.substr(has_events_ ? 0 : 1) + std::string(kTail);
  if (std::fseek(file_.get(), -static_cast<long>(kTail.size()), SEEK_END) != 0 ||
      std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0)
    raise_system_error("write", path_);
  has_events_ = true;
}

}  // namespace sevenfold
