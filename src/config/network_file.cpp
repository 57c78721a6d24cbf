#include "config/network_file.h"

#include <vector>

#include <fmt/format.h>

#include "base/name_list.h"

namespace gpu_platform::config {

namespace {

constexpr std::size_t kLongestNodeName = 255;

std::unexpected<Problem> problem(int line, std::string message) {
  return std::unexpected(Problem{line, 1, "cluster.network_file", std::move(message)});
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlanks = " \t\r";
  while (true) {
    const std::size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    const std::size_t end = line.find_first_of(kBlanks, begin);
    words.push_back(line.substr(begin, end - begin));
    if (end == std::string_view::npos) return words;
    line.remove_prefix(end);
  }
}

// Sets the value of a word such as "rack=r1". Returns false for an unknown or repeated key.
bool put(std::string_view word, model::NetworkPlace& place) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  std::string* const name = key == "domain" ? &place.domain
                            : key == "rack" ? &place.rack
                            : key == "zone" ? &place.zone
                                            : nullptr;
  if (name == nullptr || !name->empty() || value.empty() || value.size() > kLongestNodeName) {
    return false;
  }
  *name = value;
  return true;
}

}  // namespace

std::expected<NetworkPlaces, Problem> parse_network(std::string_view text) {
  NetworkPlaces places;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (words.empty()) continue;
    model::NetworkPlace place;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (put(words[i], place)) continue;
      return problem(number,
                     fmt::format("'{}' is not domain=NAME, rack=NAME or zone=NAME, each once",
                                 words[i].substr(0, 80)));
    }
    if (place == model::NetworkPlace()) {
      return problem(number, "after the nodes comes at least one of domain=, rack= and zone=");
    }
    const auto names = base::expand_names(words.front());
    if (!names) {
      return problem(number, fmt::format("'{}' is not a list of names such as dgx-[01-16]",
                                         words.front().substr(0, 80)));
    }
    for (const std::string& name : *names) {
      if (places.emplace(name, place).second) continue;
      return problem(number, fmt::format("node '{}' was there before", name.substr(0, 80)));
    }
  }
  return places;
}

}  // namespace gpu_platform::config
