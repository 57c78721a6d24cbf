#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

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
  struct Entry {
    base::Instant since;  // it waits
    model::JobId job;

    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  void put(const model::JobSpec& spec, const Entry& entry);
  void erase(const model::JobSpec& spec, model::JobId job);
  // The team's oldest has been told that it is overdue: it is not asked for again while it waits.
  void pass(const model::JobSpec& spec, model::JobId job);

  // Of the oldest of all teams that were not passed the one that has waited longest.
  std::optional<Entry> next() const;

  friend bool operator==(const StarvationQueue&, const StarvationQueue&) = default;

 private:
  using Key = std::pair<std::string, std::string>;  // team, or none and the user
  struct Team {
    std::set<Entry> waiting;
    model::JobId passed;  // invalid: none

    friend bool operator==(const Team&, const Team&) = default;
  };

  static Key key_of(const model::JobSpec& spec);
  void hide(const Team& team);
  void show(const Team& team);

  std::map<Key, Team> teams_;  // none empty
  std::map<model::JobId, base::Instant> since_;
  std::set<Entry> oldest_;  // of the teams, but for those passed
};

}  // namespace gpu_platform::scheduling
