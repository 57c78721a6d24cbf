#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"

namespace gpu_platform::scheduling {

// The waiting jobs of each team by how long they have waited. The oldest job of a team becomes
// overdue after a time, and then goes before others of its class (rank.h). A user without a team is
// a team of one.
//
// Ownership: holds copies. Thread: one owner, which reports each job that begins or ceases to wait.
// Cost: O(log jobs).
class StarvationQueue {
 public:
  // The team that the job waits for its turn in: its own, or its user alone.
  static std::string team_of(const model::JobSpec& spec);

  struct Entry {
    base::Instant since;  // it waits
    model::JobId job;

    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  void put(const model::JobSpec& spec, const Entry& entry);
  void erase(const model::JobSpec& spec, model::JobId job);
  // Marks the team's oldest job as overdue: next() does not return it again while it waits.
  void pass(const model::JobSpec& spec, model::JobId job);

  // Returns the longest-waiting job among the oldest jobs of the teams that were not passed.
  std::optional<Entry> next() const;
  // Returns whether an overdue job waits: with its start another one of its team may become so.
  bool has_passed() const { return oldest_.size() != teams_.size(); }

  friend bool operator==(const StarvationQueue&, const StarvationQueue&) = default;

 private:
  struct Team {
    std::set<Entry> waiting;
    model::JobId passed;  // invalid: none

    friend bool operator==(const Team&, const Team&) = default;
  };

  void hide(const Team& team);
  void show(const Team& team);

  std::map<std::string, Team> teams_;  // none empty
  std::map<model::JobId, base::Instant> since_;
  std::set<Entry> oldest_;  // one per team, except the teams that were passed
};

}  // namespace gpu_platform::scheduling
