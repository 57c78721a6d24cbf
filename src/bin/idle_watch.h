#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "alerts/evaluator.h"
#include "bin/alert_facts.h"
#include "config/alert_settings.h"
#include "controller/snapshot.h"
#include "telemetry/frame.h"
#include "telemetry/idleness.h"

namespace gpu_platform::bin {

// Follows how the running jobs use their GPUs: facts about those that do not, and what the site
// does with them. What it knows is lost at a restart, and its windows begin anew. One thread.
class IdleWatch {
 public:
  struct Rules {
    telemetry::IdleRule idle;
    config::IdleAction action = config::IdleAction::kTell;
    base::Duration warn_before;
  };
  // What is to be done about an idle job.
  struct Act {
    model::AttemptId attempt;
    bool is_stop = false;  // else a warning in its output
    base::Duration idle_for;
    base::Duration stops_in;  // of a warning; 0: it is not stopped
  };

  explicit IdleWatch(ReadingOf reading_of, base::Duration oldest = kOldestReading)
      : reading_of_(std::move(reading_of)), oldest_(oldest) {}

  // The use of a GPU that an attempt shares with others.
  void take_use(const telemetry::Frame& frame);
  // Looks at all attempts that hold GPUs: O(GPUs). Returns the facts of all of them.
  std::vector<alerts::Fact> look(const controller::Snapshot& snapshot, const Rules& rules,
                                 alerts::Moment now, std::vector<Act>& acts);

 private:
  struct Watched {
    telemetry::Idleness idleness;
    std::shared_ptr<const alerts::Subject> subject;
    std::optional<base::Instant> warned;  // on the steady clock
    std::uint64_t round = 0;
  };
  struct Use {
    std::uint32_t percent = 0;
    base::Instant at;
  };
  using Percents = std::vector<std::optional<std::uint32_t>>;

  std::map<model::AttemptId, Percents> uses_of_all(const controller::Snapshot& snapshot,
                                                   base::Instant now);
  std::optional<std::uint32_t> use_of(const model::Gpu& gpu, const model::GpuHolder& holder,
                                      base::Instant now) const;
  void act(Watched& watched, model::AttemptId attempt, const Rules& rules, base::Instant steady,
           std::vector<Act>& acts);

  const ReadingOf reading_of_;
  const base::Duration oldest_;  // reading that counts
  std::map<model::AttemptId, Watched> watched_;
  std::map<std::pair<model::AttemptId, std::string>, Use> uses_;  // of shared GPUs, by UUID
  std::uint64_t round_ = 0;
};

}  // namespace gpu_platform::bin
