#include "simulation/scenarios/job_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"
#include "model/job_spec_fields.h"
#include "simulation/scenarios/values.h"

namespace gpu_platform::simulation {

namespace {

// ---- one value from its text; errors need no field

base::Status read(const std::string& text, std::string& value) {
  value = text;
  return {};
}

base::Status read(const std::string& text, bool& value) {
  if (text != "yes" && text != "no") {
    return base::invalid({}, fmt::format("'{}' is not yes or no", text));
  }
  value = text == "yes";
  return {};
}

base::Status read(const std::string& text, std::uint32_t& value) {
  TRY_ASSIGN(const std::uint64_t count,
             base::parse_count(text, 0, std::numeric_limits<std::uint32_t>::max()));
  value = static_cast<std::uint32_t>(count);
  return {};
}

base::Status read(const std::string& text, base::Duration& value) {
  TRY_ASSIGN(value, base::parse_short_duration(text));
  return {};
}

base::Status read(const std::string& text, base::Bytes& value) {
  TRY_ASSIGN(value, base::parse_size(text));
  return {};
}

base::Status read(const std::string& text, base::MicroUsd& value) {
  TRY_ASSIGN(value, base::parse_money(text));
  return {};
}

base::Status read(const std::string& text, model::Priority& value) {
  constexpr std::array<std::string_view, 4> kClasses = {"critical", "high", "medium", "low"};
  const auto* found = std::ranges::find(kClasses, text);
  if (found != kClasses.end()) {
    value = model::priority_of_class(static_cast<model::PriorityClass>(found - kClasses.begin()));
    return {};
  }
  const auto number = base::parse_count(text, 0, 9);
  if (!number) {
    return base::invalid({},
                         fmt::format("'{}' is not critical, high, medium, low or 0 to 9", text));
  }
  value = model::priority_of_number(static_cast<std::uint8_t>(*number));
  return {};
}

base::Status read(const std::string& text, model::NetworkLevel& value) {
  for (std::size_t i = 0; i < model::kNetworkLevels; ++i) {
    value = static_cast<model::NetworkLevel>(i);
    if (text == to_string(value)) return {};
  }
  return base::invalid({}, fmt::format("'{}' is not anywhere, zone, rack or domain", text));
}

base::Status read(const std::string& text, model::CapacityRequest& value) {
  for (std::size_t i = 0; i < model::kCapacityRequests; ++i) {
    value = static_cast<model::CapacityRequest>(i);
    if (text == to_string(value)) return {};
  }
  return base::invalid({}, fmt::format("'{}' is not any, spot or on-demand", text));
}

base::Status read(const std::string& text, model::ShareMode& value) {
  for (std::size_t i = 0; i < model::kShareModes; ++i) {
    value = static_cast<model::ShareMode>(i);
    if (text == to_string(value)) return {};
  }
  return base::invalid({}, fmt::format("'{}' is not none, time-slice or mps", text));
}

base::Status read(const std::string& text, model::Isolation& value) {
  for (std::size_t i = 0; i < model::kIsolations; ++i) {
    value = static_cast<model::Isolation>(i);
    if (text == to_string(value)) return {};
  }
  return base::invalid({}, fmt::format("'{}' is not none, memory or hardware", text));
}

base::Status read(const std::string& text, model::ArraySpec& value) {
  TRY_ASSIGN(value, model::parse_array(text));
  return {};
}

base::Status read(const std::string& text, std::vector<model::Label>& value) {
  value.clear();
  for (const std::string& pair : parts_of(text)) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return base::invalid({}, fmt::format("'{}' is not KEY=VALUE", pair));
    }
    value.push_back({pair.substr(0, equals), pair.substr(equals + 1)});
  }
  std::ranges::sort(value, {}, &model::Label::key);
  return {};
}

template <class T>
  requires requires(const std::string& text, T& value) { read(text, value); }
base::Status read(const std::string& text, std::optional<T>& value) {
  return read(text, value.emplace());
}

template <class T>
concept IsRead = requires(const std::string& text, T& value) {
  { read(text, value) } -> std::same_as<base::Status>;
};

template <class Row>
using ValueOf = typename std::remove_cvref_t<Row>::Type;

// GPUs by node and index, which the runner knows.
constexpr std::string_view kOfGpus[] = {"gpus-avoid", "gpus-only"};

// The runner reads these options, because it knows the time, the nodes and the jobs.
template <class T>
constexpr bool kIsOfTheRunner =
    std::is_same_v<T, base::Instant> || std::is_same_v<T, std::vector<model::NodeId>> ||
    std::is_same_v<T, std::vector<model::Dependency>>;

// Which types of GPU, read below; and which files of output, of which a virtual job has none.
bool is_apart(std::string_view option) {
  return option == "gpu-type" || option == "open-mode";
}

std::vector<std::string_view> options_of(model::Change least) {
  std::vector<std::string_view> names;
  model::for_each_spec_field([&](const auto& row) {
    using Value = ValueOf<decltype(row)>;
    if (!(IsRead<Value> || kIsOfTheRunner<Value>) || row.change < least) return;
    if (!row.option.empty() && !is_apart(row.option)) names.push_back(row.option);
  });
  return names;
}

// Calls take(row, text) for each option of the statement that is read here.
template <class Take>
base::Status for_each_option(const Statement& statement, Take&& take) {
  base::Status status;
  model::for_each_spec_field([&](const auto& row) {
    if constexpr (IsRead<ValueOf<decltype(row)>>) {
      if (!status || row.option.empty() || is_apart(row.option)) return;
      const std::string* text = option(statement, row.option);
      if (text == nullptr) return;
      status = take(row, *text);
      if (!status) {
        status = base::invalid({}, fmt::format("{}: {}", row.option, status.error().message));
      }
    }
  });
  return status;
}

// "H100:1,A100:0.5": a type without a number is as fast as the first.
base::Status read_gpu_types(const std::string& text, model::ResourceRequest& request) {
  std::vector<double> speeds;
  bool has_speeds = false;
  for (const std::string& part : parts_of(text)) {
    const std::size_t colon = part.find(':');
    const std::string name = part.substr(0, colon);
    auto type = model::canonical_gpu_type(name);
    if (!type) {
      return base::invalid({},
                           fmt::format("'{}' is not a GPU type or family of the catalogue", name));
    }
    request.gpu_types.push_back(*std::move(type));
    double speed = 1;
    if (colon != std::string::npos) {
      has_speeds = true;
      const char* const end = part.data() + part.size();
      const auto [stop, code] = std::from_chars(part.data() + colon + 1, end, speed);
      if (code != std::errc() || stop != end || !(speed >= 0.001 && speed <= 1000)) {
        return base::invalid({}, fmt::format("gpu-type: '{}' is not a speed", part));
      }
    }
    speeds.push_back(speed);
  }
  if (!has_speeds) return {};
  for (const double speed : speeds) {
    request.gpu_speeds.push_back(
        static_cast<std::uint32_t>(std::lround(speed / speeds.front() * model::kFullSpeed)));
  }
  return {};
}

// "gpus" are those on all its nodes, or a part of one: "0.5".
base::Status read_gpus(const Statement& statement, model::ResourceRequest& request) {
  const std::string* const text = option(statement, "gpus");
  if (text == nullptr) return {};
  if (text->find('.') != std::string::npos) {
    TRY_ASSIGN(request.share_per_gpu, base::parse_gpu_share(*text));
    request.gpus = 1;
    return {};
  }
  std::uint32_t gpus = 0;
  TRY(set_count(statement, "gpus", 0, 1000, gpus));
  if (option(statement, "gpus-per-node") != nullptr || gpus % request.nodes != 0) {
    return base::invalid({}, "gpus: cannot be divided among its nodes; say gpus-per-node");
  }
  request.gpus = gpus / request.nodes;
  return {};
}

base::Status read_numa(const Statement& statement, model::ResourceRequest& request) {
  bool strict = false;
  bool allow_cross = false;
  TRY(set_bool(statement, "strict-numa", strict));
  TRY(set_bool(statement, "allow-cross-numa", allow_cross));
  if (strict) request.numa = model::NumaPolicy::kStrict;
  if (allow_cross) request.numa = model::NumaPolicy::kAllowCross;
  return {};
}

}  // namespace

std::vector<std::string_view> options_of_submission() {
  std::vector<std::string_view> names = options_of(model::Change::kNever);
  names.insert(names.begin(), {"gpus", "gpu-type"});
  names.insert(names.end(), {"strict-numa", "allow-cross-numa", "hold"});
  names.insert(names.end(), std::begin(kOfGpus), std::end(kOfGpus));
  return names;
}

std::vector<std::string_view> options_of_update() {
  std::vector<std::string_view> names = options_of(model::Change::kSet);
  names.insert(names.end(), {"gpus", "gpu-type", "strict-numa", "allow-cross-numa"});
  names.insert(names.end(), std::begin(kOfGpus), std::end(kOfGpus));
  return names;
}

base::Status read_spec(const Statement& statement, model::JobSpec& spec) {
  TRY(for_each_option(statement, [&](const auto& row, const std::string& text) {
    return read(text, row.of(spec));
  }));
  if (spec.request.nodes == 0 || spec.request.nodes > model::kMaxGangNodes) {
    return base::invalid({}, fmt::format("nodes: 1 to {} are allowed", model::kMaxGangNodes));
  }
  if (const std::string* types = option(statement, "gpu-type")) {
    TRY(read_gpu_types(*types, spec.request));
  }
  TRY(read_numa(statement, spec.request));
  return read_gpus(statement, spec.request);
}

base::Status read_patch(const Statement& statement, model::SpecPatch& patch) {
  using Request = model::ResourceRequest;
  Request request;
  if (const std::string* types = option(statement, "gpu-type")) {
    if (*types != "none") TRY(read_gpu_types(*types, request));
    patch.set(&Request::gpu_types, request.gpu_types);
    patch.set(&Request::gpu_speeds, request.gpu_speeds);
  }
  if (option(statement, "gpus") != nullptr) {
    TRY(read_gpus(statement, request));
    patch.set(&Request::gpus, request.gpus);
    patch.set(&Request::share_per_gpu, request.share_per_gpu);
    if (request.share_per_gpu == base::kWholeGpu) {
      patch.set(&Request::share_mode, std::nullopt).set(&Request::slice, base::Duration());
    }
  }
  TRY(read_numa(statement, request));
  if (request.numa != Request().numa) patch.set(&Request::numa, request.numa);
  return for_each_option(statement, [&](const auto& row, const std::string& text) -> base::Status {
    if (row.change == model::Change::kNever) return {};
    ValueOf<decltype(row)> value{};
    const bool clears = row.change == model::Change::kSetOrClear && text == "none";
    if (!clears) TRY(read(text, value));
    patch.set(row.member, std::move(value));
    return {};
  });
}

}  // namespace gpu_platform::simulation
