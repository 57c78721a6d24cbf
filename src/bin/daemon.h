#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bin/process_origin.h"
#include "config/configuration.h"
#include "host/user_directory.h"
#include "logging/log.h"

namespace gpu_platform::bin {

class AlertPart;
class ClusterPart;
class CorePart;
class DoorPart;
class EnginePart;
class HostPart;
class SiteReadings;
class TelemetryPart;

struct DaemonOptions {
  std::string data_dir;
  std::string socket;
  std::string emulate;      // empty: this host
  std::string config_file;  // that the configuration was read from; empty: none
  std::string launcher;     // socket of a launcher that runs as a service; empty: we start one
  // Start although the store is older than work that was acknowledged here.
  bool accept_loss = false;
  // The name by which this process has the lease of the site's cluster already; empty: it has none.
  std::string lease_holder = {};
  // Whether the process has been told to end: then the start waits for nothing any more, and the
  // daemon may lack nodes, or not start. Empty: never.
  std::function<bool()> must_end = {};
  // Sees how many of the journal's records are read at the start; may be empty.
  std::function<void(std::uint64_t done, std::uint64_t all)> recovering = {};
};

// The daemon: its six parts joined and running. Started it answers on its socket; stopped (or
// destroyed) it has ended its threads and left the jobs running.
class Daemon {
 public:
  // kAlreadyExists: the data directory is in use. kInvalidArgument: a wrong --emulate. kDataLoss:
  // the store is damaged; the message says what to do.
  static base::Result<std::unique_ptr<Daemon>> start(const DaemonOptions& options,
                                                     const config::Configuration& configuration);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Applies the keys that may change while the daemon runs. The audit trail records the sender of
  // the signal.
  void reload(const config::Configuration& configuration, const ActingProcess& sender);
  // Records in the audit trail that a reload was refused because the configuration has an error.
  void refuse_reload(const base::Error& error, const ActingProcess& sender);
  // The one way to end, at any point of the start.
  void stop();

 private:
  explicit Daemon(const config::Configuration& configuration);
  base::Status open(const DaemonOptions& options);
  base::Status open_core(const DaemonOptions& options);
  std::vector<EnginePart*> engine_parts() const;
  base::Status open_alerts();
  base::Status start_core(const DaemonOptions& options);
  base::Status find_nodes(const std::function<bool()>& must_end);
  void record(const ActingProcess& sender, std::string target, const base::Error* error);

  logging::Log log_;
  const std::shared_ptr<host::UserDirectory> users_ = std::make_shared<host::UserDirectory>();
  const config::Configuration at_start_;
  config::Configuration last_read_;
  std::string data_dir_;
  bool is_complete_ = false;  // it has answered
  // In the order in which they need each other.
  std::unique_ptr<CorePart> core_;
  std::unique_ptr<TelemetryPart> telemetry_;
  std::unique_ptr<HostPart> host_;
  std::unique_ptr<ClusterPart> cluster_;
  std::unique_ptr<SiteReadings> readings_;
  std::unique_ptr<AlertPart> alerts_;
  std::unique_ptr<DoorPart> door_;
};

}  // namespace gpu_platform::bin
