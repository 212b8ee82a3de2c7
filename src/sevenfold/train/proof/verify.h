#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/core/faults.h"
#include "sevenfold/dataset/sample_source.h"

namespace sevenfold {

struct VerifyOptions {
  int64_t steps = 3;
  FaultSet faults;  // of the layout; the one rank that it is compared with has none
};

// Relative, the largest of all steps.
struct Differences {
  double loss = 0.0;
  double norm = 0.0;
  double gradient = 0.0;
};

struct VerifyStep {
  double loss_reference = 0.0;
  double loss_layout = 0.0;
  double norm_reference = 0.0;
  double norm_layout = 0.0;
};

// Differences are relative; a parameter's is max|dg| / max(max|g_p|, 1e-3 max|g_all|), g of the
// reference (the floor is for gradients that are zero by mathematics). Rules: proof.md.
struct VerifyReport {
  MeshShape layout;
  Precision precision = Precision::kFp64;
  double tolerance = 0.0;
  // What passes: the tolerance. In bf16 and fp16 tensor-parallel ranks round their partial sums,
  // and a layout may differ from one rank by twice what the rounding makes one rank differ from
  // fp32.
  Differences allowed;
  double max_loss_difference = 0.0;
  double max_norm_difference = 0.0;
  double max_gradient_difference = 0.0;
  std::string worst_parameter;
  std::string missing_parameter;  // that one rank has and no rank of the layout; empty: none
  bool replicas_equal = false;
  bool unequal_tokens = false;            // see LayoutTrace: false weakens the proof
  std::map<std::string, bool> axes_used;  // every axis of degree > 1
  std::string undeclared_bytes;
  std::vector<VerifyStep> steps;
  bool pass = false;

  // The first rule that does not hold, for people; empty when all hold.
  std::string failure() const;
};

// The configuration under which layouts are compared: hot start, SGD without momentum, in fp16 a
// constant loss scale; everything else as the experiment says.
Config proof_config(Config config);
// The same experiment on one rank: every degree 1, no ZeRO, no recomputation, the same micro batch
// size and global batch.
Config one_rank_config(Config config);
// The same layout and ratios at the smallest sizes: TP, PP, VPP, CP, EP, ETP, heads per rank and
// micro batches per stage stay; fewest layers, head size 8, vocabulary 211, shortest legal sequence
// from 32, DP cut to 2.
Config shrink_config(Config config);

// Runs `config` on one rank and on its layout and compares every step. `config` comes from
// proof_config.
VerifyReport verify_layout(const Config& config, const SampleSource& source,
                           const VerifyOptions& options);

double proof_tolerance(Precision precision);

}  // namespace sevenfold
