#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "config/schema.h"

// The values of keys: read from text, written as a file has them, and what is allowed.

namespace gpu_platform::config {

namespace {

using C = Configuration;

template <class Field>
using ValueOf = std::remove_reference_t<std::invoke_result_t<Field, C&>>;

template <class T>
constexpr bool kIsNumber = std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t> ||
                           std::is_same_v<T, std::int64_t>;

base::Duration shown_unit(const Key& key) {
  return key.unit == base::Duration() ? base::seconds(1) : key.unit;
}

// Bounds of a duration as counts of its unit.
std::int64_t in_units(std::int64_t seconds, const Key& key) {
  return base::seconds(seconds).value() / shown_unit(key).value();
}

std::unexpected<base::Error> out_of_range(const Key& key, std::string_view text) {
  return base::invalid(std::string(key.path),
                       fmt::format("'{}' is out of range: {} is allowed", text, allowed_text(key)));
}

base::Result<base::Duration> read_duration(const Key& key, std::string_view text) {
  if (key.unit != base::Duration()) {
    TRY_ASSIGN(const std::uint64_t count,
               base::parse_count(text, static_cast<std::uint64_t>(in_units(key.least, key)),
                                 static_cast<std::uint64_t>(in_units(key.most, key))));
    return key.unit * static_cast<std::int64_t>(count);
  }
  TRY_ASSIGN(const base::Duration duration, base::parse_duration(text));
  const bool in_range = duration >= base::seconds(key.least) && duration <= base::seconds(key.most);
  if (!in_range) return out_of_range(key, text);
  return duration;
}

base::Result<base::Bytes> read_size(const Key& key, std::string_view text) {
  TRY_ASSIGN(const base::Bytes size, base::parse_size(text));
  if (size.value() < key.least || size.value() > key.most) return out_of_range(key, text);
  return size;
}

// Case does not count, and a hyphen is an underscore.
std::string folded(std::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return word;
}

base::Status assign(const Key&, std::string_view text, bool& value) {
  const std::string word = folded(text);
  if (word != "true" && word != "false") {
    return base::invalid({}, fmt::format("'{}' is neither true nor false", text));
  }
  value = word == "true";
  return {};
}

// The words of an enumeration, by its numbers.
template <class Value>
constexpr std::array<std::string_view, 0> kWords{};
template <>
constexpr std::array<std::string_view, 2> kWords<RootJobs>{"allow", "refuse"};
template <>
constexpr std::array<std::string_view, 2> kWords<model::Role>{"viewer", "user"};
template <>
constexpr std::array<std::string_view, model::kAudiences> kWords<model::Audience>{"owner", "team",
                                                                                  "all"};
template <>
constexpr std::array<std::string_view, 2> kWords<PreemptedRuns>{"billed", "free"};
template <>
constexpr std::array<std::string_view, 3> kWords<KubernetesDevices>{"pinned", "owned", "counts"};
template <>
constexpr std::array<std::string_view, 2> kWords<KubernetesReadings>{"none", "exporter"};
template <>
constexpr std::array<std::string_view, 2> kWords<Dcgm>{"auto", "off"};
template <>
constexpr std::array<std::string_view, 3> kWords<MetricNames>{"dcgm", "otel", "both"};
template <>
constexpr std::array<std::string_view, 3> kWords<MetricJobs>{"visible", "all", "none"};
template <>
constexpr std::array<std::string_view, model::kCapacityClasses> kWords<model::CapacityClass>{
    "on_demand", "spot", "reserved"};
template <>
constexpr std::array<std::string_view, 3> kWords<IdleAction>{"tell", "warn", "stop"};
template <>
constexpr std::array<std::string_view, 2> kWords<Seccomp>{"default", "off"};
template <>
constexpr std::array<std::string_view, 3> kWords<CudaVisibleDevices>{"auto", "index", "uuid"};
template <>
constexpr std::array<std::string_view, 4> kWords<model::PriorityClass>{"critical", "high", "medium",
                                                                       "low"};
template <>
constexpr std::array<std::string_view, model::kUnmanagedProcessPolicies>
    kWords<model::UnmanagedProcessPolicy>{"ignore", "avoid", "alert"};
template <>
constexpr std::array<std::string_view, model::kSickGpuPolicies> kWords<model::SickGpuPolicy>{
    "drain", "off"};
template <>
constexpr std::array<std::string_view, model::kHealthProfiles> kWords<model::HealthProfile>{
    "nvidia", "cloud", "strict"};
template <>
constexpr std::array<std::string_view, model::kHealthModes> kWords<model::HealthMode>{
    "execute", "shadow", "off"};
template <>
constexpr std::array<std::string_view, model::kHealthResets> kWords<model::HealthReset>{
    "ask", "auto", "never"};
template <>
constexpr std::array<std::string_view, model::kHealthChecksAtStart>
    kWords<model::HealthCheckAtStart>{"none", "quick"};

template <>
constexpr std::array<std::string_view, model::kQueueOrders> kWords<model::QueueOrder>{
    "priority", "fcfs", "fair_share", "weighted"};
template <>
constexpr std::array<std::string_view, model::kQuotaPeriods> kWords<model::QuotaPeriod>{
    "day", "week", "month"};
template <>
constexpr std::array<std::string_view, model::kAllocationModes> kWords<model::AllocationMode>{
    "guaranteed", "static", "dynamic", "hybrid"};

template <class Value>
constexpr bool kIsWord = !kWords<Value>.empty();

// "a, b or c".
template <class Value>
std::string words_text() {
  const auto& words = kWords<Value>;
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

template <class Value>
  requires(kIsWord<Value>)
base::Status assign(const Key&, std::string_view text, Value& value) {
  const auto word = std::ranges::find(kWords<Value>, folded(text));
  if (word == kWords<Value>.end()) {
    return base::invalid({}, fmt::format("'{}' is not {}", text, words_text<Value>()));
  }
  value = static_cast<Value>(word - kWords<Value>.begin());
  return {};
}

base::Status assign(const Key&, std::string_view text, std::string& value) {
  if (!text.starts_with('/')) {
    return base::invalid(
        {}, fmt::format("'{}' does not begin with the absolute path of a program", text));
  }
  value = text;
  return {};
}

base::Status assign(const Key&, std::string_view text, SiteFile& value) {
  if (!text.starts_with('/')) {
    return base::invalid({}, fmt::format("'{}' is not an absolute path of a file", text));
  }
  value.path = text;
  return {};
}

base::Status assign(const Key&, std::string_view text, SiteName& value) {
  constexpr std::size_t kMaxBytes = 100;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.empty() || text.size() > kMaxBytes || std::ranges::any_of(text, is_control)) {
    return base::invalid(
        {}, fmt::format("'{}' is not a name of one line and at most {} bytes", text, kMaxBytes));
  }
  value.text = text;
  return {};
}

base::Status assign(const Key&, std::string_view text, WordList& value) {
  constexpr std::size_t kMaxWords = 64;
  constexpr std::size_t kMaxBytes = 512;
  value.words.clear();
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto is_odd = [](char c) { return c <= 0x20 || c >= 0x7f; };
    if (word.size() > kMaxBytes || std::ranges::any_of(word, is_odd)) {
      return base::invalid({}, fmt::format("'{}' has a character that is not allowed here", word));
    }
    if (!word.empty()) value.words.emplace_back(word);
  }
  if (value.words.empty() || value.words.size() > kMaxWords) {
    return base::invalid({}, fmt::format("1 to {} words are required", kMaxWords));
  }
  return {};
}

base::Status assign(const Key& key, std::string_view text, ProgramFile& value) {
  return assign(key, text, value.path);
}

base::Status assign(const Key& key, std::string_view text, base::Duration& value) {
  TRY_ASSIGN(value, read_duration(key, text));
  return {};
}

base::Status assign(const Key& key, std::string_view text, base::Bytes& value) {
  TRY_ASSIGN(value, read_size(key, text));
  return {};
}

base::Status assign(const Key& key, std::string_view text, base::MicroUsd& value) {
  constexpr std::int64_t kMicros = 1'000'000;
  TRY_ASSIGN(const base::MicroUsd amount, base::parse_money(text));
  const bool in_range =
      amount >= base::MicroUsd(key.least * kMicros) && amount <= base::MicroUsd(key.most * kMicros);
  if (!in_range) return out_of_range(key, text);
  value = amount;
  return {};
}

template <class Number>
base::Status assign_number(const Key& key, std::string_view text, Number& value) {
  TRY_ASSIGN(const std::uint64_t number,
             base::parse_count(text, static_cast<std::uint64_t>(key.least),
                               static_cast<std::uint64_t>(key.most)));
  value = static_cast<Number>(number);
  return {};
}

base::Status assign(const Key& key, std::string_view text, std::uint32_t& value) {
  return assign_number(key, text, value);
}
base::Status assign(const Key& key, std::string_view text, std::uint64_t& value) {
  return assign_number(key, text, value);
}
base::Status assign(const Key& key, std::string_view text, std::int64_t& value) {
  return assign_number(key, text, value);
}
constexpr std::uint32_t kMaxBelowSlowdownC = 40;

std::string below_slowdown(std::uint32_t degrees) {
  return fmt::format("slowdown-{}", degrees);
}

// "85", or "slowdown - 5".
base::Status assign(const Key& key, std::string_view text, HeatLimit& value) {
  constexpr std::string_view kBelowSlowdown = "slowdown_";
  std::string word = folded(text);
  std::erase(word, ' ');
  HeatLimit limit;
  if (word.starts_with(kBelowSlowdown)) {
    const auto degrees =
        base::parse_count(word.substr(kBelowSlowdown.size()), 1, kMaxBelowSlowdownC);
    if (!degrees) return out_of_range(key, text);
    limit.below_slowdown_c = static_cast<std::uint32_t>(*degrees);
  } else if (!assign_number(key, text, limit.max_c)) {
    return out_of_range(key, text);
  }
  value = limit;
  return {};
}
base::Status assign(const Key& key, std::string_view text, std::optional<std::uint32_t>& value) {
  std::uint32_t number = 0;
  TRY(assign_number(key, text, number));
  value = number;
  return {};
}

}  // namespace

base::Status set_value(const Key& key, std::string_view text, Configuration& configuration) {
  return std::visit([&](const auto& field) { return assign(key, text, field(configuration)); },
                    key.field);
}

bool is_text(const Key& key) {
  return std::visit(
      [](const auto& field) {
        using Value = ValueOf<std::remove_cvref_t<decltype(field)>>;
        return kIsWord<Value> || std::is_same_v<Value, std::string> ||
               std::is_same_v<Value, ProgramFile> || std::is_same_v<Value, SiteFile> ||
               std::is_same_v<Value, SiteName> || std::is_same_v<Value, WordList> ||
               std::is_same_v<Value, HeatLimit>;
      },
      key.field);
}

std::string value_text(const Key& key, const Configuration& configuration) {
  C copy = configuration;
  return std::visit(
      [&](const auto& field) -> std::string {
        const auto& value = field(copy);
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (kIsWord<Value>) {
          return std::string(kWords<Value>[static_cast<std::size_t>(value)]);
        } else if constexpr (std::is_same_v<Value, base::Duration>) {
          if (key.unit == base::Duration()) return base::written(value);
          return fmt::format("{}", value.value() / key.unit.value());
        } else if constexpr (std::is_same_v<Value, base::Bytes> ||
                             std::is_same_v<Value, base::MicroUsd>) {
          return base::written(value);
        } else if constexpr (kIsNumber<Value>) {
          return fmt::format("{}", value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return value.empty() ? "not set" : value;
        } else if constexpr (std::is_same_v<Value, ProgramFile> ||
                             std::is_same_v<Value, SiteFile>) {
          return value.path.empty() ? "not set" : value.path;
        } else if constexpr (std::is_same_v<Value, SiteName>) {
          return value.text.empty() ? "not set" : value.text;
        } else if constexpr (std::is_same_v<Value, WordList>) {
          return value.words.empty() ? "not set" : fmt::format("{}", fmt::join(value.words, " "));
        } else if constexpr (std::is_same_v<Value, HeatLimit>) {
          return value.below_slowdown_c ? below_slowdown(*value.below_slowdown_c)
                                        : fmt::format("{}", value.max_c);
        } else {
          return value.has_value() ? fmt::format("{}", *value) : "not set";
        }
      },
      key.field);
}

std::string allowed_text(const Key& key) {
  return std::visit(
      [&](const auto& field) -> std::string {
        using Value = ValueOf<std::remove_cvref_t<decltype(field)>>;
        if constexpr (std::is_same_v<Value, bool>) {
          return "true or false";
        } else if constexpr (kIsWord<Value>) {
          return words_text<Value>();
        } else if constexpr (std::is_same_v<Value, base::Duration>) {
          if (key.unit != base::Duration()) {
            return fmt::format("{} to {}", in_units(key.least, key), in_units(key.most, key));
          }
          return fmt::format("{} to {}", base::written(base::seconds(key.least)),
                             base::written(base::seconds(key.most)));
        } else if constexpr (std::is_same_v<Value, base::Bytes>) {
          return fmt::format("{} to {}", base::written(base::Bytes(key.least)),
                             base::written(base::Bytes(key.most)));
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return "absolute path of a program, and arguments";
        } else if constexpr (std::is_same_v<Value, ProgramFile>) {
          return "absolute path of a program";
        } else if constexpr (std::is_same_v<Value, SiteFile>) {
          return "absolute path of a file";
        } else if constexpr (std::is_same_v<Value, SiteName>) {
          return "a name";
        } else if constexpr (std::is_same_v<Value, WordList>) {
          return "words, separated by blanks";
        } else if constexpr (std::is_same_v<Value, HeatLimit>) {
          return fmt::format("{} to {}, or {} to {}", key.least, key.most, below_slowdown(1),
                             below_slowdown(kMaxBelowSlowdownC));
        } else {
          return fmt::format("{} to {}", key.least, key.most);
        }
      },
      key.field);
}

}  // namespace gpu_platform::config
