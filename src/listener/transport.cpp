#include "listener/transport.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <cerrno>

namespace gpu_platform::listener {

namespace {

// A certificate with its issuers takes two to four kilobytes, and each side may show one.
constexpr std::size_t kMaxProof = 20 * 1024;

}  // namespace

Transport::Transport(int descriptor, const Tls* tls)
    : descriptor_(descriptor), needs_tls_(tls != nullptr) {
  const Tls::Context context = needs_tls_ ? tls->current() : nullptr;
  if (context == nullptr) return;
  ssl_.reset(SSL_new(context.get()));
  if (ssl_ != nullptr) {
    SSL_set_fd(ssl_.get(), descriptor);
    SSL_set_accept_state(ssl_.get());
    if ((SSL_get_verify_mode(ssl_.get()) & SSL_VERIFY_PEER) == 0) return;
    SSL_set_msg_callback(ssl_.get(), note_message);
    SSL_set_msg_callback_arg(ssl_.get(), this);
  }
}

Transport::Outcome Transport::outcome_of(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Outcome::kWantsRead;
    case SSL_ERROR_WANT_WRITE:
      return Outcome::kWantsWrite;
    case SSL_ERROR_ZERO_RETURN:
      return Outcome::kEnd;
    default:
      is_greeted_ = false;  // nothing more may be said
      return Outcome::kBroken;
  }
}

// Called by the library for every message of the handshake, and for headers and alerts.
void Transport::note_message(int, int, int type, const void* bytes, std::size_t size, SSL*,
                             void* self) {
  if (type != SSL3_RT_HANDSHAKE) return;
  auto& of = *static_cast<Transport*>(self);
  of.is_proof_whole_ = of.is_proof_whole_ && of.proof_.size() + size <= kMaxProof;
  if (of.is_proof_whole_) of.proof_.append(static_cast<const char*>(bytes), size);
}

Transport::Outcome Transport::handshake() {
  if (!needs_tls_) return Outcome::kDone;
  if (ssl_ == nullptr) return Outcome::kBroken;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return outcome_of(result);
  SSL_set_msg_callback(ssl_.get(), nullptr);
  const bool has_certificate = SSL_get0_peer_certificate(ssl_.get()) != nullptr;
  if (!has_certificate || !is_proof_whole_) std::string().swap(proof_);
  is_greeted_ = true;
  return Outcome::kDone;
}

Transport::Moved Transport::read(std::span<char> into) {
  if (needs_tls_) {
    ERR_clear_error();
    std::size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
    return result == 1 ? Moved{Outcome::kDone, bytes} : Moved{outcome_of(result), 0};
  }
  const ssize_t bytes = ::recv(descriptor_, into.data(), into.size(), MSG_DONTWAIT);
  if (bytes > 0) return {Outcome::kDone, static_cast<std::size_t>(bytes)};
  if (bytes == 0) return {Outcome::kEnd, 0};
  return {errno == EAGAIN || errno == EINTR ? Outcome::kWantsRead : Outcome::kBroken, 0};
}

Transport::Moved Transport::write(std::string_view bytes) {
  if (needs_tls_) {
    ERR_clear_error();
    std::size_t written = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
    return result == 1 ? Moved{Outcome::kDone, written} : Moved{outcome_of(result), 0};
  }
  const ssize_t written =
      ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (written >= 0) return {Outcome::kDone, static_cast<std::size_t>(written)};
  return {errno == EAGAIN || errno == EINTR ? Outcome::kWantsWrite : Outcome::kBroken, 0};
}

void Transport::finish() {
  if (ssl_ != nullptr && is_greeted_) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }
  ::shutdown(descriptor_, SHUT_WR);
}

}  // namespace gpu_platform::listener
