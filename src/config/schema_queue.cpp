#include <array>
#include <cstddef>
#include <cstdint>

#include "config/schema_keys.h"
#include "model/job_array.h"

// The keys about waiting jobs: the queue, its order and the limits of jobs and users.

namespace gpu_platform::config {

namespace {

using C = Configuration;
constexpr std::int64_t kMaxPoints = 1'000'000'000;
constexpr std::int64_t kMaxWeight = 1'000'000;

template <std::size_t Class>
std::int64_t& points(C& c) {
  return c.policy.priority_points[Class];
}

// clang-format off
constexpr std::array kQueueKeys = {
    Key{"cluster.name",
        +[](C& c) -> SiteName& { return c.cluster_name; },
        0, 0, Effect::kRestart,
        "The name of the cluster. The daemon writes it into its log when it starts."},
    Key{"cluster.total_gpus",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.total_gpus; },
        0, 1'000'000, Effect::kRestart,
        "The number of GPUs that the cluster should have. "
        "This is only a check: the daemon warns if it finds another number."},
    Key{"cluster.network_file",
        +[](C& c) -> SiteFile& { return c.network_file; },
        0, 0, Effect::kRestart,
        "The absolute path of a file with each node's place in the network, for jobs of several nodes. "
        "A line looks like 'dgx-[01-16] domain=su1 rack=r1 zone=hall-a'. "
        "Each of the three may be left out."},

    Key{"scheduling.max_queue_size",
        +[](C& c) -> std::uint64_t& { return c.policy.max_queue_size; },
        1, 10'000'000, Effect::kAnytime,
        "The maximum number of waiting jobs. A submission beyond this is refused."},
    Key{"scheduling.max_queue_percent_per_user",
        +[](C& c) -> std::uint32_t& { return c.policy.max_queue_percent_per_user; },
        1, 100, Effect::kAnytime,
        "The percentage of max_queue_size that the waiting jobs of one user may take. "
        "Held jobs and each member of an array are included. "
        "Root and the user that the daemon runs as are exempt. "
        "quotas.users sets absolute numbers."},
    Key{"scheduling.max_specification_bytes",
        +[](C& c) -> base::Bytes& { return c.policy.max_specification_bytes; },
        kKi * kKi, kKi * kKi * kKi * kKi, Effect::kAnytime,
        "The memory for the specifications of all jobs that have not ended: command, paths, labels and other texts. "
        "Each job takes at least 1 KiB. "
        "Environments are on disk and are not included."},
    Key{"scheduling.max_specification_bytes_per_user",
        +[](C& c) -> base::Bytes& { return c.policy.max_specification_bytes_per_user; },
        kKi * kKi, kKi * kKi * kKi * kKi, Effect::kAnytime,
        "The same limit for the jobs of one user. "
        "Each member of an array takes its whole specification. "
        "Root and the user that the daemon runs as are exempt."},
    Key{"scheduling.percent_for_root",
        +[](C& c) -> std::uint32_t& { return c.policy.percent_for_root; },
        0, 90, Effect::kAnytime,
        "The percentage of max_queue_size and of max_specification_bytes that is reserved for jobs of root. "
        "Jobs of the user that the daemon runs as may use it, too."},
    Key{"scheduling.priority_points.critical",
        &points<0>,
        0, kMaxPoints, Effect::kAnytime,
        "The points of the class CRITICAL. "
        "Jobs with more points go first. "
        "Each class must have more points than the class below it."},
    Key{"scheduling.priority_points.high",
        &points<1>,
        0, kMaxPoints, Effect::kAnytime,
        "The points of the class HIGH."},
    Key{"scheduling.priority_points.medium",
        &points<2>,
        0, kMaxPoints, Effect::kAnytime,
        "The points of the class MEDIUM, which is the default of a job."},
    Key{"scheduling.priority_points.low",
        &points<3>,
        0, kMaxPoints, Effect::kAnytime,
        "The points of the class LOW."},
    Key{"scheduling.backfill_depth",
        +[](C& c) -> std::uint32_t& { return c.policy.backfill_depth; },
        0, 100'000, Effect::kAnytime,
        "The number of waiting jobs that get a planned start, counted from the first job that does not fit. "
        "Later jobs may not delay these starts. "
        "1 wastes the least. "
        "A number as large as the queue keeps the place of every job. "
        "With 0 no job passes another."},
    Key{"scheduling.backfill_by_prediction",
        +[](C& c) -> bool& { return c.policy.backfill_by_prediction; },
        0, 0, Effect::kAnytime,
        "Whether a preemptible job may start before a planned start if it is predicted to end in time. "
        "The prediction is --expected-time, or the time in which 9 of 10 similar runs ended. "
        "A job that has not ended by then is stopped and queued again."},
    Key{"scheduling.default_time_limit",
        +[](C& c) -> base::Duration& { return c.policy.default_time_limit; },
        0, 8760 * 3600, Effect::kAnytime,
        "The time limit of a job that sets none, unless its team has a default_time_limit. "
        "Jobs with a shorter limit start sooner, because they fit into gaps before planned starts. "
        "It is at most policies.max_job_duration_hours. "
        "0: that maximum."},
    Key{"scheduling.order",
        +[](C& c) -> model::QueueOrder& { return c.policy.order; },
        0, 0, Effect::kAnytime,
        "The order of waiting jobs. "
        "priority: jobs of the class with more points go first. "
        "fcfs: jobs that were submitted first go first. "
        "fair_share: jobs of the user with the least usage for their shares go first. "
        "weighted: jobs with the highest weighted sum go first. "
        "docs/scheduling.md has the formulas."},
    Key{"scheduling.cpu_job_reserve_percent",
        +[](C& c) -> std::uint32_t& { return c.policy.cpu_job_reserve_percent; },
        0, 50, Effect::kAnytime,
        "The percentage of each node's CPUs and memory that GPU jobs leave to CPU jobs, rounded up. "
        "It applies to GPU jobs that set neither CPUs nor memory, if they are submitted after the change. "
        "With 0 the shares of all GPUs are the whole node. "
        "A CPU job then waits while jobs hold all GPUs of a node."},
    Key{"scheduling.overdue_after",
        +[](C& c) -> base::Duration& { return c.policy.overdue_after; },
        0, 365 * kDay, Effect::kAnytime,
        "The time after which the oldest waiting job of a team goes before all jobs of its class and the classes below. "
        "Those jobs may then no longer delay it. "
        "0: never."},
    Key{"scheduling.fair_share.half_life",
        +[](C& c) -> base::Duration& { return c.policy.fair_share.half_life; },
        60, 365 * kDay, Effect::kAnytime,
        "The time after which usage counts half."},
    Key{"scheduling.fair_share.interval",
        +[](C& c) -> base::Duration& { return c.policy.fair_share.interval; },
        1, kDay, Effect::kAnytime,
        "The interval at which the order is updated by the usage since the last update."},
    Key{"scheduling.weights.age",
        +[](C& c) -> std::uint32_t& { return c.policy.weights.age; },
        0, kMaxWeight, Effect::kAnytime,
        "The points for each day of waiting. This weight and the next three apply only to order: weighted."},
    Key{"scheduling.weights.priority",
        +[](C& c) -> std::uint32_t& { return c.policy.weights.priority; },
        0, kMaxWeight, Effect::kAnytime,
        "The points of the class CRITICAL. "
        "The other classes get points in proportion to their priority_points."},
    Key{"scheduling.weights.fair_share",
        +[](C& c) -> std::uint32_t& { return c.policy.weights.fair_share; },
        0, kMaxWeight, Effect::kAnytime,
        "The points of a user without any usage. A user whose usage equals their shares gets half of them."},
    Key{"scheduling.weights.size",
        +[](C& c) -> std::uint32_t& { return c.policy.weights.size; },
        0, kMaxWeight, Effect::kAnytime,
        "The points of a job that asks for all GPUs. Other jobs get points in proportion."},

    Key{"quotas.period",
        +[](C& c) -> model::QuotaPeriod& { return c.quota_period; },
        0, 0, Effect::kAnytime,
        "The period of gpu_hours, in UTC. A week begins on Monday. The word month means 30 days, counted from 1970-01-01, and no calendar month; budgets (accounting.budgets) have calendar months."},

    Key{"allocation.mode",
        +[](C& c) -> model::AllocationMode& { return c.allocation; },
        0, 0, Effect::kAnytime,
        "How guaranteed_gpus of teams and users are used. "
        "guaranteed: as written, and idle ones are lent to preemptible jobs. "
        "static: they are also the maximum, and nothing is lent. "
        "dynamic: they are ignored. "
        "hybrid: they are scaled down to allocation.reserved_ratio of the cluster. "
        "docs/scheduling.md has the rule."},

    Key{"gpu_selection.enabled",
        +[](C& c) -> bool& { return c.policy.load_rules.is_on; },
        0, 0, Effect::kAnytime,
        "Whether jobs get GPUs on which processes of no job run. "
        "The least loaded GPUs are taken first. "
        "health.unmanaged_processes then has no effect."},
    Key{"gpu_selection.min_memory_mb",
        +[](C& c) -> std::uint32_t& { return c.policy.load_rules.min_memory_mb; },
        0, 10'000'000, Effect::kAnytime,
        "The MiB of its memory that must be free for a GPU to get jobs while such processes run on it."},
    Key{"gpu_selection.max_utilization",
        +[](C& c) -> std::uint32_t& { return c.policy.load_rules.max_utilization; },
        0, 100, Effect::kAnytime,
        "The highest utilization, in percent, at which such a GPU gets jobs."},
    Key{"gpu_selection.memory_weight",
        +[](C& c) -> std::uint32_t& { return c.policy.load_rules.memory_weight; },
        0, 1000, Effect::kAnytime,
        "The weight of the free share of the memory in the score of a GPU."},
    Key{"gpu_selection.utilization_weight",
        +[](C& c) -> std::uint32_t& { return c.policy.load_rules.utilization_weight; },
        0, 1000, Effect::kAnytime,
        "The weight of the idle share of the time in it."},
    Key{"gpu_selection.idle_utilization",
        +[](C& c) -> std::uint32_t& { return c.policy.load_rules.idle_utilization; },
        0, 101, Effect::kAnytime,
        "A node is idle if its GPUs' mean utilization is below this many percent, "
        "and their mean use of memory below idle_memory. "
        "The GPUs of idle nodes are taken first."},
    Key{"gpu_selection.idle_memory",
        +[](C& c) -> std::uint32_t& { return c.policy.load_rules.idle_memory; },
        0, 101, Effect::kAnytime,
        "The mean use of memory below which a node is idle, in percent."},
    Key{"policies.max_gpus_per_user",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.max_gpus_per_user; },
        1, 1'000'000, Effect::kAnytime,
        "The maximum number of GPUs that a user may hold at once. "
        "This is the same as max_gpus in quotas.user_default."},
    Key{"policies.max_job_duration_hours",
        +[](C& c) -> base::Duration& { return c.policy.max_time_limit; },
        3600, 8760 * 3600, Effect::kAnytime,
        "The longest time limit of a job.", base::hours(1)},
    Key{"policies.max_array_size",
        +[](C& c) -> std::uint64_t& { return c.policy.max_array_size; },
        1, model::kMaxArrayMembers, Effect::kAnytime,
        "The maximum number of members of one job array. scheduling.max_queue_size also limits them."},
    Key{"policies.stop_grace",
        +[](C& c) -> base::Duration& { return c.policy.stop_grace; },
        0, 3600, Effect::kAnytime,
        "The time between SIGTERM and SIGKILL when a job is cancelled or reaches its time limit."},
    Key{"policies.highest_user_priority",
        +[](C& c) -> model::PriorityClass& { return c.policy.highest_user_priority; },
        0, 0, Effect::kAnytime,
        "The highest priority class that users other than administrators may request."},
    Key{"policies.allow_preemption",
        +[](C& c) -> bool& { return c.policy.allow_preemption; },
        0, 0, Effect::kAnytime,
        "Whether running jobs may be stopped and queued again if a job of a higher class cannot start otherwise."},
    Key{"policies.preempt_priority_threshold",
        +[](C& c) -> model::PriorityClass& { return c.policy.preempt_below; },
        0, 0, Effect::kAnytime,
        "Only jobs of a class below this one are preempted, unless a job sets --preemptible itself."},
    Key{"policies.max_preemptions_per_job",
        +[](C& c) -> std::uint32_t& { return c.policy.max_preemptions_per_job; },
        0, 1000, Effect::kAnytime,
        "A job that was stopped for others this often is no longer stopped for jobs of a higher class or overdue jobs. "
        "max_reclaims_per_job is the limit for jobs that borrow."},
    Key{"policies.preempt_min_runtime",
        +[](C& c) -> base::Duration& { return c.policy.preempt_min_runtime; },
        0, 365 * kDay, Effect::kAnytime,
        "Jobs that have run for less than this are not stopped for jobs of a higher class or overdue jobs. "
        "A team may set its own value for its jobs. "
        "reclaim_min_runtime is the limit for jobs that borrow."},
    Key{"policies.reclaim_min_runtime",
        +[](C& c) -> base::Duration& { return c.policy.reclaim_min_runtime; },
        0, 365 * kDay, Effect::kAnytime,
        "Jobs on borrowed GPUs that have run for less than this are not reclaimed. "
        "Owners wait for up to this time longer. "
        "A team may set its own value for its jobs."},
    Key{"policies.max_reclaims_per_job",
        +[](C& c) -> std::uint32_t& { return c.policy.max_reclaims_per_job; },
        0, 1000, Effect::kAnytime,
        "A job that was stopped for others this often is no longer reclaimed. "
        "It keeps what it borrows until it ends, and owners wait for it. "
        "A team may set its own value for its jobs."},
    Key{"policies.request_id_lifetime",
        +[](C& c) -> base::Duration& { return c.policy.request_id_lifetime; },
        60, 365 * kDay, Effect::kAnytime,
        "The time after a job's end during which a submission with the same request id still returns that job. "
        "The daemon keeps the ids of the newest 20,000 ended jobs of each user."},

    Key{"fault_tolerance.max_retries",
        +[](C& c) -> std::uint32_t& { return c.policy.max_loss_retries; },
        0, 100, Effect::kAnytime,
        "The maximum number of retries after a hardware fault or the loss of a node."},
    Key{"fault_tolerance.auto_retry_failed_jobs",
        +[](C& c) -> bool& { return c.policy.auto_retry_failed_jobs; },
        0, 0, Effect::kAnytime,
        "Whether a job whose own program failed is retried, up to max_retries times. "
        "Otherwise only jobs with --retries are retried."},
    Key{"fault_tolerance.requeue_on_node_loss",
        +[](C& c) -> bool& { return c.policy.requeue_on_node_loss; },
        0, 0, Effect::kAnytime,
        "Whether a job is queued again when its node is lost. Otherwise the job fails."},
    Key{"fault_tolerance.retry_backoff",
        +[](C& c) -> base::Duration& { return c.policy.retry_backoff; },
        0, kDay, Effect::kAnytime,
        "The time before the first retry. It doubles with each further retry."},
    Key{"fault_tolerance.max_retry_backoff",
        +[](C& c) -> base::Duration& { return c.policy.max_retry_backoff; },
        0, 7 * kDay, Effect::kAnytime,
        "The longest time before a retry. It must not be less than retry_backoff."},
};
// clang-format on

}  // namespace

std::span<const Key> queue_keys() {
  return kQueueKeys;
}

}  // namespace gpu_platform::config
