#include "simulation/reports/fault_options.h"

#include <vector>

#include <fmt/ranges.h>

#include "base/parse.h"

namespace gpu_platform::simulation {

namespace {

constexpr std::uint64_t kMaxSeeds = 1'000'000'000;

std::vector<std::string_view> plant_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 1; i < kPlants; ++i) names.push_back(to_string(static_cast<Plant>(i)));
  return names;
}

// Takes the written number, if the option was given.
base::Status take(const char* option, const std::optional<std::string>& text, std::uint64_t max,
                  std::uint64_t& value) {
  if (!text) return {};
  const auto count = base::parse_count(*text, 1, max);
  if (!count) return base::invalid(option, count.error().message);
  value = *count;
  return {};
}

base::Status take_plant(const std::optional<std::string>& text, Plant& plant) {
  if (!text) return {};
  const auto known = parse_plant(*text);
  if (!known || *known == Plant::kNone) {
    return base::invalid("--plant", fmt::format("must be one of {}, not '{}'",
                                                fmt::join(plant_names(), ", "), *text));
  }
  plant = *known;
  return {};
}

}  // namespace

base::Result<FaultOptions> read_fault_options(const FaultOptionTexts& texts) {
  FaultOptions options;
  TRY(take("--seeds", texts.seeds, kMaxSeeds, options.seeds));
  TRY(take("--first-seed", texts.first_seed, ~0ULL - kMaxSeeds, options.first_seed));
  TRY(take_plant(texts.plant, options.plant));
  return options;
}

}  // namespace gpu_platform::simulation
