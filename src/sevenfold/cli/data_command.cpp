#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/number_options.h"
#include "sevenfold/core/error.h"
#include "sevenfold/core/progress_line.h"
#include "sevenfold/core/stop_signals.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dataset/indexed/dataset_summary.h"
#include "sevenfold/dataset/order/sample_index.h"
#include "sevenfold/dataset/text/byte_tokenizer.h"
#include "sevenfold/dataset/text/prepare.h"
#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kPreviewTokens = 240;
// Products of the two fit in 64 bits.
constexpr int64_t kMaxSamples = int64_t{1} << 31;
constexpr int64_t kMaxSeqLength = int64_t{1} << 31;
constexpr int64_t kMaxSeed = (int64_t{1} << 32) - 1;  // of Megatron's generator

struct PrepareArguments {
  PrepareConfig config;
  bool json = false;
};

struct InspectArguments {
  std::string prefix;
  std::string tokenizer;  // empty: none was named
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

PrepareReport prepare_with_progress(const PrepareArguments& arguments) {
  const StopSignals signals;
  PrepareHooks hooks{.progress = {}, .stop_requested = [&] { return signals.stop_requested(); }};
  if (arguments.json) return prepare_dataset(arguments.config, hooks);
  ProgressLine line("tokenizing");
  hooks.progress = [&](int64_t done, int64_t total) { line.show(done, total); };
  return prepare_dataset(arguments.config, hooks);
}

Json report_json(const PrepareConfig& config, const PrepareReport& report) {
  Json json = {{"output", report.output},         {"tokenizer", config.tokenizer},
               {"vocab_size", report.vocab_size}, {"eod_token_id", nullptr},
               {"append_eod", report.has_eods},   {"documents", report.num_documents},
               {"tokens", report.num_tokens},     {"input_bytes", report.input_bytes},
               {"skipped", report.skipped},       {"invalid_documents", report.num_invalid},
               {"workers", report.num_workers}};
  if (report.eod_token_id) json["eod_token_id"] = *report.eod_token_id;
  return json;
}

void print_report(const PrepareReport& report) {
  if (!report.skipped.empty())
    fmt::print("skipped    {} that are no text: {}{}\n", report.skipped.size(),
               report.skipped.front(), report.skipped.size() > 1 ? ", ..." : "");
  if (report.num_invalid > 0)
    fmt::print("left out   {} documents, the first: {}\n", with_commas(report.num_invalid),
               report.first_invalid);
  fmt::print("wrote      {0}.bin and {0}.idx\n", report.output);
  fmt::print("documents  {}\n", with_commas(report.num_documents));
  fmt::print("tokens     {}, {}\n", with_commas(report.num_tokens),
             report.has_eods ? fmt::format("end of document {} included", *report.eod_token_id)
                             : "no end of document among them");
  fmt::print("vocabulary {}\n", report.vocab_size);
}

void run_prepare(const PrepareArguments& arguments) {
  const PrepareReport report = prepare_with_progress(arguments);
  if (arguments.json) {
    print_json(report_json(arguments.config, report));
    return;
  }
  print_report(report);
  std::string next = "next: sevenfold data inspect " + shell_word(report.output);
  if (arguments.config.tokenizer != "byte")
    next += " --tokenizer " + shell_word(arguments.config.tokenizer);
  fmt::print("{}\n", next);
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

// The text of the preview where it can be known, fit for a terminal.
std::optional<std::string> preview_text(const Tokenizer* tokenizer, const DatasetSummary& summary,
                                        const std::vector<int64_t>& preview) {
  if (tokenizer == nullptr)
    return is_byte_text(summary) ? std::optional(escape_tokens(preview)) : std::nullopt;
  if (summary.largest_token_id >= tokenizer->vocab_size())
    raise<ConfigError>(
        "data: --tokenizer {} has {} ids, but token id {} occurs; name the tokenizer that the data "
        "was made with",
        tokenizer->name(), tokenizer->vocab_size(), summary.largest_token_id);
  return escape_text(tokenizer->decode(preview));
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
  if (asked >= data.num_sequences())
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

int64_t suggested_vocab_size(const Tokenizer* tokenizer, const DatasetSummary& summary) {
  if (tokenizer != nullptr) return tokenizer->vocab_size();
  return is_byte_text(summary) ? ByteTokenizer::kVocabSize : summary.largest_token_id + 1;
}

void run_inspect(const InspectArguments& arguments) {
  const auto tokenizer =
      arguments.tokenizer.empty() ? nullptr : open_tokenizer(arguments.tokenizer);
  const IndexedDataset data(arguments.prefix);
  const DatasetSummary summary = summarize(data);
  const int64_t document = choose_document(data, arguments.document);
  std::vector<int64_t> preview;
  if (document >= 0) preview = first_tokens(data, document, 0, kPreviewTokens);
  const auto text = preview_text(tokenizer.get(), summary, preview);
  Json samples;
  if (arguments.num_samples > 0)
    samples = samples_json(index_samples(data, arguments), arguments.num_samples);

  if (arguments.json) {
    Json document_json = summary_json(data, summary);
    document_json["preview"] = {{"document", document}, {"tokens", preview}};
    if (text) document_json["preview"]["text"] = *text;
    if (!samples.is_null()) document_json["samples"] = samples;
    print_json(document_json);
    return;
  }
  print_summary(data, summary);
  if (document >= 0)
    fmt::print("document   {} ({} tokens): {}\n", document, data.sequence_length(document),
               text ? *text : fmt::format("{}", fmt::join(preview, " ")));
  if (!samples.is_null()) {
    fmt::print("samples    {} in {} epochs over the whole file\n",
               samples["num_samples"].get<int64_t>(), samples["epochs"].get<int64_t>());
    for (const Json& sample : samples["first"])
      fmt::print("  sample {} starts in document {} at token {}\n", sample["sample"].get<int64_t>(),
                 sample["document"].get<int64_t>(), sample["offset"].get<int64_t>());
  }
  fmt::print("next: sevenfold train FILE {} vocab_size={}\n",
             shell_word("data_path=" + data.prefix()),
             suggested_vocab_size(tokenizer.get(), summary));
}

void add_prepare(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("prepare", "Tokenize text or JSON lines into PREFIX.bin and PREFIX.idx");
  auto arguments = std::make_shared<PrepareArguments>();
  PrepareConfig& config = arguments->config;
  command->add_option("--input", config.inputs, "Files or globs (.gz too); !GLOB takes files out")
      ->required()
      ->expected(1, -1);
  command->add_option("--output", config.output, "PREFIX of the two files")->required();
  command->add_option("--tokenizer", config.tokenizer,
                      "byte (ids 0-255, end of document 256), a tokenizer.json, a SentencePiece "
                      ".model, or a folder with one");
  command->add_option("--format", config.format,
                      "auto (.jsonl, .ndjson, .json: JSON lines; else text), text (a document a "
                      "file), lines (a document a line) or jsonl");
  command->add_option("--json-key", config.json_key, "JSON lines: the key of the text (text)");
  add_whole_number(*command, "--workers", config.workers, {0, kMaxPrepareWorkers},
                   "Threads; 0 is one a core");
  command->add_flag("--append-eod,!--no-append-eod", config.append_eod,
                    "End-of-document token after every document (on)");
  command->add_option("--eod-token", config.eod_token,
                      "That token, when the tokenizer's files name none or another");
  command->add_flag("--add-special-tokens", config.add_special_tokens,
                    "Put around every document what the tokenizer does, such as a begin token");
  command->add_flag("--skip-invalid", config.skip_invalid,
                    "Leave out documents that cannot be read, and count them");
  command->add_flag("--json", arguments->json, "One JSON document on stdout");
  command->callback([arguments] { run_prepare(*arguments); });
}

void add_inspect(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("inspect", "Check PREFIX.bin and PREFIX.idx and show what they hold");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("PREFIX", arguments->prefix, "Path without .bin or .idx")->required();
  command->add_option("--tokenizer", arguments->tokenizer,
                      "Show text as this tokenizer decodes it; see data prepare");
  add_whole_number(*command, "--document", arguments->document, {},
                   "Show the start of this document");
  add_whole_number(*command, "--samples", arguments->num_samples, {1, kMaxSamples},
                   "Show where the first N samples start");
  add_whole_number(*command, "--seq-length", arguments->seq_length, {1, kMaxSeqLength},
                   "Tokens of a sample");
  add_whole_number(*command, "--seed", arguments->seed, {0, kMaxSeed},
                   "Seed of the shuffle (1234)");
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
