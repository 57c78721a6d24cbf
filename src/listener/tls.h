#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <openssl/ssl.h>

#include "base/result.h"

namespace gpu_platform::listener {

// The certificate in force, for the next connections: TLS 1.3 alone, without tickets and early
// data. Connections keep the one that they began with. Safe from any thread.
class Tls {
 public:
  using Context = std::shared_ptr<SSL_CTX>;

  // `protocol`: the one that is spoken behind it, by its ALPN name ("http/1.1"). A client that asks
  // for others alone is refused; one that does not ask is taken.
  explicit Tls(std::string protocol) : protocol_(std::move(protocol)) {}
  // Clients are asked for a certificate and may have none. Any that has its key is taken: the
  // daemon judges it. For the certificates from now on.
  void ask_for_certificates() { asks_ = true; }

  // Takes PEM texts from now on. If they are refused, those before stay in force.
  base::Status use(const std::string& chain, const std::string& key);
  // Null before the first certificate.
  Context current() const;

 private:
  const std::string protocol_;
  bool asks_ = false;
  mutable std::mutex mutex_;
  Context context_;
};

}  // namespace gpu_platform::listener
