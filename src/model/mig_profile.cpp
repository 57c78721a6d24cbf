#include "model/mig_profile.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::model {

namespace {

constexpr std::uint64_t kMaxSlicesInName = 64;
constexpr std::uint64_t kMaxGbInName = 100'000;
constexpr std::string_view kDriversPrefix = "mig ";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_attribute_letter(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '.';
}

// Takes the number that the text begins with.
std::optional<std::uint32_t> take_number(std::string_view& text, std::uint64_t max) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = base::parse_count(text.substr(0, digits), 1, max);
  if (!number) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<std::uint32_t>(*number);
}

bool skip_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

std::optional<MigAttribute> take_attribute(std::string_view& text) {
  if (text.front() != '+' && text.front() != '-') return std::nullopt;
  MigAttribute attribute{.sign = text.front(), .name = {}};
  text.remove_prefix(1);
  const auto end = std::ranges::find_if_not(text, is_attribute_letter);
  attribute.name.assign(text.begin(), end);
  text.remove_prefix(attribute.name.size());
  if (attribute.name.empty()) return std::nullopt;
  return attribute;
}

// Reads a name in lower case that has nothing before or after it.
std::optional<MigProfileName> profile_in(std::string_view text) {
  MigProfileName name;
  const auto slices = take_number(text, kMaxSlicesInName);
  if (!slices || !skip_word(text, "g.")) return std::nullopt;
  const auto memory = take_number(text, kMaxGbInName);
  if (!memory || !skip_word(text, "gb")) return std::nullopt;
  name.compute_slices = *slices;
  name.memory_gb = *memory;
  while (!text.empty()) {
    auto attribute = take_attribute(text);
    if (!attribute) return std::nullopt;
    name.attributes.push_back(std::move(*attribute));
  }
  return name;
}

// Returns the place where the profile begins: its number of slices is what stands before "g.".
std::size_t begin_of_profile(std::string_view text) {
  std::size_t begin = text.find("g.");
  if (begin == std::string_view::npos) return 0;
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  return begin;
}

std::unexpected<base::Error> not_a_profile(std::string_view text) {
  return base::invalid({}, fmt::format("'{}' is not the name of a MIG profile; names are such as "
                                       "1g.10gb, 1g.10gb+me and h100-1g.10gb",
                                       text));
}

}  // namespace

std::string to_string(const MigProfileName& name) {
  std::string text = fmt::format("{}g.{}gb", name.compute_slices, name.memory_gb);
  for (const MigAttribute& attribute : name.attributes) {
    text += attribute.sign;
    text += attribute.name;
  }
  return text;
}

std::string to_string(const MigRequest& request) {
  const std::string profile = to_string(request.profile);
  if (request.gpu_type.empty()) return profile;
  return base::to_lower(request.gpu_type) + "-" + profile;
}

base::Result<MigRequest> parse_mig_request(std::string_view text) {
  const std::string lower = base::to_lower(text);
  const std::string_view all = lower;
  const std::size_t begin = begin_of_profile(all);
  const auto profile = profile_in(all.substr(begin));
  if (!profile) return not_a_profile(text);
  MigRequest request{.profile = *profile};
  if (begin == 0) return request;
  if (begin < 2 || all[begin - 1] != '-') return not_a_profile(text);
  const std::string_view type = all.substr(0, begin - 1);
  auto known = canonical_gpu_type(type);
  if (!known) {
    return base::invalid({}, fmt::format("'{}' before the MIG profile {} is not a known GPU type",
                                         type, to_string(*profile)));
  }
  request.gpu_type = std::move(*known);
  return request;
}

base::Result<MigProfileName> parse_mig_profile(std::string_view text) {
  const std::string lower = base::to_lower(text);
  std::string_view name = lower;
  skip_word(name, kDriversPrefix);
  auto profile = profile_in(name);
  if (!profile) return not_a_profile(text);
  return std::move(*profile);
}

}  // namespace gpu_platform::model
