#include <numeric>

#include "sevenfold/config/torchtitan/parts.h"

namespace sevenfold::config {
namespace {

constexpr const char* kTp = "parallelism.tensor_parallel_degree";
constexpr const char* kCp = "parallelism.context_parallel_degree";
constexpr const char* kPp = "parallelism.pipeline_parallel_degree";
constexpr const char* kShard = "parallelism.data_parallel_shard_degree";
constexpr const char* kReplicate = "parallelism.data_parallel_replicate_degree";
constexpr const char* kEp = "parallelism.expert_parallel_degree";
constexpr const char* kEtp = "parallelism.expert_tensor_parallel_degree";
constexpr int64_t kMaxDegree = 1024;

int64_t degree(const Parameters& own, const char* key) {
  const int64_t value = own.integer(key);
  if (value < 1 || value > kMaxDegree)
    raise_rule("degree.positive",
               "config: {}: a degree is at least 1 and at most {}; 1 switches the axis off",
               own.where(key), kMaxDegree);
  return value;
}

// -1: what the others leave.
int64_t shard_degree(const Parameters& own) {
  const int64_t value = own.integer(kShard);
  if (value == -1) return value;
  if (value < 1 || value > kMaxWorldSize)
    raise_rule("degree.positive",
               "config: {}: a degree is at least 1 and at most {}, or -1 for all ranks that the "
               "other degrees leave; use -1",
               own.where(kShard), kMaxWorldSize);
  return value;
}

struct ExpertDegrees {
  int64_t ep = 1;
  int64_t etp = 1;
};

// EP does nothing in a dense model.
ExpertDegrees expert_degrees(Draft& draft, int64_t tp) {
  ExpertDegrees experts{degree(draft.own, kEp), degree(draft.own, kEtp)};
  if (draft.to.parameters.is_null("num_experts")) {
    if (experts.ep > 1)
      draft.own.notice(
          fmt::format("{}: has no effect: the model has no experts", draft.own.where(kEp)));
    return {};
  }
  if (experts.ep > 1 && experts.etp != 1 && experts.etp != tp)
    raise_rule("experts.tensor",
               "config: {}: an expert lies on one rank or is cut as the rest is; "
               "use 1 or {}={}",
               draft.own.where(kEtp), kTp, tp);
  if (experts.ep == 1) return {1, tp};
  return experts;
}

// All degrees but that of shards.
int64_t others(const Degrees& degrees) {
  return degrees.tp * degrees.cp * degrees.pp * degrees.replicate;
}

// How many ranks of shards make whole groups of experts.
int64_t shard_unit(const Degrees& degrees, const ExpertDegrees& experts) {
  const int64_t of_experts = experts.ep * experts.etp;
  return of_experts / std::gcd(of_experts, degrees.tp * degrees.cp);
}

[[noreturn]] void raise_product(const Parameters& own, const Degrees& degrees,
                                const WorldRequest& world, const std::string& way_out) {
  raise_rule(
      "world.product", "config: {}: {} ranks ({}) are not {} {} x {} {} x {} {} x {} {}{}; use {}",
      own.where(degrees.shard == -1 ? kReplicate : kShard), world.ranks, world.where, kReplicate,
      degrees.replicate, kTp, degrees.tp, kCp, degrees.cp, kPp, degrees.pp,
      degrees.shard == -1 ? " x a whole number" : fmt::format(" x {} {}", kShard, degrees.shard),
      way_out);
}

// Before products of degrees are made, which then fit in 64 bits.
void check_size(const Parameters& own, const Degrees& degrees) {
  if (degrees.shard > kMaxWorldSize / others(degrees))
    raise_rule("world.positive",
               "config: {}: the degrees make more than {} ranks; use smaller ones",
               own.where(kShard), kMaxWorldSize);
}

// The shards' degree for the ranks that are asked for, or the smallest.
int64_t resolve_shards(const Parameters& own, const Degrees& degrees, int64_t unit,
                       const std::optional<WorldRequest>& world) {
  if (degrees.shard != -1) check_size(own, degrees);
  const int64_t rest = others(degrees);
  if (!world) return degrees.shard == -1 ? unit : degrees.shard;
  if (world->ranks < 1 || world->ranks > kMaxWorldSize)
    raise_rule("world.positive",
               "config: {}: the number of ranks is at least 1 and at most {}; use {}", world->where,
               kMaxWorldSize, rest * unit);
  if (degrees.shard == -1) {
    if (world->ranks % rest != 0)
      raise_product(own, degrees, *world,
                    nearest_multiples(world->ranks, rest * unit) + " ranks, or other degrees");
    return world->ranks / rest;
  }
  if (rest * degrees.shard != world->ranks)
    raise_product(own, degrees, *world,
                  fmt::format("{} ranks, or {}=-1", rest * degrees.shard, kShard));
  return degrees.shard;
}

void check_world(const Parameters& own, const Degrees& degrees, int64_t unit) {
  check_size(own, degrees);
  if (degrees.shard % unit != 0)
    raise_rule("world.experts",
               "config: {}: {} ranks of shards x {} {} x {} {} are no whole groups of experts; use "
               "a multiple of {} ranks",
               own.where(kEp), degrees.shard, kCp, degrees.cp, kTp, degrees.tp,
               others(degrees) * unit);
}

void write_experts(Draft& draft, const ExpertDegrees& experts) {
  if (draft.to.parameters.is_null("num_experts")) return;
  draft.set("expert_model_parallel_size", Value::of(experts.ep), kEp);
  draft.set("expert_tensor_parallel_size", Value::of(experts.etp), kEtp);
}

// Weights lie in shards over shard x cp ranks; without such ranks every replica has them whole.
void write_shards(Draft& draft, const Degrees& degrees) {
  const std::string reshard = draft.own.string("parallelism.fsdp_reshard_after_forward");
  const bool frees = reshard == "always" || (reshard == "default" && degrees.pp == 1);
  draft.set("use_torch_fsdp2", Value::of(degrees.cuts_weights()), kShard);
  if (degrees.cuts_weights())
    draft.set("data_parallel_replicate_degree", Value::of(degrees.replicate), kReplicate);
  draft.set("torch_fsdp2_reshard_after_forward", Value::of(frees),
            "parallelism.fsdp_reshard_after_forward");
}

// Both of its choices send keys and values around all ranks.
void write_transport(Draft& draft) {
  const char* key = "parallelism.context_parallel_rotate_method";
  const bool gathers = draft.own.string(key) == "allgather";
  draft.set("cp_comm_type", Value::of(std::string(gathers ? "all_gather" : "p2p")), key);
}

// A tensor-parallel rank has its part of each rank's head and tail piece.
void check_lengths(const Parameters& own, const Degrees& degrees) {
  const char* key = "training.seq_len";
  const int64_t length = own.integer(key);
  const int64_t unit = degrees.tp * (degrees.cp > 1 ? 2 * degrees.cp : 1);
  if (length >= 1 && length % unit != 0)
    raise_rule("sequence.divisor", "config: {} is not a multiple of {} ({} {}{}); use {}",
               own.where(key), unit, kTp, degrees.tp,
               degrees.cp > 1 ? fmt::format(" x 2 x {} {}", kCp, degrees.cp) : "",
               nearest_multiples(length, unit));
}

}  // namespace

Degrees translate_degrees(Draft& draft) {
  const Parameters& own = draft.own;
  Degrees degrees{.tp = degree(own, kTp),
                  .cp = degree(own, kCp),
                  .pp = degree(own, kPp),
                  .shard = shard_degree(own),
                  .replicate = degree(own, kReplicate)};
  check_lengths(own, degrees);
  const ExpertDegrees experts = expert_degrees(draft, degrees.tp);
  const int64_t unit = shard_unit(degrees, experts);
  degrees.shard =
      resolve_shards(own, degrees, unit, requested_world(draft.to.block, draft.to.options));
  check_world(own, degrees, unit);
  draft.to.options.ranks = others(degrees) * degrees.shard;
  draft.set("sequence_parallel", Value::of(degrees.tp > 1), kTp);
  write_experts(draft, experts);
  write_shards(draft, degrees);
  write_transport(draft);
  return degrees;
}

}  // namespace sevenfold::config
