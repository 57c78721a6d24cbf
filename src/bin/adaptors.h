#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/core_access.h"
#include "bin/channel_log.h"
#include "controller/loop/loop.h"
#include "execution/access_router.h"
#include "execution/engine.h"
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
  void ask_for_newer_than(std::chrono::milliseconds age) override {
    for (const std::string& node : monitor_.nodes_older_than(age)) probes_.read_now(node);
  }

 private:
  const monitoring::GpuMonitor& monitor_;
  node::ProbeRunner& probes_;
};

class EngineChannels : public api::ChannelSource {
 public:
  using Snapshots = std::function<std::shared_ptr<const controller::Snapshot>()>;
  EngineChannels(const execution::AccessRouter& access, Snapshots snapshot, logging::Log& log)
      : access_(access), snapshot_(std::move(snapshot)), log_(log) {}
  void open(model::ChannelOrder order, Opened opened) override {
    const std::uint64_t number = ++last_;
    auto then = [&log = log_, order, number,
                 opened = std::move(opened)](base::Result<os::Descriptor> channel) {
      if (!channel) return opened(std::unexpected(std::move(channel).error()));
      opened(api::ChannelSocket(channel->release(),
                                std::make_shared<const ChannelLog>(log, number, order)));
    };
    const auto snapshot = snapshot_();
    const model::Job* job = snapshot->jobs.find(order.attempt.job.value);
    execution::AttemptAccess& engine =
        job != nullptr ? access_.of(*job, order.attempt.attempt) : access_.of_unknown();
    engine.open_channel(std::move(order), std::move(then));
  }

 private:
  const execution::AccessRouter& access_;
  const Snapshots snapshot_;
  logging::Log& log_;
  std::atomic<std::uint64_t> last_ = 0;  // number of the latest channel
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

// Keeps observations until their receiver exists, and then passes them on. The engine needs a sink
// before the controller, and what receives them needs the controller.
class LateSink : public execution::ObservationSink {
 public:
  void connect(execution::ObservationSink& sink) {
    const std::lock_guard lock(mutex_);
    sink_ = &sink;
    for (auto& observation : waiting_) sink.observe(std::move(observation));
    waiting_.clear();
  }
  // Observations that come later are dropped: the next daemon learns it from the engine's records.
  void disconnect() {
    const std::lock_guard lock(mutex_);
    sink_ = nullptr;
    closed_ = true;
  }
  void observe(execution::Observation observation) override {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (sink_ == nullptr) {
      waiting_.push_back(std::move(observation));
    } else {
      sink_->observe(std::move(observation));
    }
  }

 private:
  std::mutex mutex_;
  execution::ObservationSink* sink_ = nullptr;
  bool closed_ = false;
  std::vector<execution::Observation> waiting_;
};

}  // namespace gpu_platform::bin
