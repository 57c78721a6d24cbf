#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "hardware/gpu_library.h"
#include "telemetry/use_summary.h"

namespace gpu_platform::cli {

// What is read while a command runs.
struct MonitoredGpus {
  std::unique_ptr<hardware::GpuLibrary> library;  // null: nothing is read
  std::vector<hardware::GpuDescription> gpus;
  base::Duration interval = base::seconds(1);
};

struct MonitoredEnd {
  int exit_code = 0;    // as a shell gives it: 128 + the signal; 127: there is no such program
  std::string problem;  // why the command could not be started; empty: it ran
  std::optional<telemetry::UseSummary> use;  // absent: nothing was read
};

// Runs the command in the foreground, with our standard streams, and reads the GPUs meanwhile, on a
// thread of its own: a driver that hangs does not keep the command or its signals. Signals that end
// or tell a program something are passed on to the command. Call it from the only thread.
MonitoredEnd run_monitored(const std::vector<std::string>& command, MonitoredGpus monitored);

}  // namespace gpu_platform::cli
