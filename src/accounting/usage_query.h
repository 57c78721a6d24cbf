#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/ledger.h"

// What a reader asks of the ledger: a span of time, by what its lines are put together, and which
// of them count.

namespace gpu_platform::accounting {

// By what lines are put together.
enum class UsageField : std::uint8_t {
  kUser,
  kTeam,
  kProject,
  kType,  // of the GPUs
  kNode,
  kJob,
  kLabel,     // the value of one label
  kCapacity,  // the capacity class of the node
  kKind,      // of the job
  kPriority,  // the class
};
inline constexpr std::size_t kUsageFields = 10;

struct UsageBy {
  UsageField field = UsageField::kTeam;
  std::string label;  // its key, of kLabel alone

  friend bool operator==(const UsageBy&, const UsageBy&) = default;
};
std::string to_string(const UsageBy& by);  // "team", "label:experiment"
// Reads it; nothing if it is none. Case counts.
std::optional<UsageBy> parse_usage_by(std::string_view text);
// "user, team, …, label:KEY": all that parse_usage_by() reads.
std::string usage_bys();

// Steps of the calendar in UTC.
enum class UsageStep : std::uint8_t {
  kNone,  // the whole span is one
  kHour,
  kDay,
  kMonth,
};
inline constexpr std::size_t kUsageSteps = 4;
std::string_view to_string(UsageStep step);  // "hour"
std::optional<UsageStep> parse_usage_step(std::string_view text);

// Which lines count: those that have one value of each list that is not empty. Lines of GPUs that
// no attempt held have nodes, types and capacity classes alone; corrections have users, teams and
// projects alone.
struct UsageFilter {
  std::vector<std::string> users;
  std::vector<std::string> teams;  // without the teams below them: the caller adds these
  std::vector<std::string> projects;
  std::vector<std::string> types;  // of GPUs, or their families
  std::vector<std::string> nodes;
  std::vector<model::JobId> jobs;
  std::vector<model::CapacityClass> capacities;
  std::vector<model::JobKind> kinds;
  std::vector<model::PriorityClass> priorities;
  std::vector<model::Label> labels;  // all of them, not one of them

  friend bool operator==(const UsageFilter&, const UsageFilter&) = default;
};
bool is_wanted(const UsageFilter& filter, const model::LedgerLine& line);

inline constexpr std::size_t kMaxUsageBys = 8;
inline constexpr std::size_t kMaxUsageGroups = 200'000;

struct UsageQuery {
  model::Millis from = 0;  // included
  model::Millis to = 0;    // not included
  std::vector<UsageBy> by;
  UsageStep step = UsageStep::kNone;
  UsageFilter filter;
  bool with_rest = false;  // the time of GPUs that no attempt held counts, too
  // Lines that would begin more groups than this are left out, and the sum says so.
  std::size_t max_groups = kMaxUsageGroups;
};

// Says what is wrong with a query, and names the field: an end that is not after the begin, times
// out of the calendar, more than kMaxUsageBys fields, one twice, a label without a key.
base::Status check(const UsageQuery& query);

}  // namespace gpu_platform::accounting
