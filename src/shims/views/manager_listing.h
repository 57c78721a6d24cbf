#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shims/command_call.h"
#include "shims/views/manager_rows.h"

// What "sacctmgr list WHAT [KEY=VALUE…]" asks for: the kind of row, which of them, and which
// columns. Names may be cut to their first letters, as in Slurm.

namespace gpu_platform::shims {

enum class ManagedKind : std::uint8_t {
  kAccounts,
  kAssociations,
  kClusters,
  kConfiguration,
  kEvents,
  kFederations,
  kInstances,
  kProblems,
  kQos,
  kReservations,
  kResources,
  kRunawayJobs,
  kStatistics,
  kTransactions,
  kTres,
  kUsers,
  kWcKeys,
};

struct ManagedEntity {
  std::string_view name;
  std::size_t least;
  ManagedKind what;
  std::string_view columns;  // that are shown where none are named
  std::string_view words;    // the column of words that are no KEY=VALUE
};

struct Wish {
  std::string_view title;
  std::vector<std::string> values;  // in small letters; one that is empty: rows without a value
};

struct Listing {
  const ManagedEntity* entity = nullptr;
  std::set<std::string_view> flags;
  std::vector<Wish> wishes;
  std::string format;

  bool has(std::string_view flag) const { return flags.contains(flag); }
};

// Returns whether the word is the beginning of the name, with at least so many letters.
bool begins_name(std::string_view name, std::size_t least, std::string_view word);

// Prints the text as an error and returns the exit code.
int fail_with(CommandCall& call, std::string_view text);

// Reads the words behind "list". What is wrong with them is printed in Slurm's words; the error is
// the exit code.
std::expected<Listing, int> listing_of(CommandCall& call, std::span<const std::string> words);

// Returns the columns that are shown where no format is given.
std::string usual_columns(const Listing& listing);

// Returns whether the conditions keep this row.
bool is_wished(const ManagedRow& row, const Listing& listing);

}  // namespace gpu_platform::shims
