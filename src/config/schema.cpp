#include "config/schema.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "config/listen_address.h"

namespace gpu_platform::config {

namespace {

using C = Configuration;
constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kMaxPoints = 1'000'000'000;
constexpr std::int64_t kMaxWeight = 1'000'000;

template <model::Sight Seen>
model::Audience& audience(C& c) {
  return c.access.visibility[static_cast<std::size_t>(Seen)];
}

template <std::size_t Class>
std::int64_t& points(C& c) {
  return c.policy.priority_points[Class];
}

// clang-format off
constexpr std::array kSections = {
    Section{"cluster", "What the site declares about its cluster."},
    Section{"scheduling", "The queue and its order."},
    Section{"quotas", "The limits of users and projects. The limits of a team stand in its own entry."},
    Section{"allocation", "How GPUs are guaranteed to teams and users."},
    Section{"policies", "The limits of all jobs."},
    Section{"fault_tolerance", "What happens when a job, a node or a GPU fails."},
    Section{"execution", "How jobs are run."},
    Section{"engines", "Where jobs run: on this machine, in a Kubernetes cluster, or both. docs/kubernetes.md takes a site to the first job."},
    Section{"monitoring", "How often the hardware is read."},
    Section{"health", "What makes a GPU unfit for work."},
    Section{"store", "What is kept on disk."},
    Section{"api", "The API and its limits."},
    Section{"access", "Who may do what, and who sees what of others. docs/security.md has the roles. Root and the user that "
        "the daemon runs as are administrators, whatever stands here."},
};

const std::array kKeys = {
    Key{"cluster.name", +[](C& c) -> SiteName& { return c.cluster_name; },
        0, 0, Effect::kRestart,
        "The name of the cluster. The daemon writes it into its log when it starts."},
    Key{"cluster.total_gpus", +[](C& c) -> std::optional<std::uint32_t>& { return c.total_gpus; },
        0, 1'000'000, Effect::kRestart,
        "The number of GPUs that the cluster should have. This is a check, not a setting: the daemon warns when it finds "
        "another number."},
    Key{"cluster.network_file", +[](C& c) -> SiteFile& { return c.network_file; },
        0, 0, Effect::kRestart,
        "The absolute path of a file that says where nodes are in the network, for jobs of several nodes. Its lines look "
        "like 'dgx-[01-16] domain=su1 rack=r1 zone=hall-a'; each of the three may be left out."},

    Key{"scheduling.max_queue_size", +[](C& c) -> std::uint64_t& { return c.policy.max_queue_size; },
        1, 10'000'000, Effect::kAnytime,
        "The maximum number of waiting jobs. A submission beyond this is refused."},
    Key{"scheduling.max_queue_percent_per_user", +[](C& c) -> std::uint32_t& { return c.policy.max_queue_percent_per_user; },
        1, 100, Effect::kAnytime,
        "The percentage of max_queue_size that the waiting jobs of one user may take. Held jobs and each member of an "
        "array count. Root and the user that the daemon runs as are exempt. quotas.users sets numbers."},
    Key{"scheduling.max_specification_bytes", +[](C& c) -> base::Bytes& { return c.policy.max_specification_bytes; },
        kKi * kKi, kKi * kKi * kKi * kKi, Effect::kAnytime,
        "The memory that the specifications (command, paths, labels and other texts) of all jobs that have not ended may "
        "take. Each job counts with at least 1 KiB. Environments are on disk and do not count."},
    Key{"scheduling.max_specification_bytes_per_user", +[](C& c) -> base::Bytes& { return c.policy.max_specification_bytes_per_user; },
        kKi * kKi, kKi * kKi * kKi * kKi, Effect::kAnytime,
        "The same limit for the jobs of one user. Each member of an array counts with its whole specification. Root and "
        "the user that the daemon runs as are exempt."},
    Key{"scheduling.percent_for_root", +[](C& c) -> std::uint32_t& { return c.policy.percent_for_root; },
        0, 90, Effect::kAnytime,
        "The percentage of max_queue_size and of max_specification_bytes that is kept for jobs that root (or the user "
        "that the daemon runs as) submits."},
    Key{"scheduling.priority_points.critical", &points<0>, 0, kMaxPoints, Effect::kAnytime,
        "The points of the class CRITICAL. More points go first. The classes keep their order."},
    Key{"scheduling.priority_points.high", &points<1>, 0, kMaxPoints, Effect::kAnytime,
        "The points of the class HIGH."},
    Key{"scheduling.priority_points.medium", &points<2>, 0, kMaxPoints, Effect::kAnytime,
        "The points of the class MEDIUM, which is the default of a job."},
    Key{"scheduling.priority_points.low", &points<3>, 0, kMaxPoints, Effect::kAnytime,
        "The points of the class LOW."},

    Key{"scheduling.backfill_depth", +[](C& c) -> std::uint32_t& { return c.policy.backfill_depth; },
        0, 100'000, Effect::kAnytime,
        "The number of waiting jobs that get a planned start, counted from the first job that does not fit. Jobs behind "
        "them may not delay these starts. 1 wastes the least; as many as wait keeps every job's place; with 0 no job "
        "passes another."},

    Key{"scheduling.backfill_by_prediction", +[](C& c) -> bool& { return c.policy.backfill_by_prediction; },
        0, 0, Effect::kAnytime,
        "Whether a preemptible job may start in front of a planned start if it is predicted to end in time (by "
        "--expected-time, or by the time in which 9 of 10 similar runs ended). A job that has not ended by then is "
        "stopped and queued again."},

    Key{"scheduling.default_time_limit", +[](C& c) -> base::Duration& { return c.policy.default_time_limit; },
        0, 8760 * 3600, Effect::kAnytime,
        "The time limit of a job that sets none, unless its team has a default_time_limit. A shorter default lets such "
        "jobs start sooner, because they fit into gaps before planned starts. At most policies.max_job_duration_hours. "
        "0: that maximum."},

    Key{"scheduling.order", +[](C& c) -> model::QueueOrder& { return c.policy.order; },
        0, 0, Effect::kAnytime,
        "The order of waiting jobs. priority: the job with more points of its class goes first; fcfs: the job submitted "
        "first; fair_share: the job of the user with the least usage for their shares; weighted: the job with the highest "
        "weighted sum. docs/scheduling.md has the formulas."},
    Key{"scheduling.cpu_job_reserve_percent",
        +[](C& c) -> std::uint32_t& { return c.policy.cpu_job_reserve_percent; }, 0, 50, Effect::kAnytime,
        "The part of each node's CPUs and memory that GPU jobs which name neither leave to CPU jobs, in percent and "
        "rounded up. With 0 the shares of all GPUs are the whole node, and a CPU job waits while jobs hold all of a "
        "node's GPUs. It applies to jobs that are submitted afterwards."},

    Key{"scheduling.overdue_after", +[](C& c) -> base::Duration& { return c.policy.overdue_after; },
        0, 365 * kDay, Effect::kAnytime,
        "The time after which the oldest waiting job of a team goes before all jobs of its class and the classes below, "
        "which may then not delay it any more. 0: never."},
    Key{"scheduling.fair_share.half_life", +[](C& c) -> base::Duration& { return c.policy.fair_share.half_life; },
        60, 365 * kDay, Effect::kAnytime,
        "The time after which usage counts half."},
    Key{"scheduling.fair_share.interval", +[](C& c) -> base::Duration& { return c.policy.fair_share.interval; },
        1, kDay, Effect::kAnytime,
        "The interval at which the order is updated by the usage since the last update."},
    Key{"scheduling.weights.age", +[](C& c) -> std::uint32_t& { return c.policy.weights.age; },
        0, kMaxWeight, Effect::kAnytime,
        "The points for each day of waiting. This weight and the three that follow apply to order: weighted."},
    Key{"scheduling.weights.priority", +[](C& c) -> std::uint32_t& { return c.policy.weights.priority; },
        0, kMaxWeight, Effect::kAnytime,
        "The points of the class CRITICAL. The other classes get points in proportion to their priority_points."},
    Key{"scheduling.weights.fair_share", +[](C& c) -> std::uint32_t& { return c.policy.weights.fair_share; },
        0, kMaxWeight, Effect::kAnytime,
        "The points of a user without any usage. A user whose usage equals their shares gets half of them."},
    Key{"scheduling.weights.size", +[](C& c) -> std::uint32_t& { return c.policy.weights.size; },
        0, kMaxWeight, Effect::kAnytime,
        "The points of a job that asks for all GPUs. Other jobs get points in proportion."},

    Key{"quotas.period", +[](C& c) -> model::QuotaPeriod& { return c.quota_period; },
        0, 0, Effect::kAnytime,
        "The period of gpu_hours, in UTC: days, weeks that begin on Monday, or months of 30 days counted from 1970-01-01."},

    Key{"allocation.mode", +[](C& c) -> model::AllocationMode& { return c.allocation; },
        0, 0, Effect::kAnytime,
        "How guaranteed_gpus of teams and users are read. guaranteed: as written, and idle ones are lent to preemptible "
        "jobs. static: they are also the maximum, and nothing is lent. dynamic: they are not read. hybrid: they are "
        "scaled down to allocation.reserved_ratio of the cluster. docs/scheduling.md has the rule."},

    Key{"policies.max_gpus_per_user", +[](C& c) -> std::optional<std::uint32_t>& { return c.max_gpus_per_user; },
        1, 1'000'000, Effect::kAnytime,
        "The maximum number of GPUs that a user may hold at once. This is the same as max_gpus in quotas.user_default."},
    Key{"policies.max_job_duration_hours", +[](C& c) -> base::Duration& { return c.policy.max_time_limit; },
        3600, 8760 * 3600, Effect::kAnytime,
        "The longest time limit of a job.", base::hours(1)},
    Key{"policies.max_array_size", +[](C& c) -> std::uint64_t& { return c.policy.max_array_size; },
        1, model::kMaxArrayMembers, Effect::kAnytime,
        "The maximum number of members of one job array. Each member also takes a place of scheduling.max_queue_size."},
    Key{"policies.stop_grace", +[](C& c) -> base::Duration& { return c.policy.stop_grace; },
        0, 3600, Effect::kAnytime,
        "The time between SIGTERM and SIGKILL when a job is cancelled or reaches its time limit."},
    Key{"policies.highest_user_priority", +[](C& c) -> model::PriorityClass& { return c.policy.highest_user_priority; },
        0, 0, Effect::kAnytime,
        "The highest priority class that users other than administrators may ask for."},
    Key{"policies.allow_preemption", +[](C& c) -> bool& { return c.policy.allow_preemption; },
        0, 0, Effect::kAnytime,
        "Whether running jobs may be stopped, and queued again, when a job of a higher class cannot start otherwise."},
    Key{"policies.preempt_priority_threshold", +[](C& c) -> model::PriorityClass& { return c.policy.preempt_below; },
        0, 0, Effect::kAnytime,
        "Only jobs of a class below this one are preempted, unless a job sets --preemptible itself."},
    Key{"policies.max_preemptions_per_job", +[](C& c) -> std::uint32_t& { return c.policy.max_preemptions_per_job; },
        0, 1000, Effect::kAnytime,
        "A job that was stopped for others this often is not stopped for jobs of a higher class, or overdue jobs, any "
        "more. max_reclaims_per_job is the limit for jobs that borrow."},
    Key{"policies.preempt_min_runtime", +[](C& c) -> base::Duration& { return c.policy.preempt_min_runtime; },
        0, 365 * kDay, Effect::kAnytime,
        "Jobs that have run for less than this are not stopped for jobs of a higher class or overdue jobs. "
        "A team may have its own value for its jobs. reclaim_min_runtime is the limit for jobs that borrow."},
    Key{"policies.reclaim_min_runtime", +[](C& c) -> base::Duration& { return c.policy.reclaim_min_runtime; },
        0, 365 * kDay, Effect::kAnytime,
        "Borrowed work that has run for less than this is not reclaimed. Owners wait for so much longer. A team may "
        "have its own value for its jobs."},
    Key{"policies.max_reclaims_per_job", +[](C& c) -> std::uint32_t& { return c.policy.max_reclaims_per_job; },
        0, 1000, Effect::kAnytime,
        "A job that was stopped for others this often is not reclaimed any more: it keeps what it borrows until it "
        "ends, and owners wait for it. A team may have its own value for its jobs."},
    Key{"policies.request_id_lifetime", +[](C& c) -> base::Duration& { return c.policy.request_id_lifetime; },
        60, 365 * kDay, Effect::kAnytime,
        "The time after a job's end during which a submission with the same request id still returns that job. For each "
        "user the ids of the newest 20,000 ended jobs are remembered."},

    Key{"fault_tolerance.max_retries", +[](C& c) -> std::uint32_t& { return c.policy.max_loss_retries; },
        0, 100, Effect::kAnytime,
        "The maximum number of retries after a hardware fault or the loss of a node."},
    Key{"fault_tolerance.auto_retry_failed_jobs", +[](C& c) -> bool& { return c.policy.auto_retry_failed_jobs; },
        0, 0, Effect::kAnytime,
        "Whether a job whose own program failed is retried, up to max_retries times. Otherwise only --retries decides."},
    Key{"fault_tolerance.requeue_on_node_loss", +[](C& c) -> bool& { return c.policy.requeue_on_node_loss; },
        0, 0, Effect::kAnytime,
        "Whether a job is queued again when its node was lost. Otherwise the job has failed."},
    Key{"fault_tolerance.retry_backoff", +[](C& c) -> base::Duration& { return c.policy.retry_backoff; },
        0, kDay, Effect::kAnytime,
        "The time before the first retry. It doubles with each further retry."},
    Key{"fault_tolerance.max_retry_backoff", +[](C& c) -> base::Duration& { return c.policy.max_retry_backoff; },
        0, 7 * kDay, Effect::kAnytime,
        "The longest time before a retry. It must not be less than retry_backoff."},

    Key{"execution.root_jobs", +[](C& c) -> RootJobs& { return c.root_jobs; },
        0, 0, Effect::kAnytime,
        "Whether jobs of root run as root or are refused."},
    Key{"execution.min_uid", +[](C& c) -> std::uint32_t& { return c.min_uid; },
        1, 4'294'967'294, Effect::kRestart,
        "The smallest user id that may have jobs, tokens and identities. Smaller ids are the system's own accounts (for "
        "root see root_jobs). A launcher that is a service needs the same number as --min-uid."},
    Key{"execution.max_uid", +[](C& c) -> std::optional<std::uint32_t>& { return c.max_uid; },
        1, 4'294'967'293, Effect::kRestart,
        "The largest user id that may have jobs, tokens and identities. By default it is UID_MAX of /etc/login.defs, or "
        "60000. A site whose directory gives higher numbers raises it; a launcher that is a service needs the same "
        "number as --max-uid. 65534, 65535 and the users of the platform's own processes never have jobs."},
    Key{"execution.mode_setting", +[](C& c) -> bool& { return c.mode_setting; },
        0, 0, Effect::kRestart,
        "Whether jobs with GPUs may open /dev/nvidia-modeset, which programs need that draw on a screen. A launcher that "
        "is a service has --mode-setting instead."},
    Key{"execution.max_processes", +[](C& c) -> std::uint64_t& { return c.max_processes; },
        16, 4'194'304, Effect::kRestart,
        "The maximum number of processes and threads of a job. It stops fork bombs."},
    Key{"execution.private_tmp", +[](C& c) -> bool& { return c.private_tmp; },
        0, 0, Effect::kRestart,
        "Whether each job gets a /tmp and /dev/shm of its own, which are removed at its end. Otherwise it shares the "
        "host's."},
    Key{"execution.hide_processes", +[](C& c) -> bool& { return c.hide_processes; },
        0, 0, Effect::kRestart,
        "Whether the /proc of a job, and so ps and top, hides the processes of other users. This needs private_tmp. "
        "Otherwise the job sees them with their command lines."},
    Key{"execution.start_timeout", +[](C& c) -> base::Duration& { return c.start_timeout; },
        1, kDay, Effect::kRestart,
        "The longest time from the start of a job's first process until its program is executed. A job whose directory, "
        "output file or program is on a file system that does not answer is ended then, and tried again as after the loss "
        "of a node."},
    Key{"execution.seccomp", +[](C& c) -> Seccomp& { return c.seccomp; },
        0, 0, Effect::kRestart,
        "default: the kernel refuses some system calls that jobs do not need (docs/isolation.md lists them). off: jobs "
        "may make every call that their rights allow. A launcher that is a service has --seccomp instead."},
    Key{"execution.cuda_visible_devices", +[](C& c) -> CudaVisibleDevices& { return c.cuda_visible_devices; },
        0, 0, Effect::kRestart,
        "What CUDA_VISIBLE_DEVICES has for the GPUs of a job. auto: numbers, which many programs need, or UUIDs if one of "
        "the GPUs is an MIG device. index: always numbers. uuid: always UUIDs. The numbers are 0 to N-1 where the job can "
        "open no other GPU of the node (the isolation 'devices', and containers), and the driver's numbers elsewhere. "
        "CUDA_DEVICE_ORDER is PCI_BUS_ID. GPU_PLATFORM_GPU_UUIDS has the UUIDs in any case. Pods in Kubernetes have no "
        "CUDA_VISIBLE_DEVICES."},
    Key{"execution.output_rotate_bytes", +[](C& c) -> base::Bytes& { return c.output_rotate_bytes; },
        64 * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "The size at which the output file of a running job is rotated."},
    Key{"execution.output_files_kept", +[](C& c) -> std::uint32_t& { return c.output_files_kept; },
        1, 1000, Effect::kRestart,
        "The number of rotated output files of an attempt that are kept. The oldest is removed first."},
    Key{"execution.notify_command", +[](C& c) -> std::string& { return c.notify_command; },
        0, 0, Effect::kRestart,
        "A program, by its absolute path, and its arguments, separated by blanks. It is run as the daemon's user when a "
        "job that asked for it (--notify) starts or ends, and gets the job as JSON on its standard input. No shell is "
        "used."},
    Key{"execution.idle_timeout", +[](C& c) -> base::Duration& { return c.policy.idle_timeout; },
        0, 365 * kDay, Effect::kAnytime,
        "A job with a terminal (run --pty) is ended when nothing was typed and nothing printed for this time, unless the "
        "job sets another time (--idle-timeout). 0: never."},
    Key{"execution.output_limit", +[](C& c) -> base::Bytes& { return c.output_limit; },
        64 * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "The maximum output of one attempt that is kept. Output beyond it is dropped, and a line in the job's log says "
        "so."},
    Key{"execution.prolog", +[](C& c) -> ProgramFile& { return c.prolog; },
        0, 0, Effect::kRestart,
        "The site's prolog, a program by its absolute path. The launcher runs it with its own rights (root) in the job's "
        "cgroup before anything of an attempt starts. If it fails, the job goes back to the queue. The file must belong "
        "to root and be writable by no other user. A launcher that is a service has --prolog instead."},
    Key{"execution.prolog_timeout", +[](C& c) -> base::Duration& { return c.prolog_timeout; },
        1, kDay, Effect::kRestart,
        "The time after which the prolog is killed and counts as failed."},
    Key{"execution.epilog", +[](C& c) -> ProgramFile& { return c.epilog; },
        0, 0, Effect::kRestart,
        "The site's epilog, a program like the prolog. It is run when no process of the attempt is left, however the "
        "attempt ended. The attempt's GPUs are released when the epilog is done. A launcher that is a service has "
        "--epilog instead."},
    Key{"execution.epilog_timeout", +[](C& c) -> base::Duration& { return c.epilog_timeout; },
        1, kDay, Effect::kRestart,
        "The time after which the epilog is killed and counts as failed."},

    Key{"execution.containers", +[](C& c) -> ProgramFile& { return c.containers; },
        0, 0, Effect::kRestart,
        "The rules for jobs with an image, a file by its absolute path: the engine's socket, and the images and mounts "
        "that jobs may use. It must belong to root and be writable by no other user. A launcher that is a service needs "
        "--containers with this file, too. Empty: jobs with an image are refused."},

    Key{"engines.local", +[](C& c) -> bool& { return c.local_engine; },
        0, 0, Effect::kRestart,
        "Whether jobs run on this machine. With false the machine's own GPUs are not looked at, and a cluster must be named."},
    Key{"engines.local_capacity", +[](C& c) -> model::CapacityClass& { return c.local_capacity; },
        0, 0, Effect::kRestart,
        "The capacity class of this machine, for jobs with --capacity: spot if its provider may take it away at any time."},
    Key{"engines.kubernetes.kubeconfig", +[](C& c) -> SiteFile& { return c.kubernetes_kubeconfig; },
        0, 0, Effect::kRestart,
        "The kubeconfig file, by its absolute path, that names the cluster whose nodes run jobs with an image. Empty: none."},
    Key{"engines.kubernetes.in_cluster", +[](C& c) -> bool& { return c.kubernetes_in_cluster; },
        0, 0, Effect::kRestart,
        "Whether the daemon runs as a pod of the cluster whose nodes run its jobs. It then uses its service account and no "
        "kubeconfig."},
    Key{"engines.kubernetes.context", +[](C& c) -> SiteName& { return c.kubernetes_context; },
        0, 0, Effect::kRestart,
        "The context of the kubeconfig. Empty: its current context."},
    Key{"engines.kubernetes.cluster", +[](C& c) -> SiteName& { return c.kubernetes_cluster; },
        0, 0, Effect::kRestart,
        "The name by which the platform knows what it has made in the cluster: at most 24 lower-case letters, digits and "
        "'-'. One controller at a time uses a name; a second one is refused."},
    Key{"engines.kubernetes.namespace", +[](C& c) -> SiteName& { return c.kubernetes_namespace; },
        0, 0, Effect::kRestart,
        "The namespace of the jobs' pods. '{team}' in it stands for the job's team. Namespaces are not made by the platform."},
    Key{"engines.kubernetes.image_pull_secrets", +[](C& c) -> WordList& { return c.kubernetes_pull_secrets; },
        0, 0, Effect::kRestart,
        "The secrets in the jobs' namespace with credentials for registries, separated by blanks."},
    Key{"engines.kubernetes.node_selector", +[](C& c) -> WordList& { return c.kubernetes_node_selector; },
        0, 0, Effect::kRestart,
        "Labels of the nodes that the platform uses, as LABEL=VALUE, separated by blanks. Empty: all nodes."},
    Key{"engines.kubernetes.capacity_label", +[](C& c) -> SiteName& { return c.kubernetes_capacity_label; },
        0, 0, Effect::kRestart,
        "The label of nodes whose value is their capacity class: on-demand, spot or reserved. It goes before the labels of "
        "Karpenter, GKE, EKS and AKS. Empty: theirs alone."},
    Key{"engines.kubernetes.devices", +[](C& c) -> KubernetesDevices& { return c.kubernetes_devices; },
        0, 0, Effect::kRestart,
        "How a pod gets the GPUs that the platform chose. pinned: by a claim on just these devices, which kube-scheduler "
        "allocates; owned: the platform allocates the devices and binds the pod itself, and no other user may have claims "
        "on them; counts: for clusters without dynamic resource allocation, the pod asks for a number of nvidia.com/gpu and "
        "the kubelet chooses the devices."},
    Key{"engines.kubernetes.driver", +[](C& c) -> SiteName& { return c.kubernetes_driver; },
        0, 0, Effect::kRestart,
        "The driver whose ResourceSlices are the cluster's GPUs."},
    Key{"engines.kubernetes.device_class", +[](C& c) -> SiteName& { return c.kubernetes_device_class; },
        0, 0, Effect::kRestart,
        "The DeviceClass that claims name."},
    Key{"engines.kubernetes.priority_class", +[](C& c) -> SiteName& { return c.kubernetes_priority_class; },
        0, 0, Effect::kRestart,
        "The PriorityClass of the jobs' pods. Empty: the cluster's default. kube-scheduler may evict them for pods of a higher one."},
    Key{"engines.kubernetes.runs_as_user", +[](C& c) -> bool& { return c.kubernetes_runs_as_user; },
        0, 0, Effect::kRestart,
        "Whether pods run with the uid and gid of the job's user. With false they run as the image's user, which must not be "
        "root."},
    Key{"engines.kubernetes.start_timeout", +[](C& c) -> base::Duration& { return c.kubernetes_start_timeout; },
        0, kDay, Effect::kRestart,
        "The time after which a start is taken back if a pod of it has no node yet. It begins again "
        "while kube-scheduler gives nodes to other pods and has said nothing of this one. 0: "
        "never."},
    Key{"engines.kubernetes.lost_after", +[](C& c) -> base::Duration& { return c.kubernetes_lost_after; },
        1, kDay, Effect::kRestart,
        "The time after which a node that Kubernetes cannot reach is lost, and its jobs with it."},
    Key{"engines.kubernetes.workloads.enabled", +[](C& c) -> bool& { return c.kubernetes_workloads; },
        0, 0, Effect::kRestart,
        "Whether pods that others create are queued, too: those with the scheduling gate gpu-platform/admission, in namespaces "
        "with the label gpu-platform/queue. It takes the role gpu-platform-workloads and, in each of these namespaces, "
        "gpu-platform-queue (docs/kubernetes.md)."},
    Key{"engines.kubernetes.workloads.user", +[](C& c) -> SiteName& { return c.kubernetes_workloads_user; },
        0, 0, Effect::kRestart,
        "The user whose jobs these are, if their namespace has no label gpu-platform/user. Empty: such workloads are refused."},

    Key{"monitoring.interval_seconds", +[](C& c) -> base::Duration& { return c.monitoring_interval; },
        1, 3600, Effect::kRestart,
        "The time between two readings of each GPU.", base::seconds(1)},

    Key{"health.unmanaged_processes", +[](C& c) -> model::UnmanagedProcessPolicy& { return c.policy.unmanaged_processes; },
        0, 0, Effect::kAnytime,
        "What happens with a GPU that has unmanaged processes, which belong to no job on it. ignore: they are ignored; "
        "avoid: the GPU gets no new jobs while they are there; alert: they are reported and the GPU is used."},

    Key{"store.reserve_bytes", +[](C& c) -> base::Bytes& { return c.store_reserve_bytes; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The disk space that is held back so that the end of running jobs can be recorded when the disk is full."},
    Key{"store.audit_keep", +[](C& c) -> base::Duration& { return c.policy.audit_keep; },
        kDay, 3650 * kDay, Effect::kAnytime,
        "The time for which an entry of the audit trail is kept. Older entries are removed when new ones are written."},
    Key{"store.max_audit_entries", +[](C& c) -> std::uint64_t& { return c.policy.max_audit_entries; },
        1'000, 100'000'000, Effect::kAnytime,
        "The maximum number of entries of the audit trail. Beyond it the oldest are removed. A million entries take about "
        "150 MB."},

    Key{"store.output_keep", +[](C& c) -> base::Duration& { return c.policy.output_keep; },
        0, 3650 * kDay, Effect::kAnytime,
        "The time after a job's end for which its kept output can be read ('jobs logs'). Then its files are removed. "
        "Files that users name themselves (--output) stay. 0: as long as the job is in the history."},
    Key{"store.job_keep", +[](C& c) -> base::Duration& { return c.policy.job_keep; },
        0, 3650 * kDay, Effect::kAnytime,
        "The time after its end for which a job is in the history. Then it is in no list any more, and its kept output "
        "is removed with it. 0: for ever."},
    Key{"store.max_ended_jobs", +[](C& c) -> std::uint64_t& { return c.policy.max_ended_jobs; },
        0, 1'000'000'000, Effect::kAnytime,
        "The maximum number of ended jobs in the history. Beyond it those that ended first leave it. 0: any number."},

    Key{"api.threads", +[](C& c) -> std::uint32_t& { return c.api_threads; },
        1, 256, Effect::kRestart,
        "The number of threads that answer requests. One more serves root and the user that the daemon runs as while "
        "others are connected."},
    Key{"api.max_connections", +[](C& c) -> std::uint32_t& { return c.api_connections; },
        16, 1'000'000, Effect::kRestart,
        "The maximum number of open connections of all users. It is less if the limit of open files (ulimit -n, "
        "LimitNOFILE) does not allow that many."},
    Key{"api.max_connections_per_user", +[](C& c) -> std::uint32_t& { return c.api_connections_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The maximum number of open connections of one user. Root and the user that the daemon runs as are exempt from "
        "this and the limits per user below. A uid without an account counts as the user that it is a subordinate uid of "
        "(/etc/subuid); all other such uids count together as one user."},
    Key{"api.max_channels", +[](C& c) -> std::uint32_t& { return c.api_channels; },
        1, 1'000'000, Effect::kRestart,
        "The maximum number of open channels into running jobs, of all users: jobs exec, jobs attach, and each connection "
        "of jobs port-forward."},
    Key{"api.max_channels_per_user", +[](C& c) -> std::uint32_t& { return c.api_channels_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The same limit for one user."},
    Key{"api.max_streams_per_user", +[](C& c) -> std::uint32_t& { return c.api_streams_per_user; },
        1, 1'000'000, Effect::kRestart,
        "The maximum number of long answers that one user may have at once: jobs wait, followed output and event streams."},
    Key{"api.max_body_bytes", +[](C& c) -> base::Bytes& { return c.api_body_bytes; },
        2 * kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The maximum number of bytes of unanswered requests, of all users. Requests of up to 16 KiB do not "
        "count; a larger one counts with all of its bytes. A request has 1 MiB at most."},
    Key{"api.max_body_bytes_per_user", +[](C& c) -> base::Bytes& { return c.api_body_bytes_per_user; },
        2 * kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The same limit for one user."},
    Key{"api.max_answer_bytes", +[](C& c) -> base::Bytes& { return c.api_answer_bytes; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The maximum number of bytes of answers, of all users, that clients have not read yet. No further answer is made "
        "beyond it. A list waits for its reader after each 64 KiB. A client that reads nothing of an answer for 30 s is "
        "cut off."},
    Key{"api.max_answer_bytes_per_user", +[](C& c) -> base::Bytes& { return c.api_answer_bytes_per_user; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The same limit for one user."},
    Key{"api.max_page_bytes", +[](C& c) -> base::Bytes& { return c.api_page_bytes; },
        64 * kKi, kKi * kKi * kKi, Effect::kRestart,
        "A page of a list ends after this many bytes even if it has fewer jobs than asked for. next_page continues the "
        "list."},
    Key{"api.max_token_lifetime", +[](C& c) -> base::Duration& { return c.policy.max_token_lifetime; },
        0, 3650 * kDay, Effect::kAnytime,
        "The longest time for which a new token may hold (docs/security.md). 0: a token may hold until it is revoked. "
        "Tokens that exist keep their ends."},
    Key{"api.percent_for_root", +[](C& c) -> std::uint32_t& { return c.api_percent_for_root; },
        1, 90, Effect::kRestart,
        "The percentage of each of these totals that is kept for root and the user that the daemon runs as."},
    Key{"api.rest.address", +[](C& c) -> WordList& { return c.rest_addresses; },
        0, 0, Effect::kRestart,
        "The addresses at which the API answers other machines, as ADDRESS:PORT with a numeric address (0.0.0.0:8443, "
        "\"[::]:8443\"), separated by blanks. Without api.tls.certificate and api.tls.key only loopback addresses are "
        "allowed (127.0.0.1:8080). docs/deployment.md describes the listener."},
    Key{"api.rest.host_names", +[](C& c) -> WordList& { return c.rest_host_names; },
        0, 0, Effect::kRestart,
        "The names of this server that a request may have in its Host, without a port and separated by blanks. A "
        "request with another is refused. Not set: any name is taken."},
    Key{"api.rest.allowed_origins", +[](C& c) -> WordList& { return c.rest_origins; },
        0, 0, Effect::kRestart,
        "The origins of web pages whose scripts may call the API (https://console.example.org), separated by blanks. "
        "Requests of all other web pages are refused."},
    Key{"api.rest.max_connections", +[](C& c) -> std::uint32_t& { return c.rest_connections; },
        16, 1'000'000, Effect::kRestart,
        "The maximum number of connections from other machines. It is less if the limit of open files does not allow two "
        "for each. Connections without requests hold none of api.max_connections."},
    Key{"api.rest.max_connections_per_address", +[](C& c) -> std::uint32_t& { return c.rest_connections_per_address; },
        1, 1'000'000, Effect::kRestart,
        "The same limit for one address. All addresses of an IPv6 network of 64 bits count as one."},
    Key{"api.grpc.address", +[](C& c) -> WordList& { return c.grpc_addresses; },
        0, 0, Effect::kRestart,
        "The addresses at which the API answers other machines over gRPC, in the same form and with the same certificate. "
        "The host names, origins and limits of api.rest count here too."},
    Key{"api.tls.certificate", +[](C& c) -> SiteFile& { return c.tls_certificate; },
        0, 0, Effect::kRestart,
        "The absolute path of the server's certificate and those of its issuers, as PEM. The file is read again when it "
        "changes and on SIGHUP. Open connections go on."},
    Key{"api.tls.key", +[](C& c) -> SiteFile& { return c.tls_key; },
        0, 0, Effect::kRestart,
        "The absolute path of the certificate's private key, as PEM without a passphrase. The file must be closed to other "
        "users (chmod o= FILE)."},
    Key{"api.tls.client_ca", +[](C& c) -> SiteFile& { return c.tls_client_ca; },
        0, 0, Effect::kRestart,
        "The absolute path of the certificates of the authorities that sign the certificates of clients, as PEM. With it, "
        "clients may show a certificate instead of a token; access.identities says whom it stands for. The file is "
        "read again on SIGHUP."},
    Key{"api.listener_user", +[](C& c) -> SiteName& { return c.listener_user; },
        0, 0, Effect::kRestart,
        "The user of /etc/passwd that the listener becomes if the daemon runs as root. It may not be root or a user that "
        "may have jobs. By default it is a user id that no account and no process has. If the daemon does not run as root, "
        "the listener runs as the daemon's user, without access to its files."},

    Key{"access.default_role", +[](C& c) -> model::Role& { return c.access.default_role; },
        0, 0, Effect::kAnytime,
        "The role of users that access.roles does not name. viewer: sees what access.visibility shows; user: submits jobs and "
        "changes its own, too."},
    Key{"access.admins_act_as_users", +[](C& c) -> bool& { return c.access.admins_act_as_users; },
        0, 0, Effect::kAnytime,
        "Lets users with the role admin do what otherwise root alone may: enter the jobs of others (exec, attach, "
        "port-forward), submit jobs of others, and make tokens of others. Never those of root."},
    Key{"access.openid.issuer", +[](C& c) -> SiteName& { return c.openid_issuer; },
        0, 0, Effect::kRestart,
        "The OpenID Connect issuer whose tokens count as credentials from other machines: the text in their claim iss, such "
        "as https://sso.example.org/realms/main. access.identities says whom they stand for (docs/security.md)."},
    Key{"access.openid.audience", +[](C& c) -> SiteName& { return c.openid_audience; },
        0, 0, Effect::kRestart,
        "The text that must be in the claim aud of these tokens: this platform's name at the issuer."},
    Key{"access.openid.keys", +[](C& c) -> SiteFile& { return c.openid_keys; },
        0, 0, Effect::kRestart,
        "The absolute path of a file with the issuer's public keys, as it publishes them (a JSON Web Key Set). The file is "
        "read again when it changes; the keys of a file that cannot be read count for a day."},
    Key{"access.openid.user_claim", +[](C& c) -> SiteName& { return c.openid_user_claim; },
        0, 0, Effect::kRestart,
        "The claim that names the user. Its text T is the name openid:T in access.identities. People must not be able to "
        "choose it at the issuer. The claim email counts only if email_verified is true."},
    Key{"access.openid.algorithms", +[](C& c) -> WordList& { return c.openid_algorithms; },
        0, 0, Effect::kRestart,
        "The signatures that are accepted, separated by blanks: RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA."},
    Key{"access.openid.clock_skew", +[](C& c) -> base::Duration& { return c.openid_clock_skew; },
        0, 300, Effect::kRestart,
        "The difference of clocks that is forgiven at the beginning and the end of a token."},
    Key{"access.visibility.jobs", &audience<model::Sight::kJobs>,
        0, 0, Effect::kAnytime,
        "Who sees that a job is there, what it asks for and its state. owner: its user; team: the members and coordinators "
        "of its team, too; all: every user. Coordinators always see the jobs of their teams, operators and admins all."},
    Key{"access.visibility.commands", &audience<model::Sight::kCommands>,
        0, 0, Effect::kAnytime,
        "Who sees the command, the directory and the files of a job that they see, and the program of a process on a GPU. "
        "Operators and admins see all. docs/isolation.md says what each user sees."},
    Key{"access.visibility.output", &audience<model::Sight::kOutput>,
        0, 0, Effect::kAnytime,
        "Who may read what a job prints, of the jobs that they see. Admins may read all."},
    Key{"access.visibility.usage", &audience<model::Sight::kUsage>,
        0, 0, Effect::kAnytime,
        "Who sees the usage and the quotas of a user. Those of teams are shown to all. Operators and admins see all."},
};
// clang-format on

constexpr bool has_kubernetes(const C& c) {
  return c.kubernetes_in_cluster || !c.kubernetes_kubeconfig.path.empty();
}

bool is_cluster_label(std::string_view text) {
  constexpr std::size_t kMaxBytes = 24;
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kMaxBytes && is_plain(text.front()) &&
         is_plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_plain(c) || c == '-'; });
}

constexpr bool has_tls(const C& c) {
  return !c.tls_certificate.path.empty() && !c.tls_key.path.empty();
}

// Returns whether a file sets the key: a default gives way to other keys.
bool sets(const C& configuration, std::string_view key) {
  return std::ranges::find(configuration.places, key, &KeyPlace::key) != configuration.places.end();
}

bool are_addresses(const WordList& list) {
  return std::ranges::all_of(
      list.words, [](const std::string& word) { return parse_listen_address(word).has_value(); });
}

bool are_loopback(const WordList& list) {
  return std::ranges::all_of(list.words, [](const std::string& word) {
    const auto address = parse_listen_address(word);
    return address && address->is_loopback;
  });
}

bool are_algorithms(const WordList& list) {
  static constexpr std::array<std::string_view, 10> kKnown = {
      "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"};
  return !list.words.empty() && std::ranges::all_of(list.words, [](const std::string& word) {
    return std::ranges::find(kKnown, word) != kKnown.end();
  });
}

const std::array kRules = {
    Rule{"api.rest.address", [](const C& c) { return are_addresses(c.rest_addresses); },
         "must be ADDRESS:PORT with a numeric address (0.0.0.0:8443, 127.0.0.1:8080, "
         "\"[::]:8443\"); several are separated by blanks"},
    Rule{"api.rest.address",
         [](const C& c) { return has_tls(c) || are_loopback(c.rest_addresses); },
         "without api.tls.certificate and api.tls.key only loopback addresses are allowed: "
         "127.0.0.1:PORT or \"[::1]:PORT\""},
    Rule{"api.grpc.address", [](const C& c) { return are_addresses(c.grpc_addresses); },
         "must be ADDRESS:PORT with a numeric address (0.0.0.0:8444, 127.0.0.1:8081, "
         "\"[::]:8444\"); several are separated by blanks"},
    Rule{"api.grpc.address",
         [](const C& c) { return has_tls(c) || are_loopback(c.grpc_addresses); },
         "without api.tls.certificate and api.tls.key only loopback addresses are allowed: "
         "127.0.0.1:PORT or \"[::1]:PORT\""},
    Rule{"api.tls.key",
         [](const C& c) { return c.tls_certificate.path.empty() == c.tls_key.path.empty(); },
         "api.tls.certificate and api.tls.key belong together: set both or none"},
    Rule{"api.tls.client_ca", [](const C& c) { return c.tls_client_ca.path.empty() || has_tls(c); },
         "needs api.tls.certificate and api.tls.key: certificates are shown over TLS alone"},
    Rule{"access.openid.keys",
         [](const C& c) {
           const bool has_keys = !c.openid_keys.path.empty();
           return has_keys == !c.openid_issuer.text.empty() &&
                  has_keys == !c.openid_audience.text.empty();
         },
         "access.openid.issuer, access.openid.audience and access.openid.keys belong together: set "
         "all or none"},
    Rule{"engines.local", [](const C& c) { return c.local_engine || has_kubernetes(c); },
         "without this machine a cluster must be named: engines.kubernetes.kubeconfig or "
         "engines.kubernetes.in_cluster"},
    Rule{
        "engines.kubernetes.in_cluster",
        [](const C& c) { return !c.kubernetes_in_cluster || c.kubernetes_kubeconfig.path.empty(); },
        "excludes engines.kubernetes.kubeconfig: set one of the two"},
    Rule{"engines.kubernetes.cluster",
         [](const C& c) { return is_cluster_label(c.kubernetes_cluster.text); },
         "must be 1 to 24 lower-case letters, digits and '-', with a letter or digit at both ends"},
    Rule{"engines.kubernetes.node_selector",
         [](const C& c) {
           return std::ranges::all_of(
               c.kubernetes_node_selector.words,
               [](const std::string& word) { return word.find('=', 1) != std::string::npos; });
         },
         "must be LABEL=VALUE; several are separated by blanks"},
    Rule{"access.openid.algorithms", [](const C& c) { return are_algorithms(c.openid_algorithms); },
         "the algorithms are RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA"},
    Rule{"access.openid.user_claim", [](const C& c) { return !c.openid_user_claim.text.empty(); },
         "may not be empty"},
    Rule{"fault_tolerance.max_retry_backoff",
         [](const C& c) { return c.policy.max_retry_backoff >= c.policy.retry_backoff; },
         "must not be less than fault_tolerance.retry_backoff"},
    Rule{"scheduling.default_time_limit",
         [](const C& c) {
           return !sets(c, "scheduling.default_time_limit") ||
                  c.policy.default_time_limit <= c.policy.max_time_limit;
         },
         "must be at most policies.max_job_duration_hours"},
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
         "the weights are all 0: at least one of age, priority, fair_share and size must be more "
         "than 0"},
};

constexpr std::string_view kTeamsExample = R"(teams:
  - name: research
    shares: 3                 # relative to the other teams and users of the same level; 1 if absent
    max_gpus: 64              # limits of the team and all teams below it; each may be absent
    gpu_types: {H100: {max_gpus: 16, gpu_hours: 4000}}   # of that, GPUs of this type or family
  - name: vision
    parent: research          # absent: the organisation itself
    users: [ann, bob: 2]      # a name, or a name and its shares
    coordinators: [ann]       # users that may change the jobs of the team and of the teams below it
    max_running_jobs: 20
    max_queued_jobs: 500
    gpu_hours: 10000          # in each quotas.period
    guaranteed_gpus: 16       # GPUs of its own; idle ones are lent to preemptible jobs
    borrow_limit: 8           # maximum number of GPUs above them; absent: no limit
    lend_limit: 12            # maximum number of them that are lent, of 12 that are not H100; absent: all
    gpu_types:                # of the 16, four H100; borrow_limit and lend_limit of a type stand here too
      H100: {guaranteed_gpus: 4, lend_limit: 2}
    over_quota_weight: 2      # its share of the GPUs beyond all guarantees, relative to the others; absent: 1
    reclaim_min_runtime: 10m  # its borrowed work is not reclaimed earlier; absent: as the team above, or policies
    max_reclaims_per_job: 5   # nor more often than this; absent: likewise
    preempt_min_runtime: 30m  # its jobs are not preempted earlier; absent: likewise
    default_time_limit: 2h    # of its jobs that name none; absent: as the team above, or the site
)";
constexpr std::string_view kQuotaExample = R"(quotas:
  user_default: {max_gpus: 8, max_running_jobs: 10}
  users:
    ann: {max_gpus: 16, gpu_types: {H100: {max_gpus: 4}}}   # replaces all of user_default
  projects:
    demo: {gpu_hours: 100}
)";
constexpr std::string_view kWeightsExample = R"(scheduling:
  fair_share:
    gpu_weights: {H100: 2, T4-16GB: 0.25}
)";

constexpr std::string_view kRolesExample = R"(access:
  roles:
    operator: [ann, bob]
    admin: [carol]
    viewer: [guest]
)";

constexpr std::string_view kIdentitiesExample = R"(access:
  identities:
    "email:*@example.org": "*"
    "cn:Build machine 7": builder
    "uri:spiffe://example.org/ci": ci
    "openid:ada@example.org": ada
)";

constexpr std::string_view kPartitionsExample = R"(slurm:
  partitions:
    batch: {default: true, max_time: 1d, default_time: 1h}
    big: {gpu_types: [H100], priority: low, max_gpus: 64, max_nodes: 8}
)";

constexpr std::string_view kQosExample = R"(slurm:
  qos:
    normal: {}
    urgent: {priority: high, max_time: 4h, max_gpus: 8}
)";

constexpr Structure kStructures[] = {
    {"teams", "a list of teams", kTeamsExample,
     "The teams of the organisation, with their members, shares and limits. A job is charged to "
     "the "
     "team that --team names, or otherwise to the first team here that has its user. Users without "
     "a team stand beside the teams, with 1 share each. Without teams, --team is a label. Keys "
     "that "
     "are absent here, and further teams, may be set at run time (docs/scheduling.md)."},
    {"teams_file", "the path of a file",
     "teams_file: teams.yaml   # from the folder of this file\n",
     "A YAML file that holds the list of teams, instead of 'teams'."},
    {"scheduling.fair_share.gpu_weights", "types with their weights", kWeightsExample,
     "The weight of a GPU of a type or family in the usage: 0.001 to 1000. GPUs that are not named "
     "count 1. A type goes before its family."},
    {"allocation.reserved_ratio", "a share from 0 to 1",
     "allocation:\n  mode: hybrid\n  reserved_ratio: 0.3\n",
     "For mode hybrid: the largest part of the cluster's GPUs that guarantees may take. The "
     "default "
     "is 0.3. The rest is for all."},
    {"quotas.user_default", "limits", kQuotaExample,
     "The limits of each user that is not named in quotas.users: max_gpus and max_running_jobs at "
     "once, max_queued_jobs (held jobs count too), and gpu_hours in each period. gpu_types sets "
     "max_gpus and gpu_hours for single types or families, beside the limits for all GPUs: "
     "gpu_types: {H100: {max_gpus: 4, gpu_hours: 100}}."},
    {"quotas.users",
     "users with their limits",
     {},
     "The limits of single users, and their guarantees: guaranteed_gpus, borrow_limit and "
     "lend_limit, for all GPUs or in gpu_types, as of teams."},
    {"quotas.projects",
     "projects with their limits",
     {},
     "The limits of all jobs of a project (--project) together."},
    {"access.roles", "roles with their users", kRolesExample,
     "The users that have another role than access.default_role: viewer, user, operator or admin. "
     "Each user stands here once, by name; root does not. A change reaches open connections at "
     "their next request."},
    {"access.identities", "names with their users", kIdentitiesExample,
     "The users that credentials stand for which others have signed. Of client certificates "
     "(api.tls.client_ca) these names count: cn: (the common name), email:, dns: and uri:. openid: "
     "is "
     "the claim access.openid.user_claim of a token. email:*@DOMAIN and openid:*@DOMAIN with the "
     "user \"*\" are each address of the domain as the user before the '@'. A credential without a "
     "user, or with two, is refused. It never stands for root or a system account. A change "
     "reaches "
     "open connections at their next request."},
    {"slurm.partitions", "names with what they stand for", kPartitionsExample,
     "The partitions that sbatch -p, sinfo and others know, instead of the one partition 'gpu'. "
     "gpu_types: the types or families of the GPUs of its nodes (default: all nodes). priority: "
     "the "
     "class of its jobs. max_time, default_time, max_gpus, max_nodes: what one job may ask for. "
     "default: jobs that name no partition are in this one (otherwise the first). These are rules "
     "of Slurm's commands: limits that no job may pass are those of 'policies', 'quotas' and "
     "'teams'."},
    {"slurm.qos", "names with what they stand for", kQosExample,
     "The qualities of service that sbatch -q knows, instead of the classes of priority: priority "
     "(a class; default: the partition's), max_time, max_gpus. 'normal' is what jobs have that "
     "name none."},
};

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

}  // namespace gpu_platform::config
