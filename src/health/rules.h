#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "health/verdict.h"

// What evidence means for a GPU, as data: one row for each XID and each condition. A profile is the
// table with some rows changed; a site changes further rows by name.

namespace gpu_platform::health {

enum class RuleMode : std::uint8_t {
  kExecute,
  kShadow,  // judged and shown, and nothing is done
  kOff,
};
std::string_view to_string(RuleMode mode);  // "EXECUTE"

// When the second action of a rule holds.
enum class Repeat : std::uint8_t {
  kNever,
  kJobs,   // different jobs had it on this GPU, or the same job only here
  kTwice,  // two bursts in a day, under any job
};

struct Rule {
  std::string_view name;   // "xid-79"; stable, used in configurations and verdicts
  std::uint32_t code = 0;  // the XID; 0: a condition
  std::string_view what;   // "fallen off the bus"
  FaultClass fault = FaultClass::kUnknown;
  Action action = Action::kCount;  // after the first
  Repeat repeat = Repeat::kNever;
  Action repeated = Action::kDegrade;  // after a repetition
  std::uint32_t confidence_percent = 50;
  // The driver decides: if it has said since then that nothing has to be done, the row only counts.
  bool trusts_driver = false;
  RuleMode mode = RuleMode::kExecute;
  std::string_view source;  // where the row comes from
  std::string changed_by;   // the profile or the configuration that changed it; empty: none
};

enum class Profile : std::uint8_t { kNvidia, kCloud, kStrict };
std::string_view to_string(Profile profile);  // "nvidia"
std::optional<Profile> parse_profile(std::string_view name);

// A change of one row by a site.
struct RuleOverride {
  std::string rule;      // the row's name
  std::string gpu_type;  // a type or a family; empty: of all
  std::optional<Action> action;
  std::optional<RuleMode> mode;
  std::string nodes;  // a pattern of their names: "dgx-a*"; empty: all
};

// The same in words; an empty one is not given.
struct OverrideWords {
  std::string_view rule;
  std::string_view gpu_type;
  std::string_view action;  // any case
  std::string_view mode;
  std::string_view nodes;
};
// `field` is where the words stand ("rules[2]"), for errors.
base::Result<RuleOverride> make_override(const OverrideWords& words, const std::string& field);

// Immutable. The rows of all GPU types and those that differ for some, or on some nodes. What a
// site says of nodes goes before what it says of types; of two entries for a node the later one
// holds.
class Rules {
 public:
  // Errors name the field ("rules[2].rule") and the allowed values.
  static base::Result<Rules> make(Profile profile, std::span<const RuleOverride> overrides = {});

  // Ascending by XID, the conditions behind. An XID without a row has that of "xid-unknown".
  std::span<const Rule> rows(std::string_view gpu_type = {}) const;
  // Without a node: as on nodes that no entry names.
  const Rule& of_xid(std::uint32_t xid, std::string_view gpu_type = {},
                     std::string_view node = {}) const;
  // The name must be one of the table.
  const Rule& of(std::string_view name, std::string_view gpu_type = {},
                 std::string_view node = {}) const;
  Profile profile() const { return profile_; }

 private:
  struct Table {
    std::string gpu_type;  // a type or a family; empty: the others
    std::vector<Rule> rows;
  };
  // That of the type, else that of its family, else the general one.
  const Table& table(std::string_view gpu_type) const;

  // One rule on some nodes.
  struct NodeRow {
    std::string nodes;  // a pattern
    std::string gpu_type;
    std::vector<Rule> rows;  // of each of tables_
  };
  void add_node_row(const RuleOverride& by);
  const Rule& on_node(const Rule& row, std::string_view gpu_type, std::string_view node) const;

  Profile profile_ = Profile::kNvidia;
  std::vector<Table> tables_;  // the general one first
  std::vector<NodeRow> node_rows_;
};

std::optional<Action> parse_action(std::string_view name);  // any case
std::optional<RuleMode> parse_rule_mode(std::string_view name);
// Whether new work is kept away, and whether running work is stopped.
constexpr bool takes_out(Action action) {
  return action >= Action::kAvoid;
}
constexpr bool stops_work(Action action) {
  return action >= Action::kOffline;
}

// Windows, as NVSentinel's analyzer has them where it has them (PEERS: docs/configuration).
inline constexpr base::Duration kSameTime = base::minutes(1);         // equal pieces are one
inline constexpr base::Duration kBurst = base::minutes(3);            // of one fault
inline constexpr base::Duration kUntriedGap = base::hours(1);         // resets that could not begin
inline constexpr base::Duration kExceptionBurst = base::seconds(15);  // of XID 13
inline constexpr base::Duration kJobsWindow = base::hours(1);         // two different jobs
inline constexpr base::Duration kDay = base::hours(24);
inline constexpr base::Duration kWeek = base::hours(24 * 7);
inline constexpr base::Duration kComplaintsWindow = base::hours(24 * 365);
inline constexpr base::Duration kSlowdownPatience = base::minutes(5);
inline constexpr std::size_t kFatalInADay = 5;
inline constexpr std::size_t kResetsInAWeek = 5;

}  // namespace gpu_platform::health
