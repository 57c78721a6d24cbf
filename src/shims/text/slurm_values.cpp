#include "shims/text/slurm_values.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace gpu_platform::shims {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && value >= 0;
  return is_number ? std::optional(value) : std::nullopt;
}

// The numbers between colons; nothing when one of them is none, or too large to be added up.
std::optional<std::vector<std::int64_t>> colon_numbers(std::string_view text) {
  constexpr std::int64_t kMax = 100'000'000;  // of seconds, minutes, hours or days
  std::vector<std::int64_t> numbers;
  while (true) {
    const std::size_t colon = text.find(':');
    const auto number = whole_number(text.substr(0, colon));
    if (!number || *number > kMax) return std::nullopt;
    numbers.push_back(*number);
    if (colon == std::string_view::npos) return numbers;
    text.remove_prefix(colon + 1);
  }
}

// Seconds of the part behind "D-" (hours first) or of a form without days.
std::optional<std::int64_t> seconds_of(const std::vector<std::int64_t>& n, bool has_days) {
  if (n.size() > 3) return std::nullopt;
  if (has_days) {
    return n[0] * 3600 + (n.size() > 1 ? n[1] * 60 : 0) + (n.size() > 2 ? n[2] : 0);
  }
  if (n.size() == 1) return n[0] * 60;
  if (n.size() == 2) return n[0] * 60 + n[1];
  return n[0] * 3600 + n[1] * 60 + n[2];
}

}  // namespace

base::Result<std::optional<base::Duration>> parse_time_limit(std::string_view text) {
  const std::string word = lower_case(text);
  if (word == "unlimited" || word == "infinite" || word == "-1") {
    return std::optional<base::Duration>();
  }
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? whole_number(text.substr(0, dash)) : std::optional<std::int64_t>(0);
  const std::string_view behind = has_days ? text.substr(dash + 1) : text;
  const auto parts = colon_numbers(has_days && behind.empty() ? "0" : behind);
  const auto rest = parts ? seconds_of(*parts, has_days) : std::nullopt;
  constexpr std::int64_t kMaxDays = 3650;  // what the daemon takes
  if (!days || !rest || *days > kMaxDays || *rest > kMaxDays * 86'400) {
    return base::invalid(
        {},
        fmt::format("'{}' is not a time limit: write minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S (at "
                    "most 3650 days) or UNLIMITED",
                    text));
  }
  const std::int64_t seconds = *days * 86'400 + *rest;
  if (seconds == 0) return std::optional<base::Duration>();
  return std::optional(base::seconds((seconds + 59) / 60 * 60));
}

base::Result<base::Bytes> parse_memory(std::string_view text) {
  std::string word = lower_case(text);
  if (word.size() > 1 && word.ends_with('b')) word.pop_back();
  std::int64_t unit = base::kMiB.value();
  if (!word.empty()) {
    constexpr std::string_view kUnits = "kmgt";
    if (const std::size_t at = kUnits.find(word.back()); at != std::string_view::npos) {
      unit = std::int64_t{1024} << (10 * at);
      word.pop_back();
    }
  }
  const auto number = whole_number(word);
  constexpr std::int64_t kMax = std::int64_t{1} << 50;
  if (!number || *number > kMax / unit) {
    return base::invalid(
        {}, fmt::format(
                "'{}' is not an amount of memory: write a whole number of MiB, or one with K, M, "
                "G or T, at most 1024T",
                text));
  }
  return base::Bytes(*number * unit);
}

base::Result<std::uint32_t> parse_number(std::string_view text, std::uint32_t least) {
  const auto number = whole_number(text);
  constexpr std::int64_t kMax = 1'048'576;
  if (!number || *number < least || *number > kMax) {
    return base::invalid(
        {}, fmt::format("'{}' is not a whole number from {} to {}", text, least, kMax));
  }
  return static_cast<std::uint32_t>(*number);
}

base::Result<GpuCount> parse_gpus(std::string_view text) {
  const auto bad = [&] {
    return base::invalid(
        {}, fmt::format("'{}' is not a number of GPUs: write N or TYPE:N, of one type", text));
  };
  if (text.find(',') != std::string_view::npos) return bad();
  const std::size_t colon = text.rfind(':');
  GpuCount gpus;
  if (colon != std::string_view::npos) gpus.type = text.substr(0, colon);
  const std::string_view number = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const auto count = parse_number(number, 0);
  if (!count || gpus.type.find(':') != std::string::npos || colon == 0) return bad();
  gpus.count = *count;
  return gpus;
}

base::Result<GpuCount> parse_gres(std::string_view text, std::vector<std::string>& others) {
  GpuCount gpus;
  bool was_there = false;
  for (const std::string& item : comma_separated(text)) {
    std::string_view part = item;
    if (part.starts_with("gres/")) part.remove_prefix(5);
    if (part == "none" || part == "0") continue;
    if (part != "gpu" && !part.starts_with("gpu:") && !part.starts_with("gpu=")) {
      others.emplace_back(part);
      continue;
    }
    if (was_there)
      return base::invalid({},
                           fmt::format("'{}' asks for GPUs of two types; one job gets one", text));
    was_there = true;
    std::string_view rest = part.substr(3);
    if (rest.empty()) {
      gpus.count = 1;
      continue;
    }
    rest.remove_prefix(1);
    // "gpu:a100" is one of that type.
    const bool is_type_alone =
        !rest.empty() && rest.find(':') == std::string_view::npos && !whole_number(rest);
    if (is_type_alone) {
      gpus = {1, std::string(rest)};
      continue;
    }
    auto read = parse_gpus(rest);
    if (!read) {
      return base::invalid(
          {}, fmt::format("'{}' is not a request for GPUs: write gpu, gpu:N or gpu:TYPE:N", item));
    }
    gpus = std::move(*read);
  }
  return gpus;
}

base::Result<NodeCount> parse_nodes(std::string_view text) {
  constexpr std::uint32_t kMax = 1'000'000;
  const auto read = [](std::string_view part) -> std::optional<std::uint32_t> {
    const bool is_thousands = part.ends_with('k') || part.ends_with('K');
    if (is_thousands) part.remove_suffix(1);
    const auto number = parse_number(part, 1);
    if (!number || *number > kMax / (is_thousands ? 1'000 : 1)) return std::nullopt;
    return *number * (is_thousands ? 1'000 : 1);
  };
  const std::size_t dash = text.find('-');
  const auto least = read(text.substr(0, dash));
  const auto most = dash == std::string_view::npos ? least : read(text.substr(dash + 1));
  if (!least || !most) {
    return base::invalid({}, fmt::format("'{}' is not a number of nodes: write N or N-M", text));
  }
  if (*most < *least)
    return base::invalid({}, fmt::format("'{}' has a maximum below its minimum", text));
  return NodeCount{*least, *most};
}

std::string short_elapsed(base::Duration duration) {
  const std::int64_t seconds = std::max<std::int64_t>(0, base::whole_milliseconds(duration) / 1000);
  if (seconds >= 86'400) return long_elapsed(duration);
  if (seconds >= 3600) {
    return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
}

std::string long_elapsed(base::Duration duration) {
  const std::int64_t seconds = std::max<std::int64_t>(0, base::whole_milliseconds(duration) / 1000);
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds >= 86'400 ? fmt::format("{}-{}", seconds / 86'400, clock) : clock;
}

std::optional<std::string> priority_of_qos(std::string_view name) {
  const std::string plain = lower_case(name);
  if (plain == "normal") return "medium";
  constexpr std::string_view kClasses[] = {"critical", "high", "medium", "low"};
  return std::ranges::find(kClasses, plain) == std::end(kClasses) ? std::nullopt
                                                                  : std::optional(plain);
}

base::Result<std::string> priority_of_nice(std::string_view text) {
  if (text.starts_with('-'))
    return base::invalid({}, "a value below zero is not supported: QOS=high is a higher priority");
  TRY_ASSIGN(const std::uint32_t nice, parse_number(text.empty() ? "100" : text, 0));
  return std::string(nice == 0 ? "medium" : "low");
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return result;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return result;
}

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (const auto part = text.substr(0, comma); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return parts;
}

bool is_listed(std::string_view value, std::string_view list) {
  const auto names = comma_separated(list);
  return std::ranges::find(names, value) != names.end();
}

}  // namespace gpu_platform::shims
