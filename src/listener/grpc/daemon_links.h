#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "listener/client.h"

namespace gpu_platform::listener {

// One connection to the daemon, which counts as one of the client's address.
class DaemonLink {
 public:
  // The connection table has been entered.
  DaemonLink(const ClientContext& with, ConnectionTable::Key key, std::string bearer,
             int descriptor);
  ~DaemonLink();
  DaemonLink(const DaemonLink&) = delete;
  DaemonLink& operator=(const DaemonLink&) = delete;

  DaemonSocket& socket() { return socket_; }
  const std::string& bearer() const { return bearer_; }

 private:
  ConnectionTable& connection_table_;
  const ConnectionTable::Key key_;
  const std::string bearer_;  // that it was opened with
  DaemonSocket socket_;
};

// Those of one client: each call has one for itself, and a few wait for the next call.
class DaemonLinks {
 public:
  // `address`: of the client. `proof`: of its certificate; empty: none. Both outlive this.
  DaemonLinks(ClientContext with, const std::string& address, ConnectionTable::Key key,
              const std::string& proof)
      : with_(with), address_(address), key_(std::move(key)), proof_(proof) {}

  // Returns a connection for this token, or for the certificate if it is empty.
  base::Result<std::unique_ptr<DaemonLink>> take(const std::string& bearer);
  // Takes one back whose answer was read to its end.
  void give_back(std::unique_ptr<DaemonLink> link);
  // Closes those that have waited long.
  void tick(Client::Clock::time_point now);

 private:
  struct Waiting {
    std::unique_ptr<DaemonLink> link;
    Client::Clock::time_point since;
  };

  ClientContext with_;
  const std::string& address_;
  const ConnectionTable::Key key_;
  const std::string& proof_;
  std::vector<Waiting> waiting_;
};

}  // namespace gpu_platform::listener
