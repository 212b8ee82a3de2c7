#include "sevenfold/mesh/shape.h"

#include <initializer_list>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr std::pair<Axis, std::string_view> kNames[] = {
    {Axis::kTp, "tp"},   {Axis::kCp, "cp"}, {Axis::kDp, "dp"},  {Axis::kPp, "pp"},
    {Axis::kEtp, "etp"}, {Axis::kEp, "ep"}, {Axis::kEdp, "edp"}};

// Product that stops growing where an overflow would begin; the caller compares it with
// kMaxWorldSize.
int64_t bounded_product(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (const int64_t factor : factors)
    if (product <= kMaxWorldSize) product *= factor;
  return product;
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
  for (const int64_t degree :
       {shape.tp, shape.cp, shape.dp, shape.pp, shape.etp, shape.ep, shape.ranks_per_node})
    SEVENFOLD_CHECK(degree >= 1 && degree <= kMaxWorldSize, "degree {}", degree);
  SEVENFOLD_CHECK(bounded_product({shape.tp, shape.cp, shape.dp, shape.pp}) <= kMaxWorldSize,
                  "tp {} x cp {} x dp {} x pp {}", shape.tp, shape.cp, shape.dp, shape.pp);
  SEVENFOLD_CHECK(bounded_product({shape.etp, shape.ep, shape.pp}) <= kMaxWorldSize,
                  "etp {} x ep {} x pp {}", shape.etp, shape.ep, shape.pp);
  SEVENFOLD_CHECK(shape.tp_copies >= 1 && shape.tp % shape.tp_copies == 0, "tp {}, copies {}",
                  shape.tp, shape.tp_copies);
  SEVENFOLD_CHECK(shape.dp_replicate >= 1 && shape.dp * shape.cp % shape.dp_replicate == 0,
                  "dp {} x cp {}, {} sets of shards", shape.dp, shape.cp, shape.dp_replicate);
  // The dense view fills the world by its definition; the expert view has to divide it.
  SEVENFOLD_CHECK(shape.world_size() % (shape.etp * shape.ep * shape.pp) == 0,
                  "{} ranks, etp {} x ep {} x pp {}", shape.world_size(), shape.etp, shape.ep,
                  shape.pp);
  // The order tp-cp-ep-pp-dp puts neighbours of a pipeline tp*cp ranks apart in the dense view and
  // etp*ep apart in the expert view: the two agree only when dp and edp do.
  SEVENFOLD_CHECK(!shape.tp_pp_dp_mapping || shape.pp == 1 || shape.dp == shape.edp(),
                  "dp {} and edp {} in the order tp-cp-ep-pp-dp", shape.dp, shape.edp());
}

}  // namespace sevenfold
