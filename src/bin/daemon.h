#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/configuration.h"

namespace gpu_platform::bin {

struct DaemonOptions {
  std::string data_dir;
  std::string socket;
  std::string emulate;   // empty: this host
  std::string launcher;  // socket of a launcher that runs as a service; empty: we start one
};

// The daemon: all rooms joined and running. Started it answers on its socket; stopped (or
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

  // Takes up what may change while it runs.
  void reload(const config::Configuration& configuration);
  void stop();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Tells systemd (or whoever set NOTIFY_SOCKET); does nothing where nobody did.
void notify_service_manager(std::string_view message);

}  // namespace gpu_platform::bin
