// Stages and schedules of the torchtitan vocabulary.

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "config/experiment_files.h"
#include "sevenfold/config/run_schedule.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/csv.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::string kPp = "parallelism.pipeline_parallel_degree=";
const std::string kSchedule = "parallelism.pipeline_parallel_schedule=";
const std::string kPerStage = "parallelism.pipeline_parallel_layers_per_stage=";
const std::string kFirst = "parallelism.pipeline_parallel_first_stage_less_layers=";
const std::string kLast = "parallelism.pipeline_parallel_last_stage_less_layers=";
const std::string kCsv = "parallelism.pipeline_parallel_schedule_csv=";
const std::string kModules = "parallelism.module_fqns_per_model_part=";

Config load(Words words) {
  return load_text(small_titan(), std::move(words));
}

std::vector<int64_t> sizes(const Config& config) {
  std::vector<int64_t> sizes;
  for (const StageLayers& stage : config.pipeline.stages) sizes.push_back(stage.num_layers);
  return sizes;
}
std::vector<int64_t> sizes_of(Words words) {
  return sizes(load(std::move(words)));
}
using Sizes = std::vector<int64_t>;

struct NamedSchedule {
  const char* name;  // PyTorch's
  const char* algorithm;
  int64_t chunks;
};

constexpr NamedSchedule kSchedules[] = {
    {"GPipe", "gpipe", 1},
    {"1F1B", "1f1b", 1},
    {"Interleaved1F1B", "1f1b-interleaved", 2},
    {"LoopedBFS", "looped-bfs", 2},
    {"InterleavedZeroBubble", "zb-interleaved", 2},
    {"ZBVZeroBubble", "zbv-formatted", 2},
    {"DualPipeV", "dualpipev", 2},
};

TEST(TorchTitanSchedule, IsTheOneThatPyTorchNames) {
  for (const NamedSchedule& schedule : kSchedules)
    for (const std::string& name :
         {std::string(schedule.name), "schedule" + std::string(schedule.name)}) {
      SCOPED_TRACE(name);
      const Config config = load({kPp + "2", kSchedule + name});
      EXPECT_EQ(config.pipeline.algorithm, schedule.algorithm);
      EXPECT_EQ(config.pipeline.num_chunks, schedule.chunks);
      EXPECT_EQ(config.pipeline.stages.size(), 2u * static_cast<size_t>(schedule.chunks));
      EXPECT_TRUE(config.pipeline.stages.front().has_embedding);
      EXPECT_TRUE(config.pipeline.stages.back().has_head);
      const Schedule table = run_schedule(config, config.batch.num_microbatches);
      EXPECT_EQ(table.num_ranks(), 2);
      EXPECT_EQ(table.num_microbatches, 8);
      EXPECT_EQ(table.num_stages, 2 * schedule.chunks);
    }
}

// The same stages and table as the megatron keys ask for.
TEST(TorchTitanSchedule, IsThatOfTheMegatronKeys) {
  const Config own = load({kPp + "2", kSchedule + "ZBVZeroBubble", kFirst + "0", kLast + "0"});
  const Config twin = load_text(
      small_llama(), {"pipeline_model_parallel_size=2", "patch_primus_pipeline=true",
                      "pp_algorithm=zbv-formatted", "num_virtual_stages_per_pipeline_rank=2"});
  EXPECT_EQ(own.pipeline.algorithm, twin.pipeline.algorithm);
  EXPECT_EQ(own.pipeline.stages, twin.pipeline.stages);
  const auto text = [](const Config& config) {
    std::ostringstream out;
    write_csv(out, run_schedule(config, 8));
    return out.str();
  };
  EXPECT_EQ(text(own), text(twin));
}

// Expected sizes by hand: effective layers = layers + first + last, the first stages one more.
TEST(TorchTitanStages, CountEmbeddingAndOutputAsLayers) {
  EXPECT_EQ(sizes_of({kPp + "2"}), (Sizes{2, 2})) << "6 of 3 and 3";
  EXPECT_EQ(sizes_of({kPp + "2", "model.n_layers=5"}), (Sizes{3, 2})) << "7 of 4 and 3";
  EXPECT_EQ(sizes_of({kPp + "4", "model.n_layers=8"}), (Sizes{2, 3, 2, 1})) << "10 of 3, 3, 2, 2";
  EXPECT_EQ(sizes_of({kPp + "2", kFirst + "2", "model.n_layers=5"}), (Sizes{2, 3})) << "8 of 4, 4";
  EXPECT_EQ(sizes_of({kPp + "2", kFirst + "0", kLast + "0", "model.n_layers=5"}), (Sizes{3, 2}));
  EXPECT_EQ(sizes_of({kPp + "3", "model.n_layers=1"}), (Sizes{0, 1, 0})) << "ends without layers";
  EXPECT_EQ(sizes_of({kPp + "2", kSchedule + "Interleaved1F1B", "model.n_layers=8"}),
            (Sizes{2, 3, 2, 1}));
}

TEST(TorchTitanStages, HaveAsManyLayersAsAsked) {
  const Config config =
      load({kPp + "2", kSchedule + "Interleaved1F1B", kPerStage + "2", "model.n_layers=10"});
  EXPECT_EQ(config.pipeline.num_chunks, 3) << "12 layers, counted so, in stages of 2";
  EXPECT_EQ(sizes(config), (Sizes{1, 2, 2, 2, 2, 1}));
  EXPECT_EQ(sizes_of({kPp + "2", kPerStage + "3"}), (Sizes{2, 2}));
}

TEST(TorchTitanStages, AreTheModulesWrittenOut) {
  const std::string parts =
      "[[tok_embeddings, layers.0], [layers.1, layers.2], [layers.3], [norm, output]]";
  const Config config = load({kPp + "2", kSchedule + "ZBVZeroBubble", kModules + parts});
  EXPECT_EQ(sizes(config), (Sizes{1, 2, 1, 0}));
  EXPECT_EQ(config.pipeline.num_chunks, 2);
}

TEST(TorchTitanStages, StayWholeWithoutRanks) {
  const Config config = load({kSchedule + "ZBVZeroBubble"});
  EXPECT_EQ(sizes(config), (Sizes{4}));
  EXPECT_EQ(config.pipeline.num_chunks, 1);
}

TEST(TorchTitanStages, BreakRulesWithTheirNumbers) {
  const struct {
    Words words;
    const char* rule;
    const char* part;
  } cases[] = {
      {{kSchedule + "zbw"}, "schedule.name", "no schedule is called so"},
      {{kPp + "2", kSchedule + "zbw"},
       "schedule.name",
       "parallelism.pipeline_parallel_schedule=zbw"},
      {{kPp + "2", kPerStage + "2"}, "pipeline.stages", "3 stages are not a multiple of "},
      {{kPp + "2", kPerStage + "9223372036854775807"},
       "pipeline.stages",
       "1 stage is not a multiple of "},
      {{kPp + "2", kPerStage + "0"}, "pipeline.stages", "must be at least 1; use null"},
      {{kPp + "8", kSchedule + "1F1B"},
       "pipeline.stages",
       "8 stages for 6 layers, embedding and output counted"},
      {{kPp + "3", kPerStage + "1"},
       "schedule.chunks",
       "this schedule has 1 stage per pipeline rank"},
      {{kPp + "2", kPerStage + "3", kSchedule + "Interleaved1F1B"},
       "schedule.chunks",
       "has 2 or more stages per pipeline rank, and override "
       "parallelism.pipeline_parallel_layers_per_stage=3 makes 1; make 4 stages in all"},
      {{kPp + "2", kPerStage + "1", kSchedule + "DualPipeV"},
       "schedule.chunks",
       "has 2 stages per"},
      {{kPp + "2", kFirst + "6"}, "pipeline.share", "use at most 5"},
      {{kPp + "4", kLast + "3", "model.n_layers=6"},
       "pipeline.share",
       "this is more; use at most 2"},
      {{kPp + "2", kFirst + "-1"}, "pipeline.weight", "at least 0"},
      {{kPp + "2", kModules + "[[tok_embeddings, layers.0], [layers.2, norm, output]]"},
       "pipeline.modules",
       "layers.2 stands where the model has layers.1"},
      {{kPp + "2", kModules + "[[tok_embeddings], [layers.0, layers.1, layers.2, layers.3, norm]]"},
       "pipeline.modules",
       "output is missing"},
      {{kPp + "2", kModules + "[[tok_embeddings, layers.0, layers.1, layers.2, layers.3, norm], "
                              "[output]]"},
       "pipeline.modules",
       "norm and output belong to one stage"},
      {{kPp + "2", kModules + "[a, b]"}, "pipeline.modules", "a list of names is needed"},
      {{kPp + "2", kModules + "x"}, "pipeline.modules", "a list of names is needed"},
      {{kPp + "2", kCsv + "/no/such.csv"},
       "schedule.file",
       "parallelism.pipeline_parallel_schedule_csv=/no/such.csv: it cannot be read"},
      {{kPp + "2", kCsv + "t.csv", "sevenfold.schedule=v-half"}, "schedule.one", "keep one"},
      {{kPp + "2", "sevenfold.schedule=zbw"}, "schedule.name", "sevenfold.schedule=zbw"},
  };
  for (const auto& [words, rule, part] : cases) {
    const std::string sentence = rule_of(small_titan(), words);
    EXPECT_THAT(sentence, StartsWith(std::string(rule) + " config: ")) << words.back();
    EXPECT_THAT(sentence, HasSubstr(part));
  }
}

TEST(TorchTitanSchedule, ReadsATableOfPyTorch) {
  const ExperimentFiles files;
  std::ostringstream table;
  write_csv(table,
            generate("zbv-formatted", {.num_ranks = 2, .num_microbatches = 8, .num_chunks = 2}));
  const std::string path = files.write("table.csv", table.str());
  const Config config = load({kPp + "2", kCsv + path});
  EXPECT_EQ(config.pipeline.schedule_file, path);
  EXPECT_EQ(config.pipeline.num_chunks, 2);
  EXPECT_EQ(sizes(config), (Sizes{1, 2, 1, 0})) << "6 layers of 2, 2, 1 and 1, less one each end";
  std::ostringstream again;
  write_csv(again, run_schedule(config, 8));
  EXPECT_EQ(again.str(), table.str());
  EXPECT_THAT(rule_of(small_titan(), {kPp + "3", kCsv + path}),
              HasSubstr("schedule.file config: override "
                        "parallelism.pipeline_parallel_schedule_csv="));
  const std::string wrong_count =
      rule_of(small_titan(), {kPp + "2", kCsv + path, "training.local_batch_size=4"});
  EXPECT_THAT(wrong_count, HasSubstr("its steps have 8 micro batches, and those of the run 4; use "
                                     "training.global_batch_size=8"));
}

TEST(TorchTitanSchedule, GivesWayToTheSevenfoldBlock) {
  const Config half = load({kPp + "2", "sevenfold.schedule=v-half"});
  EXPECT_EQ(half.pipeline.algorithm, "v-half");
  EXPECT_EQ(half.pipeline.num_chunks, 2);
  const Config twins = load({kPp + "2", "sevenfold.schedule=dualpipe"});
  EXPECT_EQ(twins.pipeline.algorithm, "dualpipe");
  EXPECT_EQ(twins.pipeline.stages.size(), 2u) << "one piece on two ranks";
  const Config automatic = load({kPp + "2", "sevenfold.schedule=auto"});
  EXPECT_EQ(automatic.pipeline.algorithm, "auto");
  EXPECT_EQ(automatic.pipeline.num_chunks, 1);
}

TEST(TorchTitanSchedule, WarnsOfFewMicroBatches) {
  const Config config = load({kPp + "4", "training.local_batch_size=2", "model.n_layers=8"});
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text, HasSubstr("2 micro batches for 4 stages"))));
}

}  // namespace
}  // namespace sevenfold
