#include "sevenfold/core/faults.h"

#include <algorithm>

#include "sevenfold/core/error.h"

namespace sevenfold {

const std::vector<FaultInfo>& all_faults() {
  static const std::vector<FaultInfo> kFaults = {
      {Fault::kDataParallelSumMissing, "dp-sum-missing", "gradients are not summed over dp"},
      {Fault::kDataParallelSumTwice, "dp-sum-twice", "gradients are summed over dp twice"},
      {Fault::kDivisorTwice, "divisor-twice",
       "gradients are divided by dp although the seed holds 1/N"},
      {Fault::kMeanPerMicrobatch, "mean-per-microbatch",
       "each micro batch divides by its own tokens"},
      {Fault::kMeanPerRank, "mean-per-rank", "each rank divides by its own tokens"},
      {Fault::kLossNotSummed, "loss-not-summed", "the printed loss is one rank's part"},
      {Fault::kAccumulationOverwrites, "accumulation-overwrites",
       "a micro batch's gradient replaces the ones before"},
      {Fault::kReduceBeforeLastMicrobatch, "reduce-early",
       "the gradient all-reduce starts one micro batch too early"},
      {Fault::kMicrobatchOrderWrong, "microbatch-order",
       "each rank reads a contiguous share of the data set of its own"},
      {Fault::kSameSamplesOnEveryRank, "same-samples", "every dp rank reads the samples of rank 0"},
      {Fault::kTiedTableCountedTwice, "tied-counted-twice", "the norm counts a tied table twice"},
      {Fault::kTiedGradientDropped, "tied-gradient-dropped",
       "the head's part of a tied table's gradient is lost"},
      {Fault::kLabelMaskShifted, "label-mask-shifted",
       "a label is masked by itself, not by its input"},
      {Fault::kStartPerRank, "start-per-rank", "start weights depend on the rank"},
      {Fault::kNormOfLocalGradient, "norm-local", "the norm is taken before gradients are summed"},
      {Fault::kReplicaNotUpdated, "replica-not-updated", "the last rank skips its optimizer step"},
      {Fault::kDropoutRedrawn, "dropout-redrawn",
       "backward draws other dropout masks than forward"},
      {Fault::kDropoutKeyedByRow, "dropout-keyed-by-row",
       "dropout counts rows of the micro batch instead of samples of the run"},
      {Fault::kBiasGradientDropped, "bias-gradient-dropped",
       "the gradient of a linear layer's bias is lost"},
      {Fault::kPositionsNotReset, "positions-not-reset",
       "positions go on from document to document"},
      {Fault::kDocumentMaskDropped, "document-mask-dropped",
       "attention sees the documents before its own"},
      {Fault::kTensorIgnored, "tp-ignored", "every tensor-parallel rank computes the whole model"},
      {Fault::kTensorSumMissing, "tp-sum-missing",
       "partial outputs of row-parallel layers are not summed"},
      {Fault::kTensorSumTwice, "tp-sum-twice",
       "partial outputs of row-parallel layers are summed twice"},
      {Fault::kTensorInputSumMissing, "tp-input-sum-missing",
       "input gradients of column-parallel layers are not summed"},
      {Fault::kTensorInputSumTwice, "tp-input-sum-twice",
       "input gradients of column-parallel layers are summed twice"},
      {Fault::kCopiesNotSummed, "kv-copies-not-summed",
       "copies of a KV head keep the gradients of their own query heads"},
      {Fault::kReplicatedGradientsNotSummed, "tp-replicated-not-summed",
       "norms and biases keep the gradients of one rank's tokens or heads"},
      {Fault::kBiasPerRank, "bias-per-rank",
       "each tensor-parallel rank adds the bias of a row-parallel layer"},
      {Fault::kPaddedRowsInSoftmax, "padded-rows-in-softmax",
       "the rows that pad a vocabulary take part in the softmax"},
      {Fault::kSequenceOffsetDropped, "sequence-shard-offset",
       "dropout on sequence shards is drawn as if each were the first"},
      {Fault::kShardNormNotSummed, "shard-norm-not-summed",
       "with ZeRO the norm is that of one rank's shard"},
      {Fault::kLastShardNotUpdated, "last-shard-not-updated",
       "with ZeRO the rank with the last shard skips its optimizer step"},
      {Fault::kWeightsNotGathered, "weights-not-gathered",
       "with ZeRO each rank keeps the old weights of the others' shards"},
      {Fault::kStaleWeights, "stale-weights",
       "with ZeRO a layer reads weights gathered before the last step"},
      {Fault::kWeightsReadEarly, "weights-read-early",
       "with ZeRO-3 a layer reads weights whose gather has not ended"},
      {Fault::kReplicasNotSummed, "shard-replicas-not-summed",
       "with hybrid sharding each set of shards keeps its own ranks' sums"},
      {Fault::kRecomputeDropoutRedrawn, "recompute-dropout-redrawn",
       "a layer that runs forward again draws other dropout masks"},
      {Fault::kQueuedWeightGradientsDropped, "weight-gradients-dropped",
       "the weight gradients that one micro batch queued are lost"},
      {Fault::kOwnersNotSummed, "owners-not-summed",
       "copies of a table or a stage on two pipeline ranks keep their own gradients"},
      {Fault::kLayerLost, "layer-lost",
       "where stages hold unequal numbers of layers, the last of the largest is not built"},
      {Fault::kLossScaledTwice, "loss-scaled-twice",
       "with pipeline stages the loss is divided by the micro batches although the seed holds 1/N"},
      {Fault::kRollBackForgetsMoment, "roll-back-forgets-moment",
       "a step that is taken back leaves AdamW's mean of squares as the step made it"},
      {Fault::kPartialNormForFull, "partial-norm-for-full",
       "with steps before the norm is known a stage clips by the norm of the stages up to its own"},
      {Fault::kRestoredStatesDropped, "restored-states-dropped",
       "a run that goes on from a checkpoint begins with new optimizer states"},
      {Fault::kRestoredShardMisplaced, "restored-shard-misplaced",
       "with ZeRO a rank reads its shard from where that of the first rank begins"},
  };
  return kFaults;
}

FaultSet FaultSet::parse(std::string_view names) {
  FaultSet set;
  while (!names.empty()) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    if (name.empty()) continue;
    const auto& faults = all_faults();
    const auto found = std::find_if(faults.begin(), faults.end(),
                                    [&](const FaultInfo& info) { return info.name == name; });
    if (found == faults.end()) {
      std::string known;
      for (const FaultInfo& info : faults)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", info.name);
      raise<ConfigError>("SEVENFOLD_FAULTS: no planted fault is called '{}'; known are: {}", name,
                         known);
    }
    set.enable(found->fault);
  }
#ifndef SEVENFOLD_FAULTS
  if (set.any())
    raise<ConfigError>(
        "SEVENFOLD_FAULTS is set, but this build holds no planted faults; configure with "
        "-DSEVENFOLD_FAULTS=ON");
#endif
  return set;
}

std::string FaultSet::to_string() const {
  std::string text;
  for (const FaultInfo& info : all_faults())
    if ((bits_ >> static_cast<unsigned>(info.fault)) & 1u)
      text += fmt::format("{}{}", text.empty() ? "" : ",", info.name);
  return text;
}

}  // namespace sevenfold
