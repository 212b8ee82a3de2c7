#include "sevenfold/param/start_values.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sevenfold {
namespace {

ParameterKind kind_of(const std::string& name) {
  if (name == "table") return ParameterKind::kTable;
  if (name == "gain") return ParameterKind::kGain;
  if (name == "bias") return ParameterKind::kBias;
  return ParameterKind::kMatrix;
}

Parameter& bound(Parameter& parameter, const std::vector<int64_t>& shape,
                 at::ScalarType dtype = at::kDouble) {
  const at::Tensor weight = at::zeros(shape, at::TensorOptions().dtype(dtype));
  parameter.bind(weight, at::zeros_like(weight));
  return parameter;
}

Slice whole(const std::vector<int64_t>& shape) {
  return {std::vector<int64_t>(shape.size(), 0), shape};
}

TEST(HotStart, EqualsTheGoldenBitForBit) {
  std::ifstream file(SEVENFOLD_SOURCE_DIR "/tests/golden/hotstart.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["tensors"].size(), 6U);
  for (const nlohmann::json& tensor : golden["tensors"]) {
    const auto shape = tensor["shape"].get<std::vector<int64_t>>();
    Parameter parameter(tensor["name"], kind_of(tensor["kind"]), replicated_spec(shape));
    fill_start_values(bound(parameter, shape), {.kind = StartKind::kHot}, whole(shape));
    const at::Tensor values = parameter.weight().reshape(-1);
    const auto start = tensor["start"].get<std::vector<double>>();
    for (size_t i = 0; i < start.size(); ++i)
      EXPECT_EQ(values.data_ptr<double>()[i], start[i]) << tensor["name"] << " " << i;
    EXPECT_NEAR(values.norm().item<double>(), tensor["start_l2"].get<double>(), 1e-12);
  }
}

TEST(StartValues, OfASliceAreThoseOfTheWholeTensor) {
  const std::vector<int64_t> shape = {6, 4, 10};
  for (const StartKind kind : {StartKind::kHot, StartKind::kInit}) {
    Parameter all("model.x", ParameterKind::kMatrix, replicated_spec(shape));
    Parameter part("model.x", ParameterKind::kMatrix, replicated_spec(shape));
    fill_start_values(bound(all, shape), {.kind = kind}, whole(shape));
    fill_start_values(bound(part, {3, 2, 5}), {.kind = kind}, {{2, 1, 5}, {3, 2, 5}});
    const at::Tensor expected = all.weight().slice(0, 2, 5).slice(1, 1, 3).slice(2, 5, 10);
    EXPECT_TRUE(at::equal(part.weight(), expected));
  }
}

TEST(OrdinaryStart, HasTheStandardDeviationOfItsKind) {
  const std::vector<int64_t> shape = {300, 400};
  const StartOptions options{
      .kind = StartKind::kInit, .seed = 1, .init_method_std = 0.02, .num_layers = 8};
  for (const auto& [kind, expected] : {std::pair{ParameterKind::kMatrix, 0.02},
                                       {ParameterKind::kTable, 0.02},
                                       {ParameterKind::kOutputMatrix, 0.02 / 4.0}}) {
    Parameter parameter("model.layers.0.mlp.down_proj.weight", kind, replicated_spec(shape));
    fill_start_values(bound(parameter, shape), options, whole(shape));
    // The deviation of 120,000 draws is known to about 0.2 %.
    EXPECT_NEAR(parameter.weight().std().item<double>() / expected, 1.0, 0.01);
    EXPECT_NEAR(parameter.weight().mean().item<double>() / expected, 0.0, 0.015);
  }
}

TEST(OrdinaryStart, DependsOnSeedAndName) {
  const std::vector<int64_t> shape = {4, 4};
  const auto values = [&](const std::string& name, uint64_t seed) {
    Parameter parameter(name, ParameterKind::kMatrix, replicated_spec(shape));
    fill_start_values(bound(parameter, shape), {.seed = seed}, whole(shape));
    return parameter.weight().clone();
  };
  EXPECT_TRUE(at::equal(values("a", 1), values("a", 1)));
  EXPECT_FALSE(at::equal(values("a", 1), values("a", 2)));
  EXPECT_FALSE(at::equal(values("a", 1), values("b", 1)));
}

TEST(OrdinaryStart, SetsGainsToOneAndBiasesToZero) {
  Parameter gain("g", ParameterKind::kGain, replicated_spec({5})),
      bias("b", ParameterKind::kBias, replicated_spec({5}));
  fill_start_values(bound(gain, {5}, at::kFloat), {}, whole({5}));
  fill_start_values(bound(bias, {5}, at::kFloat), {}, whole({5}));
  EXPECT_TRUE(at::equal(gain.weight(), at::ones({5})));
  EXPECT_TRUE(at::equal(bias.weight(), at::zeros({5})));
}

}  // namespace
}  // namespace sevenfold
