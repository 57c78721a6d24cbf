#include "shims/text/host_list.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kMaxDigits = 18;

// "n007": what is in front of the number, the number and its digits.
struct Name {
  std::string prefix;
  std::size_t digits = 0;  // 0: there is no number
  std::uint64_t number = 0;

  auto operator<=>(const Name&) const = default;
};

Name name_of(const std::string& text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  std::size_t begin = last == std::string::npos ? 0 : last + 1;
  begin = std::max(begin, text.size() - std::min(text.size(), kMaxDigits));
  if (begin == text.size()) return {text};
  Name name{text.substr(0, begin), text.size() - begin, 0};
  for (std::size_t i = begin; i < text.size(); ++i)
    name.number = name.number * 10 + static_cast<std::uint64_t>(text[i] - '0');
  return name;
}

// Without leading zeros the length of a number says nothing: n9 and n10 are neighbours.
bool is_padded(const Name& name) {
  return name.digits > 1 && name.digits > fmt::format("{}", name.number).size();
}

bool follows(const Name& a, const Name& b) {
  const bool are_alike = a.digits == b.digits || (!is_padded(a) && !is_padded(b));
  return are_alike && b.number == a.number + 1;
}

std::string number_text(const Name& name) {
  return fmt::format("{:0{}}", name.number, name.digits);
}

// The numbers of names with one prefix: "1-2,7".
std::string ranges(const std::vector<Name>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t last = i;
    while (last + 1 < names.size() && follows(names[last], names[last + 1])) ++last;
    if (!text.empty()) text.push_back(',');
    text += number_text(names[i]);
    if (last > i) text += "-" + number_text(names[last]);
    i = last + 1;
  }
  return text;
}

std::string list_of(const std::vector<Name>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size();) {
    std::vector<Name> alike;
    const std::string prefix = parts[i].prefix;
    for (; i < parts.size() && parts[i].prefix == prefix; ++i) {
      if (parts[i].digits > 0) alike.push_back(parts[i]);
      if (parts[i].digits == 0) text += (text.empty() ? "" : ",") + prefix;
    }
    if (alike.empty()) continue;
    if (!text.empty()) text.push_back(',');
    text += alike.size() == 1 ? prefix + number_text(alike.front())
                              : fmt::format("{}[{}]", prefix, ranges(alike));
  }
  return text;
}

// What names are sorted by.
std::tuple<std::string, std::uint64_t, std::size_t> order_of(const Name& name) {
  return {name.prefix, name.number, name.digits};
}

}  // namespace

std::vector<std::size_t> host_order(const std::vector<std::string>& names) {
  std::vector<std::size_t> places(names.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, {},
                           [&](std::size_t place) { return order_of(name_of(names[place])); });
  return places;
}

std::string host_list(std::vector<std::string> names) {
  std::vector<Name> parts;
  for (const std::string& name : names) parts.push_back(name_of(name));
  std::ranges::sort(parts, {}, order_of);
  parts.erase(std::ranges::unique(parts).begin(), parts.end());
  return list_of(parts);
}

std::string host_list_in_order(const std::vector<std::string>& names) {
  std::vector<Name> parts;
  for (const std::string& name : names) parts.push_back(name_of(name));
  return list_of(parts);
}

}  // namespace gpu_platform::shims
