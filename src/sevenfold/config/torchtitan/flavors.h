#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sevenfold::config {

// Shapes that TorchTitan knows by model.name and model.flavor.

struct Family {
  std::string_view name;
  std::string_view fields;  // "a, b or c": keys below model that override a flavor's shape
  double norm_epsilon = 1e-5;
  bool qk_norm = false;
  bool rotates_neighbours = false;  // rotary pairs (2i, 2i+1)
  bool scales_rotary = false;       // Llama-3.1 scaling of the rotary frequencies
};

struct Experts {
  int64_t num = 0;
  int64_t top_k = 0;
  int64_t ffn = 0;     // width of one
  int64_t shared = 0;  // of them, in every layer with experts
  int64_t dense_layers = 0;
  int64_t groups = 0;  // 0: none
  int64_t chosen_groups = 0;
  std::string_view score = "softmax";
  double scale = 1.0;
};

struct Flavor {
  std::string_view family;
  std::string_view name;
  int64_t layers = 0;
  int64_t dim = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;         // 0: dim / heads
  int64_t ffn = 0;              // 0: llama_ffn
  double ffn_multiplier = 0.0;  // 0: none
  int64_t multiple_of = 256;
  int64_t vocab = 0;
  double rope_theta = 0.0;
  bool is_tied = false;
  Experts experts = {};
};

// Null if there is none.
const Family* find_family(std::string_view name);
const Flavor* find_flavor(std::string_view family, std::string_view name);
// "a, b or c": for messages.
std::string family_names();
std::string flavor_names(std::string_view family);

// Width of Llama's MLP: floor(multiplier * floor(8 dim / 3)), rounded up to a multiple.
int64_t llama_ffn(int64_t dim, double multiplier, int64_t multiple_of);

}  // namespace sevenfold::config
