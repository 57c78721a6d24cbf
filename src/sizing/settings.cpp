#include "sizing/settings.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "sizing/text.h"

namespace gpu_platform::sizing {

namespace {

// The spellings of the servers in use: vLLM, SGLang, TensorRT-LLM, and the configuration of a
// model.
constexpr std::pair<std::string_view, Meaning> kSpellings[] = {
    {"tensor-parallel-size", Meaning::kTensor},
    {"tensor-parallel", Meaning::kTensor},
    {"tp-size", Meaning::kTensor},
    {"tp", Meaning::kTensor},
    {"pipeline-parallel-size", Meaning::kPipeline},
    {"pipeline-parallel", Meaning::kPipeline},
    {"pp-size", Meaning::kPipeline},
    {"pp", Meaning::kPipeline},
    {"data-parallel-size", Meaning::kData},
    {"data-parallel", Meaning::kData},
    {"dp-size", Meaning::kData},
    {"dp", Meaning::kData},
    {"context-parallel-size", Meaning::kContext},
    {"context-parallel", Meaning::kContext},
    {"cp-size", Meaning::kContext},
    {"cp", Meaning::kContext},
    {"decode-context-parallel-size", Meaning::kDecodeContext},
    {"decode-context-parallel", Meaning::kDecodeContext},
    {"dcp-size", Meaning::kDecodeContext},
    {"dcp", Meaning::kDecodeContext},
    {"model", Meaning::kModel},
    {"model-path", Meaning::kModel},
    {"model-id", Meaning::kModel},
    {"model-name-or-path", Meaning::kModel},
    {"id-or-path", Meaning::kModel},
    {"parameters", Meaning::kParameters},
    {"num-parameters", Meaning::kParameters},
    {"parameter-count", Meaning::kParameters},
    {"dtype", Meaning::kPrecision},
    {"precision", Meaning::kPrecision},
    {"torch-dtype", Meaning::kPrecision},
    {"quantization", Meaning::kQuantization},
    {"kv-cache-dtype", Meaning::kCachePrecision},
    {"max-model-len", Meaning::kTokens},
    {"context-length", Meaning::kTokens},
    {"max-seq-len", Meaning::kTokens},
    {"max-num-seqs", Meaning::kSequences},
    {"max-running-requests", Meaning::kSequences},
    {"max-batch-size", Meaning::kSequences},
    {"max-num-batched-tokens", Meaning::kBatchTokens},
    {"num-hidden-layers", Meaning::kLayers},
    {"num-layers", Meaning::kLayers},
    {"num-key-value-heads", Meaning::kKeyValueHeads},
    {"num-kv-heads", Meaning::kKeyValueHeads},
    {"head-dim", Meaning::kHeadSize},
    {"head-size", Meaning::kHeadSize},
    {"gpu-memory-utilization", Meaning::kMemoryShare},
    {"mem-fraction-static", Meaning::kMemoryShare},
    {"gpu-memory", Meaning::kGpuMemory},
    {"gpus-per-node", Meaning::kGpusPerNode},
    {"engine", Meaning::kEngine},
};

std::string listed(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

// The letters that a number may end with, and their factors.
constexpr std::pair<char, std::uint64_t> kUnits[] = {
    {'k', 1'000},
    {'K', 1'024},
    {'m', 1'000'000},
    {'M', 1'048'576},
};

base::Result<std::uint64_t> count_of(std::string_view value, std::uint64_t most) {
  std::uint64_t unit = 1;
  for (const auto& [letter, worth] : kUnits) {
    if (value.size() > 1 && value.back() == letter) unit = worth;
  }
  if (unit == 1) return base::parse_count(value, 1, most);
  TRY_ASSIGN(const std::uint64_t number,
             base::parse_count(value.substr(0, value.size() - 1), 1, most / unit));
  return number * unit;
}

}  // namespace

std::optional<Meaning> meaning_of(std::string_view name) {
  const std::string wanted = plain(name);
  const auto* found =
      std::ranges::find(kSpellings, wanted, [](const auto& row) { return row.first; });
  if (found == std::end(kSpellings)) return std::nullopt;
  return found->second;
}

base::Result<KnownSettings> KnownSettings::read(const std::vector<Setting>& settings) {
  KnownSettings known;
  for (const Setting& setting : settings) {
    const auto meaning = meaning_of(setting.name);
    if (!meaning) {
      known.unused_.push_back(setting.name);
      continue;
    }
    if (setting.values.empty()) {
      return base::invalid(setting.name, fmt::format("{}: has no value", setting.name));
    }
    auto& slot = known.known_[static_cast<std::size_t>(*meaning)];
    if (slot && slot->values != setting.values) {
      return base::invalid(setting.name,
                           fmt::format("{} is {} and {} is {}: give one of them", slot->name,
                                       listed(slot->values), setting.name, listed(setting.values)));
    }
    slot = setting;
  }
  std::ranges::sort(known.unused_);
  const auto repeated = std::ranges::unique(known.unused_);
  known.unused_.erase(repeated.begin(), repeated.end());
  return known;
}

const Setting* KnownSettings::find(Meaning meaning) const {
  const auto& setting = known_[static_cast<std::size_t>(meaning)];
  return setting ? &*setting : nullptr;
}

base::Result<std::optional<std::uint64_t>> KnownSettings::count(Meaning meaning,
                                                                std::uint64_t most) const {
  const Setting* setting = find(meaning);
  if (setting == nullptr) return std::nullopt;
  std::uint64_t largest = 0;
  for (const std::string& value : setting->values) {
    const auto number = count_of(value, most);
    if (!number) {
      return base::invalid(setting->name,
                           fmt::format("{}: {}", setting->name, number.error().message));
    }
    largest = std::max(largest, *number);
  }
  return largest;
}

base::Result<std::optional<std::uint32_t>> KnownSettings::permille(Meaning meaning) const {
  const Setting* setting = find(meaning);
  if (setting == nullptr) return std::nullopt;
  std::string_view rest = setting->values.front();
  const auto thousandths = take_thousandths(rest);
  if (!thousandths || !rest.empty() || *thousandths == 0 || *thousandths > 1000) {
    return base::invalid(setting->name,
                         fmt::format("{}: '{}' is not a share from 0.001 to 1, such as 0.9",
                                     setting->name, setting->values.front()));
  }
  return static_cast<std::uint32_t>(*thousandths);
}

base::Result<std::optional<base::Bytes>> KnownSettings::size(Meaning meaning) const {
  const Setting* setting = find(meaning);
  if (setting == nullptr) return std::nullopt;
  const auto size = base::parse_size(setting->values.front());
  if (!size) {
    return base::invalid(setting->name, fmt::format("{}: {}", setting->name, size.error().message));
  }
  return *size;
}

base::Status KnownSettings::check_word(Meaning meaning, bool (*is_allowed)(const std::string&),
                                       std::string_view allowed) const {
  const Setting* setting = find(meaning);
  if (setting == nullptr) return {};
  for (const std::string& value : setting->values) {
    if (is_allowed(value)) continue;
    return base::invalid(setting->name, fmt::format("{}: '{}' is not one of {}", setting->name,
                                                    value.substr(0, 64), allowed));
  }
  return {};
}

std::string KnownSettings::text(Meaning meaning) const {
  const Setting* setting = find(meaning);
  return setting == nullptr ? std::string() : setting->values.front();
}

std::string KnownSettings::spelling(Meaning meaning) const {
  const Setting* setting = find(meaning);
  return setting == nullptr ? std::string() : plain(setting->name);
}

}  // namespace gpu_platform::sizing
