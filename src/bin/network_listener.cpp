#include "bin/network_listener.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "bin/site_files.h"
#include "bin/site_users.h"
#include "config/listen_address.h"

namespace gpu_platform::bin {

namespace {

api::Credential credential_of(listener::Credential&& shown) {
  const auto kind = shown.kind == listener::Credential::Kind::kBearer
                        ? api::Credential::Kind::kBearer
                        : api::Credential::Kind::kCertificate;
  return {kind, std::move(shown.secret), std::move(shown.address)};
}

std::vector<listener::Place> places_of(const config::WordList& addresses, listener::Door door) {
  std::vector<listener::Place> places;
  for (const std::string& word : addresses.words) {
    // The schema has checked them.
    if (const auto address = config::parse_listen_address(word)) {
      places.push_back({door, address->host, address->port});
    }
  }
  return places;
}

}  // namespace

listener::ListenerHostOptions listener_options(const config::Configuration& configuration) {
  listener::ListenerHostOptions options;
  options.places = places_of(configuration.rest_addresses, listener::Door::kRest);
  for (listener::Place& place : places_of(configuration.grpc_addresses, listener::Door::kGrpc)) {
    options.places.push_back(std::move(place));
  }
  options.settings.threads = configuration.api_threads;
  options.settings.connections = configuration.rest_connections;
  options.settings.connections_per_address = configuration.rest_connections_per_address;
  options.settings.body_bytes = static_cast<std::uint64_t>(configuration.api_body_bytes.value());
  options.settings.host_names = configuration.rest_host_names.words;
  options.settings.web_origins = configuration.rest_origins.words;
  if (!configuration.tls_certificate.path.empty()) {
    options.certificate =
        listener::CertificateFiles{configuration.tls_certificate.path, configuration.tls_key.path};
  }
  options.settings.asks_for_certificates = !configuration.tls_client_ca.path.empty();
  return options;
}

base::Result<std::unique_ptr<listener::ListenerHost>> open_network_listener(
    const config::Configuration& configuration, const std::string& program, api::Server& server,
    api::CertificateProver& certificates, const model::UserRange& users,
    host::UserDirectory& directory, logging::Log& log) {
  listener::ListenerHostOptions options = listener_options(configuration);
  if (options.places.empty()) return nullptr;
  options.program = program;
  if (!configuration.tls_client_ca.path.empty()) {
    TRY(read_authorities(configuration, certificates));
    options.shows = [&certificates](const std::string& chain) { certificates.note_own(chain); };
  }
  // Only root may give it another user than its own.
  if (geteuid() == 0) {
    TRY_ASSIGN(const ListenerUser user,
               listener_user(configuration.listener_user.text, users, directory));
    options.user = {user.uid, user.gid};
  }
  options.open = [&server](int descriptor, listener::Credential shown) {
    server.adopt(descriptor, credential_of(std::move(shown)));
  };
  options.tell = [&log](bool is_warning, const std::string& line) {
    // A captured listener writes what it likes, so that all of it is in one budget.
    log.write(is_warning ? spdlog::level::warn : spdlog::level::info,
              logging::of_platform("the listener"), "api {}", line);
  };
  return listener::ListenerHost::start(std::move(options));
}

}  // namespace gpu_platform::bin
