// Every way of cutting layers into stages, against stages written by hand.

#include <gmock/gmock.h>

#include <numeric>

#include "config/experiment_files.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::string kPp2 = "pipeline_model_parallel_size=2";
const std::string kPp4 = "pipeline_model_parallel_size=4";
const std::string kTwoPieces = "num_virtual_stages_per_pipeline_rank=2";
const std::string kPrimus = "patch_primus_pipeline=true";

PipelineConfig pipeline_of(int64_t num_layers, Words words) {
  words.push_back("num_layers=" + std::to_string(num_layers));
  return load_text(small_llama(), words).pipeline;
}

// Layers of each stage, after checking that every layer is in one stage, in order, and that the
// ends of the model are at its ends.
std::vector<int64_t> layers_of(int64_t num_layers, Words words) {
  const PipelineConfig pipeline = pipeline_of(num_layers, std::move(words));
  std::vector<int64_t> layers;
  int64_t next = 0;
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    const StageLayers& stage = pipeline.stages[i];
    EXPECT_EQ(stage.first_layer, next);
    EXPECT_EQ(stage.has_embedding, i == 0);
    EXPECT_EQ(stage.has_head, i + 1 == pipeline.stages.size());
    next += stage.num_layers;
    layers.push_back(stage.num_layers);
  }
  EXPECT_EQ(next, num_layers) << "every layer has one owner";
  return layers;
}

using Layers = std::vector<int64_t>;

TEST(PipelineStages, AreTheWholeModelWithoutPipeline) {
  const PipelineConfig pipeline = pipeline_of(4, {});
  EXPECT_EQ(pipeline.algorithm, "1f1b");
  EXPECT_EQ(pipeline.num_chunks, 1);
  EXPECT_EQ(pipeline.stages, (std::vector<StageLayers>{{0, 4, true, true}}));
  EXPECT_EQ(layers_of(4, {"decoder_first_pipeline_num_layers=4"}), Layers{4});
  EXPECT_EQ(layers_of(4, {"account_for_loss_in_pipeline_split=true"}), Layers{4});
}

TEST(PipelineStages, AreEqual) {
  EXPECT_EQ(pipeline_of(8, {kPp2}).stages,
            (std::vector<StageLayers>{{0, 4, true, false}, {4, 4, false, true}}));
  EXPECT_EQ(pipeline_of(8, {kPp2}).algorithm, "1f1b");
  EXPECT_EQ(layers_of(8, {kPp4}), (Layers{2, 2, 2, 2}));
}

TEST(PipelineStages, OfSeveralPiecesGoRoundTheRanks) {
  const PipelineConfig pipeline = pipeline_of(8, {kPp2, kTwoPieces});
  EXPECT_EQ(pipeline.algorithm, "1f1b-interleaved");
  EXPECT_EQ(pipeline.num_chunks, 2);
  EXPECT_EQ(
      pipeline.stages,
      (std::vector<StageLayers>{
          {0, 2, true, false}, {2, 2, false, false}, {4, 2, false, false}, {6, 2, false, true}}));
  EXPECT_EQ(layers_of(24, {kPp2, "num_layers_per_virtual_pipeline_stage=3"}), Layers(8, 3));
  EXPECT_EQ(pipeline_of(24, {kPp2, "num_layers_per_virtual_pipeline_stage=3"}).num_chunks, 4);
  EXPECT_EQ(pipeline_of(4, {kPp2, "num_layers_per_virtual_pipeline_stage=2"}).algorithm, "1f1b");
}

TEST(PipelineStages, OfTheirOwnSizesAtTheEnds) {
  EXPECT_EQ(layers_of(8, {kPp4, "decoder_first_pipeline_num_layers=2"}), (Layers{2, 2, 2, 2}));
  EXPECT_EQ(layers_of(7, {kPp4, "decoder_first_pipeline_num_layers=1"}), (Layers{1, 2, 2, 2}));
  EXPECT_EQ(layers_of(7, {kPp4, "decoder_last_pipeline_num_layers=4"}), (Layers{1, 1, 1, 4}));
  EXPECT_EQ(layers_of(9, {kPp4, "decoder_first_pipeline_num_layers=2",
                          "decoder_last_pipeline_num_layers=1"}),
            (Layers{2, 3, 3, 1}));
  EXPECT_EQ(layers_of(5, {kPp2, "decoder_first_pipeline_num_layers=3",
                          "decoder_last_pipeline_num_layers=2"}),
            (Layers{3, 2}));
  EXPECT_EQ(layers_of(78, {"pipeline_model_parallel_size=8", "decoder_last_pipeline_num_layers=8"}),
            (Layers{10, 10, 10, 10, 10, 10, 10, 8}))
      << "the shipped glm5";
}

TEST(PipelineStages, DivideUnevenRanksAmongTheirPieces) {
  EXPECT_EQ(layers_of(16, {kPp4, kTwoPieces, "decoder_first_pipeline_num_layers=2",
                           "decoder_last_pipeline_num_layers=6"}),
            (Layers{1, 2, 2, 3, 1, 2, 2, 3}));
  EXPECT_EQ(
      layers_of(16, {kPp4, kTwoPieces, kPrimus, "pp_algorithm=zbv-formatted",
                     "decoder_first_pipeline_num_layers=2", "decoder_last_pipeline_num_layers=6"}),
      (Layers{1, 2, 2, 3, 3, 2, 2, 1}))
      << "in a V the first rank holds both ends";
}

TEST(PipelineStages, CountEmbeddingAndLossAsLayers) {
  const std::string embedding = "account_for_embedding_in_pipeline_split=true";
  const std::string loss = "account_for_loss_in_pipeline_split=true";
  EXPECT_EQ(layers_of(6, {kPp4, embedding, loss}), (Layers{1, 2, 2, 1}));
  EXPECT_EQ(layers_of(7, {kPp4, embedding}), (Layers{1, 2, 2, 2}));
  EXPECT_EQ(layers_of(7, {kPp4, loss}), (Layers{2, 2, 2, 1}));
  EXPECT_EQ(layers_of(6, {kPp2, embedding, loss, kTwoPieces}), (Layers{1, 2, 2, 1}));
  EXPECT_EQ(layers_of(2, {kPp2, embedding, loss, kTwoPieces}), (Layers{0, 1, 1, 0}));
  EXPECT_EQ(layers_of(6, {kPp2, embedding, loss, "num_layers_per_virtual_pipeline_stage=2"}),
            (Layers{1, 2, 2, 1}))
      << "layers of a piece count them too";
  EXPECT_EQ(layers_of(14, {kPp4, embedding, loss, kTwoPieces, kPrimus, "pp_algorithm=v-half"}),
            (Layers{1, 2, 2, 2, 2, 2, 2, 1}));
}

TEST(PipelineStages, FollowAList) {
  EXPECT_EQ(layers_of(7, {kPp4, "decoder_pipeline_manual_split_list=[1, 2, 3, 1]"}),
            (Layers{1, 2, 3, 1}));
  EXPECT_EQ(layers_of(6, {kPp2, kTwoPieces, "decoder_pipeline_manual_split_list=[1, 0, 3, 2]"}),
            (Layers{1, 0, 3, 2}))
      << "a number for each stage in the order of the model";
}

TEST(PipelineStages, FollowALayout) {
  const std::string key = "pipeline_model_parallel_layout=";
  EXPECT_EQ(layers_of(4, {kPp2, key + "Ettt|tL"}), (Layers{3, 1}));
  EXPECT_EQ(layers_of(5, {kPp4, key + "E|t*3|(t)*2|L"}), (Layers{0, 3, 2, 0}));
  EXPECT_EQ(layers_of(4, {kPp2, key + "Et|t||ttL"}), (Layers{1, 1, 0, 2}));
  EXPECT_EQ(pipeline_of(4, {kPp2, key + "Et|t||ttL"}).algorithm, "1f1b-interleaved");
  EXPECT_EQ(pipeline_of(94, {kPp4, key + "Et*5|(t*6|)*14t*5,L"}).num_chunks, 4)
      << "the shipped qwen3_235B";
  EXPECT_EQ(layers_of(94, {kPp4, key + "Et*5|(t*6|)*14t*5,L"}),
            (Layers{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5}));
  const std::string lists =
      key + "[[embedding, decoder], [decoder, decoder], [decoder], [decoder, loss]]";
  EXPECT_EQ(layers_of(5, {kPp2, lists, kPrimus, "pp_algorithm=v-min"}), (Layers{1, 2, 1, 1}));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, key + "|Et|tt|tL"}), StartsWith("pipeline.layout "))
      << "the first stage holds the embedding";
  EXPECT_THAT(rule_of(small_llama(), {kPp2, key + "Et|tt|tL|"}), StartsWith("pipeline.layout "));
}

TEST(PipelineStages, MeetAtTheFirstRankInAV) {
  const PipelineConfig pipeline =
      pipeline_of(8, {kPp2, kTwoPieces, kPrimus, "pp_algorithm=zbv-formatted"});
  EXPECT_EQ(pipeline.algorithm, "zbv-formatted");
  EXPECT_EQ(pipeline.num_chunks, 2);
  EXPECT_EQ(pipeline.stages.size(), 4u);
  // The default placement of the reference: chunk 0 of rank r from r n, chunk 1 from L - (r + 1) n.
  for (int64_t rank = 0; rank < 2; ++rank) {
    const auto first_layer = [&](int64_t chunk) {
      return pipeline.stages[static_cast<size_t>(stage_of(Placement::kVee, 2, rank, chunk))]
          .first_layer;
    };
    EXPECT_EQ(first_layer(0), 2 * rank);
    EXPECT_EQ(first_layer(1), 8 - 2 * (rank + 1));
  }
}

TEST(PipelineStages, OfDualPipeHaveTwins) {
  for (const Words& words : {Words{}, Words{kTwoPieces}}) {
    Words all = {kPp4, kPrimus, "pp_algorithm=dualpipe"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(layers_of(8, all), (Layers{2, 2, 2, 2})) << "as many stages as ranks";
    EXPECT_EQ(pipeline_of(8, all).num_chunks, 2) << "each held twice";
  }
  EXPECT_EQ(layers_of(7, {kPp4, kPrimus, "pp_algorithm=dualpipe",
                          "pipeline_model_parallel_layout=Et|tt|tt|ttL"}),
            (Layers{1, 2, 2, 2}));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, kPrimus, "pp_algorithm=dualpipe",
                                      "pipeline_model_parallel_layout=Et|t|t|tL"}),
              StartsWith("pipeline.twins "));
}

// Five, six and seven layers on four stages, six and five on two times two.
TEST(PipelineStages, LoseNoLayer) {
  for (const int64_t layers : {5, 6, 7})
    EXPECT_THAT(rule_of(small_llama(), {kPp4, "num_layers=" + std::to_string(layers)}),
                HasSubstr("pipeline_model_parallel_size=4 does not divide num_layers=" +
                          std::to_string(layers)));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, kTwoPieces, "num_layers=6"}),
              HasSubstr("does not divide the 3 layers of a pipeline rank"));
  EXPECT_THAT(rule_of(small_llama(), {kPp2, kTwoPieces, "num_layers=5"}),
              StartsWith("layers.divisible "));
  EXPECT_EQ(layers_of(5, {kPp4, "decoder_pipeline_manual_split_list=[1, 1, 1, 2]"}),
            (Layers{1, 1, 1, 2}));
  EXPECT_EQ(layers_of(6, {kPp2, kTwoPieces, "pipeline_model_parallel_layout=null",
                          "decoder_pipeline_manual_split_list=[2, 1, 2, 1]"}),
            (Layers{2, 1, 2, 1}));
}

}  // namespace
}  // namespace sevenfold
