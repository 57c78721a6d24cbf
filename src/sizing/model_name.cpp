#include "sizing/model_name.h"

#include <algorithm>
#include <iterator>

#include "base/letters.h"
#include "sizing/text.h"

namespace gpu_platform::sizing {

namespace {

constexpr std::uint64_t kMaxParameters = 1'000'000'000'000'000;
// In a name, "10M" and less are tokens of a context, more are parameters: "opt-350m".
constexpr std::uint64_t kMaxMillionsOfTokens = 10;

constexpr std::string_view kDressing[] = {
    "autoround", "base", "block",  "bnb",  "c4ai", "chat",     "dynamic", "gguf",      "hf",
    "instruct",  "it",   "marlin", "meta", "mlx",  "original", "pt",      "quantized", "thinking",
};

std::optional<std::uint64_t> unit_of(std::string_view text) {
  if (text == "k") return 1'000;
  if (text == "m") return 1'000'000;
  if (text == "b") return 1'000'000'000;
  if (text == "t") return 1'000'000'000'000;
  return std::nullopt;
}

// "16e": the number of experts.
std::optional<std::uint64_t> experts_of_word(std::string_view word) {
  const auto thousandths = take_thousandths(word);
  if (!thousandths || word != "e" || *thousandths % 1000 != 0 || *thousandths == 0) {
    return std::nullopt;
  }
  return *thousandths / 1000;
}

bool has_only_digits(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, is_digit);
}

}  // namespace

std::vector<std::string> words_of_name(std::string_view model) {
  while (model.ends_with('/')) model.remove_suffix(1);
  const std::size_t slash = model.rfind('/');
  if (slash != std::string_view::npos) model.remove_prefix(slash + 1);
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < model.size(); ++i) {
    const bool is_point = model[i] == '.' && i > 0 && i + 1 < model.size() &&
                          is_digit(model[i - 1]) && is_digit(model[i + 1]);
    const bool is_of_word = is_point || is_digit(model[i]) ||
                            (model[i] >= 'a' && model[i] <= 'z') ||
                            (model[i] >= 'A' && model[i] <= 'Z');
    if (is_of_word) {
      words.back() += model[i];
    } else {
      words.emplace_back();
    }
  }
  std::erase(words, std::string());
  for (std::string& word : words) word = base::to_lower(word);
  return words;
}

std::optional<std::uint64_t> context_of_word(std::string_view word) {
  const auto thousandths = take_thousandths(word);
  if (!thousandths || *thousandths % 1000 != 0 || *thousandths == 0) return std::nullopt;
  const std::uint64_t count = *thousandths / 1000;
  if (word == "k" && count <= 100'000) return count * 1024;
  if (word == "m" && count <= kMaxMillionsOfTokens) return count * 1024 * 1024;
  return std::nullopt;
}

bool is_dressing(std::string_view word) {
  return std::ranges::find(kDressing, word) != std::end(kDressing) || precision_of(word) ||
         context_of_word(word);
}

bool is_date_or_version(std::string_view word) {
  if (has_only_digits(word)) return word.size() == 2 || word.size() == 4 || word.size() == 8;
  return word.starts_with("v0.") && has_only_digits(word.substr(3));
}

NameFacts facts_of_name(std::string_view model) {
  NameFacts facts;
  std::optional<std::uint64_t> experts;
  for (const std::string& word : words_of_name(model)) {
    if (const auto context = context_of_word(word)) {
      facts.context = context;
      continue;
    }
    const auto precision = precision_of(word);
    if (precision && (!facts.precision || facts.precision->is_method)) facts.precision = precision;
    if (const auto found = experts_of_word(word)) experts = found;
    // A bare number is a version: "llama-3".
    const auto count = is_digit(word.back()) ? std::nullopt : parameter_count(word);
    if (count && (!facts.parameters || *count > *facts.parameters)) {
      facts.parameters = count;
      facts.is_upper_bound = word.contains('x');
    }
  }
  if (experts && facts.parameters && *experts <= kMaxParameters / *facts.parameters) {
    facts.parameters = *facts.parameters * *experts;
    facts.is_upper_bound = true;
  }
  return facts;
}

std::optional<std::uint64_t> parameter_count(std::string_view text) {
  const std::string lowered = base::to_lower(text);
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

}  // namespace gpu_platform::sizing
