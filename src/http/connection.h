#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "http/server.h"
#include "http/transport.h"

// A stream of bytes to a daemon, over a Unix socket, TCP or TLS 1.3.

namespace gpu_platform::http {

// Never blocks but where a function says that it waits. One thread at a time.
class Connection {
 public:
  // Connects and, with TLS, checks the server's certificate and name. Waits: for each address of
  // the host at most as long as it says.
  static Transported<Connection> open(const Server& server, const Waiting& waiting);

  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  Transported<Step> try_read(std::span<char> room);
  Transported<Step> try_write(std::string_view bytes);

  // Waits for bytes; 0: the end.
  Transported<std::size_t> read(std::span<char> room, const Waiting& waiting);
  // Waits until some are written.
  Transported<std::size_t> write(std::string_view bytes, const Waiting& waiting);

  const Server& server() const;
  int fd() const;  // for waiting alone
  void close();

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace gpu_platform::http
