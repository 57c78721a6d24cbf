#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/units.h"
#include "hardware/gpu_library.h"
#include "hardware/host_topology.h"
#include "hardware/procfs/procfs_metrics.h"
#include "node/probe/dcgm_reader.h"
#include "node/probe/gpu_watchers.h"
#include "node/probe/kernel_log_watcher.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::node {

struct ProbeOptions {
  GpuSource source{"libnvidia-ml.so.1", ""};
  std::string host_description;  // of an emulated node; empty: the running kernel is asked
  std::string kernel_log;        // its device; empty: it is not read
  std::string data_folder;       // whose file system's size is told; empty: none is
  hardware::DcgmSource dcgm;     // without libraries DCGM is not asked
  int fd = -1;                   // SOCK_SEQPACKET to the daemon
  base::Duration interval = base::seconds(5);
};

// The body of the probe process: everything that may hang in a driver happens here. The thread that
// calls run() polls; one waits for events of the driver, one reads what takes long, one asks DCGM,
// one follows the kernel's log. Holds no data that a new probe would not read again.
class Probe {
 public:
  explicit Probe(ProbeOptions options);

  // Runs until the daemon hangs up. Then the process ends at once, because threads may be inside
  // the driver.
  [[noreturn]] void run();

 private:
  enum class Wake { kInterval, kReadNow, kHangUp };
  struct Woken {
    Wake by = Wake::kInterval;
    ReadNow asked;  // of kReadNow
  };

  void ensure_library();
  void drop_library();
  hardware::Inventory take_inventory(hardware::HostDescription host);
  void report_inventory();
  void keep_uuids(const std::vector<hardware::GpuDescription>& gpus);
  void resume_watchers();
  void report_readings(const ReadNow& asked);
  std::optional<std::vector<std::uint32_t>> indexes_of(const ReadNow& asked) const;
  Woken wait(std::int64_t until_ns);

  const ProbeOptions options_;
  const ProbeOutput output_;
  EventWatcher events_;
  SlowReader slow_;
  DcgmReader dcgm_;
  KernelLogWatcher kernel_log_;
  hardware::ProcfsMetrics host_metrics_;
  std::int64_t next_host_metrics_ns_ = 0;
  std::unique_ptr<hardware::HostTopology> host_;
  OpenedLibrary gpus_;  // its library null while there is none
  std::optional<hardware::LibraryProblem> problem_;
  std::vector<std::string> uuids_;  // by index; empty where the driver says none
  bool is_inventory_due_ = true;
  std::string sent_inventory_;
  std::int64_t next_inventory_ns_ = 0;
};

}  // namespace gpu_platform::node
