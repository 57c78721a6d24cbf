#include "sizing/llm_server.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "sizing/arithmetic.h"
#include "sizing/known_gpus.h"
#include "sizing/model_name.h"
#include "sizing/models.h"
#include "sizing/smallest_set.h"
#include "sizing/text.h"

namespace gpu_platform::sizing {

namespace {

constexpr std::uint64_t kMaxParts = 65'536;  // in one direction, and GPUs in all
constexpr std::uint64_t kMaxTokens = 1'000'000'000;
constexpr std::uint64_t kMaxOfModel = 1'000'000;  // layers, heads, size of a head
// vLLM's default of --max-num-batched-tokens of its server on GPUs with 70 GiB and more. Source:
// vLLM, engine arguments.
constexpr std::uint64_t kUsualBatchTokens = 8'192;

// The facts about the model from the table, its name and the settings.
struct ModelFacts {
  std::optional<FoundModel> known;
  std::optional<std::uint64_t> parameters;
  std::optional<std::uint64_t> called;  // what the name calls it: llama-7b has 6.7 billion
  bool is_upper_bound = false;
  bool parameters_are_said = false;       // by a setting: the table's are not asked
  std::optional<std::uint64_t> context;   // of the model
  std::optional<Precision> quantization;  // by a setting or the name
};

base::Bytes memory_by_name(std::optional<std::uint64_t> called) {
  constexpr std::uint64_t kMegabyte = 1'000'000;
  constexpr std::uint64_t kBillion = 1'000'000'000;
  const std::uint64_t n = called.value_or(0);
  if (n >= 65 * kBillion && n <= 70 * kBillion) return in_bytes(20'000 * kMegabyte);
  if (n >= 7 * kBillion && n <= 13 * kBillion) return in_bytes(12'000 * kMegabyte);
  return in_bytes(8'000 * kMegabyte);
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

// Bits that were written win over those that are usual for a method: "gptq" of "GPTQ-Int8".
std::optional<Precision> quantization_of(const KnownSettings& settings, const NameFacts& name) {
  const auto said = precision_of(settings.text(Meaning::kQuantization));
  if (!said) return name.precision;
  return said->is_method && name.precision ? name.precision : said;
}

// A mistake in a type must not be taken for 16 bits. Methods of quantization are an open list.
base::Status check_types(const KnownSettings& settings, std::vector<std::string>& notes) {
  for (const Meaning meaning : {Meaning::kPrecision, Meaning::kCachePrecision}) {
    TRY(settings.check_word(
        meaning,
        [](const std::string& type) {
          return precision_of(type) || base::to_lower(type) == "auto";
        },
        "auto, " + precision_names()));
  }
  const std::string method = settings.text(Meaning::kQuantization);
  if (method.empty() || precision_of(method)) return {};
  notes.push_back(
      fmt::format("the bits of a weight with the quantization '{}' are not known: give "
                  "one of {}",
                  method, precision_names()));
  return {};
}

base::Result<ModelFacts> facts_of(const KnownSettings& settings, std::string_view model) {
  ModelFacts facts;
  const NameFacts name = facts_of_name(model);
  facts.known = find_model(model);
  facts.quantization = quantization_of(settings, name);
  facts.context = facts.known ? std::optional(facts.known->context) : name.context;
  const std::string said = settings.text(Meaning::kParameters);
  if (!said.empty()) {
    facts.parameters = parameter_count(said);
    facts.parameters_are_said = true;
    if (!facts.parameters) {
      return base::invalid(
          "parameters", fmt::format("parameters: '{}' is not a number of parameters such as 70B, "
                                    "8x7B, 350M or 7000000000",
                                    said));
    }
  } else if (facts.known) {
    facts.parameters = facts.known->model->parameters;
  } else {
    facts.parameters = name.parameters;
    facts.is_upper_bound = name.is_upper_bound;
  }
  facts.called = facts.parameters_are_said || !name.parameters ? facts.parameters : name.parameters;
  return facts;
}

// An engine's own spelling of a setting names it, too.
base::Result<Engine> engine_of(const KnownSettings& settings) {
  TRY(settings.check_word(
      Meaning::kEngine, [](const std::string& name) { return engine_in(name).has_value(); },
      "vllm, sglang, tensorrt-llm"));
  if (const auto said = engine_in(settings.text(Meaning::kEngine))) return *said;
  const bool is_sglang = settings.spelling(Meaning::kMemoryShare) == "mem-fraction-static";
  return is_sglang ? Engine::kSglang : Engine::kVllm;
}

// True if a setting or the name says the precision of the weights. "auto" stands for the model's
// own.
bool says_precision(const KnownSettings& settings, const ModelFacts& facts) {
  const std::string type = settings.text(Meaning::kPrecision);
  return facts.quantization || precision_of(type) || base::to_lower(type) == "auto";
}

// Quantized weights are smaller than the type that is computed with.
Precision precision_of_weights(const KnownSettings& settings, const ModelFacts& facts) {
  if (facts.quantization) return *facts.quantization;
  const WeightFormat format = facts.known && !facts.parameters_are_said ? facts.known->model->format
                                                                        : WeightFormat::k16Bits;
  if (format == WeightFormat::kFp8) return {800, false};
  if (format == WeightFormat::kMxfp4Experts) return {425, false};
  return precision_of(settings.text(Meaning::kPrecision)).value_or(k16Bits);
}

struct CacheSettings {
  std::optional<std::uint64_t> tokens;
  std::optional<std::uint64_t> batch_tokens;
  std::optional<std::uint64_t> layers;
  std::optional<std::uint64_t> heads;
  std::optional<std::uint64_t> head_size;
  Precision precision;
};

base::Result<CacheSettings> cache_settings_of(const KnownSettings& settings) {
  CacheSettings of;
  TRY_ASSIGN(of.tokens, settings.count(Meaning::kTokens, kMaxTokens));
  TRY_ASSIGN(of.batch_tokens, settings.count(Meaning::kBatchTokens, kMaxTokens));
  TRY_ASSIGN(of.layers, settings.count(Meaning::kLayers, kMaxOfModel));
  TRY_ASSIGN(of.heads, settings.count(Meaning::kKeyValueHeads, kMaxOfModel));
  TRY_ASSIGN(of.head_size, settings.count(Meaning::kHeadSize, kMaxOfModel));
  // "auto" is the type that is computed with, which is 16 bits but for dtype=float32.
  const Precision type = precision_of(settings.text(Meaning::kPrecision)).value_or(k16Bits);
  const Precision computed_with{std::max(type.centibits, k16Bits.centibits), false};
  of.precision = precision_of(settings.text(Meaning::kCachePrecision)).value_or(computed_with);
  return of;
}

std::optional<CacheShape> shape_of(const CacheSettings& said, const ModelFacts& facts) {
  if (!facts.known && !(said.layers && said.heads && said.head_size)) return std::nullopt;
  CacheShape shape = facts.known ? cache_shape(*facts.known->model) : CacheShape{};
  if (said.heads || said.head_size) shape.latent_values = 0;
  shape.layers = said.layers.value_or(shape.layers);
  shape.key_value_heads = said.heads.value_or(shape.key_value_heads);
  shape.head_size = said.head_size.value_or(shape.head_size);
  return shape;
}

void note_context(const CacheSettings& said, const ServerNeeds& needs, bool has_cache,
                  std::vector<std::string>& notes) {
  if (!has_cache) {
    notes.emplace_back(
        "the key-value cache is not counted: it takes max-model-len, num-hidden-layers, "
        "num-key-value-heads and head-dim to compute it");
  } else if (!said.tokens) {
    notes.push_back(
        fmt::format("max-model-len is not said: one context is the model's {} tokens, "
                    "and a smaller one takes less memory",
                    *needs.context));
  }
}

// The parameters must be known. Also sets the precision and the context, with notes.
SizedServer sized(const CacheSettings& said, const ModelFacts& facts, EngineLoad load,
                  ServerNeeds& needs) {
  SizedServer server{.load = load};
  const bool is_of_table = facts.known && !facts.parameters_are_said;
  server.weight_bytes = is_of_table ? weight_bytes(*facts.known->model, *needs.precision)
                                    : bytes_of(*facts.parameters, *needs.precision);
  if (facts.known) server.heads = facts.known->model->attention.heads;
  needs.context = said.tokens ? said.tokens : facts.context;
  if (needs.context) server.cache = shape_of(said, facts);
  if (server.cache) server.context = {*needs.context, load.batch_tokens, said.precision};
  note_context(said, needs, server.cache.has_value(), needs.notes);
  return server;
}

base::Bytes in_whole_gib(base::Bytes bytes) {
  const std::int64_t gib = base::kGiB.value();
  return base::Bytes((bytes.value() + gib - 1) / gib * gib);
}

// Rounds up to whole GiB, or to MiB where a GPU lies between: one of 81,559 MiB has no 80 GiB.
base::Bytes rounded(base::Bytes bytes, const std::vector<Holding>& holdings) {
  const base::Bytes whole = in_whole_gib(bytes);
  const bool is_too_coarse = std::ranges::any_of(holdings, [&](const Holding& holding) {
    return holding.fits && holding.kind.memory < whole && holding.kind.memory >= bytes;
  });
  const std::int64_t mib = base::kMiB.value();
  return is_too_coarse ? base::Bytes((bytes.value() + mib - 1) / mib * mib) : whole;
}

void note_what_model_says(const KnownSettings& settings, const ModelFacts& facts,
                          std::string_view name, ServerNeeds& needs) {
  if (facts.known && !facts.known->is_exact) {
    needs.notes.push_back(fmt::format("'{}' is taken for a model of the shape of {}", name,
                                      facts.known->model->name));
  }
  if (facts.is_upper_bound) {
    needs.notes.emplace_back(
        "the model has fewer parameters than in its name, because experts share all but their "
        "feed-forward layers: give parameters=47B for a better figure");
  }
  if (!facts.known && !facts.quantization && !precision_of(settings.text(Meaning::kPrecision))) {
    needs.notes.emplace_back(
        "the model's own precision is not known: 16 bits are assumed; give dtype or quantization");
  }
}

void note_what_name_hides(ServerNeeds& needs) {
  needs.notes.emplace_back(
      "no precision is given, so the figure is that of the model's name; the parts are those of "
      "the model's own "
      "precision: give dtype=auto or quantization=fp8 to have the memory computed");
}

std::string how_to_say_the_size(std::string_view model) {
  return fmt::format(
      "the size of {} is not known: give parameters=70B and dtype=bfloat16 (or "
      "quantization=fp8), or the name of a published model",
      model.empty() ? std::string("the model") : fmt::format("'{}'", model.substr(0, 255)));
}

void take_from_table(const KnownModel& model, ServerNeeds& needs) {
  needs.known_as = model.name;
  if (model.experts.count > 0) needs.active_parameters = model.experts.active;
}

// `least` is what the GPU must have at least.
Holding holding_of(const GpuKind& kind, const SizedServer& server, const Parallelism& parallelism,
                   base::Bytes least) {
  const auto gpus = static_cast<std::uint32_t>(world_size(parallelism));
  Holding holding{.kind = kind,
                  .parallelism = parallelism,
                  .gpus = gpus,
                  .nodes = fewest_nodes(gpus, kind.on_a_node)};
  holding.fits = kind.memory >= std::max(least, memory_of(server, parallelism));
  if (!holding.fits || !server.cache) return holding;
  const std::uint64_t room = bytes_in(room_of(server, parallelism, kind.memory));
  const std::uint64_t of_one = std::max<std::uint64_t>(
      1, bytes_in(cache_of_one_context(*server.cache, server.context, parallelism)));
  holding.contexts = room / of_one;
  const double last = static_cast<double>(room % of_one) / static_cast<double>(of_one);
  const std::uint64_t tokens = server.context.tokens;
  holding.tokens = product({*holding.contexts, tokens}) +
                   static_cast<std::uint64_t>(last * static_cast<double>(tokens));
  return holding;
}

bool is_smaller(const Holding& a, const Holding& b) {
  if (a.gpus != b.gpus) return a.gpus < b.gpus;
  return a.kind.memory < b.kind.memory;
}

const Holding* smallest_that_fits(const std::vector<Holding>& holdings) {
  const Holding* best = nullptr;
  for (const Holding& holding : holdings) {
    if (holding.fits && (best == nullptr || is_smaller(holding, *best))) best = &holding;
  }
  return best;
}

std::vector<Holding> smallest_sets(const SizedServer& server, const Parallelism& said,
                                   std::span<const GpuKind> kinds, base::Bytes least) {
  std::vector<Holding> found;
  for (const GpuKind& kind : kinds) {
    const auto parallelism = smallest_set(server, kind, said);
    found.push_back(holding_of(kind, server, parallelism.value_or(said), least));
  }
  return found;
}

std::string options_of(const Parallelism& parallelism) {
  std::string text;
  if (parallelism.tensor > 1) text += fmt::format(" --tensor-parallel-size {}", parallelism.tensor);
  if (parallelism.pipeline > 1) {
    text += fmt::format(" --pipeline-parallel-size {}", parallelism.pipeline);
  }
  return text;
}

// Proposes the parallelism that no setting says.
void propose(const SizedServer& server, std::span<const GpuKind> kinds, base::Bytes least,
             ServerNeeds& needs) {
  needs.holdings = smallest_sets(server, needs.parallelism, kinds, least);
  const Holding* best = smallest_that_fits(needs.holdings);
  if (best == nullptr) {
    const auto known = smallest_sets(server, needs.parallelism, known_gpus(), least);
    const Holding* other = smallest_that_fits(known);
    if (other == nullptr) {
      needs.notes.emplace_back(
          "no set of GPUs of a known type holds it: give a smaller max-model-len");
      return;
    }
    if (kinds.empty()) {
      needs.holdings = known;
    } else {
      needs.notes.push_back(
          fmt::format("no type of GPU here holds it; {} is not here", other->kind.name));
      needs.holdings.push_back(*other);
    }
    best = smallest_that_fits(needs.holdings);
  }
  needs.parallelism = best->parallelism;
  needs.gpus = best->gpus;
  const std::string options = options_of(best->parallelism);
  if (options.empty()) return;
  needs.notes.push_back(
      fmt::format("no parallelism is said: {} GPUs of {} are the smallest set that "
                  "fits; give the server{}",
                  best->gpus, best->kind.name, options));
}

void set_nodes(std::uint32_t nodes, ServerNeeds& needs) {
  needs.nodes = nodes;
  const std::uint32_t on_each = needs.gpus / nodes;
  if (nodes > 1 && needs.parallelism.tensor > on_each) {
    needs.notes.push_back(fmt::format(
        "tensor parallelism of {} crosses nodes, which is slow: {} on each node and the rest as "
        "pipeline-parallel-size is the usual way",
        needs.parallelism.tensor, on_each));
  }
}

// Chooses the kind that fits and takes the fewest nodes; if none fits, the fewest nodes of all.
void choose_nodes(ServerNeeds& needs) {
  const bool any_fits = std::ranges::any_of(needs.holdings, &Holding::fits);
  const Holding* best = nullptr;
  for (const Holding& holding : needs.holdings) {
    if (holding.fits != any_fits || holding.parallelism != needs.parallelism) continue;
    if (best == nullptr || holding.nodes < best->nodes) best = &holding;
  }
  if (best != nullptr) set_nodes(best->nodes, needs);
}

// Sets the memory, the holdings and, if no setting says it, the parallelism.
void size_memory(const SizedServer& server, std::span<const GpuKind> kinds, bool says_parallelism,
                 ServerNeeds& needs) {
  const base::Bytes least = needs.memory_per_gpu.value_or(base::Bytes());
  if (says_parallelism) {
    for (const GpuKind& kind : kinds) {
      needs.holdings.push_back(holding_of(kind, server, needs.parallelism, least));
    }
  } else {
    propose(server, kinds, least, needs);
  }
  const base::Bytes computed = memory_of(server, needs.parallelism);
  needs.parts = parts_of(server, needs.parallelism);
  if (needs.rule == MemoryRule::kComputed) needs.memory_per_gpu = computed;
  needs.memory_to_ask_for = std::max(*needs.memory_per_gpu, rounded(computed, needs.holdings));
  choose_nodes(needs);
}

base::Result<std::vector<GpuKind>> kinds_of(const KnownSettings& settings,
                                            std::span<const GpuKind> kinds) {
  TRY_ASSIGN(const auto memory, settings.size(Meaning::kGpuMemory));
  TRY_ASSIGN(const auto on_a_node, settings.count(Meaning::kGpusPerNode, kMaxParts));
  if (!memory) return std::vector<GpuKind>(kinds.begin(), kinds.end());
  constexpr std::uint32_t kUsualOnANode = 8;
  return std::vector<GpuKind>{{"GPU of " + base::written(*memory), *memory,
                               static_cast<std::uint32_t>(on_a_node.value_or(kUsualOnANode))}};
}

}  // namespace

std::string_view to_string(MemoryRule rule) {
  switch (rule) {
    case MemoryRule::kByName:
      return "by_name";
    case MemoryRule::kComputed:
      return "computed";
    case MemoryRule::kUnknown:
      break;
  }
  return "unknown";
}

ServerDescription description_of(std::span<const std::string> command) {
  ServerDescription server;
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  bool is_serving = false;  // what follows "serve" and belongs to no option is the model
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (!is_option(word)) {
      if (is_serving && server.model.empty()) server.model = word;
      is_serving = is_serving || word == "serve";
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
  for (const std::string& word : command) {
    const auto engine = engine_in(word);
    if (!engine) continue;
    server.settings.push_back({"engine", {std::string(to_string(*engine))}});
    break;
  }
  const auto says_type = [](const Setting& setting) {
    return meaning_of(setting.name) == Meaning::kPrecision;
  };
  if (std::ranges::none_of(server.settings, says_type)) {
    server.settings.push_back({"dtype", {"auto"}});
  }
  return server;
}

base::Result<ServerNeeds> needs_of(const ServerDescription& server,
                                   std::span<const GpuKind> kinds) {
  TRY_ASSIGN(const KnownSettings settings, KnownSettings::read(server.settings));
  ServerNeeds needs;
  needs.unused = settings.unused();
  TRY(check_types(settings, needs.notes));
  TRY_ASSIGN(needs.parallelism, parallelism_of(settings));
  const std::uint64_t gpus = world_size(needs.parallelism);
  if (gpus > kMaxParts) {
    return base::invalid(
        "settings", fmt::format("settings: come to {} GPUs; the limit is {}", gpus, kMaxParts));
  }
  needs.gpus = static_cast<std::uint32_t>(gpus);
  const bool says_parallelism =
      !settings.text(Meaning::kTensor).empty() || !settings.text(Meaning::kPipeline).empty();
  const std::string name = server.model.empty() ? settings.text(Meaning::kModel) : server.model;
  TRY_ASSIGN(const ModelFacts facts, facts_of(settings, name));
  TRY_ASSIGN(needs.engine, engine_of(settings));
  TRY_ASSIGN(const auto share, settings.permille(Meaning::kMemoryShare));
  TRY_ASSIGN(needs.sequences, settings.count(Meaning::kSequences, kMaxTokens));
  TRY_ASSIGN(const CacheSettings cache, cache_settings_of(settings));
  TRY_ASSIGN(const auto asked_of, kinds_of(settings, kinds));
  needs.parameters = facts.parameters;
  if (!facts.parameters) {
    const bool says_number = says_parallelism || needs.parallelism != Parallelism{};
    if (!says_number) return base::invalid("model", "model: " + how_to_say_the_size(name));
    needs.rule = MemoryRule::kUnknown;
    needs.notes.push_back(how_to_say_the_size(name));
    std::uint32_t nodes = 0;
    for (const GpuKind& kind : asked_of) {
      const std::uint32_t of_kind = fewest_nodes(needs.gpus, kind.on_a_node);
      nodes = nodes == 0 ? of_kind : std::min(nodes, of_kind);
    }
    if (nodes > 0) set_nodes(nodes, needs);
    return needs;
  }
  if (facts.known) take_from_table(*facts.known->model, needs);
  note_what_model_says(settings, facts, name, needs);
  needs.precision = precision_of_weights(settings, facts);
  if (says_precision(settings, facts)) {
    needs.rule = MemoryRule::kComputed;
  } else {
    needs.memory_per_gpu = memory_by_name(facts.called);
    note_what_name_hides(needs);
  }
  const EngineLoad load{needs.engine, share, cache.batch_tokens.value_or(kUsualBatchTokens)};
  size_memory(sized(cache, facts, load, needs), asked_of, says_parallelism, needs);
  return needs;
}

}  // namespace gpu_platform::sizing
