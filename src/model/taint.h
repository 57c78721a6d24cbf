#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// Who keeps a GPU or a node from work. The parties are independent: each sets and lifts its own
// taint, and that of no other, so that what one of them decided outlives what the others do.

namespace gpu_platform::model {

enum class TaintSource : std::uint8_t {
  kFormer,      // in events of versions without taints, which knew only the last party
  kOperator,    // a person drained it or took it offline
  kDriver,      // its node's driver does not list it any more
  kProcesses,   // processes that belong to no job are on it
  kCluster,     // the cluster of its node keeps it, or has given it to others
  kConnection,  // the node does not report
  kHooks,       // the site's prolog or epilog failed on the node for two jobs in a row
  kHealth,      // what was seen of the GPU says that it is sick
  kReset,       // it is being reset and checked, or checked alone
};
inline constexpr std::size_t kTaintSources = 9;
std::string_view to_string(TaintSource source);  // "OPERATOR"

// What versions without taints said of a GPU that a driver did not list. It tells their driver from
// a person whose name is "node".
inline constexpr std::string_view kFormerDriverText = "not reported by the driver any more";

// In the order of their numbers in stored records, not of their weight.
enum class TaintEffect : std::uint8_t {
  kNoNewWork,  // DRAINING: it runs out its jobs
  kOut,        // OFFLINE
  kAvoided,    // it takes no new work, and its state stays that of its holders
  kDegraded,   // DEGRADED: it takes new work of jobs that accept that
};
inline constexpr std::size_t kTaintEffects = 4;
std::string_view to_string(TaintEffect effect);  // "NO_NEW_WORK"

// What is done to a GPU that its taint of kReset keeps from work.
enum class GpuRepair : std::uint8_t {
  kReset,  // with the check that follows
  kQuickCheck,
  kDeepCheck,
};
inline constexpr std::size_t kGpuRepairs = 3;

struct Taint {
  TaintSource source = TaintSource::kOperator;
  TaintEffect effect = TaintEffect::kNoNewWork;
  std::string text;  // why, for people
  std::string by;    // the user; "node" and "cluster" are no users
  base::Instant at;
  // The operator's alone: the core lifts it then. Unset: it stays until the operator lifts it.
  base::Instant until = {};
  GpuRepair repair = GpuRepair::kReset;  // of kReset alone

  friend bool operator==(const Taint&, const Taint&) = default;
};

// At most one of each source, in the order of the sources.
using Taints = std::vector<Taint>;

const Taint* find_taint(const Taints& taints, TaintSource source);
// In place of the one that its source had set.
void set_taint(Taints& taints, Taint taint);
void lift_taint(Taints& taints, TaintSource source);

// Returns whether it stays until an operator brings the node or the GPU online: its own party
// neither lifts nor replaces it.
bool is_an_operators_to_lift(const Taint& taint);

// Returns the one that decides: the worst effect, of which kAvoided is the least. Of those an
// operator's goes before a lost connection, and that before the others. Null: there is none.
const Taint* worst_of(const Taints& taints);
// Returns whether it alone decides about the state.
bool decides_state(const Taint* taint);
// Returns the words of all whose effect is kAvoided, or of all others, that of the worst first. One
// that ends by itself has its end, in RFC 3339.
std::string text_of_avoided(const Taints& taints);
std::string text_of(const Taints& taints);

}  // namespace gpu_platform::model
