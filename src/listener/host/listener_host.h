#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "listener/host/certificate.h"
#include "listener/link.h"

namespace gpu_platform::listener {

// The socket that clients connect to. The daemon opens it: the listener may open nothing.
struct Place {
  Door door = Door::kRest;
  std::string host;  // a numeric address, IPv6 without brackets
  std::uint16_t port = 0;
};

struct ListenerHostOptions {
  std::string program;  // path of gpu-platform-listener
  Settings settings;
  std::vector<Place> places;
  std::optional<CertificateFiles> certificate;  // without it there is no TLS
  // The user that the listener becomes, where the daemon is root.
  struct User {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
  };
  std::optional<User> user;
  // Takes each connection that a client needs; owns the descriptor.
  std::function<void(int descriptor, Credential credential)> open;
  // Takes the server's certificates (PEM) before the listener shows them. Null: not wanted.
  std::function<void(const std::string& chain)> shows;
  // Takes a line for the log.
  std::function<void(bool is_warning, const std::string& line)> tell;

  base::Duration certificate_interval = base::seconds(2);  // between looks at its files
  base::Duration min_restart_delay = base::milliseconds(200);
  base::Duration max_restart_delay = base::seconds(30);
};

// The daemon's side of the listener: opens the sockets, keeps one listener running, hands it the
// certificate whenever its files change, and takes the connections that it asks for. What comes
// from the listener is checked: one that breaks the protocol is ended and another started.
//
// Runs on a thread of its own, on which `open` and `tell` are called.
class ListenerHost {
 public:
  // An error of an address or of the certificate names the key of the configuration.
  static base::Result<std::unique_ptr<ListenerHost>> start(ListenerHostOptions options);
  // Ends the listener; lets it finish for up to two seconds what is answered already.
  ~ListenerHost();
  ListenerHost(const ListenerHost&) = delete;
  ListenerHost& operator=(const ListenerHost&) = delete;

  // Reads the certificate again now. If the files are not right, the one before stays in force.
  // Safe from any thread.
  void reload();

  pid_t pid() const;  // 0: none runs now. Safe from any thread.

 private:
  class Impl;
  explicit ListenerHost(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::listener
