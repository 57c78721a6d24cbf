#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/session.h"
#include "http/server.h"

// The servers that a person has logged in to, in a file that only the person can read.

namespace gpu_platform::client {

// The name that stands for this machine's own daemon, so it names no profile.
inline constexpr std::string_view kLocalProfile = "local";

struct Profile {
  std::string name;
  http::Server server;  // with its token and the paths of its certificates

  friend bool operator==(const Profile&, const Profile&) = default;
};

struct Profiles {
  std::string current;       // the name of one of them; empty: this machine's own daemon
  std::vector<Profile> all;  // by name

  Profile* find(std::string_view name);
  const Profile* find(std::string_view name) const;
  // The one of this address; the current one before others.
  const Profile* find_server(const http::Server& server) const;
  void put(Profile profile);

  friend bool operator==(const Profiles&, const Profiles&) = default;
};

// A name has 1 to 64 letters, digits, '-', '_' and '.', and begins with none of these signs.
base::Status check_profile_name(std::string_view name);

// $XDG_CONFIG_HOME/gpu-platform/credentials, or below ~/.config; nothing without either.
std::optional<std::string> credentials_file(const ProcessEnvironment& process_environment);

// No file: no profiles. Refuses a file that others can read or that belongs to another user.
base::Result<Profiles> read_profiles(const ProcessEnvironment& process_environment);

// Reads, changes and writes under a lock: of two at once neither loses its change, and a reader
// meanwhile sees the file as it was or as it is.
base::Status change_profiles(const ProcessEnvironment& process_environment,
                             const std::function<base::Status(Profiles&)>& change);

// What the command line says about the server.
struct ServerChoice {
  std::optional<std::string> server;  // an address or the name of a profile
  std::optional<std::string> authorities, certificate, key;
};

// The servers to try, in this order: the option, GPU_PLATFORM_SERVER, the current profile, this
// machine's sockets (the user's, then root's). An address that a profile has gets that profile's
// token and certificates; GPU_PLATFORM_TOKEN and GPU_PLATFORM_CA_FILE, _CERT and _KEY go before
// them, and options before all. kInvalidArgument: what was given is wrong.
base::Result<std::vector<http::Server>> servers_to_try(
    const ServerChoice& choice, const ProcessEnvironment& process_environment);

}  // namespace gpu_platform::client
