#include "sevenfold/dataset/order/sample_stream.h"

namespace sevenfold {

SampleStream::SampleStream(const Config& config, const SampleSource& source)
    : source_(source),
      sampler_({.kind = config.data.loader,
                .data_sharding = config.data.data_sharding,
                .num_samples = source.num_samples(),
                .micro_batch_size = config.batch.micro_batch_size,
                .dp_size =
                    config.data.order_dp_size > 0 ? config.data.order_dp_size : config.mesh.dp}) {}

}  // namespace sevenfold
