#include "sevenfold/train/data.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/core/progress_line.h"
#include "sevenfold/core/stop_signals.h"
#include "sevenfold/dataset/order/samples_needed.h"
#include "sevenfold/dataset/text/prepare.h"

namespace sevenfold {
namespace {

// Returns what the user should know of it.
std::vector<std::string> prepare_if_missing(const PrepareConfig& prepare) {
  if (std::filesystem::exists(prepare.output + ".bin")) return {};
  const StopSignals signals;
  ProgressLine line("tokenizing " + prepare.output);
  const PrepareReport report = prepare_dataset(
      prepare, {.progress = [&](int64_t done, int64_t total) { line.show(done, total); },
                .stop_requested = [&] { return signals.stop_requested(); }});
  std::vector<std::string> notices;
  for (const std::string& file : report.skipped)
    notices.push_back(fmt::format("{}: left out of {}", file, prepare.output));
  if (report.num_invalid > 0)
    notices.push_back(fmt::format("{} documents are not valid and left out of {}, the first at {}",
                                  report.num_invalid, prepare.output, report.first_invalid));
  return notices;
}

}  // namespace

bool validates(const RunConfig& run) {
  return (run.skip_train || run.eval_interval > 0) && (run.eval_iters > 0 || run.full_validation);
}

DataSources open_run_data(const Config& config) {
  std::vector<std::string> notices;
  if (config.data.prepare) notices = prepare_if_missing(*config.data.prepare);
  DataRequest request{.seq_length = config.model.seq_length,
                      .vocab_size = config.model.vocab_size,
                      .seed = config.run.seed,
                      .train_samples = run_samples(config.run, config.batch),
                      .valid_samples = 0,
                      .test_samples = test_samples_needed(config.run, config.batch)};
  if (validates(config.run)) request.valid_samples = valid_samples_needed(config.run, config.batch);
  DataSources sources = open_data(config.data, request);
  sources.notices.insert(sources.notices.begin(), notices.begin(), notices.end());
  return sources;
}

}  // namespace sevenfold
