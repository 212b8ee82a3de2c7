#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// A run of a bucket's gradients that the ranks of a tensor-parallel group each hold a part of.
struct TensorSum {
  std::string group;  // tensor_sum_group of its parameters
  int64_t offset = 0;
  int64_t elements = 0;
};

// Parameters whose weights and gradients lie back to back in one piece of memory each, without
// padding, so that one collective and one optimizer pass serve them all.
struct Bucket {
  std::vector<Parameter*> parameters;
  int64_t elements = 0;  // sum of the local ones
  at::Tensor weights;    // [elements]; ZeRO stage 3: defined while gathered
  at::Tensor gradients;  // same size, of gradient_type; from stage 2: while lent to backward
  // ZeRO: the bucket is cut into as many runs of elements as ranks share it (shard_group), without
  // padding, wherever a parameter begins or ends.
  std::vector<int64_t> shard_sizes;  // by rank of that group; empty where every rank owns all
  ElementRange shard;                // what this rank owns
  at::Tensor owned_weights;          // [shard.size()]: in `weights`, or (stage 3) by themselves
  at::Tensor owned_gradients;        // same size: in `gradients`, or (from stage 2) by themselves
  // Where a backward pass is split: what the part that computes input gradients adds to (norms,
  // biases, tables), and what the other adds to (weights of linear layers). A tied table is both.
  ElementRange with_inputs, with_weights;
  // Which of the gradients are summed inside the tensor-parallel group first; those of one group
  // lie side by side.
  std::vector<TensorSum> tensor_sums;
  // Indices of the layers whose backward is the first and the last to add to these gradients: the
  // highest and the lowest one, since backward walks the layers down.
  int64_t first_layer = 0;
  int64_t last_layer = 0;
  // The layers after whose last backward the gradients are complete: last_layer alone, or for a
  // table that several chunks of the rank read the lowest of each.
  std::vector<int64_t> completing_layers;
  // The group over which the gradients are summed after the data-parallel sum (owner_group), the
  // same for all its parameters and cut in the same way on all owners; empty: none.
  std::string owner_group;
};

// Layers begin .. end-1 of a rank's list.
struct LayerRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// What gradients are summed in: fp64 for fp64 weights, else fp32.
at::ScalarType gradient_type(at::ScalarType weight_type);

// Elements of each part when `elements` are cut into `parts` runs: part r is elements r E / n to
// (r + 1) E / n - 1. Sizes differ by one at most; with fewer elements than parts some are empty.
std::vector<int64_t> even_cut(int64_t elements, int64_t parts);

// Lays out the parameters of a chunk's layers in buckets of at least `bucket_elements` elements, in
// the order in which backward completes them (last layer first), and binds each parameter to its
// views. A parameter used by several layers (a tied table) gets a bucket of its own, and so does
// one with other owners than its chunk. layers[i]: parameters that layer i reads; chunks: the
// layers of each chunk in that list, no bucket reaching over two (empty: all are one). dtype: of
// the weights. Bytes are booked as parameters and gradients; from stage 2 on the gradients are this
// rank's shard only, in stage 3 the weights too.
std::vector<Bucket> build_buckets(const std::vector<std::vector<Parameter*>>& layers,
                                  const RankContext& rank, at::ScalarType dtype,
                                  int64_t bucket_elements, ZeroStage stage = ZeroStage::kNone,
                                  std::vector<LayerRange> chunks = {});

// From stage 2 on: zeroed memory for the whole bucket's gradients, booked as communication, that
// the parameters sum into until it is taken back.
void lend_gradients(Bucket& bucket);
void take_back_gradients(Bucket& bucket);

// Makes the whole weights, which exist, readable, or not.
void lend_weights(Bucket& bucket);
void take_back_weights(Bucket& bucket);

}  // namespace sevenfold
