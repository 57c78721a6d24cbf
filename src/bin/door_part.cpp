#include "bin/door_part.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include <spdlog/spdlog.h>

#include "bin/alert_settings.h"
#include "bin/isolation_report.h"
#include "bin/network_listener.h"
#include "bin/site_files.h"
#include "bin/site_policy.h"
#include "bin/site_users.h"

namespace gpu_platform::bin {

namespace {

// One line with the id that the answer has, too. It takes nothing from the budget of other lines
// about this user.
void tell_call(logging::Log& log, const api::Peer& peer, const api::NotableCall& call) {
  const bool is_known = !peer.caller.user.empty();
  logging::Source source =
      is_known ? logging::of_user(peer.caller.uid) : logging::of_platform("callers not known");
  source.name = "calls of " + source.name;
  log.info(source, "api request={} call={} status={} ms={:.0f} uid={}", call.request_id,
           call.call.empty() ? "-" : call.call, call.status, call.seconds * 1e3,
           is_known ? std::to_string(peer.caller.uid) : "-");
}

// Makes the folder of the socket if only that is missing, such as /run/gpu-platform. If more of the
// path is missing, or a folder at the root of the disk, the path is likely to be a slip.
base::Status make_socket_folder(const std::string& socket) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::absolute(socket, error).lexically_normal().parent_path();
  if (error || fs::is_directory(folder, error)) return {};
  const fs::path above = folder.parent_path();
  if (above != above.root_path() && fs::is_directory(above, error)) {
    fs::create_directory(folder, error);
    return {};
  }
  return base::fail(base::ErrorCode::kInvalidArgument,
                    fmt::format("--socket: there is no directory '{}': make it, or choose a socket "
                                "in a directory that exists",
                                folder.string()),
                    "socket");
}

}  // namespace

base::Result<std::unique_ptr<DoorPart>> DoorPart::open(Options options,
                                                       const config::Configuration& configuration,
                                                       CorePart& core, HostPart& host,
                                                       TelemetryPart& telemetry,
                                                       logging::Log& log) {
  std::unique_ptr<DoorPart> door(
      new DoorPart(std::move(options), configuration, core, host, telemetry, log));
  // A pod has the uid of its job's user, with any user of the daemon.
  const bool runs_as_itself = configuration.local_engine && !host.node_part().can_switch_user;
  TRY_ASSIGN(const model::UserRange range, users_of_site(configuration, runs_as_itself));
  TRY(door->make_authenticators(range));
  TRY(make_socket_folder(door->options_.socket));
  TRY_ASSIGN(door->server_, api::Server::start(door->server_options(range, runs_as_itself),
                                               door->core_access(), core.hub()));
  TRY_ASSIGN(door->network_listener_,
             open_network_listener(configuration, door->options_.listener_program, *door->server_,
                                   door->certificates_, range, *door->options_.users, log));
  return door;
}

DoorPart::DoorPart(Options options, const config::Configuration& configuration, CorePart& core,
                   HostPart& host, TelemetryPart& telemetry, logging::Log& log)
    : options_(std::move(options)),
      at_start_(configuration),
      core_(core),
      host_(host),
      telemetry_(telemetry),
      log_(log),
      commands_(core.loop()),
      snapshots_(core.loop()),
      channels_(
          core.engine_access(), [&core] { return core.snapshot(); }, log),
      outputs_(core.engine_access(), [&core] { return core.snapshot(); }, host.users_files()) {
  slurm_names_.set(configuration.slurm);
  in_force_.set(config::values_in_force(options_.config_file, configuration, configuration));
  identities_.set(configuration.identities);
}

DoorPart::~DoorPart() {
  stop();
}

base::Status DoorPart::make_authenticators(const model::UserRange& range) {
  const auto warn = [this](const std::string& line) { warn_of_credentials(line); };
  tokens_ = std::make_unique<api::TokenAuthenticator>(
      snapshots_, *options_.users, commands_, token_uses_,
      api::TokenAuthenticator::Options{
          .users = range,
          .still_stand =
              [this, signers = signers_of(at_start_)](const model::ProvenNames& proven) {
                return api::still_stand(proven, signers, *identities_.get());
              },
          .warn = warn});
  TRY_ASSIGN(web_tokens_, read_web_token_keys(at_start_));
  identities_of_others_ = std::make_unique<api::IdentityAuthenticator>(
      *options_.users, api::IdentityAuthenticator::Options{
                           .users = range,
                           .prove = [this](const api::Credential& shown,
                                           base::Instant now) { return prove(shown, now); },
                           .rule = [this] { return identities_.get(); },
                           .warn = warn});
  authenticator_ = std::make_unique<api::Authenticators>(*tokens_, *identities_of_others_);
  return {};
}

base::Result<api::ProvenIdentity> DoorPart::prove(const api::Credential& shown, base::Instant now) {
  if (shown.kind == api::Credential::Kind::kCertificate) {
    return certificates_.prove(shown.secret, now);
  }
  if (web_tokens_ != nullptr) return web_tokens_->prove(shown.secret, now);
  return base::fail(base::ErrorCode::kUnauthenticated, "tokens of an issuer are not accepted");
}

void DoorPart::warn_of_credentials(const std::string& line) {
  log_.warn(logging::of_platform("credentials"), "api {}", line);
}

api::ServerOptions DoorPart::server_options(const model::UserRange& range, bool runs_as_itself) {
  api::ServerOptions server;
  server.socket_path = options_.socket;
  server.version = GP_VERSION;
  server.io_threads = at_start_.api_threads;
  if (runs_as_itself) server.only_uid = geteuid();
  server.users = range;
  server.authenticator = authenticator_.get();
  server.budgets = budgets_of(at_start_);
  server.page_bytes = static_cast<std::size_t>(at_start_.api_page_bytes.value());
  server.is_privileged = [own = geteuid()](std::uint32_t uid) { return uid == 0 || uid == own; };
  server.warn = [this](std::optional<std::uint32_t> user, const std::string& line) {
    log_.warn(user ? logging::of_user(*user) : logging::of_platform("the API"), "api {}", line);
  };
  server.notable = [this](const api::Peer& peer, const api::NotableCall& call) {
    tell_call(log_, peer, call);
  };
  return server;
}

api::CoreAccess DoorPart::core_access() {
  return api::CoreAccess{
      .commands = commands_,
      .snapshots = snapshots_,
      .archive = core_.store(),
      .outputs = outputs_,
      .users = *options_.users,
      .readings = options_.readings,
      .isolation = [this] { return isolation_of(host_.node_part()); },
      .channels = &channels_,
      .audit = &core_.store(),
      .statistics = [this] { return core_.loop().statistics(); },
      .slurm_names = [this] { return slurm_names_.get(); },
      .configuration = [this] { return in_force_.get(); },
      .access = [this] { return core_.access(); },
      .token_uses = &token_uses_,
      .judge_gpu = [this](
                       const controller::Snapshot& snapshot, const health::Records& records,
                       const health::GpuKey& gpu,
                       base::Instant now) { return verdicts_.judge(snapshot, records, gpu, now); },
      .history = telemetry_.history(),
      .notes = telemetry_.notes(),
      .metrics = at_start_.metrics,
      .metric_sources = options_.metric_sources,
      .alerts = options_.alerts,
      .reading_hub = &telemetry_.live_readings(),
      .uses = &telemetry_.uses(),
      .kpis = telemetry_.kpis(),
      .idle = idle_rule_of(at_start_),
      .ledger = &core_.store()};
}

void DoorPart::reload(const config::Configuration& configuration) {
  slurm_names_.set(configuration.slurm);
  identities_.set(configuration.identities);
  if (network_listener_ != nullptr) {
    const auto read = read_authorities(at_start_, certificates_);
    if (!read) spdlog::warn("{}; the former authorities stay in force", read.error().message);
  }
  in_force_.set(config::values_in_force(in_force_.get()->file, at_start_, configuration));
  if (network_listener_ != nullptr) network_listener_->reload();
}

void DoorPart::stop() {
  network_listener_.reset();
  server_.reset();
}

}  // namespace gpu_platform::bin
