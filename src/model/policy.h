#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/job.h"

namespace gpu_platform::model {

// What processes on a GPU that belong to no job mean for it.
enum class StrangerPolicy : std::uint8_t {
  kIgnore,  // nothing
  kAvoid,   // no new work while they are there
  kAlert,   // shown and logged; work is placed all the same
};
inline constexpr std::size_t kStrangerPolicies = 3;
std::string_view to_string(StrangerPolicy policy);  // "avoid"

// The configuration as the core knows it. Values are checked by config/ before they come here; they
// enter the state by the PolicyApplied event, so that history can be replayed.
struct Policy {
  // Points of R2.5, by PriorityClass (critical, high, medium, low); higher goes first.
  std::int64_t priority_points[4] = {1'000'000, 10'000, 1'000, 100};
  std::uint64_t max_queue_size = 1000;
  base::Duration max_time_limit = base::hours(48);
  std::uint32_t max_loss_retries = 3;                // hardware, node loss and preemption
  base::Duration retry_backoff = base::seconds(10);  // doubles with each retry
  base::Duration max_retry_backoff = base::minutes(10);
  bool requeue_on_node_loss = true;
  bool auto_retry_failed_jobs =
      false;  // an application's failure is retried max_loss_retries times
  bool allow_root_jobs = true;
  base::Duration stop_grace = base::seconds(30);
  base::Duration request_id_lifetime = base::hours(24);  // counted from the end of the job
  StrangerPolicy strangers = StrangerPolicy::kAvoid;
  bool can_notify = false;  // the site has a notification command
  PriorityClass highest_user_priority = PriorityClass::kCritical;  // administrators may go above
  std::uint32_t reservation_depth = 8;  // waiting jobs with a reservation; 0: no backfill
  base::Duration idle_timeout;          // of a job with a terminal that names none; zero: none

  friend bool operator==(const Policy&, const Policy&) = default;
};

}  // namespace gpu_platform::model
