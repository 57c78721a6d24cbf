#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "listener/tls.h"

namespace gpu_platform::listener {

// The bytes of one client: over TLS, or plain. Never waits: the caller does, for the descriptor.
// Thread: one at a time.
class Transport {
 public:
  enum class Outcome {
    kDone,
    kWantsRead,   // go on when the descriptor can be read
    kWantsWrite,  // or written
    kEnd,         // the client sends no more
    kBroken,
  };
  struct Moved {
    Outcome outcome = Outcome::kBroken;
    std::size_t bytes = 0;
  };

  // The descriptor is non-blocking and stays the caller's. `tls` null: plain.
  Transport(int descriptor, const Tls* tls);

  Outcome handshake();
  bool is_over_tls() const { return needs_tls_; }
  // After it: its messages, if the client has shown a certificate; otherwise empty. They are what
  // the daemon checks (api/identity/handshake_proof.h).
  const std::string& proof() const { return proof_; }
  Moved read(std::span<char> into);
  Moved write(std::string_view bytes);
  // Tells the client that nothing more comes.
  void finish();

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  Outcome outcome_of(int result);
  static void note_message(int is_sent, int version, int type, const void* bytes, std::size_t size,
                           SSL* ssl, void* self);

  const int descriptor_;
  const bool needs_tls_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  std::string proof_;
  bool is_proof_whole_ = true;  // no message was left out
  bool is_greeted_ = false;     // the handshake is over
};

}  // namespace gpu_platform::listener
