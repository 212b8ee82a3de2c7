#include "sevenfold/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "sevenfold/checkpoint/save.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/param/flat_storage.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

using Shapes = std::map<std::string, std::vector<int64_t>>;

// Field case B46: a norm, a tensor smaller than the ranks, and a table whose rows do not divide.
const Shapes kShapes = {{"gain", {32}}, {"three", {3}}, {"table", {101, 32}}};

// Element k of a tensor, as no other element of any.
at::Tensor values_of(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return at::arange(elements, at::kDouble)
      .mul_(0.125)
      .add_(static_cast<double>(name.size() * 4096))
      .view(shape);
}

Piece piece_on(const Parameter& parameter, const RankContext& rank) {
  return {local_slice(parameter.spec(), *rank.mesh, rank.coordinates), parameter.owned()};
}

// The owned elements of what `whole` holds, taken one dim at a time by LibTorch.
at::Tensor owned_of(const at::Tensor& whole, const Piece& piece) {
  at::Tensor part = whole;
  for (size_t dim = 0; dim < piece.slice.sizes.size(); ++dim)
    part = part.narrow(static_cast<int64_t>(dim), piece.slice.offsets[dim], piece.slice.sizes[dim]);
  return part.contiguous().view({-1}).narrow(0, piece.range.begin, piece.range.size()).clone();
}

using OnShards = std::function<void(RankContext&, const std::vector<Parameter*>&)>;

// ZeRO-3 shards of kShapes on dp x tp ranks; the table's columns are cut over tp.
void on_shards(int64_t dp, int64_t tp, const OnShards& body) {
  install_allocator();
  MeshShape shape;
  shape.tp = tp;
  shape.dp = dp;
  run_ranks(Mesh(shape), {}, [&](RankContext& rank) {
    std::vector<std::unique_ptr<Parameter>> parameters;
    std::vector<Parameter*> list;
    for (const auto& [name, sizes] : kShapes) {
      ShardSpec spec = replicated_spec(sizes);
      if (name == "table") spec.placements.push_back({.axis = Axis::kTp, .dim = 1});
      parameters.push_back(std::make_unique<Parameter>(name, ParameterKind::kMatrix, spec));
      list.push_back(parameters.back().get());
    }
    const auto buckets = build_buckets({list}, rank, at::kDouble, 1 << 20, ZeroStage::kParameters);
    body(rank, list);
  });
}

// Saves kShapes, each value stored as `store` makes it of the owned ones.
fs::path save_shards(const fs::path& folder, int64_t dp, int64_t tp,
                     const std::function<TensorPart(TensorPart)>& store) {
  on_shards(dp, tp, [&](RankContext& rank, const std::vector<Parameter*>& parameters) {
    std::vector<TensorPart> parts;
    for (const Parameter* parameter : parameters) {
      if (!counts_in_norm(parameter->spec(), *rank.mesh, rank.coordinates)) continue;
      const Piece piece = piece_on(*parameter, rank);
      const auto& shape = kShapes.at(parameter->name());
      parts.push_back(store({.name = parameter->name(),
                             .shape = shape,
                             .piece = piece,
                             .values = owned_of(values_of(parameter->name(), shape), piece)}));
    }
    save_checkpoint(folder,
                    {.run = {.iteration = 7, .loss_scale = 0.1},
                     .optimizer = "adamw",
                     .configuration = "a: \"b\"\n"},
                    parts, {}, rank);
  });
  return folder / "step-00000007";
}

TensorPart as_it_is(TensorPart part) {
  return part;
}

void expect_read_on(const Checkpoint& checkpoint, int64_t dp, int64_t tp, at::ScalarType type) {
  std::mutex mutex;
  int64_t empty = 0;
  on_shards(dp, tp, [&](RankContext& rank, const std::vector<Parameter*>& parameters) {
    for (const Parameter* parameter : parameters) {
      const auto& shape = kShapes.at(parameter->name());
      const Piece piece = piece_on(*parameter, rank);
      const at::Tensor read = at::full({piece.size()}, -1.0, type);
      checkpoint.read({parameter->name(), shape, piece, read});
      EXPECT_TRUE(at::equal(read, owned_of(values_of(parameter->name(), shape), piece).to(type)))
          << parameter->name() << " on rank " << rank.rank << " of " << dp << " x " << tp;
      const std::lock_guard<std::mutex> lock(mutex);
      empty += piece.size() == 0 ? 1 : 0;
    }
  });
  EXPECT_TRUE(dp <= 4 || empty > 0) << "no rank owns nothing of a tensor";
}

TEST(CheckpointOfShards, IsReadByAnyOtherLayout) {
  const TemporaryDirectory directory;
  for (const auto& [dp, tp] : {std::pair{8, 1}, {4, 2}, {1, 1}, {3, 4}}) {
    const fs::path folder = directory.path() / fmt::format("{}x{}", dp, tp);
    const Checkpoint checkpoint(save_shards(folder, dp, tp, as_it_is));
    checkpoint.check_sums();
    EXPECT_EQ(checkpoint.bytes(), (32 + 3 + 101 * 32) * 8);
    for (const auto& [dp2, tp2] : {std::pair{5, 1}, {1, 1}, {8, 1}, {2, 2}, {7, 4}, {1, 16}})
      expect_read_on(checkpoint, dp2, tp2, at::kDouble);
  }
}

TEST(CheckpointOfShards, KeepsTheRunAndConfiguration) {
  const TemporaryDirectory directory;
  const Checkpoint checkpoint(save_shards(directory.path(), 2, 1, as_it_is));
  EXPECT_EQ(checkpoint.index().run, (RunState{.iteration = 7, .loss_scale = 0.1}));
  EXPECT_EQ(checkpoint.index().optimizer, "adamw");
  EXPECT_EQ(checkpoint.index().configuration, "a: \"b\"\n");
}

TEST(CheckpointOfShards, ConvertsElementTypes) {
  const TemporaryDirectory directory;
  const Checkpoint wide(save_shards(directory.path() / "wide", 3, 1, as_it_is));
  expect_read_on(wide, 5, 1, at::kFloat);
  const auto in_fp32 = [](TensorPart part) {
    part.values = part.values.to(at::kFloat);
    return part;
  };
  const Checkpoint narrow(save_shards(directory.path() / "narrow", 3, 1, in_fp32));
  expect_read_on(narrow, 5, 1, at::kDouble);
}

// Every rank stores in a unit of its own; who reads from several learns the largest.
TEST(CheckpointOfShards, ReadsValuesStoredInUnits) {
  const TemporaryDirectory directory;
  const auto in_units = [](TensorPart part) {
    part.unit = part.piece.range.begin == 0 ? 0.5F : 4.0F;
    part.values = part.values.div(static_cast<double>(*part.unit));
    return part;
  };
  const Checkpoint checkpoint(save_shards(directory.path(), 2, 1, in_units));
  expect_read_on(checkpoint, 5, 1, at::kDouble);
  const at::Tensor first = at::empty({1}, at::kDouble), all = at::empty({101 * 32}, at::kDouble);
  const std::vector<int64_t> shape = {101, 32};
  EXPECT_EQ(checkpoint.read({"table", shape, slice_piece({{0, 0}, {1, 1}}), first}), 0.5F);
  EXPECT_EQ(checkpoint.read({"table", shape, whole_piece(shape), all}), 4.0F);
}

class DamagedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = save_shards(directory_.path(), 2, 1, as_it_is); }

  std::string sentence() const {
    try {
      Checkpoint(folder_).check_sums();
    } catch (const DataError& error) {
      return error.what();
    }
    return "whole";
  }
  void replace(const char* file, const std::string& part, const std::string& by) const {
    std::string text = testing::read_text(folder_ / file);
    const size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos);
    testing::write_text(folder_ / file, text.replace(at, part.size(), by));
  }

  TemporaryDirectory directory_;
  fs::path folder_;
};

// Field case B26: each kind of damage is told apart, with the file's name.
TEST_F(DamagedCheckpoint, IsRefusedNamingTheFile) {
  const std::string path = folder_ / "rank-00001.safetensors";
  const std::string whole = testing::read_text(path);
  EXPECT_EQ(sentence(), "whole");
  testing::write_text(path, whole.substr(0, whole.size() - 1));
  EXPECT_THAT(sentence(), HasSubstr(path + ": the file ends inside tensor"));
  std::string flipped = whole;
  flipped[whole.size() - 5] ^= 4;
  testing::write_text(path, flipped);
  EXPECT_THAT(sentence(), HasSubstr(path + ": damaged (the checksum of three is another)"));
  fs::remove(path);
  EXPECT_THAT(sentence(), HasSubstr("checkpoint: " + path + ": there is no such file"));
  testing::write_text(path, whole);
  EXPECT_EQ(sentence(), "whole");
  fs::remove(folder_ / "index.json");
  EXPECT_THAT(sentence(), HasSubstr("index.json: no such file"));
  fs::create_directory(folder_ / "index.json");
  EXPECT_THAT(sentence(), HasSubstr("index.json: no such file"));
}

// Any other character in it is either seen or means the same.
TEST_F(DamagedCheckpoint, HasAnIndexThatIsSealed) {
  const std::string path = folder_ / "index.json";
  const std::string whole = testing::read_text(path);
  int64_t harmless = 0;
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    testing::write_text(path, flipped);
    const std::string found = sentence();
    harmless += found == "whole" ? 1 : 0;
    EXPECT_TRUE(found == "whole" || found.find("index.json: damaged") != std::string::npos ||
                found.find("reads format 1") != std::string::npos)
        << found << " at " << at;
  }
  EXPECT_EQ(harmless, 0);
}

// One that somebody else wrote, with the right checksum.
TEST_F(DamagedCheckpoint, HasAnIndexThatIsNotTrusted) {
  const std::string whole = testing::read_text(folder_ / "index.json");
  const auto with = [&](const std::string& part, const std::string& by) {
    testing::write_text(folder_ / "index.json", whole);
    replace("index.json", part, by);
    auto json = nlohmann::ordered_json::parse(testing::read_text(folder_ / "index.json"));
    json.erase("xxh3");
    const std::string text = json.dump();
    json["xxh3"] = fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
    testing::write_text(folder_ / "index.json", json.dump());
    return sentence();
  };
  EXPECT_EQ(with("\"adamw\"", "\"sgd\""), "whole");
  EXPECT_THAT(with("\"format\": 1", "\"format\": 2"), HasSubstr("reads format 1"));
  EXPECT_THAT(with("\"shape\"", "\"shap\""), HasSubstr("index.json: damaged"));
  EXPECT_THAT(with("\"F64\"", "\"F32\""), HasSubstr("does not hold the piece of"));
  EXPECT_THAT(with("\"F64\"", "\"F1\""), HasSubstr("element type"));
  EXPECT_THAT(with("\"xxh3\": \"", "\"xxh3\": \"z"), HasSubstr("damaged"));
  EXPECT_THAT(with("\"range\": [\n      0", "\"range\": [\n      1"), HasSubstr("elements of"));
  EXPECT_THAT(with("\"offsets\": [\n      0", "\"offsets\": [\n      -1"),
              HasSubstr("lies outside its shape"));
  EXPECT_THAT(with("\"rank-00000.safetensors\"", "\"rank-00007.safetensors\""),
              HasSubstr("rank-00007.safetensors"));
  testing::write_text(folder_ / "index.json", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(sentence(), HasSubstr("index.json: damaged"));
}

TEST_F(DamagedCheckpoint, CannotBeReadBeyondWhatItHolds) {
  const Checkpoint checkpoint(folder_);
  const at::Tensor values = at::empty({3}, at::kDouble);
  EXPECT_THROW(checkpoint.read({"four", {3}, whole_piece({3}), values}), DataError);
  EXPECT_THROW(checkpoint.read({"three", {3, 1}, whole_piece({3, 1}), values}), DataError);
}

// A layout that forgets a part or writes one twice is our own mistake.
TEST(CheckpointOfShards, MustBeComplete) {
  const TemporaryDirectory directory;
  const auto cut_short = [](TensorPart part) {
    if (part.name == "table" && part.piece.range.begin == 0) {
      --part.piece.range.end;
      part.values = part.values.narrow(0, 0, part.piece.size());
    }
    return part;
  };
  EXPECT_THROW(save_shards(directory.path(), 2, 1, cut_short), InternalError);
  EXPECT_FALSE(newest_checkpoint(directory.path())) << "nothing is visible";
  EXPECT_NO_THROW(save_shards(directory.path(), 2, 1, as_it_is)) << "leftovers are no obstacle";
}

}  // namespace
}  // namespace sevenfold
