#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/allocation.h"
#include "model/evidence.h"
#include "model/job.h"
#include "model/node.h"

// The one interface to the engines that run jobs. It is asynchronous: orders go in, observations
// come out, and nothing here waits. Orders may be repeated after a crash and must then change
// nothing; observations may be repeated or come late, and the core judges each by its attempt id.

namespace gpu_platform::execution {

// A GPU of an attempt: the facts that its processes need, and what of it the attempt holds.
struct LaunchGpu {
  model::GpuInfo info;
  model::GpuGrant grant;
  // Its place among the GPUs that the node's driver lists, in PCI order: NVML's index. The grant's
  // index is another one where a GPU of the node has been replaced.
  std::uint32_t driver_index = 0;

  friend bool operator==(const LaunchGpu&, const LaunchGpu&) = default;
};

// What an attempt has on one node.
struct LaunchNode {
  model::NodeId node;
  std::string node_name;
  bool emulated = false;
  std::vector<LaunchGpu> gpus;  // in the order of its grants
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::vector<model::NumaNode> near;  // where its processes should run; empty: anywhere
  model::EngineKind engine = model::EngineKind::kProcess;  // the same for all nodes of an order
};

struct StartOrder {
  model::AttemptId attempt;
  std::shared_ptr<const model::JobSpec> spec;
  std::vector<LaunchNode> nodes;
  std::string boot_id;  // the boot for which the start was decided; another boot must not start it
  base::Duration time_limit;  // enforced by the supervisor also while the daemon is away
  base::Duration stop_grace;  // between SIGTERM and SIGKILL at the time limit
  model::JobId array_id;      // invalid: it is no member of an array
  std::uint32_t array_index = 0;
};

struct StopOrder {
  model::AttemptId attempt;
  bool without_grace = false;
  base::Duration grace;
  model::EndReason reason = model::EndReason::kCancelledBy;
};

// The attempt may run for this time, counted from its start: less or more than its StartOrder said.
// It changes nothing for an attempt with a time that is already over.
struct LimitOrder {
  model::AttemptId attempt;
  base::Duration time_limit;
};

// The processes of the attempt get a signal, once and if there are any: the one order that is not
// repeated. It may be lost in a crash or on its way.
struct SignalOrder {
  model::AttemptId attempt;
  std::uint8_t signal = 0;
};

// The attempt is ended and recorded, its resources are free: the engine may drop its marker and
// cgroup. Output files stay.
struct ForgetOrder {
  model::AttemptId attempt;
};

// These GPUs of a node are reset together, and then checked, or are checked alone: no attempt holds
// any of them. It may be repeated. ResetEnded answers for each GPU, also where the engine cannot do
// it.
struct ResetOrder {
  model::NodeId node;
  std::string node_name;
  std::vector<std::string> gpu_uuids;
  model::EngineKind engine = model::EngineKind::kProcess;  // the node's
  bool without_reset = false;                              // they are checked and not reset
  bool is_deep = false;                                    // without_reset: a check of minutes
};

// The core's record of an attempt after a crash. The engine answers with observations that tell the
// truth about each: Started, Ended or Cleaned. If it was never started and no start is under way,
// there is no answer, and the core repeats its StartOrder.
struct KnownAttempt {
  StartOrder order;
  model::AttemptState state = model::AttemptState::kRequested;
};

struct Started {
  model::AttemptId attempt;
  std::uint64_t pid = 0;
  base::Instant at;
  // What the check of its GPUs (JobSpec::preflight) did, in words; empty: none was asked for, or it
  // was before a restart of the daemon.
  std::string preflight = {};
};

// A GPU that failed the check before a start.
struct UnfitGpu {
  std::string node_name;
  std::string gpu_uuid;
  std::string failure;

  friend bool operator==(const UnfitGpu&, const UnfitGpu&) = default;
};

// The attempt ended, or could not be started (reason kLaunchFailed, detail says why; exit code 127
// or 126 where the command was missing or not executable), or was lost. Reason kPrologFailed: the
// site's prolog failed there; nothing of the job was started. Reason kTimeLimit: `time_limit` says
// which limit was over, for a LimitOrder may have been on its way. Reason kPreempted without a
// StopOrder: the cluster took its place away, by no fault of the job. Reason kCancelledBy without
// one: what the job stands for was deleted, so the job is cancelled, too. Reason kEnvironmentLost:
// the environment that it was submitted with is not there any more (EnvironmentSource).
// `unfit_gpus` (with kLaunchFailed): these failed the check before the start, and nothing of the
// job was started.
struct Ended {
  model::AttemptId attempt;
  base::Instant at;
  model::Exit exit;
  model::EndReason reason = model::EndReason::kNone;
  std::string detail;
  model::Usage usage;
  std::optional<base::Duration> time_limit;
  std::vector<UnfitGpu> unfit_gpus = {};
  // How another job on its GPU made it fail, in words; empty: none did. Engines leave it empty.
  std::string neighbour_fault = {};
};

// No process of the attempt is left, and none will ever be started for it. Follows Ended; where the
// end is not known, Ended with lost = kUnknown comes first.
struct Cleaned {
  model::AttemptId attempt;
  std::string epilog_failure;  // of the site's epilog, in words; empty: none
};

// The node exists as described. Repeated after each change of it. A name belongs to one engine: the
// report of another one is no news while jobs hold something of the node.
struct NodeObserved {
  model::NodeInfo info;
};

struct NodeUnreachable {
  std::string node_name;
  std::string cause;
};

// Said once, before the first decision after a start of the daemon: the boot of the machine on
// which the process engine runs. A node of another boot is not what it was and gets nothing before
// it is observed. What it held is told of by the engine, which has the records.
struct MachineBooted {
  std::string boot_id;
};

// Processes on a GPU that belong to no job that holds it, in words; empty: none. Reported after
// each change.
struct UnmanagedProcessesObserved {
  std::string node_name;
  std::string gpu_uuid;
  std::string text;
  // What they make of the GPU, where the site places jobs by load; else none.
  std::optional<model::GpuLoad> load = {};
};

// A party sets or lifts its taint of a node or a GPU. Reported after each change. It takes no
// attempt away, and leaves alone what the other parties have decided.
struct TaintObserved {
  std::string node_name;
  std::string gpu_uuid;  // empty: it is the node's own
  model::TaintSource source = model::TaintSource::kCluster;
  std::optional<model::TaintEffect> effect = {};  // none: it is lifted
  std::string text = {};                          // why, in words

  friend bool operator==(const TaintObserved&, const TaintObserved&) = default;
};

// A piece of evidence about the health of a GPU, or of a node. Counters are told as what was added,
// levels when they begin and end; a storm is told as few pieces with a count.
struct EvidenceObserved {
  std::string node_name;
  std::string gpu_uuid;  // empty: it is the node's own
  model::Evidence evidence;

  friend bool operator==(const EvidenceObserved&, const EvidenceObserved&) = default;
};

// The attempt uses more memory of a GPU than its part of it has, and was warned: it is to be
// stopped. Repeated until it is.
struct GpuMemoryExceeded {
  model::AttemptId attempt;
  std::string node_name;
  std::string gpu_uuid;
  base::Bytes used;
  base::Bytes part;

  friend bool operator==(const GpuMemoryExceeded&, const GpuMemoryExceeded&) = default;
};

// The attempt has not used its GPUs for so long that the site's rules stop it, and was warned.
// Repeated until it is.
struct AllocationIdle {
  model::AttemptId attempt;
  std::string detail;  // for how long, in words

  friend bool operator==(const AllocationIdle&, const AllocationIdle&) = default;
};

// What of a ResetOrder was not done: the rules of the machine do not allow it, or it could not
// begin.
enum class RefusedPart : std::uint8_t {
  kNothing,
  kAll,              // nothing was done to the GPU
  kCheckAfterReset,  // it was reset, and not checked
};

// The answer to a ResetOrder: each GPU's.
struct ResetEnded {
  std::string node_name;
  std::string gpu_uuid;
  std::string failure;         // why it was not reset, or failed its check; empty: it is fit
  std::string detail;          // what was done, for people; may be empty
  bool without_reset = false;  // the order's
  RefusedPart refused = RefusedPart::kNothing;  // if not kNothing, `failure` says why
  // Of what was not done: it could not begin, for example because a process is on the GPU.
  bool is_untried = false;

  friend bool operator==(const ResetEnded&, const ResetEnded&) = default;
};

using Observation = std::variant<Started, Ended, Cleaned, NodeObserved, NodeUnreachable,
                                 MachineBooted, UnmanagedProcessesObserved, TaintObserved,
                                 EvidenceObserved, GpuMemoryExceeded, ResetEnded, AllocationIdle>;

// Receives observations. Safe from any thread; never blocks for long.
class ObservationSink {
 public:
  virtual ~ObservationSink() = default;
  virtual void observe(Observation observation) = 0;
};

// Called from the loop thread; every call returns at once.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual void start(const StartOrder& order) = 0;
  virtual void stop(const StopOrder& order) = 0;
  virtual void set_limit(const LimitOrder& order) = 0;
  virtual void signal(const SignalOrder& order) = 0;
  virtual void forget(const ForgetOrder& order) = 0;
  virtual void reset(const ResetOrder& order) = 0;
  // Called after every start of the daemon, before any other order, with every attempt that holds
  // resources; and from time to time later, because reports may have been lost.
  virtual void adopt(const std::vector<KnownAttempt>& known) = 0;
  // Called after every start of the daemon with the conditions that the core keeps as lasting. Of
  // each that lasts no more, the engine says that it is over: it may have ended while the daemon
  // was away. Engines that observe no conditions do nothing.
  virtual void adopt_conditions(const std::vector<EvidenceObserved>& lasting) {
    static_cast<void>(lasting);
  }
};

}  // namespace gpu_platform::execution
