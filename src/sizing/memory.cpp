#include "sizing/memory.h"

#include <algorithm>

#include "sizing/arithmetic.h"

namespace gpu_platform::sizing {

namespace {

std::uint64_t compressed_parameters(const KnownModel& model) {
  if (model.format == WeightFormat::kMxfp4Experts) return expert_parameters(model);
  return model.parameters - embedding_parameters(model) - model.vision;
}

}  // namespace

std::uint64_t world_size(const Parallelism& p) {
  return std::uint64_t{p.tensor} * p.pipeline * std::max({p.data, p.decode_context, p.context});
}

std::uint64_t weight_bytes(const KnownModel& model, Precision precision) {
  if (precision.centibits >= k16Bits.centibits) return bytes_of(model.parameters, precision);
  const std::uint64_t compressed = compressed_parameters(model);
  return bytes_of(compressed, precision) + bytes_of(model.parameters - compressed, k16Bits);
}

CacheShape cache_shape(const KnownModel& model) {
  return {model.stack.layers, model.attention.key_value_heads, model.attention.head_size,
          std::uint64_t{model.latent.rank} + model.latent.rope, model.windows};
}

base::Bytes cache_of_one_context(const CacheShape& shape, const ContextLoad& load,
                                 const Parallelism& parallelism) {
  const std::uint64_t values =
      shape.latent_values > 0
          ? shape.latent_values
          : product({2, rounded_up(shape.key_value_heads, parallelism.tensor), shape.head_size});
  const std::uint64_t windowed = std::min<std::uint64_t>(shape.windows.layers, shape.layers);
  const std::uint64_t in_window =
      std::min(load.tokens, std::uint64_t{shape.windows.tokens} + load.batch_tokens);
  const auto of_layers = [&](std::uint64_t layers, std::uint64_t tokens) {
    return product({rounded_up(layers, parallelism.pipeline), values, tokens});
  };
  const std::uint64_t all =
      of_layers(shape.layers - windowed, load.tokens) + of_layers(windowed, in_window);
  const std::uint64_t parts = std::max(parallelism.context, parallelism.decode_context);
  const std::uint64_t bytes = bytes_of(all, load.precision);
  return base::Bytes(static_cast<std::int64_t>(rounded_up(bytes, parts)));
}

std::uint32_t fewest_nodes(std::uint32_t gpus, std::uint32_t on_a_node) {
  std::uint32_t nodes = std::max(1U, (gpus + on_a_node - 1) / std::max(1U, on_a_node));
  while (gpus % nodes != 0) ++nodes;
  return nodes;
}

}  // namespace gpu_platform::sizing
