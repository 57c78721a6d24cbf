#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hardware/procfs/procfs_host.h"
#include "model/host_metrics.h"

namespace gpu_platform::hardware {

// Reads the metrics of the running host from the kernel's files, some ten of them and no more than
// a millisecond. What a kernel does not tell, or tells in a form that is not known, is absent.
// Thread: one owner.
class ProcfsMetrics {
 public:
  // `data_folder`: a folder of the file system whose size is told; empty: none is.
  explicit ProcfsMetrics(std::string data_folder, ProcfsRoots roots = {});

  // The use of the CPUs is that since the last call; the first has none.
  model::HostMetrics read();

 private:
  struct CpuTimes {  // in ticks, since the boot
    std::uint64_t all = 0;
    std::uint64_t idle = 0;
  };

  std::optional<CpuTimes> cpu_times() const;
  void read_cpus(model::HostMetrics& out);
  void read_load(model::HostMetrics& out) const;
  void read_memory(model::HostMetrics& out) const;
  void read_disks(model::HostMetrics& out) const;
  void read_network(model::HostMetrics& out) const;
  void read_file_system(model::HostMetrics& out) const;
  bool is_whole_disk(const std::string& name) const;

  const std::string data_folder_;
  const ProcfsRoots roots_;
  std::optional<CpuTimes> last_;
};

}  // namespace gpu_platform::hardware
