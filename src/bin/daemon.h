#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/configuration.h"

namespace gpu_platform::bin {

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
};

// The sender of a signal, as the kernel reports it.
struct SignalSender {
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
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

  // Applies the keys that may change while the daemon runs. The audit trail records the sender.
  void reload(const config::Configuration& configuration, const SignalSender& sender);
  // Records in the audit trail that a reload was refused because the configuration has an error.
  void refuse_reload(const base::Error& error, const SignalSender& sender);
  void stop();

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Notifies systemd (or another service manager that set NOTIFY_SOCKET). Does nothing if
// NOTIFY_SOCKET is not set.
void notify_service_manager(std::string_view message);

}  // namespace gpu_platform::bin
