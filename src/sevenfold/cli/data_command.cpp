#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dataset/indexed/dataset_summary.h"
#include "sevenfold/dataset/order/sample_index.h"
#include "sevenfold/dataset/text/byte_tokenizer.h"
#include "sevenfold/dataset/text/prepare.h"

namespace sevenfold::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kPreviewTokens = 240;

struct PrepareArguments {
  PrepareConfig config;
  bool json = false;
};

struct InspectArguments {
  std::string prefix;
  bool json = false;
  int64_t document = -1;  // -1: not asked
  int64_t num_samples = 0;
  int64_t seq_length = 0;
  uint64_t seed = 1234;
  bool no_shuffle = false;
};

// File names need not be UTF-8; what is not is replaced, not thrown.
void print_json(const Json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
}

// One line on a terminal, rewritten at most once per percent; nothing elsewhere.
PrepareProgress terminal_progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [percent = int64_t{-1}](int64_t done, int64_t total) mutable {
    const int64_t now = total > 0 ? 100 * done / total : 100;
    if (now == percent) return;
    percent = now;
    fmt::print(stderr, "\rtokenizing {:3}% of {}{}", now, format_bytes(total),
               now >= 100 ? "\n" : "");
  };
}

void run_prepare(const PrepareArguments& arguments) {
  const PrepareReport report =
      prepare_dataset(arguments.config, arguments.json ? PrepareProgress{} : terminal_progress());
  if (arguments.json) {
    print_json({{"output", report.output},
                {"tokenizer", arguments.config.tokenizer},
                {"vocab_size", report.vocab_size},
                {"eod_token_id", report.eod_token_id},
                {"documents", report.num_documents},
                {"tokens", report.num_tokens},
                {"input_bytes", report.input_bytes},
                {"skipped", report.skipped}});
    return;
  }
  if (!report.skipped.empty())
    fmt::print("skipped    {} that are no text: {}{}\n", report.skipped.size(),
               report.skipped.front(), report.skipped.size() > 1 ? ", ..." : "");
  fmt::print("wrote      {0}.bin and {0}.idx\n", report.output);
  fmt::print("documents  {}\n", with_commas(report.num_documents));
  fmt::print("tokens     {}, end of document {} included\n", with_commas(report.num_tokens),
             report.eod_token_id);
  fmt::print("vocabulary {}\n", report.vocab_size);
  fmt::print("next: sevenfold data inspect {}\n", shell_word(report.output));
}

std::vector<int64_t> first_tokens(const IndexedDataset& data, int64_t sequence, int64_t offset,
                                  int64_t limit) {
  const int64_t left = data.sequence_length(sequence) - offset;
  std::vector<int64_t> tokens(static_cast<size_t>(std::min(left, limit)));
  data.read(sequence, offset, tokens);
  return tokens;
}

bool is_byte_text(const DatasetSummary& summary) {
  return summary.smallest_token_id >= 0 && summary.largest_token_id <= ByteTokenizer::kEodTokenId;
}

Json summary_json(const IndexedDataset& data, const DatasetSummary& summary) {
  return {{"prefix", data.prefix()},
          {"dtype", element_type_name(data.element_type())},
          {"sequences", summary.num_sequences},
          {"documents", summary.num_documents},
          {"tokens", summary.num_tokens},
          {"shortest", summary.shortest},
          {"longest", summary.longest},
          {"empty", summary.num_empty},
          {"smallest_token_id", summary.smallest_token_id},
          {"largest_token_id", summary.largest_token_id},
          {"scanned_tokens", summary.scanned_tokens},
          {"bin_bytes", data.bin_bytes()},
          {"idx_bytes", data.idx_bytes()}};
}

void print_summary(const IndexedDataset& data, const DatasetSummary& summary) {
  fmt::print("data set   {0}.bin ({1}), {0}.idx ({2}): consistent\n", data.prefix(),
             format_bytes(data.bin_bytes()), format_bytes(data.idx_bytes()));
  fmt::print("dtype      {}\n", element_type_name(data.element_type()));
  fmt::print("documents  {} in {} sequences, {} empty\n", with_commas(summary.num_documents),
             with_commas(summary.num_sequences), with_commas(summary.num_empty));
  fmt::print("tokens     {}; shortest sequence {}, longest {}\n", with_commas(summary.num_tokens),
             with_commas(summary.shortest), with_commas(summary.longest));
  if (summary.scanned_tokens > 0)
    fmt::print("token ids  {}..{}{}\n", summary.smallest_token_id, summary.largest_token_id,
               summary.scanned_tokens == summary.num_tokens
                   ? ""
                   : fmt::format(" in the first {} tokens", with_commas(summary.scanned_tokens)));
}

// The document that was asked for, else the first one that is not empty.
int64_t choose_document(const IndexedDataset& data, int64_t asked) {
  if (asked >= data.num_sequences() || asked < -1)
    raise<ConfigError>("data: --document {}: {} has {} documents, counted from 0", asked,
                       data.prefix(), data.num_sequences());
  if (asked >= 0) return asked;
  int64_t document = 0;
  while (document < data.num_sequences() && data.sequence_length(document) == 0) ++document;
  return document < data.num_sequences() ? document : -1;
}

SampleIndex index_samples(const IndexedDataset& data, const InspectArguments& arguments) {
  if (arguments.seq_length < 1)
    raise<ConfigError>("data: --samples needs the length of a sample: add --seq-length N");
  SampleIndexOptions options;
  options.seq_length = arguments.seq_length;
  options.seed = arguments.seed;
  options.shuffle = !arguments.no_shuffle;
  if (options.shuffle) options.num_samples = arguments.num_samples;
  return build_sample_index(
      data.prefix(), [&](int64_t sequence) { return data.sequence_length(sequence); },
      data.all_sequences(), options);
}

Json samples_json(const SampleIndex& index, int64_t num_shown) {
  Json samples = Json::array();
  for (int64_t k = 0; k < std::min(num_shown, index.num_samples()); ++k) {
    const SampleStart start = index.starts[static_cast<size_t>(index.place(k))];
    samples.push_back({{"sample", k},
                       {"document", index.document_index[static_cast<size_t>(start.position)]},
                       {"offset", start.offset}});
  }
  return {{"epochs", index.num_epochs},
          {"separate_final_epoch", index.separate_final_epoch},
          {"num_samples", index.num_samples()},
          {"first", samples}};
}

void run_inspect(const InspectArguments& arguments) {
  const IndexedDataset data(arguments.prefix);
  const DatasetSummary summary = summarize(data);
  const int64_t document = choose_document(data, arguments.document);
  std::vector<int64_t> preview;
  if (document >= 0) preview = first_tokens(data, document, 0, kPreviewTokens);
  Json samples;
  if (arguments.num_samples > 0)
    samples = samples_json(index_samples(data, arguments), arguments.num_samples);

  if (arguments.json) {
    Json document_json = summary_json(data, summary);
    document_json["preview"] = {{"document", document}, {"tokens", preview}};
    if (is_byte_text(summary)) document_json["preview"]["text"] = escape_tokens(preview);
    if (!samples.is_null()) document_json["samples"] = samples;
    print_json(document_json);
    return;
  }
  print_summary(data, summary);
  if (document >= 0)
    fmt::print("document   {} ({} tokens): {}\n", document, data.sequence_length(document),
               is_byte_text(summary) ? escape_tokens(preview)
                                     : fmt::format("{}", fmt::join(preview, " ")));
  if (!samples.is_null()) {
    fmt::print("samples    {} in {} epochs over the whole file\n",
               samples["num_samples"].get<int64_t>(), samples["epochs"].get<int64_t>());
    for (const Json& sample : samples["first"])
      fmt::print("  sample {} starts in document {} at token {}\n", sample["sample"].get<int64_t>(),
                 sample["document"].get<int64_t>(), sample["offset"].get<int64_t>());
  }
  fmt::print("next: sevenfold train FILE {} vocab_size={}\n",
             shell_word("data_path=" + data.prefix()),
             is_byte_text(summary) ? ByteTokenizer::kVocabSize : summary.largest_token_id + 1);
}

void add_prepare(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("prepare", "Tokenize text files into PREFIX.bin and PREFIX.idx");
  auto arguments = std::make_shared<PrepareArguments>();
  command
      ->add_option("--input", arguments->config.inputs,
                   "Text files or globs, one document a file; !GLOB takes files out")
      ->required()
      ->expected(1, -1);
  command->add_option("--output", arguments->config.output, "PREFIX of the two files")->required();
  command->add_option("--tokenizer", arguments->config.tokenizer,
                      "byte (ids 0-255, end of document 256)");
  command->add_flag("--json", arguments->json, "One JSON document on stdout");
  command->callback([arguments] { run_prepare(*arguments); });
}

void add_inspect(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("inspect", "Check PREFIX.bin and PREFIX.idx and show what they hold");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("PREFIX", arguments->prefix, "Path without .bin or .idx")->required();
  command->add_option("--document", arguments->document, "Show the start of this document")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--samples", arguments->num_samples, "Show where the first N samples start")
      ->check(CLI::PositiveNumber);
  command->add_option("--seq-length", arguments->seq_length, "Tokens of a sample")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", arguments->seed, "Seed of the shuffle (1234)");
  command->add_flag("--no-shuffle", arguments->no_shuffle, "Samples in file order");
  command->add_flag("--json", arguments->json, "One JSON document on stdout");
  command->callback([arguments] { run_inspect(*arguments); });
}

}  // namespace

void add_data_command(CLI::App& app, int& exit_code) {
  CLI::App* data = app.add_subcommand("data", "Make and inspect data sets");
  data->require_subcommand(1);
  add_prepare(*data);
  add_inspect(*data);
  data->callback([&exit_code] { exit_code = 0; });
}

}  // namespace sevenfold::cli
