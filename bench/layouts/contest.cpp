#include "bench/layouts/contest.h"

#include <fmt/format.h>

#include "bench/step/step_model.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold::bench {

Contest::Contest(std::vector<Contestant> contestants) {
  for (Contestant& contestant : contestants)
    seats_.push_back({.contestant = std::move(contestant)});
  for (Seat& seat : seats_) seat.thread = std::thread([this, &seat] { train(seat); });
  std::unique_lock lock(mutex_);
  for (const Seat& seat : seats_) wait_until_done(lock, seat, 0);
}

Contest::~Contest() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (Seat& seat : seats_) seat.thread.join();
}

ContestStep Contest::step(size_t index) {
  Seat& seat = seats_[index];
  std::unique_lock lock(mutex_);
  const int64_t number = ++seat.asked;
  changed_.notify_all();
  wait_until_done(lock, seat, number);
  return std::move(seat.last);
}

void Contest::train(Seat& seat) {
  const Config& config = seat.contestant.config;
  const StepTokens tokens(config.model);
  const SampleStream samples(config, tokens);
  run_ranks(Mesh(config.mesh), {}, [&](RankContext& rank) { serve(seat, samples, rank); });
}

void Contest::serve(Seat& seat, const SampleStream& samples, RankContext& rank) {
  Timeline timeline;
  rank.timeline = &timeline;
  RankTrainer trainer(seat.contestant.config, samples, rank);
  Communicator& world = rank.group("world");
  world.barrier();
  if (rank.rank == 0) finish(seat, 0);
  for (int64_t number = 1; wait_for(seat, number); ++number) {
    if (rank.rank == 0) seat.last.spans.resize(static_cast<size_t>(world.size()));
    world.barrier();
    timeline.take();
    const double start_s = Timeline::now_s();
    const StepResult result = trainer.step();
    seat.last.spans[static_cast<size_t>(rank.rank)] = timeline.take();
    world.barrier();
    if (rank.rank != 0) continue;
    seat.last.seconds = Timeline::now_s() - start_s;
    seat.last.loss = result.loss;
    seat.last.gradient_norm = result.gradient_norm;
    finish(seat, number);
  }
  rank.timeline = nullptr;
}

bool Contest::wait_for(const Seat& seat, int64_t step) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ends_ || seat.asked >= step; });
  return seat.asked >= step;
}

void Contest::wait_until_done(std::unique_lock<std::mutex>& lock, const Seat& seat, int64_t step) {
  changed_.wait(lock, [&] { return seat.done >= step; });
}

void Contest::finish(Seat& seat, int64_t step) {
  const std::lock_guard lock(mutex_);
  seat.done = step;
  changed_.notify_all();
}

std::vector<std::vector<ContestStep>> run_in_turn(std::vector<Contestant> contestants, int rounds,
                                                  int warm_up) {
  Contest contest(std::move(contestants));
  std::vector<std::vector<ContestStep>> steps(contest.size());
  for (int round = -warm_up; round < rounds; ++round) {
    for (size_t i = 0; i < contest.size(); ++i) {
      ContestStep step = contest.step(i);
      if (round >= 0) steps[i].push_back(std::move(step));
    }
  }
  for (size_t i = 0; i < contest.size(); ++i)
    fmt::print("{:<24} loss of the last step {:.6f}\n", contest.contestant(i).name,
               steps[i].back().loss);
  return steps;
}

std::vector<double> seconds_of(const std::vector<ContestStep>& steps) {
  std::vector<double> seconds;
  for (const ContestStep& step : steps) seconds.push_back(step.seconds);
  return seconds;
}

Config layout_config(const LayoutModel& model, Precision precision) {
  Config config = step_config(precision);
  config.model.num_layers = model.num_layers;
  config.model.hidden_size = model.hidden_size;
  config.model.ffn_hidden_size = model.ffn_hidden_size;
  config.model.num_attention_heads = model.hidden_size / config.model.kv_channels;
  config.model.num_query_groups = config.model.num_attention_heads;
  config.model.seq_length = model.seq_length;
  config.model.max_position_embeddings = model.seq_length;
  config.batch = {.micro_batch_size = 1, .global_batch_size = 1, .num_microbatches = 1};
  return config;
}

}  // namespace sevenfold::bench
