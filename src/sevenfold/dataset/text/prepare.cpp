#include "sevenfold/dataset/text/prepare.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/indexed/indexed_writer.h"
#include "sevenfold/dataset/text/input_files.h"
#include "sevenfold/dataset/text/ordered_workers.h"
#include "sevenfold/dataset/text/text_block.h"
#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold {
namespace {

void check_config(const PrepareConfig& config) {
  const std::string& output = config.output;
  const std::string name = std::filesystem::path(output).filename().string();
  if (name.empty() || name == "." || name == "..")
    raise<ConfigError>(
        "dataset: output \"{}\" names no file, only a folder; give a prefix such as data/text (the "
        "files are PREFIX.bin and PREFIX.idx)",
        output);
  if (config.workers < 0 || config.workers > kMaxPrepareWorkers)
    raise<ConfigError>("dataset: workers={}: 1 to {} threads, or 0 for one a core", config.workers,
                       kMaxPrepareWorkers);
  text_format(config.format, "");  // throws for a name that is none
}

int64_t num_workers(const PrepareConfig& config) {
  if (config.workers > 0) return config.workers;
  return std::max<int64_t>(1, std::thread::hardware_concurrency());
}

EncodeOptions encode_options(const PrepareConfig& config, const Tokenizer& tokenizer) {
  EncodeOptions options{.json_key = config.json_key, .eod_token_id = std::nullopt};
  if (!config.append_eod) return options;
  options.eod_token_id = tokenizer.eod_token_id();
  if (!options.eod_token_id)
    raise<ConfigError>(
        "dataset: {} names no end-of-document token; name one (--eod-token), or write documents "
        "without (--no-append-eod)",
        tokenizer.name());
  return options;
}

void note_invalid(const PrepareConfig& config, const EncodedBlock& block, PrepareReport& report) {
  if (block.invalid.empty()) return;
  if (!config.skip_invalid)
    raise<DataError>("dataset: {}; mend it, or leave such documents out (--skip-invalid)",
                     block.invalid.front());
  if (report.num_invalid == 0) report.first_invalid = block.invalid.front();
  report.num_invalid += static_cast<int64_t>(block.invalid.size());
}

void write_block(IndexedWriter& writer, const EncodedBlock& block) {
  const std::span<const int64_t> ids(block.ids);
  size_t done = 0;
  for (const size_t end : block.document_ends) {
    writer.append(ids.subspan(done, end - done));
    writer.end_document();
    done = end;
  }
  writer.append(ids.subspan(done));
}

}  // namespace

PrepareReport prepare_dataset(const PrepareConfig& config, const PrepareHooks& hooks) {
  check_config(config);
  const InputFiles inputs = find_input_files(config.inputs);
  const auto tokenizer = open_tokenizer(
      config.tokenizer,
      {.eod_token = config.eod_token, .add_special_tokens = config.add_special_tokens});
  const EncodeOptions options = encode_options(config, *tokenizer);

  PrepareReport report{.output = config.output,
                       .input_bytes = inputs.num_bytes(),
                       .vocab_size = tokenizer->vocab_size(),
                       .eod_token_id = tokenizer->eod_token_id(),
                       .has_eods = config.append_eod,
                       .num_workers = num_workers(config),
                       .skipped = inputs.skipped};
  IndexedWriter writer(config.output, element_type_for(report.vocab_size));
  BlockReader reader(inputs.files, config.format, tokenizer->is_splittable());
  OrderedWorkers<TextBlock, EncodedBlock> workers(report.num_workers, [&](const TextBlock& block) {
    return encode_block(block, *tokenizer, options);
  });
  report.num_workers = workers.num_threads();

  // Two blocks for each worker keep all busy while this thread writes.
  const auto max_pending = static_cast<size_t>(2 * report.num_workers);
  for (bool is_reading = true; is_reading || workers.num_pending() > 0;) {
    while (is_reading && workers.num_pending() < max_pending) {
      auto block = reader.next();
      is_reading = block.has_value();
      if (block) workers.put(std::move(*block));
    }
    if (workers.num_pending() == 0) break;
    const EncodedBlock block = workers.take();
    note_invalid(config, block, report);
    write_block(writer, block);
    if (hooks.progress) hooks.progress(block.num_bytes_done, report.input_bytes);
    if (hooks.stop_requested && hooks.stop_requested())
      raise<Error>("dataset: tokenizing {} was stopped by a signal; nothing was kept",
                   config.output);
  }
  if (writer.num_documents() == 0)
    raise<DataError>(
        "dataset: the {} input files hold no document ({} were left out); check the inputs and "
        "their format",
        inputs.files.size(), report.num_invalid);
  writer.finish();
  report.num_documents = writer.num_documents();
  report.num_tokens = writer.num_tokens();
  return report;
}

}  // namespace sevenfold
