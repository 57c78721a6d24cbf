#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/snapshot.h"
#include "execution/engine.h"
#include "hardware/readings.h"
#include "model/gpu_reading.h"
#include "model/host_metrics.h"
#include "monitoring/load_watch.h"
#include "monitoring/process_owners.h"
#include "monitoring/seen_process.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::monitoring {

using SnapshotNow = std::function<std::shared_ptr<const controller::Snapshot>()>;

// The latest reading of every GPU, with the owners of the processes on it and the latest XIDs. It
// reports unmanaged processes to the core. take_*() are called by one thread (the probe runner's),
// everything else from any.
class GpuMonitor {
 public:
  GpuMonitor(execution::ObservationSink& sink, SnapshotNow snapshot, const std::string& cgroup_base,
             host::UserDirectory& users)
      : sink_(sink), snapshot_(std::move(snapshot)), owners_(cgroup_base, users) {}

  void take_inventory(const hardware::Inventory& inventory);
  // A limit that was set since the inventory. Any thread.
  void take_power_limit(const std::string& uuid, base::Milliwatts limit);
  // `uuids` by the index of the readings. Returns whose processes are on the GPUs that were read.
  SeenProcesses take_readings(const std::string& node, const std::vector<std::string>& uuids,
                              const node::ProbeReadings& readings);
  void take_events(const node::ProbeEvents& events);
  // Returns the attempt with this process on the GPU: as the last reading showed it, else as it is
  // now. Of the taking thread.
  std::optional<model::AttemptId> owner_of(const std::string& uuid, std::uint32_t pid);

  // Null: nothing was read of it yet, or for so long that it was forgotten.
  std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const;

  // The host's own metrics. Null: nothing was read of it yet, or for so long that it was forgotten.
  std::shared_ptr<const model::HostMetrics> latest_host(std::string_view node) const;

  // Forgets the GPUs and hosts of which nothing was heard since then: a driver that lists a GPU has
  // it read at each interval. take_readings() calls it with the time an hour ago. Of the taking
  // thread.
  void forget_gpus_before(std::chrono::steady_clock::time_point limit);

  // Nodes with readings older than this.
  std::vector<std::string> nodes_older_than(std::chrono::milliseconds age) const;

 private:
  struct GpuSeen {
    std::shared_ptr<const model::GpuReading> reading;
    std::vector<model::SeenXid> xids;  // newest first
    std::map<std::uint64_t, std::uint64_t> xid_counts;
    std::chrono::steady_clock::time_point heard_at;
  };
  // What the inventory says of a GPU, and each reading repeats.
  struct GpuLimits {
    std::optional<base::Milliwatts> power;
    std::optional<std::int32_t> slowdown_c;
  };
  struct UnmanagedProcesses {
    std::set<std::uint32_t> seen;  // pids of the last reading
    std::string told;
    LoadWatch load;
  };

  struct ReadGpu {
    const std::string& uuid;
    const model::Gpu* known;  // null: the published state has no such GPU
    const hardware::GpuReading& reading;
  };
  std::vector<model::GpuProcess> processes_of(const ReadGpu& gpu,
                                              const controller::Snapshot& snapshot,
                                              std::vector<SeenProcess>& seen);
  void remember_owners(const std::string& uuid, std::vector<SeenProcess>& seen);
  // `policy`: null before the first one.
  void tell_unmanaged_processes(const std::string& node, const ReadGpu& gpu,
                                const model::Policy* policy,
                                const std::vector<model::GpuProcess>& processes);

  execution::ObservationSink& sink_;
  SnapshotNow snapshot_;
  ProcessOwners owners_;                                           // of the taking thread
  std::map<std::string, UnmanagedProcesses> unmanaged_processes_;  // by UUID; of the taking thread
  // The owners of the processes of the last reading, by UUID and pid; of the taking thread.
  std::map<std::string, std::map<std::uint32_t, model::AttemptId>> owners_seen_;

  mutable std::mutex mutex_;
  std::map<std::string, GpuLimits> limits_;           // guarded by mutex_, by UUID
  std::map<std::string, GpuSeen, std::less<>> gpus_;  // guarded by mutex_, by UUID
  std::map<std::string, std::chrono::steady_clock::time_point>
      read_at_;  // guarded by mutex_, by node
  // Guarded by mutex_, by node.
  std::map<std::string, std::shared_ptr<const model::HostMetrics>, std::less<>> hosts_;
  std::chrono::steady_clock::time_point forgot_at_;  // of the taking thread
};

}  // namespace gpu_platform::monitoring
