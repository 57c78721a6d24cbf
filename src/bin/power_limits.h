#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "config/configuration.h"
#include "hardware/readings.h"

namespace gpu_platform::bin {

// What is remembered of a GPU whose power limit we changed, to give it back.
struct ChangedLimit {
  base::Milliwatts former;  // before our first change
  base::Milliwatts ours;

  friend bool operator==(const ChangedLimit&, const ChangedLimit&) = default;
};
using ChangedLimits = std::map<std::string, ChangedLimit>;  // by UUID

// One line for each GPU: UUID, former limit, our limit, both in milliwatts. Lines that are not so
// are left out.
std::string to_text(const ChangedLimits& changed);
ChangedLimits parse_changed_limits(std::string_view text);

struct LimitChange {
  enum class Kind : std::uint8_t {
    kNone,
    kIsSet,   // as the site wants it
    kSet,     // to what the site wants
    kReturn,  // to what there was before
    kForget,  // an operator has changed it since: it stays as it is
  };
  Kind kind = Kind::kNone;
  base::Milliwatts limit = {};  // not of kNone and kForget
  // What the site wants, where the board does not allow that.
  std::optional<std::uint32_t> cut_watts = {};
};

// Returns what is to be done to the power limit of a GPU. Pure: nothing is remembered.
LimitChange limit_change(const std::vector<config::PowerLimit>& wanted,
                         const std::string& node_name, const hardware::GpuDescription& gpu,
                         const ChangedLimits& changed);

using GpusByNode = std::map<std::string, std::vector<hardware::GpuDescription>>;

// Returns the names of the entries that no GPU fits, in their order.
std::vector<std::string> unused_limits(const std::vector<config::PowerLimit>& wanted,
                                       const GpusByNode& nodes);

}  // namespace gpu_platform::bin
