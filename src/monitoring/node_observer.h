#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "discovery/describe_node.h"
#include "execution/engine.h"
#include "logging/log.h"
#include "monitoring/attempt_gate.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/health_observer.h"
#include "monitoring/memory_watchdog.h"
#include "monitoring/mps_fault_observer.h"
#include "monitoring/xid_sources.h"
#include "node/probe/probe_runner.h"

namespace gpu_platform::monitoring {

// Passes the reports of probes on: nodes to the core, readings and events to the monitor, the
// health observer, the observer of MPS faults, the memory watchdog and the gate, troubles to the
// log. Called on the probe
// runner's thread; wait_for_all() on any other.
class NodeObserver : public node::ProbeListener {
 public:
  using Places = std::map<std::string, model::NetworkPlace, std::less<>>;  // by node
  // What the site says of nodes, for they do not know it themselves.
  struct Site {
    Places places;
    model::CapacityClass capacity = model::CapacityClass::kOnDemand;  // of all of them
    // The node part freezes jobs that share a GPU outside their turns, and no job can undo it.
    bool freezes_jobs = false;
    // It starts MPS servers, whose clients it can end.
    bool serves_mps = false;
  };

  // `log` outlives this.
  NodeObserver(execution::ObservationSink& sink, GpuMonitor& monitor, HealthObserver& health,
               MpsFaultObserver& mps_faults, MemoryWatchdog& memory, AttemptGate& gate,
               logging::Log& log, Site site)
      : sink_(sink),
        monitor_(monitor),
        health_(health),
        mps_faults_(mps_faults),
        memory_(memory),
        gate_(gate),
        log_(log),
        site_(std::move(site)) {}

  void on_report(node::ProbeReport report) override;

  // Waits until every node named has been described (or could not be); false when the limit passes
  // first.
  bool wait_for_all(const std::set<std::string>& names, std::chrono::milliseconds limit);

  // GPUs of all nodes described so far.
  std::size_t gpu_count() const;

 private:
  void take_inventory(const node::ProbeReport& report, const hardware::Inventory& inventory);
  void take_events(const std::string& node, node::ProbeEvents events);
  void take_kernel_log(const std::string& node, node::ProbeKernelLog log);
  void take_kernel_line(const std::string& node, hardware::KernelLine line);
  void log_xid(const std::string& node, const hardware::GpuEvent& event);
  void look_for_memory(const std::string& node, const node::ProbeReadings& readings);
  void settle(const std::string& node, std::size_t gpus);

  execution::ObservationSink& sink_;
  GpuMonitor& monitor_;
  HealthObserver& health_;
  MpsFaultObserver& mps_faults_;
  MemoryWatchdog& memory_;
  AttemptGate& gate_;
  logging::Log& log_;
  const Site site_;
  std::map<std::string, std::vector<std::string>> uuids_;  // by the driver's index
  // UUIDs by node and hardware::pci_place_of(); GPUs that are not listed any more, too.
  std::map<std::string, std::map<std::string, std::string>> uuids_by_place_;
  XidSources xids_;
  std::map<std::string, discovery::KnownGpus> known_gpus_;  // of the runner's thread; by node
  struct Described {
    model::NodeInfo info;
    std::uint32_t withheld = 0;  // readings in a row without the memory of processes
  };
  std::map<std::string, Described> described_;  // of the runner's thread; by node
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::size_t> gpus_;  // guarded by mutex_; by node
};

}  // namespace gpu_platform::monitoring
