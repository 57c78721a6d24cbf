#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"
#include "simulation/scenarios/values.h"

// Which GPUs jobs may share, from statements.

namespace gpu_platform::simulation {

namespace {

// The value of that name among the first `count` of an enumeration.
template <class Value>
base::Status read_named(std::string_view what, std::string_view text, std::size_t count,
                        Value& value) {
  for (std::size_t i = 0; i < count; ++i) {
    value = static_cast<Value>(i);
    if (text == model::to_string(value)) return {};
  }
  return base::invalid({}, fmt::format("{}: '{}' is unknown", what, text));
}

template <class Value>
base::Status set_named(const Statement& statement, std::string_view name, std::size_t count,
                       Value& value) {
  const std::string* text = option(statement, name);
  return text == nullptr ? base::Status() : read_named(name, *text, count, value);
}

base::Result<std::vector<model::ShareMode>> modes_in(std::string_view name,
                                                     const std::string& list) {
  std::vector<model::ShareMode> modes;
  for (const std::string& each : parts_of(list)) {
    TRY(read_named(name, each, model::kShareModes, modes.emplace_back()));
    if (modes.back() == model::ShareMode::kNone) {
      return base::invalid({}, fmt::format("{}: mps or time-slice", name));
    }
  }
  return modes;
}

}  // namespace

base::Status change_sharing(const Statement& statement, model::Policy& policy) {
  model::Sharing sharing;
  sharing.is_on = true;
  if (const std::string* types = option(statement, "gpus")) {
    for (const std::string& type : parts_of(*types)) {
      sharing.gpu_types.push_back(model::canonical_gpu_type(type).value_or(type));
    }
  }
  if (const std::string* nodes = option(statement, "nodes")) sharing.nodes = parts_of(*nodes);
  TRY(set_named(statement, "between_users", model::kSharedBetween, sharing.between_users));
  TRY(set_named(statement, "weakest_rung", model::kRungs, sharing.weakest_rung));
  TRY(set_count(statement, "max_jobs", 1, 48, sharing.max_jobs));
  if (const std::string* modes = option(statement, "modes")) {
    TRY_ASSIGN(sharing.modes, modes_in("modes", *modes));
  }
  policy.sharing = std::move(sharing);
  return {};
}

base::Status set_share_modes(const Statement& statement, model::NodeInfo& node) {
  const std::string* modes = option(statement, "share_modes");
  if (modes == nullptr) return {};
  TRY_ASSIGN(node.share_modes, modes_in("share_modes", *modes));
  std::ranges::sort(node.share_modes);
  node.watches_gpu_memory = true;
  return {};
}

}  // namespace gpu_platform::simulation
