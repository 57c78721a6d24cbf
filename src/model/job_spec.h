#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/dependency.h"
#include "model/job_array.h"
#include "model/priority.h"
#include "model/resource_request.h"
#include "model/terminal_size.h"

// What a submission says of a job. It stays as it is unless a person changes the job.

namespace gpu_platform::model {

enum class JobKind : std::uint8_t { kTraining, kInference, kInteractive, kBatch };
std::string_view to_string(JobKind kind);

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

// The check of a job's GPUs on each node before anything of the job is started there.
enum class Preflight : std::uint8_t {
  kNone,
  kQuick,  // of seconds
  kDeep,   // of minutes
};
inline constexpr std::size_t kPreflights = 3;

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
  // What it may cost in all its attempts; absent: there is no limit.
  std::optional<base::MicroUsd> budget;
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
  // a URL, as the command takes it (api/convert/submit.cpp has its form). Empty: none.
  std::string notify_to;
  // The job is ended after this time without output and without activity of any of its GPUs; zero:
  // never.
  base::Duration hang_timeout;
  Preflight preflight = Preflight::kNone;
  bool monitor = false;  // its GPUs are read each second while it runs

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

// The platform itself starts several processes: one for each node, or one for each GPU.
bool has_ranks(const JobSpec& spec);

// Returns the name of a job that names none: the last part of its program's path, at most 255 bytes
// and no part of a character.
std::string program_name(std::string_view path);
// Returns what "the same program" means where jobs are compared: the job's name, else the first
// word of its command; empty if it has neither. It lives as long as the specification.
std::string_view program_of(const JobSpec& spec);

}  // namespace gpu_platform::model
