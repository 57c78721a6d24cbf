#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/snapshot.h"
#include "execution/engine.h"
#include "hardware/readings.h"
#include "monitoring/evidence_storm.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/gpu_watch.h"
#include "monitoring/peer_watch.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::monitoring {

// Reports to the core what the probes' readings and the drivers' events say about the health of
// GPUs, as evidence with the job that held the GPU then. Of several jobs on one GPU the one with
// the process that the driver names is named, else none. It judges nothing. Counters are told as
// what was added, levels as their begin and end, storms as a few pieces. What the core has kept
// tells a new observer which levels last. Thread: one (the probe runner's).
class HealthObserver {
 public:
  using Clock = std::function<Moment()>;
  // Returns the attempt with this process on the GPU, if that is known.
  using OwnerOf =
      std::function<std::optional<model::AttemptId>(const std::string& uuid, std::uint32_t pid)>;

  HealthObserver(execution::ObservationSink& sink, SnapshotNow snapshot, HealthLimits limits = {},
                 Clock clock = {}, OwnerOf owner_of = {});

  // A GPU that the node had and that is not among several listed now is lost.
  void take_inventory(const std::string& node, const hardware::Inventory& inventory);
  // `uuids` by the index of the readings.
  void take_readings(const std::string& node, const std::vector<std::string>& uuids,
                     const node::ProbeReadings& readings);
  void take_events(const std::string& node, const node::ProbeEvents& events);
  // A line of the node's kernel log, about this GPU; of an NVSwitch, or of no known GPU: empty.
  void take_kernel_line(const std::string& node, const std::string& uuid,
                        const hardware::KernelLine& line);

 private:
  // What holds a GPU.
  struct Work {
    model::JobId job;
    std::string_view user;
    std::string_view program;
  };
  struct WatchedGpu {
    GpuWatch watch;
    GpuBuild build;
    std::string kind;  // for comparing it with its peers
    std::string model;
    base::Instant renewed_at;  // see renewed_at()
  };
  // One report of a node's probe.
  struct Report {
    const std::string& node;
    std::shared_ptr<const controller::Snapshot> snapshot;
    const model::Node* known;  // null: the published state has no such node
    Moment now;
  };

  bool is_new_switch_fault(const Report& report, const hardware::KernelLine& line);
  Report begin_report(const std::string& node) const;
  WatchedGpu& gpu_of(const Report& report, const std::string& uuid);
  Work work_on(const Report& report, const std::string& uuid, std::uint32_t pid = 0) const;
  void tell(const Report& report, const std::string& uuid, std::vector<model::Evidence> pieces);
  void tell_due(Moment now);
  void forget_storm_before_renewal(const Report& report, const std::string& uuid);
  void send(EvidenceStorm::Piece piece);
  void learn_links(const node::ProbeReadings& readings, const std::vector<std::string>& uuids);
  void compare_peers(const Report& report, const std::vector<std::string>& uuids,
                     const node::ProbeReadings& readings);

  execution::ObservationSink& sink_;
  const SnapshotNow snapshot_;
  const HealthLimits limits_;
  const Clock clock_;
  const OwnerOf owner_of_;
  std::map<std::string, WatchedGpu, std::less<>> gpus_;                  // by UUID
  std::map<std::string, std::vector<std::string>, std::less<>> listed_;  // UUIDs by node
  std::map<std::string, std::int64_t> switch_faults_;  // when each was told last, boot clock
  EvidenceStorm storm_;
  PeerWatch peers_;
};

}  // namespace gpu_platform::monitoring
