#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "bin/adaptors.h"
#include "bin/board_registrar.h"
#include "bin/core_part.h"
#include "bin/engine_part.h"
#include "bin/idle_watch.h"
#include "bin/late_sink.h"
#include "bin/power_policy.h"
#include "bin/program_paths.h"
#include "bin/users_files.h"
#include "config/configuration.h"
#include "controller/loop/loop.h"
#include "execution/process/process_engine.h"
#include "host/user_directory.h"
#include "logging/log.h"
#include "monitoring/attempt_gate.h"
#include "monitoring/begin_reader.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/job_watchdog.h"
#include "monitoring/memory_watchdog.h"
#include "monitoring/mps_fault_observer.h"
#include "monitoring/node_observer.h"
#include "monitoring/reading_tap.h"
#include "monitoring/sampling_pace.h"
#include "node/probe/probe_runner.h"
#include "telemetry/frame.h"

namespace gpu_platform::bin {

// The part that knows this machine, or the emulated boards in its place: the engine that runs jobs
// here, the probes that look at its GPUs, and what is made of their reports. Open it has its
// engine; connected it passes on what that observes; once it watches it knows its nodes.
//
// Ownership: refers to the core (its environments and, once connected, its loop) and the log; they
// outlive it. Thread: as CorePart.
class HostPart final : public EnginePart {
 public:
  struct Options {
    std::string emulate;   // empty: this host
    std::string launcher;  // the socket of one that is a service; empty: we start one
    ProgramPaths programs;
    std::shared_ptr<host::UserDirectory> users;
  };
  static base::Result<std::unique_ptr<HostPart>> open(Options options,
                                                      const config::Configuration& configuration,
                                                      CorePart& core, logging::Log& log);
  ~HostPart() override;
  HostPart(const HostPart&) = delete;
  HostPart& operator=(const HostPart&) = delete;

  void add_engine(EngineTable& engines) override;
  // The core hears of a release when the driver has confirmed it.
  void connect() override;
  // Has frames made of all readings. To be called before connect(); the listener outlives the
  // probes.
  void tell_frames_to(telemetry::FrameListener& frames) { frames_ = &frames; }
  // Starts the probes.
  base::Status start(const config::Configuration& configuration) override;
  void wait_for_nodes(const std::function<bool()>& must_end) override;
  void warn_of_what_is_missing(const config::Configuration& configuration) const override;
  // Takes up what may change while the daemon runs.
  void reload(const config::Configuration& configuration);
  // The engine's orders go on until it is destroyed.
  void stop() override;

  const std::string& boot_id() const { return engine_->boot_id(); }
  execution::NodePart node_part() const { return engine_->node_part(); }  // any thread
  const UsersFiles& users_files() const { return users_files_; }
  MonitoredReadings& readings() { return *readings_; }
  // Writes into the output of the job that it is idle. Never waits; jobs elsewhere are left out.
  void warn_of_idle(const IdleWatch::Act& act);

 private:
  HostPart(Options options, CorePart& core, logging::Log& log);
  base::Status find_targets(const config::Configuration& configuration);
  base::Status open_engine(const config::Configuration& configuration);
  void hold_probe(const std::string& node, bool is_held);
  monitoring::AttemptGate::ReadNow ask_probes();
  node::ProbeListener& open_telemetry(node::ProbeListener& next, base::Duration interval);

  const Options options_;
  CorePart& core_;
  logging::Log& log_;
  std::vector<node::ProbeTarget> targets_;
  std::set<std::string> names_;                // of the nodes
  std::string mps_control_;                    // the program; empty: there is none
  std::unique_ptr<BoardRegistrar> registrar_;  // null: no emulated boards
  LateSink observations_;
  UsersFiles users_files_;
  std::unique_ptr<execution::ProcessEngine> engine_;
  std::atomic<node::ProbeRunner*> probes_to_ask_{nullptr};
  std::mutex probes_guard_;           // while the engine speaks to a probe or of one, it stays
  std::set<std::string> held_nodes_;  // their probes have let go; under probes_guard_
  std::unique_ptr<monitoring::MemoryWatchdog> memory_;
  std::unique_ptr<monitoring::MpsFaultObserver> mps_faults_;
  monitoring::MpsFaultObserver* faults_to_tell_ = nullptr;  // of the engine; under probes_guard_
  std::unique_ptr<monitoring::AttemptGate> gate_;
  std::unique_ptr<monitoring::GpuMonitor> monitor_;
  std::unique_ptr<monitoring::HealthObserver> health_;
  std::unique_ptr<monitoring::NodeObserver> nodes_;
  std::unique_ptr<monitoring::JobWatchdog> watchdog_;
  telemetry::FrameListener* frames_ = nullptr;  // null: no frames are made
  std::unique_ptr<monitoring::ReadingTap> tap_;
  std::unique_ptr<monitoring::SamplingPace> pace_;
  std::unique_ptr<monitoring::BeginReader> begins_;  // null, as the two before: no frames are made
  std::unique_ptr<PowerPolicy> power_;
  std::unique_ptr<node::ProbeRunner> probes_;
  std::unique_ptr<MonitoredReadings> readings_;
};

}  // namespace gpu_platform::bin
