#include "config/yaml/power_limits.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::config {

namespace {

// Of one GPU: beyond any board, and small enough for milliwatts.
constexpr std::uint64_t kMaxWatts = 10'000;

}  // namespace

void PowerLimitsReader::read(const std::string& path, const YAML::Node& value) {
  key_ = path;
  for_each_entry(value, [&](const YAML::Node& name, const YAML::Node& limit) {
    const bool is_plain = limit.IsScalar() && (limit.Tag() == "?" || limit.Tag().empty());
    const auto watts =
        base::parse_count(is_plain ? std::string_view(limit.Scalar()) : "", 1, kMaxWatts);
    if (!watts) {
      report(limit,
             fmt::format("'{}' in '{}' must be a number of watts, a whole number from 1 to {}",
                         printable(name.Scalar()), key_, kMaxWatts));
      return;
    }
    // Another name is that of a node, or of a model as the driver writes it.
    std::string of = model::canonical_gpu_type(name.Scalar()).value_or(name.Scalar());
    if (std::ranges::find(limits_, of, &PowerLimit::of) != limits_.end()) {
      return report(name, fmt::format("'{}' has a power limit already: each once", printable(of)));
    }
    limits_.push_back({std::move(of), static_cast<std::uint32_t>(*watts)});
  });
  std::ranges::sort(limits_, {}, &PowerLimit::of);
}

void PowerLimitsReader::finish(Configuration& configuration) {
  configuration.power_limits = std::move(limits_);
}

}  // namespace gpu_platform::config
