#include "sizing/llm_server.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sizing/settings.h"

namespace gpu_platform::sizing {

namespace {

constexpr std::uint64_t kMaxParts = 65'536;  // in one direction, and GPUs in all
constexpr std::uint64_t kMaxTokens = 1'000'000'000;
constexpr std::uint64_t kMaxOfModel = 1'000'000;  // layers, heads, size of a head
constexpr std::uint32_t kUsualCacheBits = 16;

constexpr base::Bytes megabytes(std::int64_t n) {
  return base::Bytes(n * 1'000'000);
}

constexpr std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

base::Bytes memory_by_name(std::optional<std::uint64_t> parameters) {
  constexpr std::uint64_t kBillion = 1'000'000'000;
  const std::uint64_t n = parameters.value_or(0);
  if (n >= 65 * kBillion && n <= 70 * kBillion) return megabytes(20'000);
  if (n >= 7 * kBillion && n <= 13 * kBillion) return megabytes(12'000);
  return megabytes(8'000);
}

base::Result<std::uint32_t> parts_of(const KnownSettings& settings, Meaning meaning) {
  TRY_ASSIGN(const auto parts, settings.count(meaning, kMaxParts));
  return static_cast<std::uint32_t>(parts.value_or(1));
}

base::Result<Parallelism> parallelism_of(const KnownSettings& settings) {
  Parallelism p;
  TRY_ASSIGN(p.tensor, parts_of(settings, Meaning::kTensor));
  TRY_ASSIGN(p.pipeline, parts_of(settings, Meaning::kPipeline));
  TRY_ASSIGN(p.data, parts_of(settings, Meaning::kData));
  TRY_ASSIGN(p.context, parts_of(settings, Meaning::kContext));
  TRY_ASSIGN(p.decode_context, parts_of(settings, Meaning::kDecodeContext));
  return p;
}

base::Result<std::optional<std::uint64_t>> parameters_of(const KnownSettings& settings,
                                                         std::string_view model) {
  const std::string text = settings.text(Meaning::kParameters);
  if (text.empty()) return parameter_count_in(model);
  const auto count = parameter_count(text);
  if (!count) {
    return base::invalid("parameters",
                         fmt::format("parameters: '{}' is no number of parameters such as 70B, "
                                     "8x7B, 350M or 7000000000",
                                     text));
  }
  return count;
}

// Quantized weights are smaller than the type that is computed with.
std::optional<std::uint32_t> bits_of_weight(const KnownSettings& settings) {
  const auto quantized = bits_of_precision(settings.text(Meaning::kQuantization));
  return quantized ? quantized : bits_of_precision(settings.text(Meaning::kPrecision));
}

// The product of all, or the largest number there is.
std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (factor != 0 && result > kMax / factor) return kMax;
    result *= factor;
  }
  return result;
}

base::Result<std::optional<base::Bytes>> cache_of(const KnownSettings& settings,
                                                  const Parallelism& p) {
  TRY_ASSIGN(const auto tokens, settings.count(Meaning::kTokens, kMaxTokens));
  TRY_ASSIGN(const auto sequences, settings.count(Meaning::kSequences, kMaxTokens));
  TRY_ASSIGN(const auto layers, settings.count(Meaning::kLayers, kMaxOfModel));
  TRY_ASSIGN(const auto heads, settings.count(Meaning::kKeyValueHeads, kMaxOfModel));
  TRY_ASSIGN(const auto head_size, settings.count(Meaning::kHeadSize, kMaxOfModel));
  if (!tokens || !layers || !heads || !head_size) return std::nullopt;
  const std::uint64_t bits =
      bits_of_precision(settings.text(Meaning::kCachePrecision)).value_or(kUsualCacheBits);
  const std::uint64_t all =
      product({2, rounded_up(*layers, p.pipeline), rounded_up(*heads, p.tensor), *head_size, bits,
               *tokens, sequences.value_or(1)});
  return base::Bytes(
      static_cast<std::int64_t>(rounded_up(all / 8, std::max(p.context, p.decode_context))));
}

void compute_memory(ServerNeeds& needs, std::uint32_t bits, std::optional<base::Bytes> cache) {
  const std::uint64_t shards = std::uint64_t{needs.parallelism.tensor} * needs.parallelism.pipeline;
  const auto weights =
      static_cast<std::int64_t>(rounded_up(product({*needs.parameters, bits}) / 8, shards));
  needs.rule = MemoryRule::kComputed;
  needs.parts = MemoryParts{base::Bytes(weights), cache, base::Bytes(weights / 5)};
  needs.memory_per_gpu = needs.parts->weights + needs.parts->overhead;
  if (cache) needs.memory_per_gpu += *cache;
}

std::string in_gigabytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

// The figures by name are the same however the model is divided: says where that cannot be.
void note_what_name_hides(ServerNeeds& needs) {
  if (!needs.parameters) {
    needs.notes.emplace_back(
        "the memory is a usual figure: for a better one give parameters=70B and dtype=bfloat16");
    return;
  }
  const std::uint64_t shards = std::uint64_t{needs.parallelism.tensor} * needs.parallelism.pipeline;
  const std::uint64_t half_precision = rounded_up(product({*needs.parameters, 2}), shards);
  needs.notes.emplace_back(fmt::format(
      "the memory is a usual figure for the model's name; its weights alone take {} of each GPU in "
      "16 bits: give the precision (dtype=bfloat16, quantization=fp8) to have it computed",
      in_gigabytes(half_precision)));
}

}  // namespace

std::string_view to_string(MemoryRule rule) {
  return rule == MemoryRule::kByName ? "by_name" : "computed";
}

std::uint64_t world_size(const Parallelism& p) {
  return std::uint64_t{p.tensor} * p.pipeline * std::max({p.data, p.decode_context, p.context});
}

ServerDescription description_of(std::span<const std::string> command) {
  ServerDescription server;
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (!is_option(word)) {
      if (i > 0 && command[i - 1] == "serve") server.model = word;
      continue;
    }
    const std::size_t equals = word.find('=');
    Setting setting{word.substr(0, equals), {}};
    if (equals != std::string::npos) {
      setting.values.push_back(word.substr(equals + 1));
    } else if (i + 1 < command.size() && !is_option(command[i + 1])) {
      setting.values.push_back(command[++i]);
    }
    const bool names_model = meaning_of(setting.name) == Meaning::kModel && !setting.values.empty();
    if (names_model) {
      server.model = setting.values.front();
    } else {
      server.settings.push_back(std::move(setting));
    }
  }
  return server;
}

base::Result<ServerNeeds> needs_of(const ServerDescription& server) {
  TRY_ASSIGN(const KnownSettings settings, KnownSettings::read(server.settings));
  ServerNeeds needs;
  needs.unused = settings.unused();
  TRY_ASSIGN(needs.parallelism, parallelism_of(settings));
  const std::uint64_t gpus = world_size(needs.parallelism);
  if (gpus > kMaxParts) {
    return base::invalid("settings",
                         fmt::format("settings: come to {} GPUs, the most is {}", gpus, kMaxParts));
  }
  needs.gpus = static_cast<std::uint32_t>(gpus);
  const std::string named = settings.text(Meaning::kModel);
  TRY_ASSIGN(needs.parameters,
             parameters_of(settings, server.model.empty() ? named : server.model));
  TRY_ASSIGN(const auto cache, cache_of(settings, needs.parallelism));
  const auto bits = bits_of_weight(settings);
  if (!needs.parameters || !bits) {
    needs.memory_per_gpu = memory_by_name(needs.parameters);
    note_what_name_hides(needs);
    return needs;
  }
  compute_memory(needs, *bits, cache);
  if (!cache) {
    needs.notes.emplace_back(
        "the key-value cache is not counted: it takes max-model-len, num-hidden-layers, "
        "num-key-value-heads and head-dim to know it");
  }
  return needs;
}

}  // namespace gpu_platform::sizing
