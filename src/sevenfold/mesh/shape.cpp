#include "sevenfold/mesh/shape.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr std::pair<Axis, std::string_view> kNames[] = {
    {Axis::kTp, "tp"},   {Axis::kCp, "cp"}, {Axis::kDp, "dp"},  {Axis::kPp, "pp"},
    {Axis::kEtp, "etp"}, {Axis::kEp, "ep"}, {Axis::kEdp, "edp"}};

void check_degree(std::string_view key, int64_t degree) {
  if (degree < 1) raise<ConfigError>("mesh: {}={} must be 1 or more", key, degree);
  if (degree > kMaxWorldSize)
    raise<ConfigError>("mesh: {}={} is more than {} ranks", key, degree, kMaxWorldSize);
}

void check_degrees(const MeshShape& shape) {
  check_degree("tensor_model_parallel_size", shape.tp);
  check_degree("context_parallel_size", shape.cp);
  check_degree("data parallel size", shape.dp);
  check_degree("pipeline_model_parallel_size", shape.pp);
  check_degree("expert_tensor_parallel_size", shape.etp);
  check_degree("expert_model_parallel_size", shape.ep);
  check_degree("ranks per node", shape.ranks_per_node);
}

// Product that stops growing where an overflow would begin; the caller compares it with
// kMaxWorldSize.
int64_t bounded_product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors)
    if (product <= kMaxWorldSize) product *= factor;
  return product;
}

void check_product(std::initializer_list<int64_t> factors) {
  if (bounded_product(factors) > kMaxWorldSize)
    raise<ConfigError>("mesh: the parallel sizes multiply to more than {} ranks; lower one of them",
                       kMaxWorldSize);
}

// The dense view fills the world by its definition; the expert view has to divide it.
void check_experts(const MeshShape& shape) {
  const int64_t world = shape.world_size();
  const int64_t product = shape.etp * shape.ep * shape.pp;
  if (world % product == 0) return;
  const int64_t unit = std::lcm(shape.tp * shape.cp * shape.pp, product);
  const int64_t below = std::max(unit, world / unit * unit);
  raise<ConfigError>(
      "mesh: a world of {} ranks is not a multiple of expert_tensor_parallel_size={} x "
      "expert_model_parallel_size={} x pipeline_model_parallel_size={} = {}; use {} or {} ranks, "
      "or other sizes",
      world, shape.etp, shape.ep, shape.pp, product, below, below + unit);
}

void check_mapping(const MeshShape& shape) {
  // The order tp-cp-ep-pp-dp puts neighbours of a pipeline tp*cp ranks apart in the dense view and
  // etp*ep apart in the expert view: the two agree only when dp and edp do.
  if (!shape.tp_pp_dp_mapping || shape.pp == 1 || shape.dp == shape.edp()) return;
  raise<ConfigError>(
      "mesh: use_tp_pp_dp_mapping=true with pipeline_model_parallel_size={} needs equal data "
      "parallelism of dense and expert weights, but they are {} and {}; switch it off, or "
      "make tensor x context ({}) equal expert tensor x expert ({}) parallel size",
      shape.pp, shape.dp, shape.edp(), shape.tp * shape.cp, shape.etp * shape.ep);
}

}  // namespace

std::string_view axis_name(Axis axis) {
  return kNames[static_cast<size_t>(axis)].second;
}

int64_t MeshShape::degree(Axis axis) const {
  switch (axis) {
    case Axis::kTp:
      return tp;
    case Axis::kCp:
      return cp;
    case Axis::kDp:
      return dp;
    case Axis::kPp:
      return pp;
    case Axis::kEtp:
      return etp;
    case Axis::kEp:
      return ep;
    case Axis::kEdp:
      return edp();
  }
  raise<InternalError>("mesh: axis {} does not exist", static_cast<int>(axis));
}

void check_shape(const MeshShape& shape) {
  check_degrees(shape);
  check_product({shape.tp, shape.cp, shape.dp, shape.pp});
  check_product({shape.etp, shape.ep, shape.pp});
  check_experts(shape);
  check_mapping(shape);
}

}  // namespace sevenfold
