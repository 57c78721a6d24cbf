#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/core_access.h"
#include "controller/loop/loop.h"
#include "execution/environment_source.h"
#include "monitoring/gpu_monitor.h"
#include "node/probe/probe_runner.h"
#include "store/store.h"

// Small objects that let one room's interface be served by another room.

namespace gpu_platform::bin {

class LoopCommands : public api::CommandSink {
 public:
  explicit LoopCommands(controller::Loop& loop) : loop_(loop) {}
  void submit(model::Command command, Done done) override {
    loop_.command(std::move(command), std::move(done));
  }

 private:
  controller::Loop& loop_;
};

class LoopSnapshots : public api::SnapshotSource {
 public:
  explicit LoopSnapshots(const controller::Loop& loop) : loop_(loop) {}
  std::shared_ptr<const controller::Snapshot> snapshot() const override { return loop_.snapshot(); }

 private:
  const controller::Loop& loop_;
};

class MonitoredReadings : public api::GpuReadingSource {
 public:
  MonitoredReadings(const monitoring::GpuMonitor& monitor, node::ProbeRunner& probes)
      : monitor_(monitor), probes_(probes) {}
  std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const override {
    return monitor_.latest(uuid);
  }
  std::shared_ptr<const model::HostMetrics> latest_host(std::string_view node) const override {
    return monitor_.latest_host(node);
  }

  void ask_for_newer_than(std::chrono::milliseconds age) override {
    for (const std::string& node : monitor_.nodes_older_than(age)) probes_.read_now(node);
  }

 private:
  const monitoring::GpuMonitor& monitor_;
  node::ProbeRunner& probes_;
};

class StoredEnvironments : public execution::EnvironmentSource {
 public:
  explicit StoredEnvironments(const store::Journal& journal) : journal_(journal) {}
  base::Result<std::string> environment(std::string_view ref) const override {
    return journal_.environment(ref);
  }

 private:
  const store::Journal& journal_;
};

}  // namespace gpu_platform::bin
