#include "sevenfold/train/output/metrics.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "sevenfold/core/atomic_file.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using Json = nlohmann::ordered_json;

std::string last_system_error() {
  return std::generic_category().message(errno);
}

Json to_json(const PeakMemory& memory) {
  Json json = {{"total", memory.total_bytes}};
  for (int i = 0; i < kNumMemoryCategories; ++i) {
    const std::string name(memory_category_name(static_cast<MemoryCategory>(i)));
    json[name] = memory.category_bytes[static_cast<size_t>(i)];
  }
  return json;
}

bool is_line_up_to(int64_t iteration, const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto of = json.find("iteration");
  return of != json.end() && of->is_number_integer() && of->get<int64_t>() <= iteration;
}

// None of a file that is not there.
std::string lines_up_to(int64_t iteration, const std::filesystem::path& path) {
  std::string text;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (is_line_up_to(iteration, line)) text += line + '\n';
  if (file.bad() || (!file.is_open() && std::filesystem::exists(path)))
    raise<Error>("train: cannot read {}: {}", path.string(), last_system_error());
  return text;
}

// "w" of a run that starts anew, "a" of one whose earlier lines have been put in order.
const char* mode_for(const std::filesystem::path& path, int64_t continues_after) {
  if (continues_after == 0) return "w";
  write_file_atomically(path, lines_up_to(continues_after, path), "train");
  return "a";
}

}  // namespace

std::string to_json_line(const StepMetrics& metrics) {
  Json json = {{"iteration", metrics.iteration},
               {"loss", metrics.loss},
               {"grad_norm", metrics.grad_norm},
               {"lr", metrics.lr},
               {"tokens", metrics.tokens},
               {"trained_tokens", metrics.trained_tokens},
               {"step_time_s", metrics.step_time_s},
               {"tokens_per_s", metrics.tokens_per_s},
               {"bubble_rate", metrics.bubble_rate},
               {"exposed_communication_s", metrics.exposed_communication_s},
               {"peak_memory_bytes", to_json(metrics.peak_memory)},
               {"loss_scale", metrics.loss_scale},
               {"skipped", metrics.is_skipped}};
  if (metrics.mfu) json["mfu"] = *metrics.mfu;
  if (metrics.hfu) json["hfu"] = *metrics.hfu;
  return json.dump();
}

std::string to_json_line(const EvaluationMetrics& metrics) {
  const std::string set = metrics.split == Split::kTest ? "test" : "validation";
  const Json json = {{"iteration", metrics.iteration},
                     {set + "_loss", metrics.loss},
                     {set + "_tokens", metrics.tokens},
                     {set + "_samples", metrics.samples}};
  return json.dump();
}

MetricsWriter::MetricsWriter(std::filesystem::path path, int64_t continues_after)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), mode_for(path_, continues_after))) {
  if (!file_) raise<Error>("train: cannot open {}: {}", path_.string(), last_system_error());
}

void MetricsWriter::write_line(const std::string& line) {
  const std::string text = line + '\n';
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) {
    raise<Error>("train: cannot write {}: {}", path_.string(), last_system_error());
  }
}

}  // namespace sevenfold
