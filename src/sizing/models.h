#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Published language models by name.

namespace gpu_platform::sizing {

// The format of the published weights.
enum class WeightFormat : std::uint8_t {
  k16Bits,        // bfloat16 or float16
  kFp8,           // 8 bits, but for the embeddings
  kMxfp4Experts,  // the experts in 4.25 bits, all else in 16
};

// The feed-forward part of a layer has three matrices if it is gated, else two.
enum class FeedForward : std::uint8_t { kGated, kPlain };
// The output matrix is the embedding, or a matrix of its own.
enum class OutputMatrix : std::uint8_t { kTied, kOwn };

struct LayerStack {
  std::uint32_t layers = 0;
  std::uint32_t hidden = 0;
  std::uint32_t feed_forward = 0;  // width; of the layers without experts
  FeedForward form = FeedForward::kGated;
  std::uint32_t vocabulary = 0;
  OutputMatrix output = OutputMatrix::kOwn;
};

struct AttentionHeads {
  std::uint32_t heads = 0;
  std::uint32_t key_value_heads = 0;
  std::uint32_t head_size = 0;
};

struct Experts {
  std::uint32_t count = 0;      // 0: the model has none
  std::uint32_t per_token = 0;  // a test compares what follows from it with `active`
  std::uint32_t width = 0;
  std::uint32_t shared_width = 0;  // of those that every token passes
  std::uint32_t dense_layers = 0;  // layers without experts
  std::uint64_t active = 0;        // parameters that one token passes, as published
};

// Multi-head latent attention: the cache holds one vector of rank + rope values for each token and
// layer, for any number of heads.
struct LatentAttention {
  std::uint32_t rank = 0;  // 0: the model has none
  std::uint32_t rope = 0;
  std::uint32_t query_rank = 0;  // 0: queries are not compressed
};

// Layers that look back over a window alone.
struct WindowedLayers {
  std::uint32_t layers = 0;
  std::uint32_t tokens = 0;
};

struct KnownModel {
  std::string_view name;  // lower case, without its organisation
  std::uint64_t parameters =
      0;                      // as published: all experts, and the vision tower where there is one
  std::uint32_t context = 0;  // tokens that its configuration allows without changes
  std::string_view source;    // the configuration is at https://huggingface.co/SOURCE
  LayerStack stack;
  AttentionHeads attention;
  WeightFormat format = WeightFormat::k16Bits;
  Experts experts{};
  LatentAttention latent{};
  WindowedLayers windows{};
  std::uint64_t vision = 0;  // parameters beside the language model
};

// Ascending by name.
std::span<const KnownModel> known_models();

// Returns the parameters of the embedding and of the output matrix.
std::uint64_t embedding_parameters(const KnownModel& model);
// Returns the parameters of the experts that the router chooses among.
std::uint64_t expert_parameters(const KnownModel& model);

struct FoundModel {
  const KnownModel* model = nullptr;  // never null
  std::uint64_t context = 0;          // of this variant; its name may state it
  bool is_exact = true;               // false: the name has other words too
};

// Finds a model by the name that a server is given. The organisation, case, '-', '_' and '.' do not
// matter, nor do words such as "Instruct", "AWQ", "4k" and dates.
std::optional<FoundModel> find_model(std::string_view name);

}  // namespace gpu_platform::sizing
