#include <array>
#include <cstddef>
#include <cstdint>

#include "config/schema_keys.h"

// The keys about running jobs: how and where they run, the hardware, and the store.

namespace gpu_platform::config {

namespace {

using C = Configuration;

// clang-format off
constexpr std::array kExecutionKeys = {
    Key{"execution.root_jobs",
        +[](C& c) -> RootJobs& { return c.root_jobs; },
        0, 0, Effect::kAnytime,
        "Whether jobs of root run as root or are refused."},
    Key{"execution.min_uid",
        +[](C& c) -> std::uint32_t& { return c.min_uid; },
        1, 4'294'967'294, Effect::kRestart,
        "The smallest user id that may have jobs, tokens and identities. "
        "Smaller ids are the system's own accounts (for root see root_jobs). "
        "A launcher that runs as a service needs the same number in --min-uid."},
    Key{"execution.max_uid",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.max_uid; },
        1, 4'294'967'293, Effect::kRestart,
        "The largest user id that may have jobs, tokens and identities. "
        "The default is UID_MAX of /etc/login.defs, or 60000. "
        "Sites whose directory has larger ids raise it. "
        "A launcher that runs as a service needs the same number in --max-uid. "
        "65534, 65535 and the users of the platform's own processes never have jobs."},
    Key{"execution.mode_setting",
        +[](C& c) -> bool& { return c.mode_setting; },
        0, 0, Effect::kRestart,
        "Whether jobs with GPUs may open /dev/nvidia-modeset. "
        "Programs that draw on a screen need it. "
        "A launcher that runs as a service has the option --mode-setting instead."},
    Key{"execution.max_processes",
        +[](C& c) -> std::uint64_t& { return c.max_processes; },
        16, 4'194'304, Effect::kRestart,
        "The maximum number of processes and threads of a job. It stops fork bombs."},
    Key{"execution.private_tmp",
        +[](C& c) -> bool& { return c.private_tmp; },
        0, 0, Effect::kRestart,
        "Whether each job gets its own /tmp and /dev/shm, which are removed when it ends. "
        "Otherwise it uses those of the host."},
    Key{"execution.hide_processes",
        +[](C& c) -> bool& { return c.hide_processes; },
        0, 0, Effect::kRestart,
        "Whether the /proc of a job, and so ps and top, hides the processes of other users. "
        "This needs private_tmp. "
        "Otherwise the job sees them with their command lines."},
    Key{"execution.start_timeout",
        +[](C& c) -> base::Duration& { return c.start_timeout; },
        1, kDay, Effect::kRestart,
        "The longest time from the start of a job's first process until its program is executed. "
        "Directories, output files and programs on a file system that does not answer exceed it. "
        "The job is then ended and tried again as after the loss of a node."},
    Key{"execution.seccomp",
        +[](C& c) -> Seccomp& { return c.seccomp; },
        0, 0, Effect::kRestart,
        "default: the kernel refuses some system calls that jobs do not need (docs/isolation.md lists them). "
        "off: jobs may make every call that their rights allow. "
        "A launcher that runs as a service has the option --seccomp instead."},
    Key{"execution.cuda_visible_devices",
        +[](C& c) -> CudaVisibleDevices& { return c.cuda_visible_devices; },
        0, 0, Effect::kRestart,
        "How CUDA_VISIBLE_DEVICES lists the GPUs of a job. "
        "auto: numbers, which many programs need, or UUIDs if one of the GPUs is an MIG device. "
        "index: always numbers. "
        "uuid: always UUIDs. "
        "The numbers are 0 to N-1 if the job can open no other GPU of the node (containers, and the isolation 'devices'). "
        "Otherwise they are the driver's numbers. "
        "CUDA_DEVICE_ORDER is PCI_BUS_ID. "
        "GPU_PLATFORM_GPU_UUIDS always has the UUIDs. "
        "Pods in Kubernetes have no CUDA_VISIBLE_DEVICES."},
    Key{"execution.output_rotate_bytes",
        +[](C& c) -> base::Bytes& { return c.output_rotate_bytes; },
        64 * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "The size at which the output file of a running job is rotated."},
    Key{"execution.output_files_kept",
        +[](C& c) -> std::uint32_t& { return c.output_files_kept; },
        1, 1000, Effect::kRestart,
        "The number of rotated output files of an attempt that are kept. The oldest is removed first."},
    Key{"execution.notify_command",
        +[](C& c) -> std::string& { return c.notify_command; },
        0, 0, Effect::kRestart,
        "A program, by its absolute path, and its arguments, separated by blanks. "
        "It runs as the daemon's user when a job with --notify starts or ends. "
        "It gets the job as JSON on its standard input. "
        "GPU_PLATFORM_EVENT has the event. "
        "GPU_PLATFORM_NOTIFY_TO has the job's address (--notify-to). "
        "No shell is used."},
    Key{"execution.idle_timeout",
        +[](C& c) -> base::Duration& { return c.policy.idle_timeout; },
        0, 365 * kDay, Effect::kAnytime,
        "The time without input and output after which a job with a terminal (run --pty) is ended. "
        "A job may set another time (--idle-timeout). "
        "0: never."},
    Key{"execution.output_limit",
        +[](C& c) -> base::Bytes& { return c.output_limit; },
        64 * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "The maximum output of one attempt that is kept. "
        "Further output is dropped, and a line in the job's log reports it."},
    Key{"execution.prolog",
        +[](C& c) -> ProgramFile& { return c.prolog; },
        0, 0, Effect::kRestart,
        "The absolute path of the site's prolog, a program. "
        "The launcher runs it with its own rights (root) in the job's cgroup before any process of an attempt starts. "
        "If it fails, the job goes back to the queue. "
        "The file must belong to root, and no other user may write it. "
        "A launcher that runs as a service has the option --prolog instead."},
    Key{"execution.prolog_timeout",
        +[](C& c) -> base::Duration& { return c.prolog_timeout; },
        1, kDay, Effect::kRestart,
        "The time after which the prolog is killed. It has then failed."},
    Key{"execution.epilog",
        +[](C& c) -> ProgramFile& { return c.epilog; },
        0, 0, Effect::kRestart,
        "The absolute path of the site's epilog, a program. "
        "It runs when no process of the attempt is left, however the attempt ended. "
        "The attempt's GPUs are released when the epilog is done. "
        "The rules for its file are those of the prolog. "
        "A launcher that runs as a service has the option --epilog instead."},
    Key{"execution.epilog_timeout",
        +[](C& c) -> base::Duration& { return c.epilog_timeout; },
        1, kDay, Effect::kRestart,
        "The time after which the epilog is killed. It has then failed."},
    Key{"execution.containers",
        +[](C& c) -> ProgramFile& { return c.containers; },
        0, 0, Effect::kRestart,
        "The absolute path of the rules for jobs with an image: the engine's socket, and the images and mounts that jobs may use. "
        "The file must belong to root, and no other user may write it. "
        "A launcher that runs as a service needs the same file in --containers. "
        "Empty: jobs with an image are refused."},

    Key{"engines.local",
        +[](C& c) -> bool& { return c.local_engine; },
        0, 0, Effect::kRestart,
        "Whether jobs run on this machine. "
        "With false the machine's own GPUs are not read, and a Kubernetes cluster must be set."},
    Key{"engines.local_capacity",
        +[](C& c) -> model::CapacityClass& { return c.local_capacity; },
        0, 0, Effect::kRestart,
        "The capacity class of this machine, for jobs with --capacity. "
        "spot: its provider may take it away at any time."},
    Key{"engines.kubernetes.kubeconfig",
        +[](C& c) -> SiteFile& { return c.kubernetes_kubeconfig; },
        0, 0, Effect::kRestart,
        "The absolute path of the kubeconfig file of the cluster whose nodes run jobs with an image. "
        "Empty: none."},
    Key{"engines.kubernetes.in_cluster",
        +[](C& c) -> bool& { return c.kubernetes_in_cluster; },
        0, 0, Effect::kRestart,
        "Whether the daemon runs as a pod of the cluster whose nodes run its jobs. "
        "It then uses its service account and no kubeconfig."},
    Key{"engines.kubernetes.context",
        +[](C& c) -> SiteName& { return c.kubernetes_context; },
        0, 0, Effect::kRestart,
        "The context of the kubeconfig. Empty: its current context."},
    Key{"engines.kubernetes.cluster",
        +[](C& c) -> SiteName& { return c.kubernetes_cluster; },
        0, 0, Effect::kRestart,
        "The name that marks the objects of this platform in the cluster: at most 24 lower-case letters, digits and '-'. "
        "One controller at a time uses a name. "
        "A second one is refused."},
    Key{"engines.kubernetes.namespace",
        +[](C& c) -> SiteName& { return c.kubernetes_namespace; },
        0, 0, Effect::kRestart,
        "The namespace of the jobs' pods. "
        "'{team}' in it is replaced by the job's team. "
        "The platform does not create namespaces."},
    Key{"engines.kubernetes.image_pull_secrets",
        +[](C& c) -> WordList& { return c.kubernetes_pull_secrets; },
        0, 0, Effect::kRestart,
        "The secrets in the jobs' namespace with credentials for registries, separated by blanks."},
    Key{"engines.kubernetes.node_selector",
        +[](C& c) -> WordList& { return c.kubernetes_node_selector; },
        0, 0, Effect::kRestart,
        "The labels of the nodes that the platform uses, as LABEL=VALUE, separated by blanks. "
        "Empty: all nodes."},
    Key{"engines.kubernetes.capacity_label",
        +[](C& c) -> SiteName& { return c.kubernetes_capacity_label; },
        0, 0, Effect::kRestart,
        "The label of nodes whose value is their capacity class: on-demand, spot or reserved. "
        "It takes precedence over the labels of Karpenter, GKE, EKS and AKS. "
        "Empty: only those labels are used."},
    Key{"engines.kubernetes.devices",
        +[](C& c) -> KubernetesDevices& { return c.kubernetes_devices; },
        0, 0, Effect::kRestart,
        "How a pod gets the GPUs that the platform chose. "
        "pinned: by a claim on exactly these devices, which kube-scheduler allocates. "
        "owned: the platform allocates the devices and binds the pod itself, and no other user may have claims on them. "
        "counts: the pod asks for a number of nvidia.com/gpu, and the kubelet chooses the devices. "
        "counts is for clusters without dynamic resource allocation."},
    Key{"engines.kubernetes.driver",
        +[](C& c) -> SiteName& { return c.kubernetes_driver; },
        0, 0, Effect::kRestart,
        "The driver whose ResourceSlices are the cluster's GPUs."},
    Key{"engines.kubernetes.device_class",
        +[](C& c) -> SiteName& { return c.kubernetes_device_class; },
        0, 0, Effect::kRestart,
        "The DeviceClass of the platform's claims."},
    Key{"engines.kubernetes.priority_class",
        +[](C& c) -> SiteName& { return c.kubernetes_priority_class; },
        0, 0, Effect::kRestart,
        "The PriorityClass of the jobs' pods. "
        "Empty: the cluster's default. "
        "kube-scheduler may evict them for pods of a higher class."},
    Key{"engines.kubernetes.runs_as_user",
        +[](C& c) -> bool& { return c.kubernetes_runs_as_user; },
        0, 0, Effect::kRestart,
        "Whether pods run with the uid and gid of the job's user. "
        "With false they run as the image's user, which must not be root."},
    Key{"engines.kubernetes.annotations",
        +[](C& c) -> WordList& { return c.kubernetes_annotations; },
        0, 0, Effect::kAnytime,
        "The annotations that jobs may set on their pods (--annotation), separated by blanks. "
        "'*' stands for any text, as in nvidia.com/container.main.gpu-memory.*. "
        "Plugins that divide the GPUs of a pod read some (docs/kubernetes.md). "
        "Keys of Kubernetes and of the platform, and keys that end with .gpus.devices, are refused even so. "
        "Empty: none."},
    Key{"engines.kubernetes.start_timeout",
        +[](C& c) -> base::Duration& { return c.kubernetes_start_timeout; },
        0, kDay, Effect::kRestart,
        "The time after which a start is withdrawn if one of its pods has no node yet. "
        "It begins again while kube-scheduler gives nodes to other pods and has reported nothing about this one. "
        "0: never."},
    Key{"engines.kubernetes.lost_after",
        +[](C& c) -> base::Duration& { return c.kubernetes_lost_after; },
        1, kDay, Effect::kRestart,
        "The time after which a node that Kubernetes cannot reach is lost, and its jobs with it."},
    Key{"engines.kubernetes.workloads.enabled",
        +[](C& c) -> bool& { return c.kubernetes_workloads; },
        0, 0, Effect::kRestart,
        "Whether pods that others create are queued, too. "
        "These are the pods with the scheduling gate gpu-platform/admission in namespaces with the label gpu-platform/queue. "
        "It needs the role gpu-platform-workloads and, in each of these namespaces, gpu-platform-queue (docs/kubernetes.md)."},
    Key{"engines.kubernetes.workloads.user",
        +[](C& c) -> SiteName& { return c.kubernetes_workloads_user; },
        0, 0, Effect::kRestart,
        "The user of these workloads if their namespace has no label gpu-platform/user. "
        "Empty: such workloads are refused."},
    Key{"engines.kubernetes.readings",
        +[](C& c) -> KubernetesReadings& { return c.kubernetes_readings; },
        0, 0, Effect::kRestart,
        "Where the readings of the cluster's GPUs come from. "
        "none: there are none. "
        "exporter: from the pods of NVIDIA's dcgm-exporter, through the API server, every monitoring.interval_seconds and at most every 15 s. "
        "It needs the role gpu-platform-readings in the namespace of these pods (docs/kubernetes.md)."},
    Key{"engines.kubernetes.exporter.namespace",
        +[](C& c) -> SiteName& { return c.kubernetes_exporter_namespace; },
        0, 0, Effect::kRestart,
        "The namespace of the exporter's pods. "
        "Only administrators may create pods there: the platform believes what the pods say of the GPUs of their nodes."},
    Key{"engines.kubernetes.exporter.pods",
        +[](C& c) -> SiteName& { return c.kubernetes_exporter_pods; },
        0, 0, Effect::kRestart,
        "The label selector of the exporter's pods, as kubectl takes it: LABEL=VALUE. "
        "Empty: app.kubernetes.io/name=dcgm-exporter or app=nvidia-dcgm-exporter."},
    Key{"engines.kubernetes.exporter.port",
        +[](C& c) -> std::uint32_t& { return c.kubernetes_exporter_port; },
        1, 65'535, Effect::kRestart,
        "The port of the exporter in its pods."},
    Key{"engines.kubernetes.exporter.path",
        +[](C& c) -> SiteName& { return c.kubernetes_exporter_path; },
        0, 0, Effect::kRestart,
        "The path of the exporter's page."},

    Key{"monitoring.interval_seconds",
        +[](C& c) -> base::Duration& { return c.monitoring_interval; },
        1, 3600, Effect::kRestart,
        "The time between two readings of each GPU.", base::seconds(1)},
    Key{"monitoring.dcgm",
        +[](C& c) -> Dcgm& { return c.dcgm; },
        0, 0, Effect::kRestart,
        "Whether DCGM is asked for what NVML does not tell of a GPU (docs/hardware.md). "
        "auto: where libdcgm.so.4 or libdcgm.so.3 is installed. "
        "Before Hopper, profilers cannot count on GPUs while DCGM does. "
        "off: never."},
    Key{"monitoring.dcgm_address",
        +[](C& c) -> SiteName& { return c.dcgm_address; },
        0, 0, Effect::kRestart,
        "The address of DCGM's host engine, nv-hostengine, on this host. "
        "If none answers there, the probe starts one in its own process. "
        "none: the probe always does."},
    Key{"monitoring.metrics_retention_days",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.metrics_retention_days; },
        1, 3'660, Effect::kRestart,
        "How many days readings are kept: telemetry.keep_minutes, if that is not set."},
    Key{"monitoring.alert_thresholds.temperature",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.alert_temperature_c; },
        10, 150, Effect::kAnytime,
        "The threshold of the rule GpuHot, in degrees Celsius (docs/alerts.md)."},
    Key{"monitoring.alert_thresholds.utilization",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.alert_utilization_percent; },
        5, 100, Effect::kAnytime,
        "The threshold of the rule GpuBusy, in percent. "
        "Not set: the rule is off."},
    Key{"monitoring.alert_thresholds.memory",
        +[](C& c) -> std::optional<std::uint32_t>& { return c.alert_memory_percent; },
        5, 100, Effect::kAnytime,
        "The threshold of the rule GpuMemoryNearFull, in percent."},

    Key{"health.unmanaged_processes",
        +[](C& c) -> model::UnmanagedProcessPolicy& { return c.policy.unmanaged_processes; },
        0, 0, Effect::kAnytime,
        "What happens to a GPU with unmanaged processes, which belong to no job on it. "
        "ignore: they are ignored. "
        "avoid: the GPU gets no new jobs while they run. "
        "alert: they are reported and the GPU is used."},

    Key{"health.sick_gpus",
        +[](C& c) -> model::SickGpuPolicy& { return c.policy.sick_gpus; },
        0, 0, Effect::kAnytime,
        "The former name of mode. "
        "drain: mode decides. "
        "off: as mode: off."},
    Key{"health.mode",
        +[](C& c) -> model::HealthMode& { return c.policy.health_mode; },
        0, 0, Effect::kAnytime,
        "What happens to a GPU that is judged to be sick. "
        "docs/health.md lists the faults and what each means. "
        "execute: it gets no new jobs, and a lost GPU's jobs are queued again elsewhere. "
        "shadow: what would be done is shown, and nothing is done. "
        "off: nothing is judged, and the GPU is used."},
    Key{"health.profile",
        +[](C& c) -> model::HealthProfile& { return c.policy.health_profile; },
        0, 0, Effect::kAnytime,
        "The rules by which faults are judged. "
        "nvidia: NVIDIA's recommendations. "
        "cloud: as cloud providers do, which take GPUs out sooner. "
        "strict: XIDs 31 and 43, which are mostly the program's fault, count as critical, too. "
        "'gpu-platform health rules' shows them."},
    Key{"health.reset",
        +[](C& c) -> model::HealthReset& { return c.policy.health_reset; },
        0, 0, Effect::kAnytime,
        "Who resets a GPU that needs it. "
        "ask: an operator, with 'gpu-platform reset'. "
        "auto: also the platform itself, as soon as no job has the GPU, but at most 5 times in 7 days. "
        "never: no one may."},
    Key{"health.check_at_start",
        +[](C& c) -> model::HealthCheckAtStart& { return c.policy.health_check_at_start; },
        0, 0, Effect::kAnytime,
        "Whether an empty GPU is checked before it gets work when the daemon or its node has started, "
        "and when the GPU is back after it was out of service. "
        "none: it is not. "
        "quick: by a check of seconds, as 'gpu-platform health check' does. A GPU that fails gets no work."},
    Key{"health.max_out_percent",
        +[](C& c) -> std::uint32_t& { return c.policy.health_max_out_percent; },
        1, 100, Effect::kAnytime,
        "The most GPUs of a type that health keeps from work at the same time, in percent. "
        "One GPU may always be kept out, two from eight GPUs on, and the last one of a kind of node never is. "
        "Beyond it, what would be done is shown, and nothing is done."},
    Key{"health.max_temperature_c",
        +[](C& c) -> HeatLimit& { return c.max_temperature_c; },
        40, 110, Effect::kRestart,
        "A GPU of this temperature, in degrees Celsius, gets no new jobs until it is 5 degrees cooler for a minute. "
        "If 5 degrees below the GPU's slowdown temperature, at which its driver lowers the clocks, is less, that counts. "
        "slowdown-5 is always 5 degrees below the slowdown temperature, and 85 where the driver does not tell it."},
    Key{"health.max_memory_temperature_c",
        +[](C& c) -> std::uint32_t& { return c.max_memory_temperature_c; },
        40, 110, Effect::kRestart,
        "The same for the temperature of its memory."},
    Key{"health.reset_deadline",
        +[](C& c) -> base::Duration& { return c.reset_deadline; },
        30, 3600, Effect::kRestart,
        "The time after which a reset has failed, for all GPUs that are reset together. "
        "Its call of the driver is ended then. "
        "A machine with many GPUs and without nvidia-persistenced needs more."},
    Key{"health.check_deadline",
        +[](C& c) -> base::Duration& { return c.check_deadline; },
        30, 3600, Effect::kRestart,
        "The same for a quick check, which also follows each reset."},
    Key{"health.deep_check_deadline",
        +[](C& c) -> base::Duration& { return c.deep_check_deadline; },
        300, 3600, Effect::kRestart,
        "The same for a deep check, of all GPUs that are checked together."},

    Key{"store.reserve_bytes",
        +[](C& c) -> base::Bytes& { return c.store_reserve_bytes; },
        kKi * kKi, 64 * kKi * kKi * kKi, Effect::kRestart,
        "The disk space that is reserved so that the end of running jobs can be recorded when the disk is full."},
    Key{"store.audit_keep",
        +[](C& c) -> base::Duration& { return c.policy.audit_keep; },
        kDay, 3650 * kDay, Effect::kAnytime,
        "The time for which an entry of the audit trail is kept. "
        "Older entries are removed when new ones are written."},
    Key{"store.max_audit_entries",
        +[](C& c) -> std::uint64_t& { return c.policy.max_audit_entries; },
        1'000, 100'000'000, Effect::kAnytime,
        "The maximum number of entries of the audit trail. "
        "Beyond it the oldest are removed. "
        "A million entries take about 150 MB."},
    Key{"store.output_keep",
        +[](C& c) -> base::Duration& { return c.policy.output_keep; },
        0, 3650 * kDay, Effect::kAnytime,
        "The time after a job's end for which its kept output can be read ('jobs logs'). "
        "Then its files are removed. "
        "Files of --output stay. "
        "0: as long as the job is in the history."},
    Key{"store.job_keep",
        +[](C& c) -> base::Duration& { return c.policy.job_keep; },
        0, 3650 * kDay, Effect::kAnytime,
        "The time after its end for which a job is in the history. "
        "Then no list has it, and its kept output is removed. "
        "0: for ever."},
    Key{"store.max_ended_jobs",
        +[](C& c) -> std::uint64_t& { return c.policy.max_ended_jobs; },
        0, 1'000'000'000, Effect::kAnytime,
        "The maximum number of ended jobs in the history. "
        "Beyond it the jobs that ended first are removed. "
        "0: no limit."},
    Key{"store.ledger_keep",
        +[](C& c) -> base::Duration& { return c.policy.ledger_keep; },
        0, 36'500 * kDay, Effect::kAnytime,
        "The time for which a line of the ledger is kept after its end. "
        "Older lines are removed when new ones are written, and no report of their time has them any more. "
        "A hundred million lines take at most 10 GB. "
        "0: for ever."},
};
// clang-format on

}  // namespace

std::span<const Key> execution_keys() {
  return kExecutionKeys;
}

}  // namespace gpu_platform::config
