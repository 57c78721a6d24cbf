#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/capacity.h"
#include "model/dependency.h"
#include "model/engine_kind.h"
#include "model/exit.h"
#include "model/granted.h"
#include "model/ids.h"
#include "model/job_array.h"
#include "model/network.h"
#include "model/start_prediction.h"
#include "model/states.h"
#include "model/step.h"
#include "model/terminal_size.h"

namespace gpu_platform::model {

enum class PriorityClass : std::uint8_t { kCritical, kHigh, kMedium, kLow };
std::string_view to_string(PriorityClass priority);  // "CRITICAL"
constexpr bool is_below(PriorityClass a, PriorityClass b) {
  return a > b;
}
constexpr PriorityClass higher(PriorityClass a, PriorityClass b) {
  return is_below(a, b) ? b : a;
}

// Numbers 0–1 are CRITICAL, 2–3 HIGH, 4–6 MEDIUM, 7–9 LOW; the number decides inside a class.
struct Priority {
  PriorityClass priority_class = PriorityClass::kMedium;
  std::uint8_t number = 5;

  friend bool operator==(const Priority&, const Priority&) = default;
};
Priority priority_of_number(std::uint8_t number);    // 0..9
Priority priority_of_class(PriorityClass priority);  // the class's default number: 1, 3, 5, 8

enum class JobKind : std::uint8_t { kTraining, kInference, kInteractive, kBatch };
std::string_view to_string(JobKind kind);

// Says whether a job's GPUs on one node may lie on several sockets.
enum class NumaPolicy : std::uint8_t {
  kDefault,     // only where no NUMA domain of the node could hold them all
  kAllowCross,  // --allow-cross-numa
  kStrict,      // --strict-numa: never
};
inline constexpr std::size_t kNumaPolicies = 3;

inline constexpr std::uint32_t kMaxGangNodes = 4096;

// The resources that a job needs at once. Absent cpus and memory mean the node's share per GPU (per
// CPU for CPU jobs). A gang asks for `nodes` times all of this, or, with cross_node, for `gpus` on
// as few nodes as possible, with the same number on each; cpus and memory then count for each of
// its nodes.
struct ResourceRequest {
  std::uint32_t gpus = 0;
  base::GpuShare share_per_gpu = base::kWholeGpu;
  std::vector<std::string>
      gpu_types;           // canonical catalogue names or families, best first; empty: any
  base::Bytes gpu_memory;  // least memory of each GPU; zero: any
  std::optional<std::uint32_t> cpus;
  std::optional<base::Bytes> memory;
  NumaPolicy numa = NumaPolicy::kDefault;
  std::uint32_t nodes = 1;                        // 1 to kMaxGangNodes
  bool cross_node = false;                        // then nodes is 1
  NetworkLevel within = NetworkLevel::kAnywhere;  // nodes of a gang lie together at this level
  std::vector<NodeId> nodelist;                   // ascending: none but these; empty: any
  std::vector<NodeId> exclude;                    // ascending
  // Thousandths, one for each of gpu_types, the first 1000: how fast the job is on that type.
  // Empty: equally fast on all.
  std::vector<std::uint32_t> gpu_speeds;
  // The name of a reservation (model::Reservation). The job runs on its GPUs alone, within its
  // time. Empty: the job uses no reservation.
  std::string reservation;
  // Percent of each node's CPUs and memory that the shares of GPU jobs leave to CPU jobs: the
  // site's rule when the job was submitted.
  std::uint32_t reserve_percent = 0;
  // It is placed on nodes of these engines alone, and the nodes of a gang are all of one: decided
  // when the job was submitted.
  EngineSet engines = kProcessesOnly;
  CapacityRequest capacity = CapacityRequest::kAny;  // it is placed on such nodes alone
  // GPU types that it may not have at present, for a limit by type (scheduling/cycle/limits.h).
  // Only in copies made for one decision: it is never stored.
  std::vector<std::string> barred_types = {};

  friend bool operator==(const ResourceRequest&, const ResourceRequest&) = default;
};
inline constexpr std::uint32_t kFullSpeed = 1000;

// May have parts on several nodes.
bool is_gang(const ResourceRequest& request);
// Returns the name of a job that names none: the last part of its program's path, at most 255 bytes
// and no part of a character.
std::string program_name(std::string_view path);
// Returns the GPUs on all nodes of the request.
std::uint64_t total_gpus(const ResourceRequest& request);
// Returns the time that a job may run at a speed, if its time limit is meant for kFullSpeed;
// rounded up.
base::Duration limit_at_speed(base::Duration limit, std::uint32_t speed);
// Returns the longest of these over all types that it accepts.
base::Duration longest_limit(const ResourceRequest& request, base::Duration limit);

inline constexpr std::size_t kMaxLabels = 64;  // of one job

struct Label {
  std::string key;
  std::string value;
  friend bool operator==(const Label&, const Label&) = default;
};

// A signal to all processes of the job, or to its first one alone, some time before its time limit.
struct LimitSignal {
  std::uint8_t signal = 0;
  base::Duration before;
  bool first_process_only = false;

  friend bool operator==(const LimitSignal&, const LimitSignal&) = default;
};

// When the site's notification command is run for a job.
enum class NotifyOn : std::uint8_t { kStart, kEnd, kFail };
inline constexpr std::size_t kNotifyOns = 3;

// The network that a container sees.
enum class ContainerNetwork : std::uint8_t {
  kNone,    // its own loopback device alone
  kHost,    // the host's
  kBridge,  // the engine's bridge
};
inline constexpr std::size_t kContainerNetworks = 3;

// When the engine fetches an image from its registry.
enum class ImagePull : std::uint8_t { kMissing, kAlways, kNever };
inline constexpr std::size_t kImagePulls = 3;

// The specification of a job. It never changes while it is shared: a job that is changed gets
// another one. Values of environment variables are not in it: environment_ref names them in the
// store's owner-only table.
struct JobSpec {
  std::string name;
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string team;
  std::string project;
  Priority priority;
  JobKind kind = JobKind::kBatch;
  std::vector<std::string> command;
  std::string workdir;
  std::string output;  // path of the output file; empty: kept by the platform
  std::uint32_t umask = 022;
  std::string environment_ref;
  ResourceRequest request;
  base::Duration time_limit;
  std::uint32_t retries = 0;  // of the application's own failures
  std::vector<Label> labels;  // ascending key
  std::string request_id;     // makes a repeated submission return the first answer; empty: none
  std::optional<LimitSignal> limit_signal;
  std::string error;             // path of a file for stderr; empty: where stdout goes
  bool truncate_output = false;  // files of `output` and `error` begin empty; else they grow
  std::vector<NotifyOn> notify;  // ascending
  // Programs of the user's own, run as the job before and after its command, relative to workdir
  // unless absolute; empty: none.
  std::string prolog;
  std::string epilog;
  bool takes_input = false;              // a person, or a pipe, is its stdin; else that is empty
  std::optional<TerminalSize> terminal;  // all its streams are one, of this size at first
  // The job is ended after this time without input and output; zero: never. Absent only until it is
  // accepted.
  std::optional<base::Duration> idle_timeout;
  // True if the job may be stopped to make room for a job of a higher class. Absent: its own class
  // decides.
  std::optional<bool> preemptible;
  base::Instant begin;                   // it starts no earlier; unset: at once
  base::Instant deadline;                // it has ended by then, or does not start; unset: none
  std::vector<Dependency> dependencies;  // as asked for: all must be met before it starts
  std::optional<ArraySpec> array;        // its members share this specification
  bool per_gpu = false;                  // one process for each GPU; else one for each node
  // The run time that its user expects, at full speed, at most time_limit; absent: not stated.
  std::optional<base::Duration> expected_time;
  // The job is ended if it has not started this long after its submission or its begin; zero:
  // never.
  base::Duration wait_timeout;
  // Exit code 0 completes the job although its attempt was stopped in order to be queued again.
  // Otherwise it is queued again however the attempt ends.
  bool complete_on_exit_zero = false;
  std::string comment;  // any text of its user; empty: none
  // The team whose default time_limit is, empty for the site's; absent: its user's.
  std::optional<std::string> time_limit_default_of;
  // A gang has one process in all, on its first node, which starts those on the others itself.
  bool first_node_only = false;
  // The container of the job; the members below are empty or at their defaults without an image.
  std::string image;                // "registry/name:tag" or "name@sha256:…"; empty: no container
  std::vector<std::string> mounts;  // "SRC:DST" or "SRC:DST:ro" (model/container.h)
  std::vector<std::string> tmpfs;   // "DST:SIZE"
  base::Bytes shm_size;             // of /dev/shm; zero: the engine's default
  ContainerNetwork container_network = ContainerNetwork::kNone;
  std::string entrypoint;  // instead of the image's; empty: the image's
  ImagePull pull = ImagePull::kMissing;
  std::string container_workdir;   // absolute, in the container; empty: the image's
  std::string container_platform;  // "linux/ARCH[/VARIANT]" of the image; empty: the node's
  std::vector<Label> annotations;  // of the container, ascending key
  // The workload of a Kubernetes cluster that this job stands for, "NAMESPACE/KIND/NAME/UID": its
  // pods are there already and wait behind the platform's gate. Only the platform itself sets it.
  // Empty: the platform makes the job's processes.
  std::string workload;
  // That many of its pods hold what the job asks for, the same number on each node.
  std::optional<std::uint32_t> workload_pods;
  // What the site's notification command is told beside the events of `notify`: a mail address or
  // a URL, whatever the command takes (api/convert/submit.cpp has its form). Empty: none.
  std::string notify_to;

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// The platform itself starts several processes: one for each node, or one for each GPU.
bool has_ranks(const JobSpec& spec);

// The party that holds a waiting job. Only an administrator releases a job that an administrator
// holds. The owner may release a job that the platform holds.
enum class Hold : std::uint8_t { kNone, kByUser, kByAdministrator, kByPlatform };
inline constexpr std::size_t kHolds = 4;
// Returns whether `hold` is more than `present` and takes its place.
bool outranks(Hold hold, Hold present);

// The platform holds a job after this number of failures of the site's prolog.
inline constexpr std::size_t kMaxPrologFailures = 3;

// Why an attempt or a job ended, or is being stopped.
enum class EndReason : std::uint8_t {
  kNone,         // ended by itself
  kCancelledBy,  // a user, `by`; empty: what it stands for was deleted, as detail says
  kKilledBy,     // the same, without grace
  kTimeLimit,
  kOutOfMemory,
  kPreempted,
  kNodeLost,
  kLaunchFailed,      // the command could not be started; detail says why
  kSupervisorLost,    // its result cannot be known
  kGpuOffline,        // an operator took its GPU or node out of service
  kRequeuedBy,        // a user, `by`, put the job back into the queue
  kPrologFailed,      // the site's prolog on the node: the job was not started; detail says how
  kIdleTimeout,       // no input and no output for too long
  kDeadline,          // it could no longer end by its deadline, and was not started
  kDependencyFailed,  // a dependency can never be met; detail says why
  kReservationEnded,  // the reservation that it asks for was cancelled or is over
  kWaitTimeout,       // it had not started within its own wait_timeout
  kEnvironmentLost,   // the store no longer has its environment variables: it was not started
};
inline constexpr std::size_t kEndReasons = 18;
std::string_view to_string(EndReason reason);  // "TIME_LIMIT"

// Used by the whole process tree of an attempt.
struct Usage {
  base::Duration cpu_time;
  base::Bytes peak_memory;

  friend bool operator==(const Usage&, const Usage&) = default;
};

// Why a job was started now.
enum class StartWhy : std::uint8_t {
  kImmediate,
  kBackfill,
  kReserved,
  kPreempted,  // others were stopped to make room for it
};
inline constexpr std::size_t kStartWhys = 4;
std::string_view to_string(StartWhy why);

struct Attempt {
  std::uint32_t number = 0;
  AttemptState state = AttemptState::kRequested;
  StartWhy why = StartWhy::kImmediate;
  Allocation allocation;
  std::string boot_id;  // of the node at the time of StartRequested
  std::uint64_t pid = 0;
  base::Instant requested_at;
  base::Instant started_at;
  base::Instant ended_at;
  base::Instant released_at;
  Exit exit;
  EndReason stop_reason = EndReason::kNone;  // why it was told to stop
  EndReason reason = EndReason::kNone;       // why it ended
  bool kill_requested = false;               // told to stop without grace
  std::string by;                            // the user who stopped it
  std::string detail;
  Usage usage;
  base::Duration time_limit;          // that it was started with; the job's may have changed since
  std::vector<JobId> preempted_jobs;  // that were stopped for it (kPreempted), ascending
  JobId passed;  // the first that waited for a place before it (kBackfill); else invalid
  // While it holds something, or when it gave that back: it was above the guarantee of its team, so
  // that jobs within another guarantee may stop it.
  bool is_borrowed = false;
  // The time at which a job that started before planned starts by its prediction is stopped if it
  // delays them. Unset: it did not start so, or delays no job.
  base::Instant yields_at;
  // Others were stopped for it: it is stopped for no job but one of a class above this, and counts
  // as work that cannot be stopped on guaranteed GPUs. Unset: none were.
  std::optional<PriorityClass> stops_above;
  bool began_overdue = false;  // it is not stopped for an overdue job
  // The type of all its GPUs, as their node named it when it was placed there; empty: it has none.
  // Limits by type use it.
  std::string gpu_type;
  base::Shared<JobSteps> steps;  // that it reported; none of them runs once it has ended
  // The names of its allocation. Empty if a version without this archived the job.
  base::Shared<Granted> granted;

  // The node of its supervisor, and so of the site's prolog and epilog. The allocation has a node.
  NodeId first_node() const { return allocation.nodes.front().node; }

  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// All by which jobs of one user, team and class are ordered among themselves. `jobs top` changes
// only the order among such jobs. Each turn is still held by exactly one of them, so no other user
// gets more jobs ahead.
struct Turn {
  JobId of;             // the job that came with it
  base::Instant since;  // when that was submitted, or a person requeued it while it ran
  std::uint8_t number = 0;
  std::uint64_t gpus = 0;  // that it asks for

  friend bool operator==(const Turn&, const Turn&) = default;
};

struct Job {
  JobId id;
  std::shared_ptr<const JobSpec> spec;
  JobState state = JobState::kQueued;
  base::Instant submitted_at;
  base::Instant eligible_at;  // when a PENDING job becomes QUEUED, or when it did
  base::Instant ended_at;     // as its last attempt, where that ended it
  EndReason reason = EndReason::kNone;
  std::string by;
  std::string detail;
  std::uint32_t failures = 0;  // attempts that failed by the application's own doing
  std::uint32_t losses = 0;    // attempts lost to hardware or nodes
  std::vector<Attempt> attempts;
  Hold hold = Hold::kNone;  // of an active job: it will be HELD when it is back in the queue
  // The nodes where the site's prolog failed for it, each time since it last started or was
  // released.
  std::vector<NodeId> prolog_failed_on;
  // The time since which it is overdue; unset: it is not.
  base::Instant overdue_since;
  std::uint32_t preemptions = 0;      // attempts stopped to make room for another job
  JobId array_id;                     // invalid: it is no member of an array
  std::uint32_t array_index = 0;      // of a member
  std::vector<Dependency> waits_for;  // those of its dependencies that are not met yet
  std::string dependency_failure;     // why one of them never will be; empty: all may be
  // The prediction since it was last queued; for a job that has started, the prediction of that
  // start.
  std::optional<StartPrediction> prediction;
  // The highest class among the jobs that were stopped for it since it last started, or that those
  // had stopped (Attempt::stops_above). Unset: none were.
  std::optional<PriorityClass> stopped_for_it;
  std::optional<Turn> turn;  // absent: its own
  // A prediction that was made deep in the queue, to learn how good such predictions are. Absent:
  // none was, or it has started.
  std::optional<StartPrediction> early_prediction;

  bool is_member() const { return array_id.valid(); }
  const Attempt* current_attempt() const { return attempts.empty() ? nullptr : &attempts.back(); }

  friend bool operator==(const Job& a, const Job& b);
};

// The record of a job array while members of it are in the core.
struct JobArray {
  JobId id;                   // of its first member
  std::uint64_t members = 0;  // that have not left the core
  std::uint64_t size = 0;     // members that it began with; their ids follow each other
  std::uint32_t limit = 0;    // most members that may be active or in the queue at once; 0: none
  TargetOutcome outcome;

  friend bool operator==(const JobArray&, const JobArray&) = default;
};

// Returns the turn that it has.
Turn turn_of(const Job& job);

// Returns whether any of its attempts has started.
bool has_started(const Job& job);
// Returns the phase of an attempt that holds resources.
HolderPhase phase_of(const Attempt& attempt);

// Adds the result of the job to an outcome of which it is a part.
void count_end(const Job& job, TargetOutcome& outcome);

// Returns false if its input came through a pipe, because that input is gone. At a terminal a
// person begins anew.
bool can_begin_anew(const JobSpec& spec);

// "12", and "40_3" of a member of an array.
std::string name_of(const Job& job);

// Returns the last moment at which it may start so that its time limit ends by its deadline. Unset:
// it has no deadline.
base::Instant last_start_for_deadline(const JobSpec& spec);
// The same with its wait_timeout, which counts until its first start. Unset: for ever.
base::Instant last_start(const Job& job);

// Returns true while an attempt still holds resources: such a job stays in the core even after its
// end.
bool holds_resources(const Job& job);

}  // namespace gpu_platform::model
