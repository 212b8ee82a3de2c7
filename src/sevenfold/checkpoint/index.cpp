#include "sevenfold/checkpoint/index.h"

#include <xxhash.h>

#include <array>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "sevenfold/checkpoint/safetensors.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json json_of(const RunState& run) {
  return {{"iteration", run.iteration},
          {"consumed_samples", run.consumed_samples},
          {"stepped_samples", run.stepped_samples},
          {"consumed_valid_samples", run.consumed_valid_samples},
          {"optimizer_steps", run.optimizer_steps},
          {"loss_scale", run.loss_scale},
          {"steps_without_overflow", run.steps_without_overflow},
          {"overflows_left", run.overflows_left}};
}

RunState run_of(const Json& json) {
  return {.iteration = json.at("iteration"),
          .consumed_samples = json.at("consumed_samples"),
          .stepped_samples = json.at("stepped_samples"),
          .consumed_valid_samples = json.at("consumed_valid_samples"),
          .optimizer_steps = json.at("optimizer_steps"),
          .loss_scale = json.at("loss_scale"),
          .steps_without_overflow = json.at("steps_without_overflow"),
          .overflows_left = json.at("overflows_left")};
}

Json json_of(const StoredPiece& stored) {
  Json json = {{"file", stored.file},
               {"tensor", stored.tensor},
               {"dtype", safetensors_name(stored.type)},
               {"offsets", stored.piece.slice.offsets},
               {"sizes", stored.piece.slice.sizes},
               {"range", {stored.piece.range.begin, stored.piece.range.end}},
               {"xxh3", fmt::format("{:016x}", stored.hash)}};
  if (stored.unit) json["unit"] = *stored.unit;
  return json;
}

StoredPiece piece_of(const Json& json) {
  StoredPiece stored;
  stored.file = json.at("file");
  stored.tensor = json.at("tensor");
  const auto type = safetensors_type(json.at("dtype").get<std::string>());
  if (!type) throw std::invalid_argument("an element type that is not known here");
  stored.type = *type;
  stored.piece.slice = {json.at("offsets"), json.at("sizes")};
  const auto range = json.at("range").get<std::array<int64_t, 2>>();
  stored.piece.range = {range[0], range[1]};
  stored.hash = std::stoull(json.at("xxh3").get<std::string>(), nullptr, 16);
  if (json.contains("unit")) stored.unit = json.at("unit").get<float>();
  return stored;
}

Json json_of(const std::map<std::string, StoredTensor>& tensors) {
  Json json = Json::object();
  for (const auto& [name, tensor] : tensors) {
    Json pieces = Json::array();
    for (const StoredPiece& piece : tensor.pieces) pieces.push_back(json_of(piece));
    json[name] = {{"shape", tensor.shape}, {"pieces", pieces}};
  }
  return json;
}

std::map<std::string, StoredTensor> tensors_of(const Json& json) {
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, entry] : json.items()) {
    StoredTensor& tensor = tensors[name];
    tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
    for (const Json& piece : entry.at("pieces")) tensor.pieces.push_back(piece_of(piece));
  }
  return tensors;
}

// Of everything else in the index, as written without white space.
constexpr const char* kHash = "xxh3";
std::string hash_of(Json json) {
  json.erase(kHash);
  const std::string text = json.dump();
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

CheckpointIndex index_of(const Json& json) {
  CheckpointIndex index;
  index.run = run_of(json.at("run"));
  index.optimizer = json.at("optimizer");
  index.configuration = json.at("configuration");
  index.tensors = tensors_of(json.at("tensors"));
  return index;
}

}  // namespace

int64_t StoredTensor::num_elements() const {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

int64_t StoredTensor::num_stored() const {
  int64_t elements = 0;
  for (const StoredPiece& stored : pieces) elements += stored.piece.size();
  return elements;
}

std::string state_name(const std::string& parameter, std::string_view state) {
  return fmt::format("{}/{}", parameter, state);
}

std::string to_json(const CheckpointIndex& index) {
  Json json = {{"format", kFormat},
               {"run", json_of(index.run)},
               {"optimizer", index.optimizer},
               {"configuration", index.configuration},
               {"tensors", json_of(index.tensors)}};
  json[kHash] = hash_of(json);
  return json.dump(1) + '\n';
}

CheckpointIndex read_index(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!file || !std::filesystem::is_regular_file(path, ignored))
    raise<DataError>(
        "checkpoint: {}: no such file, so the folder is not a whole checkpoint; name another one, "
        "or delete the folder",
        path.string());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    const Json json = Json::parse(text);
    const int format = json.at("format");
    if (format != kFormat)
      raise<DataError>("checkpoint: {}: format {}; this program reads format {}", path.string(),
                       format, kFormat);
    if (json.at(kHash) != hash_of(json))
      raise<DataError>("checkpoint: {}: damaged (its checksum is another)", path.string());
    return index_of(json);
  } catch (const Json::exception& error) {
    raise<DataError>("checkpoint: {}: damaged ({})", path.string(), error.what());
  } catch (const std::logic_error& error) {
    raise<DataError>("checkpoint: {}: damaged ({})", path.string(), error.what());
  }
}

std::string to_json(const FilePieces& pieces) {
  return json_of(pieces).dump();
}

FilePieces file_pieces(const std::string& json) {
  return tensors_of(Json::parse(json));
}

}  // namespace sevenfold
