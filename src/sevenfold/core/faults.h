#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sevenfold {

// Planted faults: mistakes that engines of this kind have shipped, switched on one at a time to
// show that the parity tests catch them (SEVENFOLD_FAULTS=name in the environment of `sevenfold
// verify`). A build with -DSEVENFOLD_FAULTS=OFF does not contain them.
enum class Fault : uint8_t {
  kDataParallelSumMissing,  // gradients are not summed over dp
  kDataParallelSumTwice,    // gradients are summed over dp twice
  kDivisorTwice,  // gradients are divided by the number of dp ranks although the seed holds 1/N
  kMeanPerMicrobatch,       // each micro batch is averaged over its own tokens, then the means are
                            // averaged
  kMeanPerRank,             // N counts this rank's tokens only
  kLossNotSummed,           // the printed loss is this rank's part
  kAccumulationOverwrites,  // a micro batch's gradient replaces what the ones before it left
  kReduceBeforeLastMicrobatch,  // the gradient all-reduce starts one micro batch too early
  kMicrobatchOrderWrong,        // each rank reads a contiguous share of the data set of its own
  kSameSamplesOnEveryRank,      // dp ranks all read the samples of rank 0
  kTiedTableCountedTwice,       // the norm counts a tied table once per use
  kTiedGradientDropped,         // the head's part of a tied table's gradient is lost
  kLabelMaskShifted,            // a label is masked by itself instead of by its input token
  kStartPerRank,                // start weights depend on the rank
  kNormOfLocalGradient,         // the norm is taken before the gradients are summed
  kReplicaNotUpdated,           // the last rank skips its optimizer step
  kDropoutRedrawn,              // backward draws other dropout masks than forward
  kDropoutKeyedByRow,      // dropout counts rows of the micro batch instead of samples of the run
  kBiasGradientDropped,    // the gradient of a linear layer's bias is lost
  kPositionsNotReset,      // positions go on from document to document
  kDocumentMaskDropped,    // attention sees the documents before its own
  kTensorIgnored,          // every tensor-parallel rank computes the whole model
  kTensorSumMissing,       // partial outputs of row-parallel layers are not summed
  kTensorSumTwice,         // they are summed twice
  kTensorInputSumMissing,  // input gradients of column-parallel layers are not summed
  kTensorInputSumTwice,    // they are summed twice
  kCopiesNotSummed,        // copies of a KV head keep the gradients of their own query heads
  kReplicatedGradientsNotSummed,  // norms and biases keep the gradients of their own tokens or
                                  // heads
  kBiasPerRank,                   // each tensor-parallel rank adds the bias of a row-parallel layer
  kPaddedRowsInSoftmax,           // the rows that pad a vocabulary take part in the softmax
  kSequenceOffsetDropped,  // sequence parallelism draws dropout as if each rank had the first
                           // tokens
  kShardNormNotSummed,     // with ZeRO the norm is that of one rank's shard
  kLastShardNotUpdated,    // with ZeRO the rank with the last shard skips its optimizer step
  kWeightsNotGathered,     // with ZeRO each rank goes on with the old weights of the others' shards
  kStaleWeights,       // with ZeRO a layer reads weights that were gathered before the last step
  kWeightsReadEarly,   // with ZeRO-3 a layer reads weights whose gather has not ended
  kReplicasNotSummed,  // with hybrid sharding each set of shards keeps the sums of its own ranks
  kRecomputeDropoutRedrawn,       // a layer that runs forward again draws other dropout masks
  kQueuedWeightGradientsDropped,  // the weight gradients that one micro batch queued are lost
  kOwnersNotSummed,  // copies of a table or a stage on two pipeline ranks keep their own gradients
  kLayerLost,  // the last decoder layer of a stage that has one more than another is not built
  kLossScaledTwice,         // with pipeline stages the seed is divided by the micro batches as well
  kRollBackForgetsMoment,   // a step that is taken back leaves the mean of squares as it made it
  kPartialNormForFull,      // a stage clips by the norm of the stages up to its own
  kRestoredStatesDropped,   // a run that goes on begins with new optimizer states
  kRestoredShardMisplaced,  // a rank reads its shard from where that of the first rank begins
};

struct FaultInfo {
  Fault fault;
  std::string_view name;     // as written in SEVENFOLD_FAULTS
  std::string_view meaning;  // one line
};

// All faults that this build knows, in the order of the enumeration.
const std::vector<FaultInfo>& all_faults();

// The faults switched on for one run; passed down by value, never global.
class FaultSet {
 public:
  FaultSet() = default;
  // Comma-separated names. Throws ConfigError for an unknown name, or if the build holds no faults.
  static FaultSet parse(std::string_view names);

  FaultSet& enable(Fault fault) {
    bits_ |= uint64_t{1} << static_cast<unsigned>(fault);
    return *this;
  }
  bool any() const { return bits_ != 0; }
#ifdef SEVENFOLD_FAULTS
  bool has(Fault fault) const {
    return (bits_ >> static_cast<unsigned>(fault)) & 1u;
  }
#else
  static constexpr bool has(Fault) {
    return false;
  }
#endif
  std::string to_string() const;

 private:
  uint64_t bits_ = 0;
};

}  // namespace sevenfold
