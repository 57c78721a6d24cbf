#include "bin/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include <spdlog/spdlog.h>

#include "bin/alert_part.h"
#include "bin/cluster_part.h"
#include "bin/core_part.h"
#include "bin/door_part.h"
#include "bin/found_nodes.h"
#include "bin/host_part.h"
#include "bin/kubernetes_site.h"
#include "bin/program_paths.h"
#include "bin/reload_report.h"
#include "bin/site_policy.h"
#include "bin/site_readings.h"
#include "bin/telemetry_part.h"
#include "listener/host/certificate.h"
#include "os/clock.h"

namespace gpu_platform::bin {

namespace {

// Ends the process so that the next one recovers from the journal: what is durable and what is in
// memory may differ, so nothing of this process may be used any more.
void end_now(const base::Error& error) {
  spdlog::critical("the daemon ends and must be started again: {}", error.message);
  spdlog::default_logger()->flush();
  _exit(1);
}

// The store makes it, with the mode that its secrets need.
base::Result<std::string> absolute_directory(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (error) {
    return base::fail(base::ErrorCode::kInternal,
                      fmt::format("data directory {}: {}", path, error.message()));
  }
  return absolute.string();
}

}  // namespace

base::Result<std::unique_ptr<Daemon>> Daemon::start(const DaemonOptions& options,
                                                    const config::Configuration& configuration) {
  std::unique_ptr<Daemon> daemon(new Daemon(configuration));
  TRY(daemon->open(options));
  return daemon;
}

Daemon::Daemon(const config::Configuration& configuration)
    : at_start_(configuration), last_read_(configuration) {}

Daemon::~Daemon() {
  stop();
}

// The core needs the engines before it takes commands, and they need its store before they open.
base::Status Daemon::open(const DaemonOptions& options) {
  const ProgramPaths programs = find_program_paths();
  TRY(open_core(options));
  telemetry_ = TelemetryPart::open(data_dir_, at_start_);
  TRY_ASSIGN(host_, HostPart::open({options.emulate, options.launcher, programs, users_}, at_start_,
                                   *core_, log_));
  host_->tell_frames_to(telemetry_->frames());
  TRY_ASSIGN(cluster_, ClusterPart::open({options.lease_holder, users_, end_now, options.must_end},
                                         at_start_, *core_));
  cluster_->tell_frames_to(telemetry_->frames());
  TRY(start_core(options));
  TRY(find_nodes(options.must_end));
  core_->start_retention([this](std::span<const model::JobId> jobs) { telemetry_->forget(jobs); });
  alerts_->start();
  TRY_ASSIGN(door_, DoorPart::open({options.socket,
                                    options.config_file,
                                    programs.listener,
                                    users_,
                                    alerts_.get(),
                                    readings_.get(),
                                    {alerts_.get()}},
                                   at_start_, *core_, *host_, *telemetry_, log_));
  is_complete_ = true;
  return {};
}

base::Status Daemon::open_core(const DaemonOptions& options) {
  TRY_ASSIGN(data_dir_, absolute_directory(options.data_dir));
  const bool has_boards = !options.emulate.empty();
  TRY_ASSIGN(core_, CorePart::open({data_dir_, has_boards, options.accept_loss}, at_start_, log_));
  return {};
}

// Those that are open.
std::vector<EnginePart*> Daemon::engine_parts() const {
  std::vector<EnginePart*> parts;
  if (host_ != nullptr) parts.push_back(host_.get());
  if (cluster_ != nullptr) parts.push_back(cluster_.get());
  return parts;
}

base::Status Daemon::start_core(const DaemonOptions& options) {
  EngineTable engines;
  for (EnginePart* part : engine_parts()) part->add_engine(engines);
  TRY(core_->recover(
      engines, at_start_,
      {policy_of(at_start_, geteuid()),
       origin_of(*users_, model::Door::kStart, {geteuid(), static_cast<std::int32_t>(getpid())}),
       host_->boot_id(), end_now, options.recovering}));
  TRY(open_alerts());
  telemetry_->follow(*core_);
  for (EnginePart* part : engine_parts()) part->connect();
  core_->start();
  return {};
}

// It hears of the state from its first publication on. Its thread starts when there are readings.
base::Status Daemon::open_alerts() {
  AlertPart::Options options;
  options.data_dir = data_dir_;
  options.snapshot = [this] { return core_->snapshot(); };
  options.reading_of = [this](std::string_view uuid) { return readings_->latest(uuid); };
  options.oldest_reading = std::max(kOldestReading, at_start_.monitoring_interval * 3);
  options.sink = &core_->loop();
  options.notes = telemetry_->notes();
  options.history = telemetry_->history();
  options.warn = [this](const IdleWatch::Act& act) { host_->warn_of_idle(act); };
  const listener::CertificateFiles files{at_start_.tls_certificate.path, at_start_.tls_key.path};
  if (!files.certificate.empty()) {
    options.certificate_end = [files] {
      const auto read = listener::read_certificate(files, os::wall_now());
      return read ? read->ends_at : base::Instant();
    };
  }
  TRY_ASSIGN(alerts_, AlertPart::open(std::move(options), at_start_));
  core_->add_listener(*alerts_);
  telemetry_->add(*alerts_);
  return {};
}

base::Status Daemon::find_nodes(const std::function<bool()>& must_end) {
  for (EnginePart* part : engine_parts()) TRY(part->start(at_start_));
  readings_ = std::make_unique<SiteReadings>(host_->readings(), *cluster_);
  for (EnginePart* part : engine_parts()) part->wait_for_nodes(must_end);
  core_->loop().wait_until_published();
  for (const EnginePart* part : engine_parts()) part->warn_of_what_is_missing(at_start_);
  const auto unmet = scheduling::unmet_guarantees(*at_start_.policy.organisation,
                                                  gpus_by_type(*core_->snapshot()));
  for (const std::string& sentence : unmet) spdlog::warn("{}", sentence);
  return {};
}

void Daemon::reload(const config::Configuration& configuration, const ActingProcess& sender) {
  const ReloadReport report = reload_report(at_start_, last_read_, configuration);
  for (const std::string& line : report.applied) spdlog::info("{}", line);
  for (const std::string& line : report.waiting) spdlog::warn("{}", line);
  const bool has_same_access = last_read_.access == configuration.access &&
                               last_read_.identities == configuration.identities;
  last_read_ = configuration;
  core_->loop().change_policy(policy_of(configuration, geteuid()), "configuration",
                              origin_of(*users_, model::Door::kSignal, sender));
  door_->reload(configuration);
  alerts_->reload(configuration);
  if (host_ != nullptr) host_->reload(configuration);
  core_->team_follower().change_settings(configuration.access);
  // The journal does not have the roles, so the trail says that they changed.
  if (!has_same_access) record(sender, "access", nullptr);
}

void Daemon::refuse_reload(const base::Error& error, const ActingProcess& sender) {
  record(sender, {}, &error);
}

// Writes an entry about the configuration into the audit trail. `error`: why it was refused; null:
// it was not.
void Daemon::record(const ActingProcess& sender, std::string target, const base::Error* error) {
  model::AuditedCall call;
  call.by = origin_of(*users_, model::Door::kSignal, sender);
  call.action = model::AuditAction::kConfigure;
  call.target = std::move(target);
  if (error != nullptr) call.refusal = model::refusal_of(*error);
  core_->loop().command({{}, model::RecordCalls{{std::move(call)}}},
                        [](const base::Result<model::CommandReply>&) {});
}

// Threads end first, so that none of them uses an object that is gone: those that ask before those
// that answer. The engines go before the store, in which they read environments.
void Daemon::stop() {
  if (alerts_ != nullptr) alerts_->stop();
  if (door_ != nullptr) door_->stop();
  for (EnginePart* part : engine_parts()) part->stop();
  if (telemetry_ != nullptr) telemetry_->stop();  // the probes have ended
  if (core_ != nullptr) core_->stop();
  const bool has_lease = is_complete_ && !cluster_->is_empty();
  is_complete_ = false;
  door_.reset();
  alerts_.reset();
  readings_.reset();
  cluster_.reset();
  host_.reset();
  telemetry_.reset();
  core_.reset();
  // Last, so that the next daemon finds the data directory free.
  if (has_lease) release_kubernetes_lease(at_start_, data_dir_, {});
}

}  // namespace gpu_platform::bin
