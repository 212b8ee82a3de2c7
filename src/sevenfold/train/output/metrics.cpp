#include "sevenfold/train/output/metrics.h"

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

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

MetricsWriter::MetricsWriter(std::filesystem::path path)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "w")) {
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
