#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// Who keeps a GPU from work. The parties are independent: each sets and lifts its own taint, and
// that of no other, so that what one of them decided outlives what the others do.

namespace gpu_platform::model {

enum class TaintSource : std::uint8_t {
  kFormer,    // in events of versions without taints, which knew only the last party
  kOperator,  // a person drained it or took it offline
  kDriver,    // its node's driver does not list it any more
};
inline constexpr std::size_t kTaintSources = 3;
std::string_view to_string(TaintSource source);  // "OPERATOR"

// What versions without taints said of a GPU that a driver did not list. It tells their driver from
// a person whose name is "node".
inline constexpr std::string_view kFormerDriverText = "not reported by the driver any more";

enum class TaintEffect : std::uint8_t {
  kNoNewWork,  // runs out its jobs
  kOut,
};
inline constexpr std::size_t kTaintEffects = 2;

struct Taint {
  TaintSource source = TaintSource::kOperator;
  TaintEffect effect = TaintEffect::kNoNewWork;
  std::string text;  // why, for people
  std::string by;    // the user; "node" for the driver
  base::Instant at;

  friend bool operator==(const Taint&, const Taint&) = default;
};

// At most one of each source, in the order of the sources.
using Taints = std::vector<Taint>;

const Taint* find_taint(const Taints& taints, TaintSource source);
// In place of the one that its source had set.
void set_taint(Taints& taints, Taint taint);
void lift_taint(Taints& taints, TaintSource source);

// Returns the one that decides: the worst effect, and of those the first source. Null: there is
// none.
const Taint* worst_of(const Taints& taints);
// Returns the texts of all, that of the worst first.
std::string text_of(const Taints& taints);

}  // namespace gpu_platform::model
