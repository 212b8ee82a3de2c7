#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/order/sample_stream.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/dist/timeline.h"

namespace sevenfold::bench {

// A layout that takes part.
struct Contestant {
  std::string name;
  Config config;
};

// A training step of a contestant: from the moment when all its ranks start to that when all have
// ended.
struct ContestStep {
  double seconds = 0.0;
  double loss = 0.0;
  double gradient_norm = 0.0;
  std::vector<std::vector<TimeSpan>> spans;  // what each rank did
};

// Contestants that stay ready and train one step at a time when asked: meanwhile the ranks of the
// others, threads of this process, sleep.
class Contest {
 public:
  // Returns when all are ready to take their first step.
  explicit Contest(std::vector<Contestant> contestants);
  ~Contest();
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  size_t size() const { return seats_.size(); }
  const Contestant& contestant(size_t index) const { return seats_[index].contestant; }
  ContestStep step(size_t index);

 private:
  struct Seat {
    Contestant contestant;
    int64_t asked = 0;  // steps; guarded by mutex_, as the next two
    int64_t done = -1;  // not ready
    ContestStep last;   // spans: each rank writes its own before rank 0 counts the step as done
    std::thread thread;
  };

  void train(Seat& seat);
  void serve(Seat& seat, const SampleStream& samples, RankContext& rank);
  bool wait_for(const Seat& seat, int64_t step);
  void wait_until_done(std::unique_lock<std::mutex>& lock, const Seat& seat, int64_t step);
  void finish(Seat& seat, int64_t step);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::deque<Seat> seats_;
};

// Steps of each contestant, [contestant][round], interleaved: in every round each takes one, in
// turn. The first `warm_up` rounds are left out. Prints the losses of the last round, so that one
// sees that all train the same model.
std::vector<std::vector<ContestStep>> run_in_turn(std::vector<Contestant> contestants, int rounds,
                                                  int warm_up = 2);

std::vector<double> seconds_of(const std::vector<ContestStep>& steps);

// The Llama that layouts are measured with, on one rank: heads of 64, sequences and micro batches
// of one sample; vocabulary, optimizer and start as step_config().
struct LayoutModel {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;
  int64_t seq_length = 1024;
};
Config layout_config(const LayoutModel& model, Precision precision);

}  // namespace sevenfold::bench
