#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/alert_source.h"
#include "api/identity/certificate_prover.h"
#include "api/identity/identity_authenticator.h"
#include "api/identity/token_authenticator.h"
#include "api/identity/web_token_prover.h"
#include "api/metrics/metric_source.h"
#include "api/rest/server.h"
#include "base/result.h"
#include "bin/adaptors.h"
#include "bin/core_part.h"
#include "bin/engine_channels.h"
#include "bin/gpu_verdicts.h"
#include "bin/host_part.h"
#include "bin/job_outputs.h"
#include "bin/reloaded.h"
#include "bin/telemetry_part.h"
#include "config/configuration.h"
#include "config/effective.h"
#include "config/slurm_names.h"
#include "host/user_directory.h"
#include "listener/host/listener_host.h"
#include "logging/log.h"

namespace gpu_platform::bin {

// The part that answers: the API on its socket, the listener for other machines, and what tells who
// calls.
//
// Ownership: refers to the other parts and the log, which outlive it. Thread: as CorePart.
class DoorPart {
 public:
  struct Options {
    std::string socket;
    std::string config_file;       // that the configuration was read from; empty: none
    std::string listener_program;  // path of gpu-platform-listener
    std::shared_ptr<host::UserDirectory> users;
    api::AlertSource* alerts = nullptr;
    api::GpuReadingSource* readings = nullptr;
    std::vector<const api::MetricSource*> metric_sources;  // none is null; they outlive the door
  };
  // The socket's path appears last.
  static base::Result<std::unique_ptr<DoorPart>> open(Options options,
                                                      const config::Configuration& configuration,
                                                      CorePart& core, HostPart& host,
                                                      TelemetryPart& telemetry, logging::Log& log);
  ~DoorPart();
  DoorPart(const DoorPart&) = delete;
  DoorPart& operator=(const DoorPart&) = delete;

  // Takes up what may change while the daemon runs.
  void reload(const config::Configuration& configuration);

  // Takes no new connection, and ends its threads when requests under way are answered.
  void stop();

 private:
  DoorPart(Options options, const config::Configuration& configuration, CorePart& core,
           HostPart& host, TelemetryPart& telemetry, logging::Log& log);
  base::Status make_authenticators(const model::UserRange& range);
  api::ServerOptions server_options(const model::UserRange& range, bool runs_as_itself);
  api::CoreAccess core_access();
  // What a credential that others have signed proves here.
  base::Result<api::ProvenIdentity> prove(const api::Credential& shown, base::Instant now);
  void warn_of_credentials(const std::string& line);

  const Options options_;
  const config::Configuration at_start_;
  CorePart& core_;
  HostPart& host_;
  TelemetryPart& telemetry_;
  logging::Log& log_;
  LoopCommands commands_;
  const LoopSnapshots snapshots_;
  EngineChannels channels_;
  const JobOutputs outputs_;
  GpuVerdicts verdicts_;
  Reloaded<config::SlurmNames> slurm_names_;
  Reloaded<config::InForce> in_force_;
  Reloaded<api::IdentityUsers> identities_;
  api::TokenUses token_uses_;
  std::unique_ptr<api::TokenAuthenticator> tokens_;
  api::CertificateProver certificates_;
  std::unique_ptr<api::WebTokenProver> web_tokens_;  // null: the site trusts no issuer
  std::unique_ptr<api::IdentityAuthenticator> identities_of_others_;
  std::unique_ptr<api::Authenticators> authenticator_;
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<listener::ListenerHost> network_listener_;  // null: the site has none
};

}  // namespace gpu_platform::bin
