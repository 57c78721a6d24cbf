#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "model/policy.h"
#include "store/archive.h"

// What the platform keeps of ended jobs, by the site's policy: their output, and their place in the
// history. Pure: the time is an argument, and what is to be removed is a value.

namespace gpu_platform::controller {

// What is to be removed now.
struct RetentionStep {
  std::vector<model::JobId> outputs;  // of these jobs; they are named again until they are gone
  std::vector<model::JobId> jobs;     // they leave the history; nothing of their output is left
  bool has_more = false;              // further jobs can be looked at at once
};

// How fast the steps follow each other. Output is removed by another process, which takes a moment;
// what is still there is asked for again, at growing intervals. One thread.
class RetentionPace {
 public:
  struct Turn {
    bool asks = false;      // have the output removed now
    bool is_stuck = false;  // it was asked for many times in vain; said once
    base::Duration pause;   // until the next step
  };

  // `now` never runs backwards.
  Turn after(const RetentionStep& step, base::Instant now);

 private:
  std::vector<model::JobId> asked_;  // the output that was asked for last
  int times_ = 0;
  base::Instant ask_again_at_;
};

// Goes through the ended jobs, the earliest endings first. A job leaves the history only when its
// output is gone: without the job no user could be given it, and nothing would ever remove it. Each
// job is looked at once for its output after a start of the daemon, and once for the history.
//
// One thread. `archive` outlives it.
class Retention {
 public:
  // Returns whether the platform still has output of the job.
  using HasOutput = std::function<bool(model::JobId)>;

  static constexpr std::size_t kJobsPerStep = 64;

  Retention(const store::Archive& archive, HasOutput has_output)
      : archive_(archive), has_output_(std::move(has_output)) {}

  base::Result<RetentionStep> step(const model::Policy& policy, base::Instant now);

 private:
  base::Status look_at_outputs(const model::Policy& policy, base::Instant now, RetentionStep& step);
  base::Status look_at_history(const model::Policy& policy, base::Instant now, RetentionStep& step);

  const store::Archive& archive_;
  HasOutput has_output_;
  store::JobEnding cleared_;  // the output of all jobs up to this one is gone
};

}  // namespace gpu_platform::controller
