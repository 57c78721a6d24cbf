#include "listener/transport.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <cerrno>

namespace gpu_platform::listener {

Transport::Transport(int descriptor, const Tls* tls)
    : descriptor_(descriptor), needs_tls_(tls != nullptr) {
  const Tls::Context context = needs_tls_ ? tls->current() : nullptr;
  if (context == nullptr) return;
  ssl_.reset(SSL_new(context.get()));
  if (ssl_ != nullptr) {
    SSL_set_fd(ssl_.get(), descriptor);
    SSL_set_accept_state(ssl_.get());
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

Transport::Outcome Transport::handshake() {
  if (!needs_tls_) return Outcome::kDone;
  if (ssl_ == nullptr) return Outcome::kBroken;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return outcome_of(result);
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
