#include "client/profiles.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/suggest.h"
#include "client/places.h"
#include "os/descriptor.h"
#include "os/replaced_file.h"

namespace gpu_platform::client {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargestFile = 1 << 20;
constexpr std::size_t kLongestName = 64;
constexpr int kVersion = 1;

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::unexpected<base::Error> refused(std::string message) {
  return base::fail(base::ErrorCode::kFailedPrecondition, std::move(message));
}

// ---- the file's content

// Empty where the entry has no such text.
std::string text_in(const Json& entry, std::string_view key) {
  const auto found = entry.find(std::string(key));
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Profile profile_of(const std::string& name, const Json& entry) {
  Profile profile{name, {}};
  if (auto server = http::parse_server(text_in(entry, "server")))
    profile.server = std::move(*server);
  profile.server.token = text_in(entry, "token");
  profile.server.tls = {text_in(entry, "ca_file"), text_in(entry, "certificate"),
                        text_in(entry, "key")};
  return profile;
}

base::Result<Profiles> parse_profiles(const std::string& path, const std::string& text) {
  const Json document = Json::parse(text, nullptr, false);
  const auto damaged = [&] {
    return refused(fmt::format(
        "{} is damaged: move it away and log in again with 'gpu-platform login'", path));
  };
  if (!document.is_object()) return damaged();
  const Json version = document.value("version", Json());
  if (version.is_number_integer() && version.get<std::int64_t>() > kVersion) {
    return refused(fmt::format("{} was written by a newer gpu-platform", path));
  }
  Profiles profiles;
  const Json entries = document.value("profiles", Json::object());
  for (const auto& [name, entry] : entries.items()) {
    Profile profile = profile_of(name, entry);
    const bool is_good =
        check_profile_name(name) && profile.server.is_network() &&
        (profile.server.token.empty() || http::is_valid_token(profile.server.token));
    if (!is_good) return damaged();
    profiles.put(std::move(profile));
  }
  profiles.current = text_in(document, "current");
  if (!profiles.current.empty() && profiles.find(profiles.current) == nullptr) return damaged();
  return profiles;
}

std::string text_of(const Profiles& profiles) {
  Json document;
  document["version"] = kVersion;
  document["current"] = profiles.current;
  document["profiles"] = Json::object();
  for (const Profile& profile : profiles.all) {
    Json& entry = document["profiles"][profile.name];
    const http::TlsFiles& tls = profile.server.tls;
    entry["server"] = profile.server.text();
    if (!profile.server.token.empty()) entry["token"] = profile.server.token;
    if (!tls.authorities.empty()) entry["ca_file"] = tls.authorities;
    if (!tls.certificate.empty()) entry["certificate"] = tls.certificate;
    if (!tls.key.empty()) entry["key"] = tls.key;
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// ---- the file

base::Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 1 << 14> bytes{};
  while (text.size() <= kLargestFile) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(base::system_error("read " + path, errno));
    if (got == 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return refused(fmt::format("{} is larger than 1 MiB: it is not a file of 'login'", path));
}

base::Result<Profiles> read_file(const std::string& path, unsigned uid) {
  // Not a link: what it leads to may change. Not blocking: it may be a pipe.
  const os::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.is_open() && (errno == ENOENT || errno == ENOTDIR)) return Profiles{};
  if (!fd.is_open()) return std::unexpected(base::system_error("open " + path, errno));
  struct stat about{};
  if (::fstat(fd.get(), &about) != 0) {
    return std::unexpected(base::system_error("read " + path, errno));
  }
  if (!S_ISREG(about.st_mode)) return refused(fmt::format("{} is not a file", path));
  if (about.st_uid != uid) return refused(fmt::format("{} belongs to another user", path));
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refused(
        fmt::format("{} holds tokens and is open to other users: revoke the tokens if others may "
                    "have read them, then run: chmod 600 {}",
                    path, path));
  }
  TRY_ASSIGN(const std::string text, read_all(fd.get(), path));
  return parse_profiles(path, text);
}

// Makes the folder and those above it, for the person alone.
base::Status make_folder(const std::string& folder, unsigned uid) {
  for (std::size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    const std::string part = folder.substr(0, end);
    if (::mkdir(part.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      return std::unexpected(base::system_error("make " + part, errno));
    }
    if (end == std::string::npos) break;
  }
  struct stat about{};
  if (::stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
    return refused(fmt::format("{} is not a folder", folder));
  }
  if (about.st_uid != uid || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return refused(fmt::format("other users may write in {}: run: chmod 700 {}", folder, folder));
  }
  return {};
}

// ---- which server

base::Result<http::Server> chosen_server(const std::string& text, const std::string& field,
                                         const ProcessEnvironment& process_environment) {
  if (!http::is_address(text)) {
    TRY_ASSIGN(const Profiles profiles, read_profiles(process_environment));
    if (const Profile* profile = profiles.find(text)) return profile->server;
    std::vector<std::string_view> names;
    for (const Profile& profile : profiles.all) names.push_back(profile.name);
    return base::invalid(field, fmt::format("'{}' is neither a profile nor an address such as "
                                            "https://HOST:PORT or unix:PATH{}",
                                            text, base::did_you_mean(text, names)));
  }
  auto server = http::parse_server(text);
  if (!server) {
    // What has a '@' may hold a password.
    const bool is_harmless = text.find('@') == std::string::npos;
    return base::invalid(
        field, is_harmless ? fmt::format("'{}' is not a server: {}", text, server.error().message)
                           : server.error().message);
  }
  if (server->is_network()) {
    TRY_ASSIGN(const Profiles profiles, read_profiles(process_environment));
    if (const Profile* profile = profiles.find_server(*server)) return profile->server;
  }
  return server;
}

std::vector<http::Server> servers_of_machine(const ProcessEnvironment& process_environment) {
  std::vector<http::Server> servers;
  for (std::string& path : sockets_to_try(process_environment)) {
    servers.push_back({.kind = http::Server::Kind::kSocket, .path = std::move(path)});
  }
  return servers;
}

base::Result<std::vector<http::Server>> servers_without_tokens(
    const ServerChoice& choice, const ProcessEnvironment& process_environment) {
  const std::string field = choice.server ? "--server" : "GPU_PLATFORM_SERVER";
  const auto given =
      choice.server ? choice.server : variable(process_environment, "GPU_PLATFORM_SERVER");
  if (given == kLocalProfile) return servers_of_machine(process_environment);
  if (given) {
    TRY_ASSIGN(http::Server server, chosen_server(*given, field, process_environment));
    return std::vector<http::Server>{std::move(server)};
  }
  TRY_ASSIGN(const Profiles profiles, read_profiles(process_environment));
  if (const Profile* current = profiles.find(profiles.current)) {
    return std::vector<http::Server>{current->server};
  }
  return servers_of_machine(process_environment);
}

// From the option or the variable; a path counts from the current folder, also in a profile.
void put_file(std::string& target, const std::optional<std::string>& option, std::string_view name,
              const ProcessEnvironment& process_environment) {
  const auto given = option ? option : variable(process_environment, name);
  if (!given) return;
  target = given->starts_with('/') || given->empty() ? *given
                                                     : process_environment.directory + "/" + *given;
}

}  // namespace

Profile* Profiles::find(std::string_view name) {
  const auto it = std::ranges::find(all, name, &Profile::name);
  return it == all.end() ? nullptr : &*it;
}

const Profile* Profiles::find(std::string_view name) const {
  const auto it = std::ranges::find(all, name, &Profile::name);
  return it == all.end() ? nullptr : &*it;
}

const Profile* Profiles::find_server(const http::Server& server) const {
  const auto is_it = [&](const Profile& profile) { return profile.server.text() == server.text(); };
  const Profile* chosen = find(current);
  if (chosen != nullptr && is_it(*chosen)) return chosen;
  const auto it = std::ranges::find_if(all, is_it);
  return it == all.end() ? nullptr : &*it;
}

void Profiles::put(Profile profile) {
  if (Profile* old = find(profile.name)) {
    *old = std::move(profile);
    return;
  }
  const auto place = std::ranges::lower_bound(all, profile.name, {}, &Profile::name);
  all.insert(place, std::move(profile));
}

base::Status check_profile_name(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto is_of_name = [&](char c) { return is_word(c) || c == '-' || c == '_' || c == '.'; };
  const bool is_good = !name.empty() && name.size() <= kLongestName && is_word(name.front()) &&
                       std::ranges::all_of(name, is_of_name) && name != kLocalProfile;
  if (is_good) return {};
  return base::invalid("--name",
                       fmt::format("'{}' cannot name a profile: a name has up to {} letters, "
                                   "digits, '-', '_' and '.', and is not '{}'",
                                   name, kLongestName, kLocalProfile));
}

std::optional<std::string> credentials_file(const ProcessEnvironment& process_environment) {
  constexpr std::string_view kFile = "/gpu-platform/credentials";
  // A relative path counts as none, as the XDG specification has it.
  const auto config = variable(process_environment, "XDG_CONFIG_HOME");
  if (config && config->starts_with('/')) return *config + std::string(kFile);
  const auto home = variable(process_environment, "HOME");
  if (!home || !home->starts_with('/')) return std::nullopt;
  return *home + "/.config" + std::string(kFile);
}

base::Result<Profiles> read_profiles(const ProcessEnvironment& process_environment) {
  const auto path = credentials_file(process_environment);
  if (!path) return Profiles{};
  return read_file(*path, process_environment.uid);
}

base::Status change_profiles(const ProcessEnvironment& process_environment,
                             const std::function<base::Status(Profiles&)>& change) {
  const auto path = credentials_file(process_environment);
  if (!path) return refused("there is no place for a profile: set HOME or XDG_CONFIG_HOME");
  TRY(make_folder(folder_of(*path), process_environment.uid));
  const std::string lock = *path + ".lock";
  const os::Descriptor locked(
      ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!locked.is_open()) return std::unexpected(base::system_error("open " + lock, errno));
  while (::flock(locked.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return std::unexpected(base::system_error("lock " + lock, errno));
  }
  TRY_ASSIGN(Profiles profiles, read_file(*path, process_environment.uid));
  const Profiles before = profiles;
  TRY(change(profiles));
  return profiles == before ? base::Status()
                            : os::replace_file(*path, text_of(profiles), S_IRUSR | S_IWUSR);
}

base::Result<std::vector<http::Server>> servers_to_try(
    const ServerChoice& choice, const ProcessEnvironment& process_environment) {
  TRY_ASSIGN(std::vector<http::Server> servers,
             servers_without_tokens(choice, process_environment));
  http::Server& first = servers.front();
  if (!first.is_network()) return servers;
  put_file(first.tls.authorities, choice.authorities, "GPU_PLATFORM_CA_FILE", process_environment);
  put_file(first.tls.certificate, choice.certificate, "GPU_PLATFORM_CERT", process_environment);
  put_file(first.tls.key, choice.key, "GPU_PLATFORM_KEY", process_environment);
  if (first.tls.certificate.empty() != first.tls.key.empty()) {
    return base::invalid("--cert", "--cert and --key go together");
  }
  if (const auto token = variable(process_environment, "GPU_PLATFORM_TOKEN")) {
    if (!http::is_valid_token(*token)) {
      return base::invalid("GPU_PLATFORM_TOKEN", "it holds something else than a token");
    }
    first.token = *token;
  }
  return servers;
}

}  // namespace gpu_platform::client
