#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "http/server.h"
#include "http/transport.h"

namespace gpu_platform::http {

// TLS 1.3 over a connected socket that never blocks. The server's certificate must lead to an
// authority that is trusted and be for the server's host. One thread at a time.
class TlsSession {
 public:
  // Reads the files that the server names. The descriptor stays the caller's and must outlive this.
  static Transported<std::unique_ptr<TlsSession>> begin(int fd, const Server& server);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Repeat it while it wants something; then the other side is who it should be.
  Transported<Wants> handshake();
  Transported<Step> read(std::span<char> room);
  // May be repeated with other bytes only after it moved some.
  Transported<Step> write(std::string_view bytes);

 private:
  struct State;
  explicit TlsSession(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace gpu_platform::http
