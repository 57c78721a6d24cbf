#include "config/schema.h"

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::config {

namespace {

using C = Configuration;
constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kMostPoints = 1'000'000'000;
constexpr std::int64_t kMostWeight = 1'000'000;

template <std::size_t Class>
std::int64_t& points(C& c) {
  return c.policy.priority_points[Class];
}

// clang-format off
constexpr std::array kSections = {
    Section{"cluster", "What the site says its cluster is."},
    Section{"scheduling", "The queue and its order."},
    Section{"quotas", "What users and projects may have; teams have theirs in their own entry."},
    Section{"allocation", "What of the cluster is somebody's own."},
    Section{"policies", "Limits for everybody's jobs."},
    Section{"fault_tolerance", "What happens when a job, a node or a GPU fails."},
    Section{"execution", "How jobs are run."},
    Section{"monitoring", "How often the hardware is looked at."},
    Section{"health", "What makes a GPU unfit for work."},
    Section{"store", "What is kept on disk."},
    Section{"api", "The front door."},
};

const std::array kKeys = {
    Key{"cluster.total_gpus", +[](C& c) -> std::optional<std::uint32_t>& { return c.total_gpus; },
        0, 1'000'000, Effect::kRestart,
        "How many GPUs there should be. A check, not a setting: the daemon warns when it finds another number."},
    Key{"cluster.network_file", +[](C& c) -> SiteFile& { return c.network_file; },
        0, 0, Effect::kRestart,
        "File, by its absolute path, that says where nodes are in the network, for jobs of several nodes: lines such as 'dgx-[01-16] domain=su1 rack=r1 zone=hall-a', each of the three may be left out."},

    Key{"scheduling.max_queue_size", +[](C& c) -> std::uint64_t& { return c.policy.max_queue_size; },
        1, 10'000'000, Effect::kAnytime,
        "Most jobs that may wait at once; a submission beyond it is refused."},
    Key{"scheduling.max_queue_percent_per_user", +[](C& c) -> std::uint32_t& { return c.policy.max_queue_percent_per_user; },
        1, 100, Effect::kAnytime,
        "Part of max_queue_size, in percent, that the waiting jobs of one user may take, held ones and each member of an array "
        "included. Not for root and the user that the daemon runs as. quotas.users sets numbers."},
    Key{"scheduling.max_specification_bytes", +[](C& c) -> base::Bytes& { return c.policy.max_specification_bytes; },
        kKi * kKi, kKi * kKi * kKi * kKi, Effect::kAnytime,
        "Memory that the specifications (command, paths, labels and other texts) of all jobs may take that have not ended; each "
        "counts with 1 KiB at least. Environments are on disk and do not count."},
    Key{"scheduling.max_specification_bytes_per_user", +[](C& c) -> base::Bytes& { return c.policy.max_specification_bytes_per_user; },
        kKi * kKi, kKi * kKi * kKi * kKi, Effect::kAnytime,
        "The same of one user's jobs; each member of an array counts with all of it. Not for root and the user that the daemon runs as."},
    Key{"scheduling.percent_for_root", +[](C& c) -> std::uint32_t& { return c.policy.percent_for_root; },
        0, 90, Effect::kAnytime,
        "Part of max_queue_size and of max_specification_bytes, in percent, that is kept for jobs that root (or the user that the daemon runs as) submits."},
    Key{"scheduling.priority_points.critical", &points<0>, 0, kMostPoints, Effect::kAnytime,
        "Points of the class CRITICAL. More points go first; the classes keep their order."},
    Key{"scheduling.priority_points.high", &points<1>, 0, kMostPoints, Effect::kAnytime,
        "Points of the class HIGH."},
    Key{"scheduling.priority_points.medium", &points<2>, 0, kMostPoints, Effect::kAnytime,
        "Points of the class MEDIUM, the default of a job."},
    Key{"scheduling.priority_points.low", &points<3>, 0, kMostPoints, Effect::kAnytime,
        "Points of the class LOW."},

    Key{"scheduling.reservation_depth", +[](C& c) -> std::uint32_t& { return c.policy.reservation_depth; },
        0, 100'000, Effect::kAnytime,
        "How many of the first jobs that do not fit have a place kept for them, which jobs behind them may not "
        "delay. 1: least waste; as many as wait: everybody's turn is kept; 0: nobody passes anybody."},

    Key{"scheduling.backfill_by_prediction", +[](C& c) -> bool& { return c.policy.backfill_by_prediction; },
        0, 0, Effect::kAnytime,
        "Lets jobs that may be stopped for others in front of a kept place that they are expected to be gone from by then "
        "(--expected-time, or 9 in 10 of the job's like); who is not gone by then is stopped and queued again."},

    Key{"scheduling.order", +[](C& c) -> model::QueueOrder& { return c.policy.order; },
        0, 0, Effect::kAnytime,
        "Who goes first: more points of the class; who came first; who has used least for their shares; or a weighted "
        "sum. docs/scheduling.md has the formulas."},
    Key{"scheduling.overdue_after", +[](C& c) -> base::Duration& { return c.policy.overdue_after; },
        0, 365 * kDay, Effect::kAnytime,
        "Time after which the oldest waiting job of a team goes before all of its class and below, which may not delay it any "
        "more. 0: never."},
    Key{"scheduling.fair_share.half_life", +[](C& c) -> base::Duration& { return c.policy.fair_share.half_life; },
        60, 365 * kDay, Effect::kAnytime,
        "Time after which use counts half."},
    Key{"scheduling.fair_share.interval", +[](C& c) -> base::Duration& { return c.policy.fair_share.interval; },
        1, kDay, Effect::kAnytime,
        "Time between two changes of the order by what was used meanwhile."},
    Key{"scheduling.weights.age", +[](C& c) -> std::uint32_t& { return c.policy.weights.age; },
        0, kMostWeight, Effect::kAnytime,
        "Points of a day of waiting; of order: weighted, like the three that follow."},
    Key{"scheduling.weights.priority", +[](C& c) -> std::uint32_t& { return c.policy.weights.priority; },
        0, kMostWeight, Effect::kAnytime,
        "Points of the class CRITICAL; the others in proportion to their priority_points."},
    Key{"scheduling.weights.fair_share", +[](C& c) -> std::uint32_t& { return c.policy.weights.fair_share; },
        0, kMostWeight, Effect::kAnytime,
        "Points of a user who has used nothing; half of them at the use that their shares entitle to."},
    Key{"scheduling.weights.size", +[](C& c) -> std::uint32_t& { return c.policy.weights.size; },
        0, kMostWeight, Effect::kAnytime,
        "Points of a job that asks for all GPUs; the others in proportion."},

    Key{"quotas.period", +[](C& c) -> model::QuotaPeriod& { return c.quota_period; },
        0, 0, Effect::kAnytime,
        "Period of gpu_hours, in UTC: days, weeks from Monday, or months of 30 days counted from 1970-01-01."},

    Key{"allocation.mode", +[](C& c) -> model::AllocationMode& { return c.allocation; },
        0, 0, Effect::kAnytime,
        "How guaranteed_gpus of teams and users are read. guaranteed: as they stand, idle ones are lent to preemptible "
        "jobs. static: they are the most too, and nothing is lent. dynamic: not at all. hybrid: scaled down to "
        "allocation.reserved_ratio of the cluster. docs/scheduling.md has the rule."},

    Key{"policies.max_gpus_per_user", +[](C& c) -> std::optional<std::uint32_t>& { return c.max_gpus_per_user; },
        1, 1'000'000, Effect::kAnytime,
        "Most GPUs that a user may hold at once. The same as max_gpus in quotas.user_default."},
    Key{"policies.max_job_duration_hours", +[](C& c) -> base::Duration& { return c.policy.max_time_limit; },
        3600, 8760 * 3600, Effect::kAnytime,
        "Longest time limit of a job, and the limit of a job that names none.", base::hours(1)},
    Key{"policies.max_array_size", +[](C& c) -> std::uint64_t& { return c.policy.max_array_size; },
        1, model::kMostArrayMembers, Effect::kAnytime,
        "Most members of one job array. Each also takes a place of scheduling.max_queue_size."},
    Key{"policies.stop_grace", +[](C& c) -> base::Duration& { return c.policy.stop_grace; },
        0, 3600, Effect::kAnytime,
        "Time between SIGTERM and SIGKILL when a job is cancelled or its time is up."},
    Key{"policies.highest_user_priority", +[](C& c) -> model::PriorityClass& { return c.policy.highest_user_priority; },
        0, 0, Effect::kAnytime,
        "Highest priority class that anybody but an administrator may ask for."},
    Key{"policies.allow_preemption", +[](C& c) -> bool& { return c.policy.allow_preemption; },
        0, 0, Effect::kAnytime,
        "Stop running jobs, which are queued again, where a job of a higher class can start only so."},
    Key{"policies.preempt_priority_threshold", +[](C& c) -> model::PriorityClass& { return c.policy.preempt_below; },
        0, 0, Effect::kAnytime,
        "Only jobs of a class below this one are stopped for others, unless they say --preemptible themselves."},
    Key{"policies.max_preemptions_per_job", +[](C& c) -> std::uint32_t& { return c.policy.max_preemptions_per_job; },
        0, 1000, Effect::kAnytime,
        "After so many times a job is not stopped for others any more."},
    Key{"policies.preempt_min_runtime", +[](C& c) -> base::Duration& { return c.policy.preempt_min_runtime; },
        0, 365 * kDay, Effect::kAnytime,
        "Nobody is stopped for others who has not run for so long."},
    Key{"policies.request_id_lifetime", +[](C& c) -> base::Duration& { return c.policy.request_id_lifetime; },
        60, 365 * kDay, Effect::kAnytime,
        "How long after a job's end a repeat of its request id still returns that job. Of a user's ended jobs the ids of the newest 20,000 are remembered."},

    Key{"fault_tolerance.max_retries", +[](C& c) -> std::uint32_t& { return c.policy.max_loss_retries; },
        0, 100, Effect::kAnytime,
        "Retries after a hardware fault or the loss of a node."},
    Key{"fault_tolerance.auto_retry_failed_jobs", +[](C& c) -> bool& { return c.policy.auto_retry_failed_jobs; },
        0, 0, Effect::kAnytime,
        "Retry a job whose own program failed, as often as max_retries says. Otherwise only --retries does."},
    Key{"fault_tolerance.requeue_on_node_loss", +[](C& c) -> bool& { return c.policy.requeue_on_node_loss; },
        0, 0, Effect::kAnytime,
        "Put a job back into the queue when its node was lost. Otherwise it has failed."},
    Key{"fault_tolerance.retry_backoff", +[](C& c) -> base::Duration& { return c.policy.retry_backoff; },
        0, kDay, Effect::kAnytime,
        "Time before the first retry; doubles with each further one."},
    Key{"fault_tolerance.max_retry_backoff", +[](C& c) -> base::Duration& { return c.policy.max_retry_backoff; },
        0, 7 * kDay, Effect::kAnytime,
        "Longest time before a retry. Not less than retry_backoff."},

    Key{"execution.root_jobs", +[](C& c) -> RootJobs& { return c.root_jobs; },
        0, 0, Effect::kAnytime,
        "Whether root's jobs run as root or are refused."},
    Key{"execution.min_uid", +[](C& c) -> std::uint32_t& { return c.min_uid; },
        1, 4'294'967'294, Effect::kRestart,
        "Smallest user id that may have jobs; those below are the system's own accounts (root: root_jobs). --min-uid of a launcher that is a service."},
    Key{"execution.mode_setting", +[](C& c) -> bool& { return c.mode_setting; },
        0, 0, Effect::kRestart,
        "Jobs with GPUs may open /dev/nvidia-modeset, which programs that draw on a screen need. --mode-setting of a launcher that is a service."},
    Key{"execution.max_processes", +[](C& c) -> std::uint64_t& { return c.max_processes; },
        16, 4'194'304, Effect::kRestart,
        "Processes and threads that a job may have at once; a fork bomb ends there."},
    Key{"execution.private_tmp", +[](C& c) -> bool& { return c.private_tmp; },
        0, 0, Effect::kRestart,
        "Give each job a /tmp and /dev/shm of its own, removed at its end. Where false it shares the host's."},
    Key{"execution.hide_processes", +[](C& c) -> bool& { return c.hide_processes; },
        0, 0, Effect::kRestart,
        "Show a job in its /proc, and so in ps and top, no processes of other users. Only with private_tmp. Where false it sees them, with their command lines."},
    Key{"execution.start_timeout", +[](C& c) -> base::Duration& { return c.start_timeout; },
        1, kDay, Effect::kRestart,
        "Longest time from the birth of a job's first process until its program is executed. A job whose directory, output file or program is on a file system that does not answer is ended then, and tried again as after the loss of a node."},
    Key{"execution.seccomp", +[](C& c) -> Seccomp& { return c.seccomp; },
        0, 0, Effect::kRestart,
        "default: the kernel refuses jobs some system calls that they have no use for (docs/isolation.md lists them). off: they may make every call that their rights allow. A launcher that is a service has its own: --seccomp of its command line."},
    Key{"execution.output_rotate_bytes", +[](C& c) -> base::Bytes& { return c.output_rotate_bytes; },
        64 * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "Size at which the output file of a running job is rotated."},
    Key{"execution.output_files_kept", +[](C& c) -> std::uint32_t& { return c.output_files_kept; },
        1, 1000, Effect::kRestart,
        "Rotated output files of an attempt that are kept; the oldest goes first."},
    Key{"execution.notify_command", +[](C& c) -> std::string& { return c.notify_command; },
        0, 0, Effect::kRestart,
        "Program, by its absolute path, and arguments, separated by blanks: run as the daemon's user when a job that asked for it (--notify) starts or ends, with the job as JSON on its stdin. No shell."},
    Key{"execution.idle_timeout", +[](C& c) -> base::Duration& { return c.policy.idle_timeout; },
        0, 365 * kDay, Effect::kAnytime,
        "A job with a terminal (run --pty) is ended when nothing was typed and nothing printed for so long, unless it asks for another time (--idle-timeout). 0: never."},
    Key{"execution.output_limit", +[](C& c) -> base::Bytes& { return c.output_limit; },
        64 * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "Most that one attempt may print and have kept; what follows is dropped, and a line in its log says so."},
    Key{"execution.prolog", +[](C& c) -> ProgramFile& { return c.prolog; },
        0, 0, Effect::kRestart,
        "Program of the site, by its absolute path, run by the launcher as itself (root) in the job's cgroup before anything of an attempt starts. Where it fails, the job goes back to the queue. Belongs to root and is writable by nobody else. A launcher that is a service has its own: --prolog of its command line."},
    Key{"execution.prolog_timeout", +[](C& c) -> base::Duration& { return c.prolog_timeout; },
        1, kDay, Effect::kRestart,
        "Time after which the prolog is killed and has failed."},
    Key{"execution.epilog", +[](C& c) -> ProgramFile& { return c.epilog; },
        0, 0, Effect::kRestart,
        "The same when nothing of the attempt is left, however it ended; its GPUs are given on when it is done. --epilog of a launcher that is a service."},
    Key{"execution.epilog_timeout", +[](C& c) -> base::Duration& { return c.epilog_timeout; },
        1, kDay, Effect::kRestart,
        "Time after which the epilog is killed and has failed."},

    Key{"monitoring.interval_seconds", +[](C& c) -> base::Duration& { return c.monitoring_interval; },
        1, 3600, Effect::kRestart,
        "Time between two readings of each GPU.", base::seconds(1)},

    Key{"health.strangers", +[](C& c) -> model::StrangerPolicy& { return c.policy.strangers; },
        0, 0, Effect::kAnytime,
        "A GPU with processes of no job: ignore them, avoid the GPU while they are there, or alert and use it."},

    Key{"store.reserve_bytes", +[](C& c) -> base::Bytes& { return c.store_reserve_bytes; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "Disk space held back so that the end of running jobs can be recorded when the disk is full."},
    Key{"store.audit_keep", +[](C& c) -> base::Duration& { return c.policy.audit_keep; },
        kDay, 3650 * kDay, Effect::kAnytime,
        "How long an entry of the audit trail is kept; older ones go when new ones come."},
    Key{"store.max_audit_entries", +[](C& c) -> std::uint64_t& { return c.policy.max_audit_entries; },
        1'000, 100'000'000, Effect::kAnytime,
        "Most entries of the audit trail; past it the oldest go. A million take about 150 MB."},

    Key{"api.threads", +[](C& c) -> std::uint32_t& { return c.api_threads; },
        1, 256, Effect::kRestart,
        "Threads that answer requests. One more serves root and the user that the daemon runs as while others are connected."},
    Key{"api.show_commands", +[](C& c) -> ShowCommands& { return c.show_commands; },
        0, 0, Effect::kRestart,
        "Who sees which program a process on a GPU is. own: its user and the user of its job; all: everybody. Root sees all. "
        "docs/isolation.md has who sees what."},
    Key{"api.max_connections", +[](C& c) -> std::uint32_t& { return c.api_connections; },
        16, 1'000'000, Effect::kRestart,
        "Connections open at once, of all users; less where the limit of open files (ulimit -n, LimitNOFILE) does not allow them."},
    Key{"api.max_connections_per_user", +[](C& c) -> std::uint32_t& { return c.api_connections_per_user; },
        1, 1'000'000, Effect::kRestart,
        "Connections that one user may have open at once. This and the limits per user below are not for root and the user that "
        "the daemon runs as; uids without an account count as the user whose subordinate uids (/etc/subuid) they are, or all together as one."},
    Key{"api.max_channels", +[](C& c) -> std::uint32_t& { return c.api_channels; },
        1, 1'000'000, Effect::kRestart,
        "Channels into running jobs open at once, of all users: jobs exec, jobs attach, each connection through jobs port-forward."},
    Key{"api.max_channels_per_user", +[](C& c) -> std::uint32_t& { return c.api_channels_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The same of one user."},
    Key{"api.max_streams_per_user", +[](C& c) -> std::uint32_t& { return c.api_streams_per_user; },
        1, 1'000'000, Effect::kRestart,
        "Answers that are held back or go on, which one user may have at once: jobs wait, followed output, event streams."},
    Key{"api.max_body_bytes", +[](C& c) -> base::Bytes& { return c.api_body_bytes; },
        2 * kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "Bytes of requests that are not answered yet, of all users. What is beyond the first 16 KiB of a request counts with all of it; one has 1 MiB at most."},
    Key{"api.max_body_bytes_per_user", +[](C& c) -> base::Bytes& { return c.api_body_bytes_per_user; },
        2 * kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The same of one user."},
    Key{"api.max_answer_bytes", +[](C& c) -> base::Bytes& { return c.api_answer_bytes; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "Bytes of answers, of all users, that clients have not read yet; up to it answers are made. Lists wait for their reader after each 64 KiB; who reads nothing of an answer for 30 s is cut off."},
    Key{"api.max_answer_bytes_per_user", +[](C& c) -> base::Bytes& { return c.api_answer_bytes_per_user; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The same of one user."},
    Key{"api.max_page_bytes", +[](C& c) -> base::Bytes& { return c.api_page_bytes; },
        64 * kKi, kKi * kKi * kKi, Effect::kRestart,
        "A page of a list ends behind so many bytes though it have fewer jobs than asked for; next_page goes on."},
    Key{"api.percent_for_root", +[](C& c) -> std::uint32_t& { return c.api_percent_for_root; },
        1, 90, Effect::kRestart,
        "Part of each of these totals, in percent, that is kept for root and the user that the daemon runs as."},
};
// clang-format on

const std::array kRules = {
    Rule{"fault_tolerance.max_retry_backoff",
         [](const C& c) { return c.policy.max_retry_backoff >= c.policy.retry_backoff; },
         "must not be less than fault_tolerance.retry_backoff"},
    Rule{"scheduling.priority_points.critical",
         [](const C& c) { return c.policy.priority_points[0] > c.policy.priority_points[1]; },
         "must be more than scheduling.priority_points.high"},
    Rule{"scheduling.priority_points.high",
         [](const C& c) { return c.policy.priority_points[1] > c.policy.priority_points[2]; },
         "must be more than scheduling.priority_points.medium"},
    Rule{"scheduling.priority_points.medium",
         [](const C& c) { return c.policy.priority_points[2] > c.policy.priority_points[3]; },
         "must be more than scheduling.priority_points.low"},
    Rule{"scheduling.weights.age",
         [](const C& c) {
           const model::OrderWeights& weights = c.policy.weights;
           return weights.age + weights.priority + weights.fair_share + weights.size > 0;
         },
         "the weights are all 0: at least one of age, priority, fair_share and size must be more"},
};

constexpr std::string_view kTeamsExample = R"(teams:
  - name: research
    shares: 3                 # beside the other teams and users of the same level; 1 where absent
    max_gpus: 64              # limits of all that is below the team, each may be absent
  - name: vision
    parent: research          # absent: the organisation itself
    users: [ann, bob: 2]      # a name, or a name and its shares
    max_running_jobs: 20
    max_queued_jobs: 500
    gpu_hours: 10000          # in each quotas.period
    guaranteed_gpus: 16       # their own; idle ones are lent to preemptible jobs
    borrow_limit: 8           # most GPUs above them; absent: any
    lend_limit: 12            # most of them lent; absent: all
)";
constexpr std::string_view kQuotaExample = R"(quotas:
  user_default: {max_gpus: 8, max_running_jobs: 10}
  users:
    ann: {max_gpus: 16}       # in the place of user_default, all of it
  projects:
    demo: {gpu_hours: 100}
)";
constexpr std::string_view kWeightsExample = R"(scheduling:
  fair_share:
    gpu_weights: {H100: 2, T4-16GB: 0.25}
)";

constexpr Structure kStructures[] = {
    {"teams", "a list of teams", kTeamsExample,
     "The organisation's teams: who shares what with whom, and what each may have. A job is "
     "charged "
     "to the team that --team names, else to the first here that has its user; users in no team "
     "stand beside the teams, with 1 share each. Without teams, --team is a label."},
    {"teams_file", "the path of a file",
     "teams_file: teams.yaml   # from the folder of this file\n",
     "A YAML file that holds the list of teams, in the place of 'teams'."},
    {"scheduling.fair_share.gpu_weights", "types with their weights", kWeightsExample,
     "What a GPU of a type or family counts in use beside the others, which count 1: 0.001 to "
     "1000. "
     "A type goes before its family."},
    {"allocation.reserved_ratio", "a share from 0 to 1",
     "allocation:\n  mode: hybrid\n  reserved_ratio: 0.3\n",
     "Of mode hybrid: the share of the cluster's GPUs that guarantees come to at most; 0.3 where "
     "absent. The rest is for everybody."},
    {"quotas.user_default", "limits", kQuotaExample,
     "What each user may have who is not named in quotas.users: max_gpus and max_running_jobs at "
     "once, max_queued_jobs (held ones count too), gpu_hours in each period."},
    {"quotas.users", "users with their limits", {}, "Limits of single users."},
    {"quotas.projects",
     "projects with their limits",
     {},
     "Limits of all jobs of a project (--project)."},
};

template <class Field>
using ValueOf = std::remove_reference_t<std::invoke_result_t<Field, C&>>;

template <class T>
constexpr bool kIsNumber = std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint64_t> ||
                           std::is_same_v<T, std::int64_t>;

base::Duration shown_unit(const Key& key) {
  return key.unit == base::Duration() ? base::seconds(1) : key.unit;
}

// Bounds of a duration as counts of its unit.
std::int64_t in_units(std::int64_t seconds, const Key& key) {
  return base::seconds(seconds).value() / shown_unit(key).value();
}

std::unexpected<base::Error> out_of_range(const Key& key, std::string_view text) {
  return base::invalid(std::string(key.path),
                       fmt::format("'{}' is out of range: {} is allowed", text, allowed_text(key)));
}

base::Result<base::Duration> read_duration(const Key& key, std::string_view text) {
  if (key.unit != base::Duration()) {
    TRY_ASSIGN(const std::uint64_t count,
               base::parse_count(text, static_cast<std::uint64_t>(in_units(key.least, key)),
                                 static_cast<std::uint64_t>(in_units(key.most, key))));
    return key.unit * static_cast<std::int64_t>(count);
  }
  TRY_ASSIGN(const base::Duration duration, base::parse_duration(text));
  const bool in_range = duration >= base::seconds(key.least) && duration <= base::seconds(key.most);
  if (!in_range) return out_of_range(key, text);
  return duration;
}

base::Result<base::Bytes> read_size(const Key& key, std::string_view text) {
  TRY_ASSIGN(const base::Bytes size, base::parse_size(text));
  if (size.value() < key.least || size.value() > key.most) return out_of_range(key, text);
  return size;
}

base::Status assign(const Key&, std::string_view text, bool& value) {
  if (text != "true" && text != "false") {
    return base::invalid({}, fmt::format("'{}' is neither true nor false", text));
  }
  value = text == "true";
  return {};
}

// The words of an enumeration, by its numbers.
template <class Value>
constexpr std::array<std::string_view, 0> kWords{};
template <>
constexpr std::array<std::string_view, 2> kWords<RootJobs>{"allow", "refuse"};
template <>
constexpr std::array<std::string_view, 2> kWords<ShowCommands>{"own", "all"};
template <>
constexpr std::array<std::string_view, 2> kWords<Seccomp>{"default", "off"};
template <>
constexpr std::array<std::string_view, 4> kWords<model::PriorityClass>{"critical", "high", "medium",
                                                                       "low"};
template <>
constexpr std::array<std::string_view, model::kStrangerPolicies> kWords<model::StrangerPolicy>{
    "ignore", "avoid", "alert"};

template <>
constexpr std::array<std::string_view, model::kQueueOrders> kWords<model::QueueOrder>{
    "priority", "fcfs", "fair_share", "weighted"};
template <>
constexpr std::array<std::string_view, model::kQuotaPeriods> kWords<model::QuotaPeriod>{
    "day", "week", "month"};
template <>
constexpr std::array<std::string_view, model::kAllocationModes> kWords<model::AllocationMode>{
    "guaranteed", "static", "dynamic", "hybrid"};

template <class Value>
constexpr bool kIsWord = !kWords<Value>.empty();

// "a, b or c".
template <class Value>
std::string words_text() {
  const auto& words = kWords<Value>;
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

template <class Value>
  requires(kIsWord<Value>)
base::Status assign(const Key&, std::string_view text, Value& value) {
  const auto word = std::ranges::find(kWords<Value>, text);
  if (word == kWords<Value>.end()) {
    return base::invalid({}, fmt::format("'{}' is not {}", text, words_text<Value>()));
  }
  value = static_cast<Value>(word - kWords<Value>.begin());
  return {};
}

base::Status assign(const Key&, std::string_view text, std::string& value) {
  if (!text.starts_with('/')) {
    return base::invalid(
        {}, fmt::format("'{}' does not begin with the absolute path of a program", text));
  }
  value = text;
  return {};
}

base::Status assign(const Key&, std::string_view text, SiteFile& value) {
  if (!text.starts_with('/')) {
    return base::invalid({}, fmt::format("'{}' is no absolute path of a file", text));
  }
  value.path = text;
  return {};
}

base::Status assign(const Key& key, std::string_view text, ProgramFile& value) {
  return assign(key, text, value.path);
}

base::Status assign(const Key& key, std::string_view text, base::Duration& value) {
  TRY_ASSIGN(value, read_duration(key, text));
  return {};
}

base::Status assign(const Key& key, std::string_view text, base::Bytes& value) {
  TRY_ASSIGN(value, read_size(key, text));
  return {};
}

template <class Number>
base::Status assign_number(const Key& key, std::string_view text, Number& value) {
  TRY_ASSIGN(const std::uint64_t number,
             base::parse_count(text, static_cast<std::uint64_t>(key.least),
                               static_cast<std::uint64_t>(key.most)));
  value = static_cast<Number>(number);
  return {};
}

base::Status assign(const Key& key, std::string_view text, std::uint32_t& value) {
  return assign_number(key, text, value);
}
base::Status assign(const Key& key, std::string_view text, std::uint64_t& value) {
  return assign_number(key, text, value);
}
base::Status assign(const Key& key, std::string_view text, std::int64_t& value) {
  return assign_number(key, text, value);
}
base::Status assign(const Key& key, std::string_view text, std::optional<std::uint32_t>& value) {
  std::uint32_t number = 0;
  TRY(assign_number(key, text, number));
  value = number;
  return {};
}

}  // namespace

std::string describe(const Problem& problem, std::string_view file) {
  if (!problem.file.empty()) file = problem.file;
  if (problem.line == 0) return fmt::format("{}: {}", file, problem.message);
  return fmt::format("{}:{}:{}: {}", file, problem.line, problem.column, problem.message);
}

std::span<const Key> schema() {
  return kKeys;
}
std::span<const Section> sections() {
  return kSections;
}
std::span<const Structure> structures() {
  return kStructures;
}
std::span<const Rule> rules() {
  return kRules;
}

base::Status set_value(const Key& key, std::string_view text, Configuration& configuration) {
  return std::visit([&](const auto& field) { return assign(key, text, field(configuration)); },
                    key.field);
}

std::string value_text(const Key& key, const Configuration& configuration) {
  C copy = configuration;
  return std::visit(
      [&](const auto& field) -> std::string {
        const auto& value = field(copy);
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          return value ? "true" : "false";
        } else if constexpr (kIsWord<Value>) {
          return std::string(kWords<Value>[static_cast<std::size_t>(value)]);
        } else if constexpr (std::is_same_v<Value, base::Duration>) {
          if (key.unit == base::Duration()) return base::written(value);
          return fmt::format("{}", value.value() / key.unit.value());
        } else if constexpr (std::is_same_v<Value, base::Bytes>) {
          return base::written(value);
        } else if constexpr (kIsNumber<Value>) {
          return fmt::format("{}", value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return value.empty() ? "not set" : value;
        } else if constexpr (std::is_same_v<Value, ProgramFile> ||
                             std::is_same_v<Value, SiteFile>) {
          return value.path.empty() ? "not set" : value.path;
        } else {
          return value.has_value() ? fmt::format("{}", *value) : "not set";
        }
      },
      key.field);
}

std::string allowed_text(const Key& key) {
  return std::visit(
      [&](const auto& field) -> std::string {
        using Value = ValueOf<std::remove_cvref_t<decltype(field)>>;
        if constexpr (std::is_same_v<Value, bool>) {
          return "true or false";
        } else if constexpr (kIsWord<Value>) {
          return words_text<Value>();
        } else if constexpr (std::is_same_v<Value, base::Duration>) {
          if (key.unit != base::Duration()) {
            return fmt::format("{} to {}", in_units(key.least, key), in_units(key.most, key));
          }
          return fmt::format("{} to {}", base::written(base::seconds(key.least)),
                             base::written(base::seconds(key.most)));
        } else if constexpr (std::is_same_v<Value, base::Bytes>) {
          return fmt::format("{} to {}", base::written(base::Bytes(key.least)),
                             base::written(base::Bytes(key.most)));
        } else if constexpr (std::is_same_v<Value, std::string>) {
          return "absolute path of a program, and arguments";
        } else if constexpr (std::is_same_v<Value, ProgramFile>) {
          return "absolute path of a program";
        } else if constexpr (std::is_same_v<Value, SiteFile>) {
          return "absolute path of a file";
        } else {
          return fmt::format("{} to {}", key.least, key.most);
        }
      },
      key.field);
}

}  // namespace gpu_platform::config
