#include "sevenfold/pipeline/stage_links.h"

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

std::string describe(const Transfer& transfer) {
  return fmt::format("{} of micro batch {} from stage {}",
                     transfer.is_gradient ? "gradient" : "activation", transfer.microbatch,
                     transfer.from_stage);
}

}  // namespace

void StageLinks::put(const Transfer& transfer, at::Tensor value) {
  const bool is_first =
      arrivals_.try_emplace(key_of(transfer), Arrival{value.contiguous(), {}}).second;
  SEVENFOLD_CHECK(is_first, "the {} is there already", describe(transfer));
}

void StageLinks::send(const Transfer& transfer, int64_t peer) {
  // What has arrived is let go, or its memory would stay until the end of the step.
  sends_.remove_if([](Work& work) {
    if (!work.is_done()) return false;
    work.wait();
    return true;
  });
  sends_.push_back(pipeline_->exchange({{peer, take(transfer)}}, {}));
  if (sends_block_) sends_.back().wait();
}

void StageLinks::receive(const Transfer& transfer, int64_t peer, at::Tensor buffer) {
  Work work = pipeline_->exchange({}, {{peer, buffer}});
  const bool is_first =
      arrivals_.try_emplace(key_of(transfer), Arrival{std::move(buffer), std::move(work)}).second;
  SEVENFOLD_CHECK(is_first, "the {} is there already", describe(transfer));
}

at::Tensor StageLinks::take(const Transfer& transfer) {
  const auto found = arrivals_.find(key_of(transfer));
  SEVENFOLD_CHECK(found != arrivals_.end(), "nobody gave the {}", describe(transfer));
  found->second.work.wait();
  at::Tensor value = std::move(found->second.value);
  arrivals_.erase(found);
  return value;
}

void StageLinks::drop(std::vector<Message> sends, std::vector<Message> receives) {
  if (!sends.empty() || !receives.empty())
    sends_.push_back(pipeline_->exchange(std::move(sends), std::move(receives)));
  for (Work& work : sends_) work.wait();
  for (auto& [key, arrival] : arrivals_) arrival.work.wait();
  sends_.clear();
  arrivals_.clear();
}

void StageLinks::finish() {
  for (Work& work : sends_) work.wait();
  sends_.clear();
  SEVENFOLD_CHECK(arrivals_.empty(), "{} results were handed on to nobody", arrivals_.size());
}

}  // namespace sevenfold
