#include "sizing/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::sizing {

namespace {

// As the servers in use spell them: vLLM, SGLang, TensorRT-LLM, and the configuration of a model.
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
    {"num-hidden-layers", Meaning::kLayers},
    {"num-layers", Meaning::kLayers},
    {"num-key-value-heads", Meaning::kKeyValueHeads},
    {"num-kv-heads", Meaning::kKeyValueHeads},
    {"head-dim", Meaning::kHeadSize},
    {"head-size", Meaning::kHeadSize},
};

struct PrecisionName {
  std::string_view name;
  std::uint32_t bits;
};
constexpr PrecisionName kPrecisions[] = {
    {"float32", 32},   {"fp32", 32},     {"float", 32},      {"float16", 16}, {"fp16", 16},
    {"half", 16},      {"bfloat16", 16}, {"bf16", 16},       {"fp8", 8},      {"fp8-e4m3", 8},
    {"fp8-e5m2", 8},   {"float8", 8},    {"int8", 8},        {"8bit", 8},     {"w8a8", 8},
    {"w8a16", 8},      {"w8a8-fp8", 8},  {"w8a8-int8", 8},   {"int4", 4},     {"4bit", 4},
    {"fp4", 4},        {"nvfp4", 4},     {"mxfp4", 4},       {"nf4", 4},      {"awq", 4},
    {"awq-marlin", 4}, {"gptq", 4},      {"gptq-marlin", 4}, {"w4a16", 4},    {"bitsandbytes", 4},
};

constexpr std::uint64_t kMaxParameters = 1'000'000'000'000'000;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Lower case, '-' for '_', no dashes in front.
std::string plain(std::string_view name) {
  std::string text = lower(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::ranges::replace(text, '_', '-');
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A decimal number at the front of `text`, in thousandths, which it is cut off from.
std::optional<std::uint64_t> take_thousandths(std::string_view& text) {
  std::uint64_t whole = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (code != std::errc() || whole > kMaxParameters) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::uint64_t thousandths = whole * 1000;
  if (text.size() < 2 || text[0] != '.' || !is_digit(text[1])) return thousandths;
  text.remove_prefix(1);
  for (std::uint64_t digit_is_worth = 100; !text.empty() && is_digit(text[0]);
       text.remove_prefix(1)) {
    thousandths += static_cast<std::uint64_t>(text[0] - '0') * digit_is_worth;
    digit_is_worth /= 10;
  }
  return thousandths;
}

std::optional<std::uint64_t> unit_of(std::string_view text) {
  if (text == "k") return 1'000;
  if (text == "m") return 1'000'000;
  if (text == "b") return 1'000'000'000;
  if (text == "t") return 1'000'000'000'000;
  return std::nullopt;
}

std::string listed(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

}  // namespace

std::optional<Meaning> meaning_of(std::string_view name) {
  const std::string wanted = plain(name);
  const auto* found =
      std::ranges::find(kSpellings, wanted, [](const auto& row) { return row.first; });
  if (found == std::end(kSpellings)) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> bits_of_precision(std::string_view name) {
  const std::string wanted = plain(name);
  const auto* found = std::ranges::find(kPrecisions, wanted, &PrecisionName::name);
  if (found == std::end(kPrecisions)) return std::nullopt;
  return found->bits;
}

std::optional<std::uint64_t> parameter_count(std::string_view text) {
  const std::string lowered = lower(text);
  std::string_view rest = lowered;
  auto thousandths = take_thousandths(rest);
  if (!thousandths) return std::nullopt;
  std::uint64_t experts = 1;
  if (rest.size() > 1 && rest[0] == 'x') {
    if (*thousandths % 1000 != 0 || *thousandths > 1'000'000) return std::nullopt;
    experts = *thousandths / 1000;
    rest.remove_prefix(1);
    thousandths = take_thousandths(rest);
    if (!thousandths) return std::nullopt;
  }
  const auto unit = rest.empty() && experts == 1 ? std::uint64_t{1} : unit_of(rest).value_or(0);
  if (unit == 0 || *thousandths == 0 || experts == 0) return std::nullopt;
  if (*thousandths > kMaxParameters * 1000 / unit / experts) return std::nullopt;
  return *thousandths * unit * experts / 1000;
}

std::optional<std::uint64_t> parameter_count_in(std::string_view model) {
  std::optional<std::uint64_t> largest;
  const auto is_of_word = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
  };
  while (!model.empty()) {
    const auto end = std::ranges::find_if_not(model, is_of_word);
    const std::string_view word(model.data(), static_cast<std::size_t>(end - model.begin()));
    // A bare number is a version: "llama-3".
    if (!word.empty() && !is_digit(word.back())) largest = std::max(largest, parameter_count(word));
    model.remove_prefix(std::min(word.size() + 1, model.size()));
  }
  return largest;
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
                           fmt::format("{} says {} and {} says {}: give one of them", slot->name,
                                       listed(slot->values), setting.name, listed(setting.values)));
    }
    slot = setting;
  }
  std::ranges::sort(known.unused_);
  const auto repeated = std::ranges::unique(known.unused_);
  known.unused_.erase(repeated.begin(), repeated.end());
  return known;
}

base::Result<std::optional<std::uint64_t>> KnownSettings::count(Meaning meaning,
                                                                std::uint64_t most) const {
  const auto& setting = known_[static_cast<std::size_t>(meaning)];
  if (!setting) return std::nullopt;
  std::uint64_t largest = 0;
  for (const std::string& value : setting->values) {
    const auto number = base::parse_count(value, 1, most);
    if (!number) {
      return base::invalid(setting->name,
                           fmt::format("{}: {}", setting->name, number.error().message));
    }
    largest = std::max(largest, *number);
  }
  return largest;
}

std::string KnownSettings::text(Meaning meaning) const {
  const auto& setting = known_[static_cast<std::size_t>(meaning)];
  return setting ? setting->values.front() : std::string();
}

}  // namespace gpu_platform::sizing
