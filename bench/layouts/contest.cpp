#include "bench/layouts/contest.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bench/step/step_model.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold::bench {
namespace {

// Lets one contestant at a time compute. The others' threads sleep.
class Turns {
 public:
  explicit Turns(size_t contestants) : contestants_(contestants) {}

  void wait(size_t contestant, int round) {
    const size_t place = static_cast<size_t>(round) * contestants_ + contestant;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == place; });
  }
  void pass_on() {
    const std::lock_guard lock(mutex_);
    ++turn_;
    changed_.notify_all();
  }

 private:
  const size_t contestants_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t turn_ = 0;
};

struct Times {
  std::vector<double> seconds;
  double loss = 0.0;
};

void compete(const Contestant& contestant, size_t index, int rounds, Turns& turns, Times& times) {
  const StepTokens tokens(contestant.config.model);
  const SampleStream samples(contestant.config, tokens);
  run_ranks(Mesh(contestant.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(contestant.config, samples, rank);
    for (int round = 0; round < rounds; ++round) {
      turns.wait(index, round);
      rank.group("world").barrier();
      const auto begin = std::chrono::steady_clock::now();
      const StepResult result = trainer.step();
      rank.group("world").barrier();
      if (rank.rank != 0) continue;
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      times.seconds.push_back(passed.count());
      times.loss = result.loss;
      turns.pass_on();
    }
  });
}

}  // namespace

std::vector<std::vector<double>> run_in_turn(const std::vector<Contestant>& contestants, int rounds,
                                             int warm_up) {
  Turns turns(contestants.size());
  std::vector<Times> times(contestants.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < contestants.size(); ++i)
    threads.emplace_back([&, i] { compete(contestants[i], i, rounds + warm_up, turns, times[i]); });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::vector<double>> seconds;
  for (size_t i = 0; i < contestants.size(); ++i) {
    fmt::print("{:<24} loss of the last step {:.6f}\n", contestants[i].name, times[i].loss);
    seconds.emplace_back(times[i].seconds.begin() + warm_up, times[i].seconds.end());
  }
  return seconds;
}

}  // namespace sevenfold::bench
