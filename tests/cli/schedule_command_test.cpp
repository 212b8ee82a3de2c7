#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run_command.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Outcome schedule(const std::string& words) {
  std::vector<std::string> list;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) list.push_back(word);
  return run_command(cli::add_schedule_command, "schedule", list);
}

std::string file_text(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string scratch_file(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + name)).string();
}

TEST(ScheduleCommand, PrintsTheContractsJson) {
  const Outcome outcome = schedule("--algorithm 1F1B --stages 2 --microbatches 2 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["algorithm"], "1f1b");
  EXPECT_EQ(document["makespan"], 9);
  EXPECT_EQ(document["longest"], 9);
  EXPECT_DOUBLE_EQ(document["bubble_rate"], 1.0 / 3);
  EXPECT_DOUBLE_EQ(document["bubble_rate_longest"], 1.0 / 3);
  EXPECT_EQ(document["busy"], json({6, 6}));
  EXPECT_EQ(document["peak_activation_memory"], json({2, 1}));
  ASSERT_EQ(document["operations"].size(), 2u);
  EXPECT_EQ(document["operations"][1][1], json({{"op", "BW"},
                                                {"stage", 1},
                                                {"chunk", 0},
                                                {"microbatch", 0},
                                                {"flow", 0},
                                                {"start", 2},
                                                {"end", 4}}));
}

TEST(ScheduleCommand, TakesTimesLinkAndWeightMemory) {
  const Outcome outcome = schedule(
      "--algorithm zb-h1 --stages 8 --microbatches 24 --forward 10 --backward-input 10 "
      "--backward-weight 10 --comm 1 --weight-memory 0.5 --json");
  const json document = json::parse(outcome.out);
  EXPECT_EQ(document["makespan"], 818);
  // Rank r: (P-r) whole activations and r halves.
  EXPECT_EQ(document["peak_activation_memory"], json({8, 7.5, 7, 6.5, 6, 5.5, 5, 4.5}));
}

TEST(ScheduleCommand, DrawsText) {
  const Outcome outcome = schedule("--algorithm zb-h1 --stages 2 --microbatches 3 --text");
  EXPECT_THAT(outcome.out, HasSubstr("rank 0 F0 F1 ...B0 W0 F2 B1 W1 B2 W2\n"
                                     "rank 1 ...F0 B0 F1 B1 W0 F2 B2 W1 W2\n"));
  EXPECT_THAT(outcome.out, HasSubstr("next: sevenfold schedule --compare --stages 2"));
}

TEST(ScheduleCommand, WrapsAWideDrawing) {
  const Outcome outcome =
      schedule("--algorithm zb-h1 --stages 2 --microbatches 12 --text --width 60");
  std::istringstream lines(outcome.out);
  std::string line;
  int ranks = 0;
  while (std::getline(lines, line) && line.rfind("zb-h1", 0) != 0) {
    EXPECT_LE(line.size(), 60u);
    ranks += line.rfind("rank 1", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(ranks, 3);
}

TEST(ScheduleCommand, DrawsPassesOfVeryUnequalTimesInLittleRoom) {
  for (const std::string costs : {"--forward 1e-30", "--backward-input 1e100", "--comm 1e50"}) {
    const Outcome outcome =
        schedule("--algorithm 1f1b --stages 2 --microbatches 2 --text " + costs);
    ASSERT_EQ(outcome.exit_code, 0) << costs << outcome.error;
    EXPECT_LT(outcome.out.size(), 2000u) << costs;
    EXPECT_THAT(outcome.out, Not(HasSubstr("nan"))) << costs;
    EXPECT_THAT(outcome.out, Not(HasSubstr("inf"))) << costs;
  }
  // A tenth of the others is still room enough for every label.
  EXPECT_THAT(schedule("--algorithm 1f1b --stages 1 --microbatches 2 --forward 0.2 --text").out,
              HasSubstr("rank 0 F0 B0--------------------------- F1 B1---"));
}

TEST(ScheduleCommand, CountsInWords) {
  EXPECT_THAT(schedule("--algorithm gpipe --stages 1 --microbatches 1").out,
              testing::AllOf(HasSubstr("gpipe: 1 rank, 1 micro batch, 1 stage (linear placement)"),
                             HasSubstr("peak memory  1 micro batch of one rank's layers")));
  EXPECT_THAT(schedule("--algorithm gpipe --stages 2 --microbatches 3").out,
              testing::AllOf(HasSubstr("gpipe: 2 ranks, 3 micro batches, 2 stages"),
                             HasSubstr("peak memory  3 micro batches")));
}

TEST(ScheduleCommand, DrawsSvgWithABarPerPass) {
  const std::string name = scratch_file("schedule.svg");
  const Outcome outcome =
      schedule("--algorithm dualpipev --stages 2 --microbatches 4 --svg " + name);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
  const std::string text = file_text(name);
  EXPECT_THAT(text, testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(text, HasSubstr("<title>F of stage 3 and micro batch 2</title>"));
  size_t bars = 0;
  for (size_t at = text.find("<title>"); at != std::string::npos; at = text.find("<title>", at + 1))
    ++bars;
  const json operations =
      json::parse(schedule("--algorithm dualpipev --stages 2 --microbatches 4 --json").out);
  size_t passes = 0;
  for (const json& rank : operations["operations"])
    for (const json& operation : rank) passes += operation["op"] == "FBW" ? 2 : 1;
  EXPECT_EQ(bars, passes);
  std::filesystem::remove(name);
}

TEST(ScheduleCommand, WritesPyTorchsFileAndReadsItBack) {
  const std::string name = scratch_file("schedule.csv");
  const std::string sizes = " --stages 2 --microbatches 2";
  ASSERT_EQ(schedule("--algorithm zb-interleaved --csv " + name + sizes).exit_code, 0);
  EXPECT_EQ(file_text(name),
            "0F0,0F1,2F0,2F1,2I0,2W0,2I1,2W1,0I0,0W0,0I1,0W1\n"
            "1F0,1F1,3F0,3I0,3F1,3I1,3W0,1I0,3W1,1I1,1W0,1W1\n");
  const json direct = json::parse(schedule("--algorithm zb-interleaved --json" + sizes).out);
  json read = json::parse(schedule("--algorithm " + name + " --json").out);
  EXPECT_EQ(read["algorithm"], name);
  read["algorithm"] = direct["algorithm"];
  EXPECT_EQ(read, direct);
  std::filesystem::remove(name);
}

TEST(ScheduleCommand, ComparesAndSaysWhyNot) {
  const Outcome outcome = schedule("--compare --stages 3 --microbatches 6");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("zb-h1"));
  EXPECT_THAT(outcome.out, HasSubstr("dualpipe wants an even number of stages"));
  const json document = json::parse(schedule("--compare --stages 3 --microbatches 6 --json").out);
  double last = 0;
  for (const json& one : document["schedules"]) {
    EXPECT_GE(one["makespan"].get<double>(), last);
    last = one["makespan"];
  }
}

// docs/pipeline_parallelism.md shows what the program prints.
TEST(ScheduleCommand, DrawsWhatTheDocumentationShows) {
  std::ifstream page(SEVENFOLD_SOURCE_DIR "/docs/pipeline_parallelism.md");
  const std::string indent = "    ";
  const std::string prompt = indent + "$ sevenfold schedule ";
  int drawings = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind(prompt, 0) != 0) continue;
    const std::string words = line.substr(prompt.size());
    std::string shown;
    while (std::getline(page, line) && line.rfind(indent, 0) == 0)
      shown += line.substr(indent.size()) + "\n";
    EXPECT_THAT(schedule(words).out, testing::StartsWith(shown)) << words;
    ++drawings;
  }
  EXPECT_GE(drawings, 12);
}

// A small Llama on two pipeline ranks with six micro batches a step.
std::string experiment_file() {
  const std::string name = scratch_file("schedule.yaml");
  std::ofstream(name) << "work_group: w\nuser_name: u\nexp_name: e\nworkspace: " << name
                      << ".d\nmodules:\n  pre_trainer:\n    framework: megatron\n"
                         "    config: pre_trainer.yaml\n    model: llama2_7B.yaml\n"
                         "    overrides: {num_layers: 8, vocab_size: 64, micro_batch_size: 1, "
                         "global_batch_size: 6, pipeline_model_parallel_size: 2}\n";
  return name;
}

TEST(ScheduleCommand, ShowsTheScheduleOfAnExperiment) {
  const std::string file = experiment_file();
  const auto figures = [](const std::string& words) {
    const Outcome outcome = schedule(words + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    return json::parse(outcome.out);
  };
  EXPECT_EQ(figures(file), figures("--algorithm 1f1b --stages 2 --microbatches 6"));
  EXPECT_EQ(figures(file + " num_virtual_stages_per_pipeline_rank=4 --comm 0.5"),
            figures("--algorithm 1f1b-interleaved --stages 2 --microbatches 6 --chunks 4 --comm "
                    "0.5"));
  const std::string primus = " patch_primus_pipeline=true pp_algorithm=zero-bubble-heuristic";
  EXPECT_EQ(figures(file + primus + " pp_max_mem=3 pp_cost_f=18 pp_cost_b=20 pp_cost_w=14"),
            figures("--algorithm zero-bubble-heuristic --stages 2 --microbatches 6 --max-memory 3 "
                    "--forward 18 --backward-input 20 --backward-weight 14"));
  const std::string table = scratch_file("schedule_table.csv");
  EXPECT_EQ(schedule("--algorithm v-half --stages 2 --microbatches 6 --csv " + table).exit_code, 0);
  EXPECT_EQ(figures(file + " sevenfold.schedule_file=" + table)["operations"],
            figures("--algorithm v-half --stages 2 --microbatches 6")["operations"]);
  EXPECT_EQ(schedule(file + " --algorithm 1f1b").exit_code, 2);
  EXPECT_THAT(schedule(file + " --stages 4").error, HasSubstr("leave --algorithm, --stages"));
  EXPECT_THAT(schedule(file + " --compare").out,
              HasSubstr("next: sevenfold schedule " + file + " sevenfold.schedule="));
  std::filesystem::remove(table);
  std::filesystem::remove(file);
}

// Times of the stages and the link of the command line hold together.
TEST(ScheduleCommand, TakesLinkAndMemoryOfTheCommandLineWithTimesOfAnExperiment) {
  const std::string file = experiment_file();
  const std::string times =
      " patch_primus_pipeline=true pp_algorithm=zero-bubble pp_cost_f=18 "
      "pp_cost_b=20 pp_cost_w=14";
  const Outcome outcome = schedule(file + times + " --comm 3 --weight-memory 0.5 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
  const json same = json::parse(
      schedule("--algorithm zb-h1 --stages 2 --microbatches 6 --forward 18 --backward-input 20 "
               "--backward-weight 14 --comm 3 --weight-memory 0.5 --json")
          .out);
  EXPECT_EQ(json::parse(outcome.out), same);
  const Outcome refused = schedule(file + times + " --forward 2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("has times of its own (pp_cost_f, pp_cost_b, pp_cost_w)"));
  std::filesystem::remove(file);
}

TEST(ScheduleCommand, PrintsANextCommandThatWorks) {
  for (const std::string words :
       {"--algorithm 1f1b-interleaved --group 6 --forward 1.23456789",
        "--algorithm auto --group 6 --max-memory 5.5", "--compare --group 6 --comm 0.1"}) {
    std::string next = schedule(words + " --stages 2 --microbatches 6").out;
    const std::string prompt = "next: sevenfold schedule ";
    next = next.substr(next.rfind(prompt) + prompt.size());
    const Outcome outcome = schedule(next);
    EXPECT_EQ(outcome.exit_code, 0) << next << outcome.error;
    if (words.find("1f1b") != std::string::npos) {
      EXPECT_THAT(next, HasSubstr("--group 6 --forward 1.23456789"));
    }
  }
}

TEST(ScheduleCommand, ReadsNumbersAsDecimal) {
  EXPECT_EQ(json::parse(schedule("--algorithm 1f1b --stages 010 --microbatches 016 --json").out),
            json::parse(schedule("--algorithm 1f1b --stages 10 --microbatches 16 --json").out));
}

TEST(ScheduleCommand, SaysWhatIsWrong) {
  const auto error = [](const std::string& words) {
    const Outcome outcome = schedule(words);
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_EQ(outcome.out, "") << words;
    return outcome.error;
  };
  const std::string sizes = " --stages 4 --microbatches 8";
  EXPECT_THAT(error("--algorithm zb-h3" + sizes),
              HasSubstr("no algorithm is called 'zb-h3'; use zb-h1 or zb-h2; there are gpipe, "));
  EXPECT_THAT(error("--algorithm 1f1b --chunks 2" + sizes),
              HasSubstr("has 1 chunk per rank, not 2"));
  EXPECT_THAT(error("--algorithm dualpipe --stages 4 --microbatches 6"),
              HasSubstr("at least 8 (twice the stages); 6 given"));
  EXPECT_THAT(error("--algorithm dualpipe --stages 3 --microbatches 6"), HasSubstr("3 is odd"));
  EXPECT_THAT(error("--algorithm 1f1b --max-memory 3" + sizes),
              HasSubstr("rank 0 holds 4 activations at once, the limit is 3"));
  EXPECT_THAT(error("--algorithm 1f1b-interleaved --group 3" + sizes), HasSubstr("use 4, 8"));
  EXPECT_THAT(error("--algorithm 1f1b --forward -1" + sizes),
              HasSubstr("--forward \"-1\": is no decimal number of 0 or more"));
  EXPECT_THAT(error("--algorithm 1f1b --forward 1e308" + sizes),
              HasSubstr("forward time 1e+308 is too large to add up; use at most 1e+100"));
  EXPECT_THAT(error("--compare --comm 1e308" + sizes),
              HasSubstr("link time 1e+308 is too large to add up"));
  for (const std::string value : {"1e309", "1e-400"})
    EXPECT_THAT(error("--algorithm 1f1b --comm " + value + sizes),
                HasSubstr("--comm " + value + ": is out of range; use 0, or 1e-307 to 1e+308"));
  for (const std::string value : {"nan", "inf", "-inf", "0x1p3", "1,5", "one"})
    EXPECT_THAT(error("--algorithm 1f1b --backward-input=" + value + sizes),
                HasSubstr("--backward-input \"" + value + "\": is no decimal number of 0 or more"));
  EXPECT_THAT(error("--algorithm 1f1b --forward 0 --backward-input 0 --backward-weight 0" + sizes),
              HasSubstr("all take no time"));
  EXPECT_THAT(error("--algorithm 1f1b --weight-memory 1.5" + sizes),
              HasSubstr("1.5 is more than the whole activation; use a share from 0 to 1"));
  EXPECT_THAT(error("--algorithm 1f1b --group 4" + sizes),
              HasSubstr("1f1b has no groups of micro batches; leave --group out"));
  EXPECT_THAT(error("--algorithm auto --stages 4096 --microbatches 65536"),
              HasSubstr("268435456 forwards, more than the 2500000 that a table holds"));
  EXPECT_THAT(error("--algorithm 1f1b --stages 010x --microbatches 8"),
              HasSubstr("--stages \"010x\": is no whole decimal number"));
  EXPECT_THAT(error("--algorithm 1f1b --stages 4 --microbatches 99999999999999999999"),
              HasSubstr("--microbatches 99999999999999999999: is out of range; use a whole number "
                        "of 1 to 65536"));
  EXPECT_THAT(error("--algorithm 1f1b --max-memory 0" + sizes),
              HasSubstr("--max-memory \"0\": is no decimal number above 0"));
  EXPECT_THAT(error("--algorithm 1f1b"), HasSubstr("--stages and --microbatches"));
  EXPECT_THAT(error("--algorithm 1f1b --stages 0 --microbatches 3"), HasSubstr("--stages"));
  EXPECT_THAT(error(sizes), HasSubstr("--algorithm is missing"));
  EXPECT_THAT(error("--compare --algorithm 1f1b" + sizes),
              HasSubstr("--compare shows all algorithms; leave --algorithm 1f1b out"));
  EXPECT_THAT(
      error("table.csv"),
      HasSubstr("table.csv is no experiment but a schedule file; use --algorithm table.csv"));
  EXPECT_THAT(error("--algorithm missing.csv"), HasSubstr("cannot open missing.csv"));
  EXPECT_THAT(error("--algorithm dualpipe --csv x.csv" + sizes),
              HasSubstr("PyTorch's schedule files"));
}

}  // namespace
}  // namespace sevenfold
