#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;

// Table 5 of arXiv 2401.10241 from the times of its table 9, to the four printed digits.
class PublishedBubbles : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/golden/schedules/paper.json");
    const auto document = nlohmann::json::parse(file)["zero_bubble_2401.10241"];
    rates_ = document["table5_bubble_rates"];
    times_ = document["table9_profiled_times_ms"]["rows"];
    ASSERT_EQ(times_.size(), 6u);
    ASSERT_EQ(rates_["rows"].size(), times_.size());
  }

  // Share of an activation that W needs, from table 1: 32sbh of sb(34h + 5as) per layer.
  static double weight_memory(const std::string& model) {
    const double hidden = model == "1.5B" ? 2304 : 4096;
    const double heads = model == "1.5B" ? 24 : 32;
    return 32 * hidden / (34 * hidden + 5 * heads * 1024);
  }

  ScheduleRequest request_of_row(size_t index, double limit_factor) const {
    const auto& row = times_[index];
    ScheduleRequest request;
    request.num_ranks = row[1];
    request.num_microbatches = row[2];
    request.costs.share = {row[3], row[4], row[5], 1};
    request.costs.link = row[6];
    request.costs.weight_memory = weight_memory(row[0]);
    request.max_memory = limit_factor * static_cast<double>(request.num_ranks);
    return request;
  }

  static std::string rate_of(const char* algorithm, const ScheduleRequest& request) {
    const Simulation result = simulate(generate(algorithm, request), request.costs);
    return fmt::format("{:.4f}", result.bubble_rate_longest());
  }

  void expect_column(const std::string& column, const char* algorithm, double limit_factor) {
    size_t index = 0;
    while (rates_["columns"].at(index) != column) ++index;
    for (size_t i = 0; i < times_.size(); ++i) {
      const auto& printed = rates_["rows"][i];
      for (size_t key = 0; key < 3; ++key) ASSERT_EQ(printed[key], times_[i][key]);
      EXPECT_EQ(rate_of(algorithm, request_of_row(i, limit_factor)),
                fmt::format("{:.4f}", printed[index].get<double>()))
          << column << " " << times_[i];
    }
  }

  nlohmann::json rates_;
  nlohmann::json times_;
};

TEST_F(PublishedBubbles, Of1F1B) {
  expect_column("1F1B", "1f1b", INFINITY);
}
TEST_F(PublishedBubbles, OfZbH1) {
  expect_column("ZB-H1", "zb-h1", INFINITY);
}
TEST_F(PublishedBubbles, OfZbH2) {
  expect_column("ZB-H2", "zb-h2", INFINITY);
}
TEST_F(PublishedBubbles, OfZb1p) {
  expect_column("ZB-1p", "zero-bubble-heuristic", 1);
}
TEST_F(PublishedBubbles, OfZb2p) {
  expect_column("ZB-2p", "zero-bubble-heuristic", 2);
}

// Its authors' code makes 0.1015 of the first row's 0.0433 when B frees nothing.
TEST_F(PublishedBubbles, OfZb2pNeedTheRealShareOfWeightMemory) {
  ScheduleRequest request = request_of_row(0, 2);
  EXPECT_EQ(rate_of("zero-bubble-heuristic", request), "0.0433");
  request.costs.weight_memory = 1;
  EXPECT_EQ(rate_of("zero-bubble-heuristic", request), "0.1015");
}

// Section 2.3: worker i of ZB-H1 holds (p-i+1) M_B + (i-1) M_W, of ZB-H2 (2p-2i+1) M_B + (2i-2)
// M_W.
TEST(PublishedMemory, OfEveryWorkerOfZbH1AndZbH2) {
  for (const int64_t ranks : {2, 3, 5, 8}) {
    ScheduleRequest request;
    request.num_ranks = ranks;
    request.num_microbatches = 3 * ranks;
    request.costs.weight_memory = 0.625;
    const Simulation h1 = simulate(generate("zb-h1", request), request.costs);
    const Simulation h2 = simulate(generate("zb-h2", request), request.costs);
    for (int64_t i = 1; i <= ranks; ++i) {
      const auto p = static_cast<double>(ranks);
      const auto worker = static_cast<double>(i);
      const auto rank = static_cast<size_t>(i - 1);
      EXPECT_NEAR(h1.peak_activation[rank], p - worker + 1 + (worker - 1) * 0.625, kRounding) << p;
      EXPECT_NEAR(h2.peak_activation[rank], 2 * p - 2 * worker + 1 + (2 * worker - 2) * 0.625,
                  kRounding)
          << p;
    }
  }
}

// Table 1 of arXiv 2405.15362, with the authors' formulas for any number of ranks.
TEST(PublishedMemory, OfTheVSchedules) {
  for (const int64_t ranks : {2, 3, 4, 5, 6, 8}) {
    ScheduleRequest request;
    request.num_ranks = ranks;
    request.num_microbatches = 3 * ranks;
    const auto peak = [&](const char* algorithm) {
      return simulate(generate(algorithm, request), request.costs).max_peak_activation();
    };
    EXPECT_LE(peak("v-half"), static_cast<double>((ranks + 2) / 2)) << ranks;
    EXPECT_LE(peak("v-min"), static_cast<double>((ranks + 4) / 3)) << ranks;
    EXPECT_LE(peak("v-zb"), static_cast<double>(ranks)) << ranks;
  }
}

// What a schedule's longest rank takes, from the papers. T is the time of F, B and W.
struct ClosedForm {
  const char* algorithm;
  int64_t chunks;
  int64_t least_microbatches;  // in ranks
  PassCosts times;
  double (*bubble)(double ranks, double chunks, const PassCosts& times);
};

constexpr PassCosts kUnequal = {18, 20, 14, 1};
// The DualPipes' forms are exact where F and B take as long; with shorter forwards the tables take
// less.
constexpr PassCosts kShortWeight = {20, 20, 14, 1};

const ClosedForm kClosedForms[] = {
    {"gpipe", 1, 1, kUnequal,
     [](double p, double, const PassCosts& t) { return (p - 1) * t.total(); }},
    {"1f1b", 1, 1, kUnequal,
     [](double p, double, const PassCosts& t) { return (p - 1) * t.total(); }},
    {"looped-bfs", 3, 1, kUnequal,
     [](double p, double v, const PassCosts& t) { return (p - 1) * t.total() / v; }},
    {"1f1b-interleaved", 3, 1, kUnequal,
     [](double p, double v, const PassCosts& t) { return (p - 1) * t.total() / v; }},
    {"zb-h1", 1, 1, kUnequal,
     [](double p, double, const PassCosts& t) {
       return (p - 1) * (t.forward + t.backward_input - t.backward_weight);
     }},
    {"zb-interleaved", 3, 1, kUnequal,
     [](double p, double v, const PassCosts& t) {
       return (p - 1) * (t.forward + t.backward_input - t.backward_weight) / v;
     }},
    {"zb-h2", 1, 2, kUnequal,
     [](double p, double, const PassCosts& t) {
       return (p - 1) * (t.forward + t.backward_input - 2 * t.backward_weight);
     }},
    {"dualpipe", 0, 2, kShortWeight,
     [](double p, double, const PassCosts& t) {
       return (p / 2 - 1) * (t.forward + 2 * t.backward_input - t.backward_weight);
     }},
    {"dualpipev", 0, 2, kShortWeight, [](double p, double, const PassCosts& t) {
       return (p - 1) * (t.forward + 2 * t.backward_input - t.backward_weight) / 2;
     }}};

TEST(ClosedForms, HoldForUnequalTimes) {
  for (const ClosedForm& form : kClosedForms)
    for (const int64_t ranks : {2, 4, 6})
      for (const int64_t rounds : {form.least_microbatches, form.least_microbatches + 2}) {
        ScheduleRequest request;
        request.num_ranks = ranks;
        request.num_microbatches = ranks * rounds;
        request.num_chunks = form.chunks;
        request.costs.share = form.times;
        const double bubble = form.bubble(static_cast<double>(ranks),
                                          static_cast<double>(form.chunks), request.costs.share);
        const double ideal = static_cast<double>(ranks * rounds) * request.costs.share.total();
        EXPECT_NEAR(simulate(generate(form.algorithm, request), request.costs).longest,
                    ideal + bubble, 1e-6)
            << form.algorithm << " P=" << ranks << " M=" << ranks * rounds;
      }
}

// Measured with the authors' or the field's own generators.
TEST(MeasuredMakespans, OfUnequalTimesAndLinksAreThoseOfTheOriginals) {
  ScheduleRequest request;
  request.num_ranks = 8;
  request.num_microbatches = 24;
  request.costs.share = kUnequal;
  request.costs.link = 1;
  const auto makespan = [&](const char* algorithm, int64_t chunks) {
    request.num_chunks = chunks;
    return simulate(generate(algorithm, request), request.costs).makespan;
  };
  EXPECT_NEAR(makespan("1f1b", 1), 1666, kRounding);
  EXPECT_NEAR(makespan("zbv-formatted", 2), 1351, kRounding);
  EXPECT_NEAR(makespan("zb-interleaved", 4), 1342, kRounding);
  EXPECT_NEAR(makespan("dualpipe", 0), 1404, kRounding);
  EXPECT_NEAR(makespan("dualpipev", 2), 1461, kRounding);
}

// Appendix H of arXiv 2401.10241: no more micro batches than ranks.
TEST(ClosedForms, HoldForFewMicrobatches) {
  for (const int64_t count : {1, 3, 6}) {
    ScheduleRequest request;
    request.num_ranks = 6;
    request.num_microbatches = count;
    request.costs.share = {18, 20, 14, 1};
    const auto longest = [&](const char* algorithm) {
      return simulate(generate(algorithm, request), request.costs).longest;
    };
    const double steps = static_cast<double>(count) + 5;
    EXPECT_NEAR(longest("1f1b"), steps * 52, kRounding);
    EXPECT_NEAR(longest("zb-h1"), steps * 38 + 14, kRounding);
    EXPECT_NEAR(longest("zero-bubble-heuristic"), steps * 38 + 14, kRounding);
  }
}

}  // namespace
}  // namespace sevenfold
