#include "sevenfold/mesh/shape.h"

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

int64_t dense_product(const MeshShape& shape) {
  return shape.tp * shape.cp * shape.pp;
}
int64_t expert_product(const MeshShape& shape) {
  return shape.etp * shape.ep * shape.pp;
}

std::string describe_dense(const MeshShape& shape) {
  return fmt::format(
      "tensor_model_parallel_size={} x context_parallel_size={} x pipeline_model_parallel_size={} "
      "= {}",
      shape.tp, shape.cp, shape.pp, dense_product(shape));
}

std::string describe_expert(const MeshShape& shape) {
  return fmt::format(
      "expert_tensor_parallel_size={} x expert_model_parallel_size={} x "
      "pipeline_model_parallel_size={} = {}",
      shape.etp, shape.ep, shape.pp, expert_product(shape));
}

// "4 or 8": the multiples of `unit` next to `world_size`.
std::string nearest_sizes(int64_t unit, int64_t world_size) {
  const int64_t below = world_size / unit * unit;
  if (below <= 0) return fmt::format("{} or {}", unit, 2 * unit);
  return fmt::format("{} or {}", below, below + unit);
}

// Throws when the world size is not a multiple of what one of the views needs.
void check_world(const MeshShape& shape, int64_t world_size) {
  const bool dense_fits = world_size % dense_product(shape) == 0;
  if (dense_fits && world_size % expert_product(shape) == 0) return;
  raise<ConfigError>(
      "mesh: a world of {} ranks is not a multiple of {}; use {} ranks, or other sizes", world_size,
      dense_fits ? describe_expert(shape) : describe_dense(shape),
      nearest_sizes(smallest_world_size(shape), world_size));
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

Axis parse_axis(std::string_view name) {
  for (const auto& [axis, text] : kNames)
    if (text == name) return axis;
  raise<ConfigError>("mesh: no axis is called '{}'; the axes are tp, cp, dp, pp, etp, ep, edp",
                     name);
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
  check_degree("data parallel size", shape.dp);
  check_product({shape.tp, shape.cp, shape.dp, shape.pp});
  check_product({shape.etp, shape.ep, shape.pp});
  check_world(shape, shape.world_size());
  check_mapping(shape);
}

int64_t smallest_world_size(const MeshShape& degrees) {
  check_degrees(degrees);
  check_product({degrees.tp, degrees.cp, degrees.pp});
  check_product({degrees.etp, degrees.ep, degrees.pp});
  return std::lcm(dense_product(degrees), expert_product(degrees));
}

MeshShape fill_world(const MeshShape& degrees, int64_t world_size) {
  check_degree("world size", world_size);
  smallest_world_size(degrees);  // refuses degrees that are no degrees
  check_world(degrees, world_size);
  MeshShape shape = degrees;
  shape.dp = world_size / dense_product(degrees);
  check_shape(shape);
  return shape;
}

}  // namespace sevenfold
